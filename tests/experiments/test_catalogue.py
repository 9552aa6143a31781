"""The paper's tables and figures are all there, and can be measured on what is trained for them."""

from __future__ import annotations

import pytest

from iterant.errors import UnknownName
from iterant.experiments.catalogue import (
    BESIDES,
    CHESS,
    EXPERIMENTS,
    FITTED,
    INTERVENTIONS,
    MAZES,
    PEAKS,
    SUMS,
    Experiment,
    experiment,
)
from iterant.experiments.measures import Accuracy, Changes, Indices, Peaks, Recovered
from iterant.experiments.models import MODELS, OURS, Model
from iterant.experiments.reproduce import smaller
from iterant.registry import task
from iterant.training.run import plan


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'fig-width'"):
        experiment("fig-with")


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_what_is_shown_is_also_measured(one: Experiment) -> None:
    shown = [(row.model, row.measure) for row in one.rows]
    shown += [(model, panel.measure) for panel in one.panels for model in panel.models]
    assert shown or any(row.seeds for row in one.counted)
    for key, measure in shown:
        model = MODELS[key]
        sizes, studies = (
            {test.name for test in model.tests},
            {study.name for study in model.studies},
        )
        if isinstance(measure, Peaks):
            assert measure.size in sizes
            assert model.confident or not measure.confident
        elif isinstance(measure, Recovered):
            assert measure.study in studies
        elif isinstance(measure, Changes):
            assert "convergence" in studies
        elif isinstance(measure, Indices):
            assert "bit-flip" in studies
        else:
            assert isinstance(measure, Accuracy)


def test_every_number_of_the_paper_is_shown() -> None:
    shown = [row for one in EXPERIMENTS.values() for row in one.rows]
    for size, models in PEAKS.items():
        for model, value in models.items():
            assert any(
                row.model == model
                and isinstance(row.measure, Peaks)
                and row.measure.size == size
                and row.paper == value
                for row in shown
            ) or any(
                (row.model, row.size, row.paper) == (model, size, value)
                for one in EXPERIMENTS.values()
                for row in one.counted
            ), (size, model)
    ours = {"sums-ours", "mazes-ours", "chess-ours"}
    fitted = {row.model for row in shown if isinstance(row.measure, Accuracy)}
    assert fitted == set(FITTED) | ours
    for model, studies in INTERVENTIONS.items():
        for study, (steps, height) in studies.items():
            (row,) = [
                row for row in EXPERIMENTS["table-interventions"].rows
                if row.model == model and row.measure == Recovered(study)
            ]  # fmt: skip
            assert row.paper is not None
            assert row.paper.mean == height
            assert row.prefix == ("–" if steps is None else f"{steps:.2f}")


@pytest.mark.parametrize("key", [*SUMS, *MAZES, *CHESS, "sums-ours", "mazes-ours", "chess-ours"])
def test_all_that_is_measured_on_a_model_is_shown_somewhere(key: str) -> None:
    everything = [*EXPERIMENTS.values(), BESIDES]
    shown = {row.measure.needs for one in everything for row in one.rows if row.model == key}
    tests, studies = MODELS[key].tests, MODELS[key].studies
    measured = {test.name for test in tests} | {study.name for study in studies}
    assert measured - shown <= {"near-misses"}, "which records keep for whoever asks"


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_our_own_recipe_is_a_row_wherever_it_is_measured(one: Experiment) -> None:
    ours = {model.task: model.key for model in MODELS.values() if model.word == OURS}
    beside = {(MODELS[row.model].task, row.measure) for row in one.rows
              if not getattr(row.measure, "confident", False)}  # fmt: skip
    for task_name, measure in beside:
        assert any((row.model, row.measure) == (ours[task_name], measure) for row in one.rows)
    for row in one.counted:
        assert any(other.model == ours[MODELS[row.model].task] for other in one.counted)


@pytest.mark.parametrize(
    "model", [model for model in MODELS.values() if model.task != "chess"], ids=lambda m: m.key
)
def test_every_model_can_be_trained(model: Model) -> None:
    recipe = model.recipe()
    assert plan(task(model.task), recipe.changed(width=24))["updates"] > 0
    if model.alpha is not None:
        assert recipe.alpha == model.alpha


def test_grids_shrink_in_proportion() -> None:
    assert smaller(MODELS["sums-recall-a1"])["width"] == 32
    assert smaller(MODELS["sums-recall-a1-w100"])["width"] == 8
    assert smaller(MODELS["sums-recall-a1-m40"])["iterations"] == 21
    assert smaller(MODELS["sums-ours"]) == {"watch_every": 0}
    # Plain DT trains at a tenth of the others' rate, and does so here.
    rates = [smaller(MODELS[key])["rate"] for key in ("sums-dt-a1", "sums-recall-a1")]
    assert rates == pytest.approx([4e-4, 4e-3])
    for model in MODELS.values():
        model.recipe(**smaller(model))


def test_only_what_is_shown_is_tested_on_a_small_machine() -> None:
    assert EXPERIMENTS["table-prefix-peaks"].needs["sums-recall-a1"] == {"48", "512"}
    assert EXPERIMENTS["fig-prefix-noise"].needs["sums-recall-a1"] == {"noise"}
