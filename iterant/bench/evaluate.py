"""Our evaluation beside the plain one: iterations a second, time to the curve and peak memory.

    >>> figures = bench_evaluate("mazes", width=32, size=13, count=50, steps=50)
    >>> figures["ratio"]["median"]          # how many times sooner the whole curve is there

The plain way, as one would write it first: features and problem are concatenated and convolved at
every iteration, the head reads out every iteration, all outputs are kept and judged at the end, and
no problem stops before the last. Both give the same curve. A trained network (``run``) is also
evaluated under a halting rule, which is where most of the time is saved.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from iterant import registry
from iterant.bench.compare import Contest, Spread, contest
from iterant.bench.memory import growth, say_growth
from iterant.bench.plain import iterated
from iterant.errors import UsageError
from iterant.evaluation import Curve, budget_of, judge
from iterant.halting import Rule, StableAnswer
from iterant.nets import DeepThinking, FeedForward, PaperNet, build, parameter_count
from iterant.nets.factory import variant_config
from iterant.solving.solver import check_fits
from iterant.tasks.protocol import Batch, Task
from iterant.training.device import device_of
from iterant.zoo import load

_SIDES = ("ours", "plain")


@torch.no_grad()
def plain_curve(net: PaperNet, task: Task, batch: Batch, steps: int) -> Tensor:
    """(steps,) int64: problems solved after each iteration, the plain way."""
    inputs = batch.inputs
    features = torch.relu(net.projection(inputs))
    shape = (len(inputs), steps, net.config.classes, *inputs.shape[2:])
    outputs = torch.zeros(shape, dtype=inputs.dtype, device=inputs.device)
    for index in range(steps):
        features = iterated(net, inputs, features, index)
        outputs[:, index] = net.head(features)
    solved = [
        task.solved(net.readout.predict(outputs[:, index], inputs), batch).sum()
        for index in range(steps)
    ]
    return torch.stack(solved).cpu()


@dataclass(frozen=True)
class Subject:
    """What is evaluated, described so that another process can do the same."""

    task: str
    size: Any
    count: int
    steps: int
    seed: int
    run: str | None
    net: str
    width: int | None
    side: str = "ours"

    def made(self, device: torch.device, task: Task | None = None) -> Contestants:
        """Network and problems on a device."""
        made = registry.task(self.task) if task is None else task
        size = tuple(self.size) if isinstance(self.size, list) else self.size
        net: Any
        if self.run is not None:
            net = load(self.run, device)
        else:
            spec = made.spec
            config = variant_config(
                self.net, spec.name, dims=spec.dims, channels=spec.channels,
                classes=spec.classes, readout=spec.readout, width=self.width,
            )  # fmt: skip
            net = build(config.kind, config, seed=self.seed)
            net.to(device)
        if not isinstance(net, DeepThinking | FeedForward):
            raise UsageError(
                f"there is no plain way for a {type(net).__name__}; give a run of dt, dt-recall, "
                "ff or ff-recall"
            )
        check_fits(net, made)
        batch = made.sample(self.count, size=size, seed=self.seed).to(device)
        return Contestants(net, made, batch, budget_of(net, self.steps))


@dataclass(frozen=True)
class Contestants:
    """Both ways of the same evaluation."""

    net: DeepThinking | FeedForward
    task: Task
    batch: Batch
    steps: int

    def ours(self, rule: Rule | None = None) -> Curve:
        """Streamed; with a rule, problems that are done leave."""
        return judge(self.net, self.task, self.batch, steps=self.steps, rule=rule)

    def plain(self) -> Tensor:
        """Everything kept."""
        return plain_curve(self.net, self.task, self.batch, self.steps)

    def side(self, side: str) -> Callable[[], object]:
        """One of the two, to be called."""
        sides: dict[str, Callable[[], object]] = {"ours": self.ours, "plain": self.plain}
        return sides[side]


def bench_evaluate(
    task: Task | str = "prefix-sums",
    *,
    run: str | os.PathLike[str] | None = None,
    net: str = "dt-recall",
    width: int | None = None,
    size: Any = None,
    count: int = 100,
    steps: int = 100,
    rounds: int = 5,
    patience: int = 30,
    device: str = "auto",
    seed: int = 0,
    memory: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measure both ways; without ``run`` the network is untrained, and nothing can halt it well.

    The figures are what JSON can hold: see `iterant.io.write_result`.
    """
    if width is not None and width < 1:
        raise UsageError(f"width must be at least 1, got {width}")
    where = device_of(device)
    made = registry.task(task) if isinstance(task, str) else task
    word = task if isinstance(task, str) else made.spec.name
    subject = Subject(word, made.check_size(size), count, steps, seed,
                      None if run is None else os.fspath(run), net, width)  # fmt: skip
    both, rule = subject.made(where, made), StableAnswer(patience)
    peaks = _memory(subject, both, where) if memory else None
    ours, theirs = both.ours(), both.plain()
    turns = rounds * (1 if run is None else 2)

    def told(before: int) -> Callable[[int, int], None]:
        return lambda done, _: None if progress is None else progress(before + done, turns)

    took = contest(both.ours, both.plain, rounds=rounds, wait=_waiting(where), progress=told(0))
    figures = {
        "task": made.spec.name,
        "device": where.type,
        "net": type(both.net).__name__ if run is not None else net,
        "trained": run is not None,
        "width": both.net.config.width,
        "parameters": parameter_count(both.net),
        "inputs": list(both.batch.inputs.shape),
        "iterations": both.steps,
        "problems counted differently": int((ours.solved - theirs).abs().max()),
        "not finite": ours.broken,
        "threads": torch.get_num_threads(),
        "load before": round(os.getloadavg()[0], 2),
        **_speeds(took, count * both.steps),
        "memory": peaks,
    }
    if run is not None:
        halting = contest(lambda: both.ours(rule), both.plain, rounds=rounds,
                          wait=_waiting(where), progress=told(rounds))  # fmt: skip
        figures["with halting"] = _halting(halting, rule, both.ours(rule), ours)
    return figures


