"""Problems on which an answer may be called settled too early, and how often it is.

    >>> counts = check(net, strings("one leading 1", 512, 1))
    >>> counts["changed"]
    0

Also used by ``scripts/reliability`` with larger numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

import iterant
from iterant.engine import think
from iterant.nets import Net
from iterant.nets.fast import fused
from iterant.tasks import Batch

TIMES = 4
"""A settled answer is compared with that after this many times the iterations."""

STRINGS = (
    "0 % ones", "1 % ones", "3 % ones", "10 % ones", "50 % ones", "100 % ones", "one leading 1",
    "20 random bits, then zeros", "alternating",
)  # fmt: skip
MAZES = (
    "ordinary", "one long corridor", "start beside end",
    "start beside end, in a corridor", "open room",
)  # fmt: skip
"""`mazes` was trained on mazes like all but the last, without loops; `mazes-paper` on those with a
dead end as start."""


def strings(kind: str, length: int, count: int, seed: int = 0) -> Batch:
    """Bit strings of one kind; kinds without randomness give one string."""
    rng = torch.Generator().manual_seed(seed)
    at = torch.arange(length)
    if kind.endswith("% ones"):
        share = int(kind.split()[0]) / 100
        bits = torch.rand(1 if share in (0, 1) else count, length, generator=rng) < share
    elif kind == "one leading 1":
        bits = (at == 0)[None]
    elif kind == "alternating":
        bits = (at % 2 == 0)[None]
    else:
        bits = (torch.rand(count, length, generator=rng) < 0.5) & (at < 20)
    return Batch((bits.float() - 0.5)[:, None], bits.long().cumsum(dim=1) % 2)


def mazes(kind: str, size: int, count: int, seed: int = 0) -> Batch:
    """Mazes of one kind; those that are not ordinary exist once for each size."""
    task = iterant.task("mazes")
    if kind == "ordinary":
        return task.sample(count, size=size, seed=seed)
    if kind == "open room":
        rows = [" " * size for _ in range(size)]
        at = (size - 1, size - 1)
    elif kind == "one long corridor":
        # Every second row, joined at the right and at the left in turn.
        rows = [" " * size if row % 2 == 0 else _gap(size, -1 if row % 4 == 1 else 0)
                for row in range(size)]  # fmt: skip
        at = (size - 1, size - 1 if size % 4 == 1 else 0)
    else:
        # Rows that hang on the second column; the start is a dead end, or lies in the first row.
        rows = ["# " + (" " if row % 2 == 0 else "#") * (size - 2) for row in range(size)]
        start = 0 if kind == "start beside end" else size // 2
        rows[0] = rows[0][:start] + "S" + rows[0][start + 1 :]
        at = (0, start + 1)
    if kind in ("open room", "one long corridor"):
        rows[0] = "S" + rows[0][1:]
    rows[at[0]] = rows[at[0]][: at[1]] + "G" + rows[at[0]][at[1] + 1 :]
    return task.encode("\n".join(rows))


def _gap(size: int, at: int) -> str:
    """A wall with one gap."""
    wall = ["#"] * size
    wall[at] = " "
    return "".join(wall)


@torch.no_grad()
def check(net: Net, batch: Batch, max_steps: int | None = None) -> dict[str, int]:
    """Solve, and compare what is called settled with the answer after four times the iterations.

    The second answer comes from the network's own iteration, not from a sparse one. ``max_steps``
    is 1,000 and one for each position, if it is not given.
    """
    budget = max_steps or 1000 + batch.targets[0].numel()
    answer = iterant.solve(net, batch.inputs, max_steps=budget)
    settled = answer.settled
    changed = torch.zeros(0)
    if bool(settled.any()):
        later = _answers_at(fused(net), batch.inputs[settled], TIMES * answer.steps[settled])
        changed = (later != answer.prediction[settled]).flatten(1).any(dim=1)
    true = (batch.targets[settled] == answer.prediction[settled]).flatten(1).all(dim=1)
    return {
        "tried": len(batch),
        "settled": int(settled.sum()),
        "changed": int(changed.sum()),
        "settled and not true": int((~true).sum()),
        "iterations": int(answer.steps.sum()),
        "most iterations": int(answer.steps.max()),
    }


def _answers_at(net: Net, inputs: Tensor, steps: Tensor) -> Tensor:
    """(B, *S): the answer of each sample after its own number of iterations."""
    answers: list[Tensor] = [torch.empty(0)] * len(inputs)
    rows, state = torch.arange(len(inputs)), None
    for until in sorted(set(steps.tolist())):
        done = 0 if state is None else state.step
        for thought in think(net, inputs[rows], steps=until - done, state=state):
            state = thought.state
        for place in (steps[rows] == until).nonzero()[:, 0].tolist():
            answers[int(rows[place])] = thought.prediction[place]
        staying = steps[rows] > until
        rows, state = rows[staying], thought.state.rows(staying)
    return torch.stack(answers)
