"""The page calls the same states settled as `iterant.halting.Resting` does."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import iterant
from iterant.solving import solve

SCRIPT = Path(iterant.__file__).parent / "web" / "static" / "js" / "settling.js"
STEPS = 300

RUN = """
import { Settling, changeOf } from "%s";
let text = "";
for await (const piece of process.stdin) text += piece;
const states = JSON.parse(text).map((state) => state.map((value) => value ?? NaN));
const settling = new Settling();
let before = states[0].map(() => 0);
let settled = null;
states.forEach((state, index) => {
  const prediction = state.map((value) => (value > 0.5 ? 1 : 0));
  const seen = settling.see(index + 1, [changeOf(before, state)], state, prediction);
  if (seen) settled ??= index + 1;
  before = state;
});
console.log(JSON.stringify(settled));
"""

CASES: dict[str, tuple[Callable[[int], list[float]], int | None]] = {
    "rest": (lambda t: [min(t, 20) / 20, 0.0], 36),
    "drift": (lambda t: [t * 2e-5, 0.0], None),
    "slow drift": (lambda t: [t * 1e-6, 0.0], 17),
    "two states": (lambda t: [0.6 + 0.3 * (t % 2), 0.0], 48),
    "two states, two answers": (lambda t: [float(t % 2), 0.0], None),
    "sixteen states": (lambda t: [(t % 16) / 40, 0.0], 48),
    "sixteen states, one with another answer": (lambda t: [float(t % 16 == 3), t % 16 / 40], None),
    "seventeen states": (lambda t: [(t % 17) / 40, 0.0], None),
    "a cycle that begins late": (lambda t: [0.0, t / 1000 if t < 120 else t % 3 / 10], 185),
    "two answers, then one": (
        lambda t: [float(t % 2) if t < 70 else 0.6 + 0.3 * (t % 2), 0.0],
        127,
    ),
    "NaN": (lambda t: [0.0, float("nan")], None),
    "infinity": (lambda t: [0.0, float("inf")], None),
}


class Scripted:
    """A network with given states."""

    def __init__(self, states: Tensor) -> None:
        self.states = states

    def read(self, inputs: Tensor) -> None:
        return None

    def start(self, inputs: Tensor) -> Tensor:
        return torch.zeros(1, 1, self.states.shape[1])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return self.states[index].view(1, 1, -1)

    def answer(self, features: Tensor) -> Tensor:
        return torch.cat([0.5 - features, features - 0.5], dim=1)


@pytest.mark.parametrize("name", CASES)
def test_the_page_and_the_package_settle_at_the_same_iteration(name: str) -> None:
    make, expected = CASES[name]
    states = torch.tensor([make(step) for step in range(1, STEPS + 1)], dtype=torch.float32)
    answer = solve(Scripted(states), torch.zeros(1, 1, states.shape[1]), max_steps=STEPS)
    package = int(answer.steps[0]) if bool(answer.settled[0]) else None
    assert package == expected
    assert by_node(states) == package


@pytest.mark.parametrize(
    "maze",
    [
        "S......\n.###.#.\n......#\n.####.#\n.#....#\n.#.##.E\n......#",
        "....\n.S..\n....\n..E.",
        "S..#...\n...#...\n...#..E",  # no path
    ],
)
def test_distances_of_the_shipped_maze_network_settle_at_the_same_iteration(maze: str) -> None:
    """The package reports their changes (`last_change`) and does not scale them; the page does."""
    net, inputs = iterant.load("mazes"), iterant.task("mazes").encode(maze).inputs
    answer = solve(net, inputs)
    assert answer.settled.all()
    thoughts = iterant.think(net, inputs, steps=int(answer.steps[0]) + 20)
    states = torch.stack([thought.features.flatten() for thought in thoughts])
    assert by_node(states) == int(answer.steps[0])


def by_node(states: Tensor) -> Any:
    """The iteration after which the page is settled."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node: scripts/install-browser")
    values = [[value if value == value else None for value in row] for row in states.tolist()]
    text = json.dumps(values).replace("Infinity", "1e999")
    process = subprocess.run(
        [node, "--input-type=module", "-e", RUN % SCRIPT.as_uri()],
        input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(process.stdout)
