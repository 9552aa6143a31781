"""Every number of the paper has a row, and every row has a model that is tested for it."""

from __future__ import annotations

import pytest

from iterant.experiments.catalogue import (
    EXPERIMENTS,
    IN_DISTRIBUTION,
    INTERVENTIONS,
    PEAKS,
    Experiment,
)
from iterant.experiments.measures import Accuracy, Recovered, Solved
from iterant.experiments.models import MODELS, Model
from iterant.experiments.reproduce import planned_run
from iterant.registry import task
from iterant.training.run import recipe_for, run_summary


def measured(model: Model) -> set[str]:
    """What the record of a run of this model has."""
    tests = {test.name for test in model.tests} | {study.name for study in model.studies}
    return tests | {"train", "validation"}


@pytest.mark.parametrize("one", EXPERIMENTS.values(), ids=lambda one: one.name)
def test_every_row_has_its_test_or_study(one: Experiment) -> None:
    assert one.rows
    for row in one.rows:
        is_later_test = isinstance(row.measure, Solved)
        assert is_later_test or row.measure.key in measured(MODELS[row.model])
        assert MODELS[row.model].confident or not getattr(row.measure, "confident", False)


def test_every_number_of_the_paper_has_a_row() -> None:
    rows = [row for one in EXPERIMENTS.values() for row in one.rows]
    shown = [(row.model, row.measure.key, row.paper.value) for row in rows]
    for size, models in PEAKS.items():
        for model, value in models.items():
            assert (model, size, value) in shown
    fitted = {row.model for row in rows if isinstance(row.measure, Accuracy)}
    assert fitted == {*IN_DISTRIBUTION, "sums-ours", "mazes-ours", "chess-ours"}
    table = {(row.model, row.measure): row for row in EXPERIMENTS["table-interventions"].rows}
    for model, studies in INTERVENTIONS.items():
        for study, (steps, height) in studies.items():
            row = table[model, Recovered(study)]
            assert row.paper.value is not None
            assert row.paper.value.mean == height
            assert row.paper.text.startswith("– (" if steps is None else f"{steps:.2f} (")


@pytest.mark.parametrize("key", MODELS)
def test_every_model_can_be_trained(key: str) -> None:
    run, model = planned_run(key, 3), MODELS[key]
    assert (run.point, run.seed) == (key, 3)
    recipe = recipe_for(task(model.task), run.recipe, **run.changes)
    assert recipe == model.recipe
    assert model.alpha in (None, recipe.alpha)
    if model.task != "chess":  # whose puzzles are a file
        assert run_summary(task(model.task), recipe.changed(width=24))["steps"] > 0
