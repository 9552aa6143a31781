"""Short of memory, of time, of numbers: what is done then, and what is said."""

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
from test_places import TINY
from torch import Tensor, nn

from iterant import registry
from iterant.errors import RunError
from iterant.evaluation import Curve, evaluate
from iterant.evaluation.evaluator import out_of_memory, within_memory
from iterant.halting import Resting, StableAnswer
from iterant.io import RunFolder, list_runs, write_result
from iterant.io import run_folder as folder_module
from iterant.nets import build, variant_config
from iterant.solving import solve
from iterant.training import train

STARVED = """
import json, resource, sys, torch
torch.set_num_threads(1)
sys.path[:0] = sys.argv[1:]
from test_short_of import small_net
from iterant import registry
from iterant.errors import RunError
from iterant.evaluation import evaluate
task, net = registry.task("mazes"), small_net(32)
how = dict(size=25, count=24, seed=1, max_steps=3)
whole = evaluate(net, task, portion=1, **how)
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + (40 << 20), resource.RLIM_INFINITY))
starved = evaluate(net, task, portion=24, **how)
same = whole.solved.tolist() == starved.solved.tolist()
print(json.dumps({"shrunk": starved.shrunk, "same": same, "told": starved.described(),
                  "change": [whole.change, starved.change]}))
"""


def small_net(width: int = 4) -> Any:
    spec = registry.task("mazes").spec
    config = variant_config("dt-recall", "mazes", dims=spec.dims, channels=spec.channels,
                            readout=spec.readout, width=width, head=(8,))  # fmt: skip
    return build(config.kind, config.described(), seed=1)


class TestMemory:
    def test_out_of_memory_halves_the_batch(self) -> None:
        """A real limit of the system on a process of its own."""
        here = [str(Path(__file__).parent)]
        done = subprocess.run(
            [sys.executable, "-c", STARVED, *here], capture_output=True, text=True, timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        told = json.loads(done.stdout.splitlines()[-1])
        assert 1 <= told["shrunk"] < 24
        assert told["same"]
        assert told["change"][0] == pytest.approx(told["change"][1], rel=1e-5)
        assert told["told"]["problems at a time, for want of memory"] == told["shrunk"]

    @pytest.mark.parametrize("fits", [1, 3, 10])
    def test_every_problem_is_counted_once(self, fits: int) -> None:
        batch = registry.task("prefix-sums").sample(10, size=8)
        seen: list[int] = []

        def run(first: int, part: Any) -> None:
            if len(part) > fits:
                raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
            seen.extend(range(first, first + len(part)))

        shrunk = within_memory(batch, None, run)
        assert seen == list(range(10))
        assert shrunk == {1: 1, 3: 2, 10: None}[fits]

    def test_other_errors_are_raised(self) -> None:
        batch = registry.task("prefix-sums").sample(4, size=8)
        for error in (RuntimeError("shapes differ"), MemoryError()):

            def think(first: int, part: Any, error: Exception = error) -> None:
                raise error

            with pytest.raises(type(error)):
                within_memory(batch, None, think)
        assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
        assert not out_of_memory(ValueError("of something else"))


class TestNumbers:
    def test_nan_in_weights(self) -> None:
        net = small_net()
        with torch.no_grad():
            next(iter(net.parameters())).view(-1)[0] = float("nan")
        curve = evaluate(net, registry.task("mazes"), size=5, count=4, max_steps=3)
        assert isinstance(curve, Curve)
        assert (curve.broken, int(curve.solved.sum())) == (4, 0)

    def test_nan_in_one_problem(self) -> None:
        task = registry.task("mazes")

        class Spoiled(nn.Module):
            """The same network, but the features of the second problem spoil at step 2."""

            def __init__(self) -> None:
                super().__init__()
                self.net = small_net()
                self.readout = self.net.readout

            def read(self, inputs: Tensor) -> Tensor | None:
                recalled: Tensor | None = self.net.read(inputs)
                return recalled

            def start(self, inputs: Tensor) -> Tensor:
                begun: Tensor = self.net.start(inputs)
                return begun

            def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
                made: Tensor = self.net.step(features, memory, index)
                made = made.clone()
                if index >= 1:
                    made[1, 0, 0, 0] = float("nan")
                return made

            def answer(self, features: Tensor) -> Tensor:
                logits: Tensor = self.net.answer(features)
                return logits

        how: dict[str, Any] = {"size": 5, "count": 3, "max_steps": 4}
        sound, spoiled = evaluate(small_net(), task, **how), evaluate(Spoiled(), task, **how)
        assert spoiled.broken == 1
        assert sound.right is not None
        assert spoiled.right is not None
        assert spoiled.right.tolist() == [bool(sound.right[0]), False, bool(sound.right[2])]


class Endless:
    """A network that never settles: its features grow and its answer turns at every step."""

    def read(self, inputs: Tensor) -> Tensor | None:
        return None

    def start(self, inputs: Tensor) -> Tensor:
        return torch.ones(len(inputs), 1, *inputs.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return -1.5 * features

    def answer(self, features: Tensor) -> Tensor:
        return torch.cat([features, -features], 1)


@pytest.mark.parametrize("rule", [StableAnswer(3), Resting(1e-3)])
def test_network_that_never_settles(rule: Any) -> None:
    inputs = registry.task("prefix-sums").sample(3, size=8).inputs
    answer = solve(Endless(), inputs, max_steps=400, rule=rule)
    assert not answer.settled.any()
    assert answer.steps.tolist() == [400] * 3
    assert answer.prediction.shape == (3, 8)


def test_clock_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back by years and forward again at every look, as after a bad battery or a bad NTP."""
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
    monkeypatch.setattr(folder_module, "datetime", Jumping)
    run = train("prefix-sums", out=tmp_path / "jumped", time_limit="1h", **TINY)
    assert jumps[0] > 3
    assert run.state == "finished"
    for name, value in quiet.load("last")[0].items():
        assert value.equal(run.load("last")[0][name]), name
    assert [one.state for one in list_runs(tmp_path)] == ["finished", "finished"]


def test_full_disk(tmp_path: Path) -> None:
    """The system cuts the write short; the result that was there stays."""
    path = write_result("figures", {"accuracy": 0.5}, folder=tmp_path)
    before = path.read_bytes()
    script = """import resource, signal, sys; from iterant.io import write_result
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
write_result('figures', {'accuracy': [0.25] * 1000}, folder=sys.argv[1])"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert RunError.__name__ in done.stderr.splitlines()[-1]
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["figures.json"]


def test_stale_lock(tmp_path: Path) -> None:
    run = train("prefix-sums", out=tmp_path / "run", **TINY)
    (run.path / "lock").write_text(json.dumps({"pid": 1, "host": "elsewhere", "since": "2020",
                                               "command": "iterant train"}))  # fmt: skip
    with RunFolder.open(run.path).lock():
        assert str(os.getpid()) in (run.path / "lock").read_text()