def _halting(took: Contest, rule: Rule, curve: Curve, whole: Curve) -> dict[str, Any]:
    """What a rule saves, beside the plain way and beside all iterations."""
    return {
        "rule": str(rule),
        "mean iterations": float(curve.iterations[-1]),
        "accuracy": {"halting": curve.end, "all iterations": whole.end},
        "ratio": asdict(took.ratio),
        "seconds to the curve": {
            "ours": Spread.of(took.ours).median,
            "plain": Spread.of(took.plain).median,
        },
    }


def evaluation_name(figures: dict[str, Any]) -> str:
    """What a result is called: task, device, width, and whether the network was trained."""
    trained = ["trained"] if figures["trained"] else []
    parts = ["bench-evaluate", figures["task"], figures["device"], f"w{figures['width']}"]
    return "-".join([*parts, *trained])


def _speeds(took: Contest, work: int) -> dict[str, Any]:
    """Iterations of a problem a second, seconds to the curve, and their ratio with its spread."""
    seconds = dict(zip(_SIDES, (took.ours, took.plain), strict=True))
    return {
        "iterations per second": {
            side: Spread.of([work / one for one in times]).median for side, times in seconds.items()
        },
        "seconds to the curve": {side: Spread.of(times).median for side, times in seconds.items()},
        "ratio": asdict(took.ratio),
    }


def _waiting(device: torch.device) -> Callable[[], object]:
    on_gpu = device.type == "cuda"
    return (lambda: torch.cuda.synchronize(device)) if on_gpu else (lambda: None)


def _memory(subject: Subject, both: Contestants, device: torch.device) -> dict[str, Any]:
    """The peak of either side: allocated on the GPU, or the growth of a process of its own."""
    peaks: dict[str, Any] = {}
    for side in _SIDES:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            before = torch.cuda.memory_allocated(device)
            torch.cuda.reset_peak_memory_stats(device)
            both.side(side)()
            peaks[side] = torch.cuda.max_memory_allocated(device) - before
        else:
            peaks[side] = growth(__name__, asdict(replace(subject, side=side)))
    what = "allocated on the GPU" if device.type == "cuda" else "growth of a process"
    return {**peaks, "ratio": peaks["plain"] / max(peaks["ours"], 1), "what": what}


def main() -> None:
    """Evaluate what is described on the input, one way; print by how much the process grew."""
    subject = Subject(**json.load(sys.stdin))
    say_growth(subject.made(torch.device("cpu")).side(subject.side))
