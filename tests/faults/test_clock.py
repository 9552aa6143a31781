"""A system clock that jumps."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from readers import TINY

from iterant.io import list_runs, run_folder
from iterant.training import train


def test_clock_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps by decades at every reading, as with a wrong NTP server."""
    quiet = train("prefix-sums", out=tmp_path / "quiet", **TINY)
    jumps = [0]

    def jumping() -> float:
        jumps[0] += 1
        return 1e9 * (jumps[0] % 3) - 5e8

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Jumping:
            moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=jumping())
            return cls.fromisoformat(moment.isoformat())

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(run_folder, "datetime", Jumping)
    run = train("prefix-sums", out=tmp_path / "jumped", time_limit="1h", **TINY)
    assert jumps[0] > 3
    assert run.state == "finished"
    for name, value in quiet.load("last")[0].items():
        assert value.equal(run.load("last")[0][name]), name
    assert [one.state for one in list_runs(tmp_path)] == ["finished", "finished"]
