"""Watch a maze being solved, then train on 32 bits and solve 512: what ``make demo`` runs."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import iterant
from iterant.cli.common import console
from iterant.cli.display import display
from iterant.cli.solve import save_solutions, show, viewer
from iterant.draw.plots import save_curves
from iterant.evaluation import evaluate_batch
from iterant.formatting import percent
from iterant.solving import solutions
from iterant.tasks.inputs import generated
from iterant.training import recipe, train

SIZES, COUNT, SEED = (32, 64, 128, 256, 512), 200, 1
ITERATIONS = 240


def main() -> int:
    """Train, evaluate, draw; 0 if the networks solve what they never saw."""
    screen = console()
    screen.print("1. A network that was trained on mazes of 9 by 9 thinks about one of 59 by 59.")
    solved = watch_maze(screen)
    task, quick = iterant.task("prefix-sums"), recipe("quick", "prefix-sums")
    screen.print("\n2. Train on strings of 32 bits: each bit's answer is the parity so far.")
    folders = (Path("runs") / f"demo-{number}" for number in count(1))
    out = next(folder for folder in folders if not folder.exists())
    # A network this narrow gains nothing from a second thread, and loses much on busy cores.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with display(screen) as shown:
        run = train(task, recipe=quick, seed=0, out=out, device="cpu", reporter=shown)
    torch.set_num_threads(threads)
    if run.state != "finished":
        screen.print("stopped before the end; start it again: make demo")
        return 1
    net = iterant.load(run.path)
    screen.print(f"\n3. Think longer about longer strings: {COUNT} of each length, never seen.")
    marks = [1, *range(5, ITERATIONS + 1, 5)]
    steps = [quick.iterations, 60, 120, 180, ITERATIONS]
    curves, table = {}, Table("solved after …", *(f"{n} iterations" for n in steps), box=None)
    for bits in SIZES:
        batch = task.sample(COUNT, size=bits, seed=SEED)
        curve = evaluate_batch(net, task, batch, steps=ITERATIONS, at=marks)
        curves[f"{bits} bits"] = curve
        table.add_row(f"{bits} bits", *(percent(curve.at(step)) for step in steps))
    screen.print(table)
    title = "Trained on 32 bits, asked for more"
    picture = run.path / "accuracy.png"
    save_curves(curves, picture, regime=quick.iterations, title=title)
    screen.print("\n4. One string of 512 bits; a full block where 8 bits in a row are right:")
    batch = task.sample(1, size=512, seed=SEED)
    with torch.no_grad():
        for thought in iterant.think(net, batch.inputs, steps=ITERATIONS):
            if thought.step in (10, 20, 40, 80, 120, 160, 200, ITERATIONS):
                right = (thought.prediction == batch.targets).view(-1, 8).all(dim=1).tolist()
                row = "".join("█" if good else "·" for good in right)
                screen.print(f"  after {thought.step:>3}  {row}", soft_wrap=True)
    share = float(curves["512 bits"].accuracy[-1])
    screen.print(
        f"\n{percent(share)} of {COUNT} strings of 512 bits solved after {ITERATIONS} iterations; "
        f"the picture: {picture}",
        soft_wrap=True,
    )
    return 0 if solved and share >= 0.99 else 1


def watch_maze(screen: Console) -> bool:
    """The shipped network at work on the terminal and in a file; whether it found the path."""
    task, film = iterant.task("mazes"), Path("runs") / "maze.gif"
    problems = generated(task, size=59, seed=3).problems
    with viewer(task, screen, live=True, pace=150.0) as view:
        (solution,) = solutions(iterant.load("mazes"), task, problems, viewer=view)
    show(task, screen, [solution])
    film.parent.mkdir(exist_ok=True)
    save_solutions(task, [solution], film, net="mazes", rule="rest")
    return bool(solution.right)


if __name__ == "__main__":
    sys.exit(main())
