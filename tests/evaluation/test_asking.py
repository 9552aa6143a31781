"""A GPU is waited for when problems leave and at the end, not at every iteration."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from asking import Questions
from exact import exact_prefix_sums

from iterant.evaluation import evaluate_batch
from iterant.evaluation import evaluator as judging
from iterant.evaluation.evaluator import CudaTimer, timer_for
from iterant.halting import Fixed, MostConfident, Rule
from iterant.tasks.prefix_sums import PrefixSums

TASK = PrefixSums()


@pytest.mark.parametrize("rule", [None, Fixed(50), MostConfident()], ids=["-", "fixed", "sure"])
def test_a_device_is_not_asked_at_every_iteration(
    rule: Rule | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a CPU it is asked whether all is finite, where a GPU is not.
    monkeypatch.setattr(judging, "is_finite", lambda f: f.flatten(1).isfinite().all(dim=1))
    batch, asked = TASK.sample(40, size=10, seed=1), []
    for steps in (51, 60, 200):
        with Questions() as questions:
            evaluate_batch(exact_prefix_sums(), TASK, batch, steps=steps, rule=rule)
        asked.append(questions.count)
    assert 0 < asked[0] < 30
    assert asked[1] == asked[2] <= asked[0]


class Ticking:
    """An event of a card that comes to one every quarter of a second."""

    made = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at: int | None = None
        self.waited = False

    def record(self, stream: object) -> None:
        assert stream == "the stream"
        self.at = Ticking.made
        Ticking.made += 1

    def synchronize(self) -> None:
        self.waited = True

    def elapsed_time(self, other: Ticking) -> float:
        assert self.at is not None
        assert other.at is not None
        return 250.0 * (other.at - self.at)


def test_moments_of_a_card_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Ticking)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "the stream")
    moments = timer_for(torch.device("cuda"), time.perf_counter() - 10)
    assert isinstance(moments, CudaTimer)
    assert moments.seconds() == []
    for _ in range(3):
        moments.note()
    found = moments.seconds()
    assert found == pytest.approx([10.25, 10.5, 10.75], abs=0.2)
    assert found[2] - found[0] == pytest.approx(0.5)
    events: Any = moments.noted
    assert [event.waited for event in events] == [False, False, True], "only for the last"
