"""How much memory a piece of work takes at its peak: a training step, an evaluation.

    >>> peak_on_cpu(Request("ours", net, recipe, (100, 1, 32), (100, 32), 3, 20))

On a GPU the allocator counts. On the CPU the work is done in a process of its own, whose largest
resident size is what it grew to: within one process, memory that was freed and not yet returned
would be counted to whoever came second.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from iterant.bench.plain import Even, PlainStep
from iterant.errors import UsageError
from iterant.nets import build
from iterant.training.recipe import Recipe
from iterant.training.trainer import Trainer

_SOURCE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Request:
    """One step of one side, described so that another process can take it."""

    side: str
    """ours or plain"""
    net: dict[str, Any]
    recipe: dict[str, Any]
    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    update: int
    of: int
    """Which update, of how many"""

    def step(self, device: torch.device) -> Callable[[], object]:
        """The step itself, ready to be taken; what the problems say does not matter here."""
        recipe = Recipe().changed(**self.recipe)
        net = build(self.net["kind"], self.net["config"])
        inputs = torch.ones(self.inputs, device=device)
        targets = torch.zeros(self.targets, dtype=torch.int64, device=device)
        sides: dict[str, Callable[..., PlainStep | Trainer]] = {
            "ours": Trainer,
            "plain": PlainStep,
        }
        taker = sides[self.side](net, recipe, device)
        return lambda: taker.update(inputs, targets, Even(0, self.update, self.of), 1.0)


def peak_on_cpu(request: Request) -> int:
    """Bytes by which a process grows that takes one step, at its largest."""
    return growth("iterant.bench.memory", asdict(request))


def growth(module: str, request: dict[str, Any]) -> int:
    """What ``main()`` of a module says of a request, in a process of its own: see `say_growth`."""
    paths = [str(_SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    answer = subprocess.run(
        [sys.executable, "-c", f"from {module} import main; main()"],
        input=json.dumps(request),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or [f"code {answer.returncode}"])[-1]
        raise UsageError(
            f"the memory could not be measured, the process for it ended early ({reason}); "
            "try a smaller --width or fewer problems, or --no-memory"
        )
    return int(answer.stdout)


def _largest() -> int:
    """The largest resident size of this process so far, in bytes."""
    # getrusage counts what the process was before it became this program; the kernel's own
    # figure does not, so it comes first where there is one.
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return 1024 * int(found[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def say_growth(work: Callable[[], object]) -> None:
    """Do the work; print by how many bytes that made this process grow at its largest."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forget how large importing was
    before = _largest()
    work()
    sys.stdout.write(f"{_largest() - before}\n")


def main() -> None:
    """Take the step that is described on the input."""
    say_growth(Request(**json.load(sys.stdin)).step(torch.device("cpu")))
