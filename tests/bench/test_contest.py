"""Two ways in turns: what is measured, and how the figures are put together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterant.bench.compare import Contest, Spread, contest
from iterant.errors import UsageError

Seconds = st.floats(0.001, 1000)


class Machine:
    """A clock that only moves when work is done or waited for."""

    def __init__(self, speed: float = 1.0) -> None:
        self.now, self.speed, self.pending = 0.0, speed, 0.0
        self.order: list[str] = []

    def work(self, name: str, seconds: float) -> None:
        """Told now, done when somebody waits: as on a GPU."""
        self.order.append(name)
        self.pending += seconds / self.speed

    def wait(self) -> None:
        self.now, self.pending = self.now + self.pending, 0.0


def test_the_two_take_turns_and_each_is_waited_for() -> None:
    machine = Machine()
    machine.pending = 100.0  # left over from before: belongs to nobody
    seen: list[tuple[int, int]] = []
    took = contest(
        lambda: machine.work("ours", 2),
        lambda: machine.work("plain", 6),
        rounds=3,
        wait=machine.wait,
        clock=lambda: machine.now,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert machine.order == ["ours", "plain"] * 3
    assert took == Contest([2.0] * 3, [6.0] * 3)
    assert took.ratio == Spread(3.0, 3.0, 3.0)
    assert seen == [(1, 3), (2, 3), (3, 3)]


@given(st.lists(st.tuples(Seconds, st.floats(0.1, 10)), min_size=1, max_size=9))
def test_a_machine_that_slows_down_does_not_change_the_ratio(
    rounds: list[tuple[float, float]],
) -> None:
    slowed = Contest([own for own, _ in rounds], [3 * own for own, _ in rounds])
    assert slowed.ratio.median == pytest.approx(3)
    uneven = Contest([own for own, _ in rounds], [own * factor for own, factor in rounds])
    factors = sorted(factor for _, factor in rounds)
    spread = uneven.ratio
    assert spread.lowest == pytest.approx(factors[0])
    assert spread.highest == pytest.approx(factors[-1])
    assert spread.lowest <= spread.median <= spread.highest


def test_no_rounds_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1 round"):
        contest(lambda: None, lambda: None, rounds=0)
