"""What is measured on networks whose answers are known."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from exact import exact_prefix_sums

import iterant
from iterant.analysis import Subject
from iterant.experiments import campaign as measuring
from iterant.experiments.campaign import by_iteration, history, looked, measure
from iterant.experiments.measures import Changes, Indices, Peaks, Recovered
from iterant.experiments.models import MODELS, Look, Model, Trial
from iterant.experiments.records import Record
from iterant.nets import build, variant_config
from iterant.training.data import TrainingSet
from iterant.training.recipe import Recipe

SUMS = iterant.task("prefix-sums")
MODEL = Model("m", "prefix-sums", "dt-recall", "m", look_size=8)
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "campaign"


def record(**figures: Any) -> Record:
    about: dict[str, Any] = {"training": {}, "tests": {}, "studies": {}}
    return Record("m", 0, True, {}, {**about, **figures}, Path("x"))


def test_a_network_that_is_right_is_found_right() -> None:
    found = by_iteration(exact_prefix_sums(), SUMS, Trial(8, 6, 20), confident=True)
    assert found["problems"] == 6
    assert found["solved"][-1] == found["solved by the most confident"][-1] == 6
    cell = Peaks("8").of([record(tests={"8": found})])
    assert cell.every is not None
    assert cell.every.mean == 100
    assert cell.step == found["solved"].index(6) + 1 <= 9


def test_studies_in_a_few_numbers() -> None:
    subject = Subject(exact_prefix_sums(), SUMS, "exact")
    looks = (Look("swap"), Look("bit-flip"), Look("convergence"), Look("zeros", after=50))
    studies = {look.name: looked(subject, look, MODEL, 0.03) for look in looks}
    assert [study.get("after") for study in studies.values()] == [50, 50, None, 50]
    exact = [record(studies=studies)]
    for name in ("swap", "zeros after 50"):
        assert studies[name]["recovered"] == 1.0
        assert Recovered(name).of(exact).text == f"{studies[name]['mean iterations']:.2f}"
    (curve,) = Indices().curves(exact)
    assert len(curve) == 8
    assert curve == sorted(curve, reverse=True), "later bits change less"
    (change,) = Changes("problems").curves(exact)
    assert (len(change), change[-1]) == (300, 0.0)
    assert studies["convergence"]["problems"]["features"]["settled"] == 3


def test_a_network_that_ends_before_the_intervention_is_skipped() -> None:
    config = variant_config("ff", "prefix-sums", dims=1, channels=1, width=4, depth=3)
    subject = Subject(build(config.kind, config, seed=0), SUMS, "deep")
    assert looked(subject, Look("swap"), MODEL) == {"skipped": "there are 3 iterations"}
    assert Recovered("swap").of([record(studies={"swap": {"skipped": "…"}})]).every is None


def test_a_history_by_epoch() -> None:
    rows = [
        {"kind": "train", "epoch": 0.5, "loss": 1.0},
        {"kind": "train", "epoch": 1.0, "loss": 3.0},
        {"kind": "validation", "epoch": 1.0, "figures": {"validation": 0.5}},
        {"kind": "watch", "epoch": 1.0, "figures": {}},
        {"kind": "train", "epoch": 1.5, "loss": None},
        {"kind": "train", "epoch": 2.0, "loss": 0.25},
    ]
    assert history(rows) == [
        {"epoch": 1, "loss": 2.0, "validation": 0.5},
        {"epoch": 2, "loss": 0.25},
    ]


def test_a_plan_holds_every_seed_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = runpy.run_path(str(SCRIPT))["plan"]
    names = [unit.name for unit in plan("sums")]
    assert names[0] == "sums-recall-a1-s0"
    wanted = [m for m in MODELS.values() if m.key.startswith("sums-")]
    assert len(names) == len(set(names)) == sum(model.seeds for model in wanted)
    asked = ["--list", "--models", "sums-ff", "--units", "sums-n0-s2", "sums-ff-s0", "--done"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *asked])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert caught.value.code == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == ["sums-n0-s2", "sums-ff-s0"]


def test_a_study_that_fails_does_not_lose_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = iterant.train("prefix-sums", out=tmp_path / "run", seed=0, width=4, head=(4,), count=20,
                        batch=5, epochs=1, device="cpu", watch_every=0)  # fmt: skip
    model = replace(MODEL, tests=(Trial(8, 2, 3),), looks=(Look("clean"),))

    def fail(*given: object) -> None:
        raise RuntimeError("CUDA: out of luck")

    monkeypatch.setattr(measuring, "looked", fail)
    said: list[str] = []
    found = measure(model, run, iterant.load(run.path), SUMS, seed=0, say=said.append)
    assert len(found["tests"]["8"]["solved"]) == 3
    assert found["studies"] == {"clean": {"skipped": "it failed: CUDA: out of luck"}}
    assert said[-2] == "m clean failed: CUDA: out of luck"


def test_a_share_of_the_problems_is_one_of_all_that_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = iterant.train("prefix-sums", out=tmp_path / "run", seed=0, width=4, head=(4,), count=20,
                        batch=5, epochs=1, device="cpu", watch_every=0)  # fmt: skip
    problems = TrainingSet.of(SUMS, Recipe().changed(**run.config["recipe"]), torch.device("cpu"))
    monkeypatch.setattr(measuring, "SEEN", 10)
    model, net = replace(MODEL, tests=(Trial(8, 2, 3),)), iterant.load(run.path)
    for share, counts in ((1.0, (10, 4, 2)), (0.5, (5, 2, 1))):
        found = measure(model, run, net, SUMS, seed=0, problems=problems, share=share)
        judged = [found["training"][which]["of"] for which in ("train", "validation")]
        assert (*judged, found["tests"]["8"]["problems"]) == counts
