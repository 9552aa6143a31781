"""`analyze`: which studies are made, skipped and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exact_networks import exact_prefix_sums, first_right, forgetting
from small_networks import small_net

import iterant
from iterant.analysis import STUDIES, Subject
from iterant.analysis.report import shared_regime
from iterant.analysis.studies import subject_of
from iterant.errors import TaskError, UnknownName, UsageError
from iterant.io import RunFolder, save_weights
from iterant.nets import build, paper_net
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums

SUMS, MAZES = PrefixSums(), Mazes()
EXACT = Subject(exact_prefix_sums(), SUMS, "exact", "dt-recall", alpha=1.0, regime=30)
FORGETTING = Subject(forgetting(), SUMS, "forgetting", "dt", alpha=0.0, regime=30)
FEW: dict[str, Any] = {"size": 12, "count": 6, "max_steps": 70}


def test_table_of_interventions() -> None:
    report = iterant.analyze([EXACT, FORGETTING], what=["swap", "zeros", "noise", "clean"], **FEW)
    head, exact, without = report.table()
    assert head == ["model", "clean", "noise", "zeros", "swap"]
    targets = SUMS.sample(6, size=12, seed=1).targets
    mean = f"{float(first_right(targets).double().mean()):.2f} (100.0 %)"
    assert [exact[0], exact[1], exact[3]] == ["exact", mean, mean]
    assert without == ["forgetting", mean, "– (0.0 %)", "– (0.0 %)", "– (0.0 %)"]
    assert [report.of(what).figures["after"] for what in head[1:]] == [0, 1, 1, 50]
    assert len(report.of("swap", "exact").figures["accuracy"]) == 20
    report = iterant.analyze(EXACT, ["clean", "zeros", "swap"], after=20, **FEW)
    assert [report.of(word).figures["after"] for word in report.studies] == [0, 20, 20]


def test_all_possible_studies_by_default() -> None:
    report = iterant.analyze(EXACT, **FEW)
    lacking = {"move-end", "kinds"}
    assert set(report.studies) == set(STUDIES) - lacking
    assert {one.what for one in report.skipped} == lacking
    assert "the task prefix-sums has no method shorten" in report.skipped[0].why
    mazes = Subject(small_net("mazes", "dt-recall"), MAZES, "m")
    studies = iterant.analyze(mazes, size=9, count=2, max_steps=6, after=2).studies
    assert set(studies) == set(STUDIES) - {"bit-flip"}


def test_studies_that_these_problems_do_not_allow_are_skipped() -> None:
    report = iterant.analyze(EXACT, ["clean", "swap"], size=12, count=1, max_steps=60)
    assert report.studies == ("clean",)
    assert [one.what for one in report.skipped] == ["swap"]
    assert "no other problem" in report.skipped[0].why
    with pytest.raises(UsageError, match="none of these studies can be made: there is no other"):
        iterant.analyze(EXACT, "swap", size=12, count=1, max_steps=60)


def test_reports_are_reproducible() -> None:
    def figures(seed: int) -> list[dict[str, Any]]:
        net = Subject(small_net("prefix-sums", "dt-recall"), SUMS, "net")
        report = iterant.analyze(net, ["noise", "convergence"], after=3, seed=seed,
                                 size=12, count=6, max_steps=9)  # fmt: skip
        return [report.figures(word) for word in report.studies]

    assert str(figures(1)) == str(figures(1))
    assert str(figures(1)) != str(figures(2))


def test_default_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert iterant.analyze(EXACT, "clean", count=2, max_steps=1).size == 48
    mazes = Subject(small_net("mazes", "dt"), MAZES, "m")
    assert iterant.analyze(mazes, "clean", count=1, max_steps=1).size == 13
    assert iterant.analyze(EXACT, "clean", count=1, max_steps=1, size="5").size == 5
    # The sample that ships has no larger puzzles.
    monkeypatch.delenv("ITERANT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sample = Subject(small_net("chess", "dt"), iterant.task("chess"), "c")
    assert iterant.analyze(sample, "clean", count=1, max_steps=1).size == (0, 1600)


def test_progress() -> None:
    seen: list[tuple[str, float]] = []
    iterant.analyze(
        [EXACT, FORGETTING], ["clean", "convergence"], size=12, count=4, max_steps=6,
        progress=lambda label, share: seen.append((label, share)),
    )  # fmt: skip
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert seen[0][0] == "exact: clean"
    assert seen[-1][0] == "forgetting: convergence"


def test_network_of_fixed_depth() -> None:
    shallow = Subject(small_net("prefix-sums", "ff"), SUMS, "ff")  # 12 iterations
    report = iterant.analyze([shallow, EXACT], ["noise", "swap"], size=12, count=4)
    assert len(report.of("noise", "ff").figures["accuracy"]) == 11
    assert [(one.label, one.what) for one in report.skipped] == [("ff", "swap")]
    assert report.table()[1][2] == "skipped"
    with pytest.raises(UsageError):
        iterant.analyze([shallow, EXACT], ["noise"], max_steps=13)


def description_of(net: Any) -> dict[str, Any]:
    """Kind and configuration of a network, as files hold them."""
    return {"kind": net.config.kind, "config": net.config.described()}


def run_of(path: Path, variant: str, alpha: float) -> RunFolder:
    """A run folder of an untrained network for mazes."""
    net: Any = small_net("mazes", variant)
    recipe = {"net": variant, "alpha": alpha, "iterations": 30}
    run = RunFolder.create(path, {"task": "mazes", "net": description_of(net), "recipe": recipe})
    run.save("best", {f"net.{name}": t.float() for name, t in net.state_dict().items()}, {})
    return run


def test_run_folders(tmp_path: Path) -> None:
    kinds = [("dt", 0.0), ("dt", 1.0), ("dt-recall", 0.0), ("dt-recall", 1.0)]
    runs: list[Any] = [
        run_of(tmp_path / f"{variant}-{alpha}", variant, alpha) for variant, alpha in kinds
    ]
    runs[0], runs[1] = runs[0].path, str(runs[1].path)
    report = iterant.analyze(runs, ["clean", "noise", "zeros", "swap"], size=5, count=3, after=2,
                             max_steps=4)  # fmt: skip
    assert [row[0] for row in report.table()] == ["model", *(f"{v}-{a}" for v, a in kinds)]
    assert [(s.model, s.alpha, s.regime) for s in report.subjects] == [(*k, 30) for k in kinds]
    named = subject_of(tmp_path / "dt-0.0" / "checkpoints" / "best")
    assert (named.label, named.alpha) == ("dt-0.0 best", 0)


def test_shared_regime() -> None:
    unknown, other = replace(EXACT, regime=None), replace(EXACT, regime=20)
    assert shared_regime([EXACT, FORGETTING]) == 30
    assert shared_regime([unknown, EXACT]) == 30, "weights that do not say may be shown beside"
    assert shared_regime([other, EXACT]) is None
    assert shared_regime([unknown]) is None


def test_weights_without_a_task(tmp_path: Path) -> None:
    config = paper_net("prefix-sums", "dt-recall")
    net: Any = build(config.kind, config)
    save_weights(tmp_path / "w", description_of(net), net.state_dict())
    with pytest.raises(UsageError, match="w does not say which task"):
        subject_of(tmp_path / "w")
    subject = subject_of(tmp_path / "w", task="prefix-sums")
    assert (subject.task.spec.name, subject.label) == ("prefix-sums", "w")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"what": ["nosie"]}, UnknownName),
        ({"what": []}, UsageError),
        ({"what": ["move-end"]}, UsageError),
        ({"what": ["swap"], "max_steps": 50}, UsageError),
        ({"after": -1}, UsageError),
        ({"max_steps": 0}, UsageError),
        ({"count": 0}, TaskError),
        ({"what": ["swap"], "count": 1}, UsageError),
        ({"size": "many"}, TaskError),
        ({"tolerance": 0.0}, UsageError),
    ],
)
def test_invalid_arguments(changes: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        iterant.analyze(EXACT, **{**FEW, **changes})
    assert "\n" not in str(caught.value)


def test_invalid_subjects() -> None:
    mazes = Subject(small_net("mazes", "dt"), MAZES, "m")
    with pytest.raises(UsageError, match="different tasks"):
        iterant.analyze([EXACT, mazes])
    with pytest.raises(UsageError, match="which runs"):
        iterant.analyze([])
    bare: Any = mazes.net
    for given in (bare, [bare]):
        with pytest.raises(UsageError, match=r"got DeepThinking; .* Subject\(net, task"):
            iterant.analyze(given)
