"""Settled answers of the shipped networks do not change later: small counts of `settling`.

Larger ones are in docs/reliability.md.
"""

from __future__ import annotations

import pytest
import torch
from settled_problems import MAZES, STRINGS, check, mazes, strings

import iterant
from iterant.solving import solve


@pytest.mark.parametrize("kind", STRINGS)
@pytest.mark.parametrize("name", ["prefix-sums", "prefix-sums-paper"])
def test_settled_strings_keep_their_answer(name: str, kind: str) -> None:
    net = iterant.load(name)
    large = name == "prefix-sums"
    lengths = {1: 1, 2: 1, 7: 4, 48: 8, 512: 2} if large else {1: 1, 7: 1, 40: 1}
    for length, count in lengths.items():
        counts = check(net, strings(kind, length, count, seed=length))
        assert counts["changed"] == 0, (length, counts)
        assert counts["settled and not true"] == 0, (length, counts)
        assert counts["settled"] == counts["tried"], (length, counts)


def test_a_long_string_settles_by_default() -> None:
    """2,048 zeros: right once a wave has passed all of them, and not called settled before."""
    batch, net = strings("0 % ones", 2048, 1), iterant.load("prefix-sums")
    answer = solve(net, batch.inputs, max_steps=1000 + 2048)
    assert bool(answer.settled.all())
    assert torch.equal(answer.prediction, batch.targets)
    early = solve(net, batch.inputs, max_steps=1000)
    assert early.stopped_by == ("budget",)


@pytest.mark.parametrize("kind", MAZES)
def test_settled_mazes_keep_their_answer(kind: str) -> None:
    net = iterant.load("mazes")
    for size, count in {3: 4, 5: 8, 9: 8, 21: 2}.items():
        counts = check(net, mazes(kind, size, count, seed=size))
        assert counts["changed"] == 0, (size, counts)
        if kind in MAZES[:4]:
            assert counts["settled and not true"] == 0, (size, counts)
            assert counts["settled"] == counts["tried"], (size, counts)


def test_mazes_paper_moves_on_and_is_not_called_settled() -> None:
    """On mazes of 9×9 its features keep moving though its answer is right."""
    batch = mazes("ordinary", 9, 1, seed=1)
    counts = check(iterant.load("mazes-paper"), batch, max_steps=80)
    assert (counts["tried"], counts["settled"]) == (1, 0)


def test_settled_chess_positions_keep_their_answer() -> None:
    batch = iterant.task("chess").sample(4, seed=3)
    counts = check(iterant.load("chess"), batch, max_steps=120)
    assert counts["changed"] == 0, counts
    assert counts["settled"] > 0, counts
