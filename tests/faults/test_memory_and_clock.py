"""Evaluation that runs out of memory, and a system clock that jumps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
import torch
from readers import TINY

from iterant import registry
from iterant.evaluation.evaluator import out_of_memory, run_batches
from iterant.io import list_runs, run_folder
from iterant.nets import build, variant_config
from iterant.training import train

LOW_MEMORY = """
import json, resource, sys, torch
torch.set_num_threads(1)
sys.path[:0] = sys.argv[1:]
from test_memory_and_clock import small_net
from iterant import registry
from iterant.evaluation import evaluate
task, net = registry.task("mazes"), small_net(32)
how = dict(size=25, count=24, seed=1, max_steps=3)
whole = evaluate(net, task, portion=1, **how)
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + (40 << 20), resource.RLIM_INFINITY))
limited = evaluate(net, task, portion=24, **how)
same = whole.solved.tolist() == limited.solved.tolist()
print(json.dumps({"shrunk": limited.shrunk, "same": same, "described": limited.described(),
                  "change": [whole.change, limited.change]}))
"""


def small_net(width: int = 4) -> Any:
    spec = registry.task("mazes").spec
    config = variant_config("dt-recall", "mazes", dims=spec.dims, channels=spec.channels,
                            readout=spec.readout, width=width, head=(8,))  # fmt: skip
    return build(config.kind, config.described(), seed=1)


def run_script(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a separate process, for resource limits."""
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1",
                   "PYTHONPATH": paths}  # fmt: skip
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True,
                          text=True, timeout=300, env=environment)  # fmt: skip


def test_out_of_memory_halves_the_batch() -> None:
    done = run_script(LOW_MEMORY, str(Path(__file__).parent))
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert 1 <= result["shrunk"] < 24
    assert result["same"]
    assert result["change"][0] == pytest.approx(result["change"][1], rel=1e-5)
    assert result["described"]["problems at a time, for want of memory"] == result["shrunk"]


@pytest.mark.parametrize("fits", [1, 3, 10])
def test_every_problem_is_counted_once(fits: int) -> None:
    batch = registry.task("mazes").sample(10, size=3)

    def record(part: Any, iterations: Any) -> Any:
        if len(part) > fits:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return part.inputs

    parts, shrunk = run_batches(small_net(), batch, record, steps=1)
    assert torch.equal(torch.cat(parts), batch.inputs)
    assert shrunk == {1: 1, 3: 2, 10: None}[fits]


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), MemoryError()])
def test_other_errors_and_one_problem_too_large_are_raised(error: Exception) -> None:
    def fail(part: Any, iterations: Any) -> None:
        raise error

    with pytest.raises(type(error)):
        run_batches(small_net(), registry.task("mazes").sample(4, size=3), fail, steps=1)
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert out_of_memory(error) == isinstance(error, MemoryError)


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
