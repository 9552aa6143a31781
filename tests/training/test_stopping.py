"""Why a run ends before its last update: the clock and signals."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from small_runs import Listener, assert_equal, begin, unbroken

from iterant.errors import RunError, UsageError
from iterant.io import RunFolder
from iterant.training import train
from iterant.training.interrupts import Clock, Signals, seconds
from iterant.training.loop import Loop

LISTENED = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@pytest.fixture(name="whole")
def _whole() -> dict[str, RunFolder]:
    """An unbroken run of each kind."""
    return unbroken()


class TestStopping:
    def test_a_time_limit_stops_with_a_checkpoint(
        self, whole: dict[str, RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Clock, "elapsed", property(lambda self: _ticks(self)))
        run = begin(tmp_path / "run", "pool", time_limit=200.0)
        assert run.state == "stopped"
        assert run.status.reason == "stopped at the time limit"
        assert 0 < run.status.step < 12
        monkeypatch.undo()
        assert_equal(train(resume=run.path), whole["pool"])

    def test_the_limit_leaves_room_for_what_took_longest(self) -> None:
        clock = Clock(1000.0)
        assert not clock.over
        clock._start -= 985
        assert not clock.over
        clock.took(10.0)
        assert clock.over
        free = Clock(None)
        free._start -= 1e9
        assert not free.over

    @pytest.mark.parametrize(
        ("text", "value"),
        [("9m", 540), ("90s", 90), ("1h30m", 5400), ("2d", 172_800), ("45", 45), (1.5, 1.5),
         ("1.5h", 5400), (" 9m ", 540)],
    )  # fmt: skip
    def test_times(self, text: str | float, value: float) -> None:
        assert seconds(text) == value

    @pytest.mark.parametrize("text", ["", "soon", "9x", "-9m", "0", 0, -1.0, float("nan"), "m9"])
    def test_what_is_no_time(self, text: str | float) -> None:
        with pytest.raises(UsageError):
            seconds(text)

    def test_signals_are_given_back(self, tmp_path: Path) -> None:
        before = [signal.getsignal(number) for number in LISTENED]
        begin(tmp_path / "run", epochs=1)
        with pytest.raises(RunError):
            begin(tmp_path / "run")
        after = [signal.getsignal(number) for number in LISTENED]
        assert before == after

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
    def test_a_cluster_may_repeat_itself(
        self, whole: dict[str, RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        number: signal.Signals,
    ) -> None:  # fmt: skip
        original = Loop.save

        def pressed(loop: Loop) -> None:
            for again in (number, signal.SIGTERM, signal.SIGUSR1):
                signal.raise_signal(again)
            original(loop)

        with monkeypatch.context() as patch:
            patch.setattr(Loop, "save", pressed)
            run = begin(tmp_path / "run", "pool")
        assert run.status.reason == f"stopped by {number.name}"
        assert run.status.step == run.load("last")[1]["step"] > 0
        assert_equal(train(resume=run.path), whole["pool"])

    def test_a_second_signal_leaves_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listener = Listener()

        def twice(loop: Loop) -> None:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Loop, "_step", twice)
        with pytest.raises(KeyboardInterrupt):
            begin(tmp_path / "run", reporter=listener)
        run = RunFolder.open(tmp_path / "run")
        assert (run.state, run.status.reason) == ("stopped", "interrupted")
        assert listener.ends == ["stopped: interrupted"]

    def test_signals_elsewhere_than_in_the_main_thread_are_left_alone(self) -> None:
        import threading

        seen: list[object] = []

        def listen() -> None:
            with Signals() as signals:
                seen.append(signals.raised)

        thread = threading.Thread(target=listen)
        thread.start()
        thread.join()
        assert seen == [None]


def _ticks(clock: Any) -> float:
    """A clock that goes on by ten seconds each time it is looked at."""
    clock.ticks = getattr(clock, "ticks", 0) + 10
    return float(clock.ticks)
