"""Shipped networks have the accuracy that their cards state."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

import iterant
from iterant import registry
from iterant.errors import DataError
from iterant.evaluation import evaluate_batch, operations, wilson
from iterant.io import read_result, save_weights
from iterant.nets import LocalRule, Net, build, parameter_count
from iterant.nets.max_plus import MaxPlus
from iterant.nets.protocol import like
from iterant.tasks.chess.puzzles import SUBSET, load_puzzles
from iterant.tasks.chess.task import SAMPLE
from iterant.tasks.protocol import Batch, Size, Task
from iterant.zoo import card, loading, shipped
from iterant.zoo.loading import CARD

ROOT = Path(__file__).parents[2]
WORK, DENSE = 2e10, 3e11
"""Operations that a test of one size may cost, of a local rule and of others: a few seconds."""
AT_ONCE = 8
"""Iterations after which the accuracy on puzzles is near its peak."""


def right(net: Net, task: Task, batch: Batch, steps: int) -> float:
    return evaluate_batch(net, task, batch, steps=steps, at=[steps]).end


@pytest.mark.parametrize("name", shipped())
def test_accuracy_of_the_card(name: str) -> None:
    about, net = card(name), iterant.load(name)
    assert vars(net)["card"] == about
    task, tried = registry.task(about["task"]), 0
    assert parameter_count(net) == about["parameters"]
    for text, figure in about["figures"].items():
        size = task.parse_size(text)
        # Cells of a masked rule or of a max-plus network come to rest exactly; each is computed
        # some dozen times.
        masked = isinstance(net, LocalRule) and net.config.masked
        local, puzzles = masked or isinstance(net, MaxPlus), isinstance(size, tuple)
        steps = AT_ONCE if puzzles else figure["iterations"]
        there = of_the_sample(size)
        one = like(net, task.sample(1, size=there, seed=1).inputs)
        work = (30 if local else steps) * operations(net, one).step
        count = min(30, int((WORK if local else DENSE) / work))
        if count < 2:
            continue
        tried += 1
        fresh = task.sample(count, size=there, seed=20_261_115)
        share = right(net, task, fresh, steps)
        # Few puzzles are tested and not all are solved, so compare the upper end of the interval.
        most = float(wilson(torch.tensor(share * count), count)[1])
        before = about.get("earlier", {"figures": {}})["figures"].get(text)
        least = max(lower_end(one) for one in (figure, before) if one is not None)
        assert (most if puzzles else share) >= least, size
    assert tried


def of_the_sample(size: Size) -> Size:
    """The same range of the puzzles that come with the package, a fraction of the whole set."""
    if isinstance(size, int):
        return size
    total = len(load_puzzles(SAMPLE))
    return size[0] * total // SUBSET, size[1] * total // SUBSET


@pytest.mark.parametrize("name", shipped())
def test_card_equals_its_results(name: str) -> None:
    about = card(name)
    folder = loading.folder_of(name)
    if not (ROOT / "results").exists():
        pytest.skip("results and scripts are not installed with the package")
    card_markdown = runpy.run_path(str(ROOT / "scripts" / "ship"))["card_markdown"]
    assert (folder / CARD).read_text(encoding="utf-8") == card_markdown(about)
    assert about["figures"]
    agree(about["figures"], about["results"])
    if "earlier" in about:
        agree(about["earlier"]["figures"], about["earlier"]["results"])


def lower_end(figure: dict[str, int]) -> float:
    """Of the 95 % interval of the accuracy."""
    return float(wilson(torch.tensor(figure["solved"]), figure["problems"])[0])


def agree(figures: dict[str, dict[str, int]], results: list[str]) -> None:
    """Every figure equals that of its size in the result files, where there is one."""
    by_size: dict[str, Any] = {}
    for result in results:
        figures_there = read_result(ROOT / "results" / f"{result}.json")["figures"]
        by_size |= {key: value for key, value in figures_there.items() if key.startswith("size ")}
    for size, figure in figures.items():
        value = by_size.get(f"size {size}", {})
        if "at the end" in value:
            assert figure["solved"] == round(value["at the end"] * value["problems"])
        if "solved" not in value:
            continue
        assert (figure["solved"], figure["problems"]) == (value["solved"], value["problems"])
        assert (figure["iterations"], figure["seed"]) == (value["iterations"], value["test seed"])
        assert figure["twice"] == value.get("solved at twice")


@pytest.mark.parametrize("name", shipped())
def test_files_of_a_card_exist(name: str) -> None:
    folder = loading.folder_of(name)
    text = (folder / CARD).read_text(encoding="utf-8")
    beside = {path.name for path in folder.glob("*.png")}
    assert beside == set(card(name)["pictures"]) == set(re.findall(r"]\(([^)]*)\)", text))
    if not (ROOT / "results").exists():
        pytest.skip("results, docs and scripts are not installed with the package")
    # Scripts that a card names are those of its commit.
    named = set(re.findall(r"(?:results|docs)/[\w./-]*[\w-]", text))
    assert named
    assert [place for place in named if not (ROOT / place).exists()] == []
    # Drawn once and kept twice: for the wheel, and for the pages that explain them.
    for picture in beside:
        drawn = ROOT / "docs" / "pictures" / picture
        assert not drawn.exists() or drawn.read_bytes() == (folder / picture).read_bytes()


def test_size_of_all_weights() -> None:
    sizes = {name: sum(path.stat().st_size for path in loading.folder_of(name).iterdir())
             for name in shipped()}  # fmt: skip
    assert sizes.pop("chess") <= 13_000_000
    assert sum(sizes.values()) <= 12_000_000


def test_no_card(tmp_path: Path) -> None:
    net = build("local-rule", {"dims": 1, "channels": 1})
    assert isinstance(net, LocalRule)
    described = {"kind": "local-rule", "config": net.config.described()}
    for nothing in ({}, {"card": None}):
        save_weights(tmp_path / "w", {**described, **nothing}, net.state_dict())
        with pytest.raises(DataError, match="has no card"):
            card(str(tmp_path / "w"))
    assert vars(iterant.load(tmp_path / "w"))["card"] is None
    save_weights(tmp_path / "w", {**described, "card": {"parameters": "?"}}, net.state_dict())
    assert "? parameters" in str(card(str(tmp_path / "w")))


def test_a_card_is_printed_as_a_line_and_shown_as_markdown() -> None:
    about = vars(iterant.load("mazes"))["card"]
    assert str(about).startswith("mazes: 124 parameters, trained on 14,400 grids of 12×12")
    assert "\n" not in str(about)
    assert about._repr_markdown_().startswith("# mazes\n")
