"""Watch a maze being solved, then train on 32 bits and solve 512: what ``make demo`` runs."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import iterant
from iterant.cli.screen import console, display
from iterant.cli.solve import Report, viewer
from iterant.draw.plots import save_curves
from iterant.evaluation import Curve, evaluate_batch
from iterant.formatting import percent
from iterant.nets import Net
from iterant.solving import solutions
from iterant.tasks.inputs import generated
from iterant.tasks.protocol import Task
from iterant.training import recipe, train

SIZES, COUNT, SEED = (32, 64, 128, 256, 512), 200, 1
ITERATIONS, EVERY = 240, 5
WANTED = 0.99
MAZE, PACE, FILM = 59, 150.0, Path("runs") / "maze.gif"


def main() -> int:
    """Train, evaluate, draw; 0 if the network solves what it never saw."""
    screen = console()
    screen.print("1. A network that was trained on mazes of 9 by 9 thinks about one of 59 by 59.")
    solved = watch_maze(screen)
    task, quick = iterant.task("prefix-sums"), recipe("quick", "prefix-sums")
    screen.print("\n2. Train on strings of 32 bits: each bit's answer is the parity so far.")
    # A network this narrow gains nothing from a second thread, and loses much on busy cores.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with display(screen) as shown:
        run = train(
            task, recipe=quick, seed=0, out=free_folder(), device="cpu", reporter=shown.of(0)
        )
    torch.set_num_threads(threads)
    if run.state != "finished":
        screen.print("stopped before the end; start it again: make demo")
        return 1
    net = iterant.load(run.path)
    screen.print(f"\n3. Think longer about longer strings: {COUNT} of each length, never seen.")
    curves = evaluated(net, task)
    screen.print(table(curves, quick.iterations))
    picture = save_curves(
        curves,
        run.path / "accuracy.png",
        regime=quick.iterations,
        title="Trained on 32 bits, asked for more",
    )
    screen.print("\n4. One string of 512 bits, by how far its answers are right:")
    watch_one(net, task)
    right = float(curves["512 bits"].accuracy[-1])
    screen.print(
        f"\n{percent(right)} of {COUNT} strings of 512 bits solved after {ITERATIONS} iterations; "
        f"the picture: {picture}",
        soft_wrap=True,
    )
    return 0 if solved and right >= WANTED else 1


def watch_maze(screen: Console) -> bool:
    """The shipped network at work on the terminal and in a file; whether it found the way."""
    task = iterant.task("mazes")
    problems = generated(task, size=MAZE, seed=3).problems
    with viewer(task, screen, live=True, pace=PACE) as view:
        (found,) = solutions(iterant.load("mazes"), task, problems, viewer=view)
    report = Report(task, screen)
    report.show([found])
    FILM.parent.mkdir(exist_ok=True)
    report.save([found], FILM, net="mazes", rule="rest")
    return bool(found.right)


def free_folder() -> Path:
    """A new folder under runs/, which git ignores."""
    place, number = Path("runs") / "demo", 1
    while place.exists():
        number += 1
        place = Path("runs") / f"demo-{number}"
    return place


def evaluated(net: Net, task: Task) -> dict[str, Curve]:
    """Accuracy by iteration for every length."""
    marks = [1, *range(EVERY, ITERATIONS + 1, EVERY)]
    screen = console()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    curves = {}
    with Progress(
        *columns, console=screen, transient=True, disable=not screen.is_terminal
    ) as progress:
        work = progress.add_task("thinking", total=sum(SIZES))
        for bits in SIZES:
            batch = task.sample(COUNT, size=bits, seed=SEED)
            before = progress.tasks[0].completed

            def moved(done: int, of: int, before: float = before, bits: int = bits) -> None:
                progress.update(work, completed=before + bits * done / of)

            curves[f"{bits} bits"] = evaluate_batch(
                net, task, batch, steps=ITERATIONS, at=marks, progress=moved
            )
    return curves


def table(curves: dict[str, Curve], regime: int) -> Table:
    """What share is solved, at the training regime and beyond."""
    steps = [regime, 60, 120, 180, ITERATIONS]
    made = Table("solved after …", *(f"{step} iterations" for step in steps), box=None)
    for label, curve in curves.items():
        made.add_row(label, *(percent(curve.at(step)) for step in steps))
    return made


@torch.no_grad()
def watch_one(net: Net, task: Task) -> None:
    """A row a look: a full block where 8 bits in a row are answered rightly."""
    screen = console()
    batch = task.sample(1, size=512, seed=SEED)
    looks = (10, 20, 40, 80, 120, 160, 200, ITERATIONS)
    for thought in iterant.think(net, batch.inputs, steps=ITERATIONS):
        if thought.step in looks:
            right = (thought.prediction == batch.targets).view(-1, 8).all(dim=1).tolist()
            row = "".join("█" if good else "·" for good in right)
            screen.print(f"  after {thought.step:>3}  {row}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
