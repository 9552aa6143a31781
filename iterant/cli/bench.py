"""``iterant bench``: speed and memory beside the plain way of doing the same.

iterant bench train --task mazes --width 32
iterant bench evaluate --task mazes --run runs/m0 --size 33 --steps 300
iterant bench solve --task mazes --size 59 --count 10
iterant bench scale --task mazes --processes 1 2
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from iterant.cli.options import (
    SEVERAL,
    DeviceName,
    TaskName,
    console,
    parameters,
    print_table,
    task_of,
)
from iterant.formatting import byte_size, counted

bench = App(
    name="bench",
    help="Measure iterant beside the plain way of doing the same.",
    group_parameters=parameters(),
)


@bench.command
def train(
    *,
    task: TaskName = "prefix-sums",
    recipe: str = "paper",
    net: str | None = None,
    width: int | None = None,
    batch: int | None = None,
    steps: int = 20,
    rounds: int = 5,
    device: DeviceName = "auto",
    precision: str | None = None,
    seed: int = 0,
    memory: bool = True,
    out: Path = Path("results"),
) -> None:
    """Measure our training step beside one written the way the reference works.

    Args:
        recipe: which training recipe
        net: dt, dt-recall, ff or ff-recall
        width: features [default: the recipe's]
        batch: problems a step [default: the recipe's]
        steps: steps a round
        rounds: rounds, ours and plain in turns
        precision: fp32 or bf16, of ours [default: bf16 on a GPU]
        seed: of weights and problems
        memory: measure the peak memory too
        out: the folder for the result
    """
    from iterant.bench import bench_train

    figures = _measure(
        bench_train, task, out, recipe=recipe, net=net, width=width, batch=batch,
        steps=steps, rounds=rounds, device=device, precision=precision, seed=seed, memory=memory,
    )  # fmt: skip
    precisions, speed = figures["precision"], figures["steps per second"]
    peaks, less = _memory(figures["memory"])
    console().print(
        f"{figures['task']}, recipe {figures['recipe']}, {_network(figures)}, "
        f"alpha {figures['alpha']:g}, on {figures['device']}",
        soft_wrap=True,
    )
    print_table(
        ("", "precision", "steps per second", "peak memory"),
        *([side, precisions[side], f"{speed[side]:.4g}", peaks[side]] for side in speed),
        ("ratio", "", _times(figures["ratio"]), less),
    )


@bench.command
def evaluate(
    *,
    task: TaskName = "prefix-sums",
    run: Path | None = None,
    net: str = "dt-recall",
    width: int | None = None,
    size: str | None = None,
    count: int = 100,
    steps: int = 100,
    rounds: int = 5,
    device: DeviceName = "auto",
    seed: int = 0,
    memory: bool = True,
    out: Path = Path("results"),
) -> None:
    """Measure our evaluation beside one that keeps every output and stops nothing.

    Args:
        run: a trained network, for halting too [default: random weights]
        net: dt, dt-recall, ff or ff-recall, without --run
        width: features [default: the paper's]
        size: how hard [default: the training size]
        count: problems
        steps: iterations
        rounds: rounds, ours and plain in turns
        seed: of weights and problems
        memory: measure the peak memory too
        out: the folder for the result
    """
    from iterant.bench import bench_evaluate

    figures = _measure(
        bench_evaluate, task, out, run=run, net=net, width=width, size=size,
        count=count, steps=steps, rounds=rounds, device=device, seed=seed, memory=memory,
    )  # fmt: skip
    seconds, speed = figures["seconds to the curve"], figures["iterations per second"]
    peaks, less = _memory(figures["memory"])
    console().print(
        f"{figures['task']}, {_network(figures)}, {counted(figures['iterations'], 'iteration')}, "
        f"on {figures['device']}",
        soft_wrap=True,
    )
    rows = [[side, f"{speed[side]:,.4g}", f"{seconds[side]:.3g} s", peaks[side]] for side in speed]
    rows.append(["ratio", _times(figures["ratio"]), "", less])
    if halting := figures.get("with halting"):
        took = f"{halting['seconds to the curve']['ours']:.3g} s"
        rows.append(["ours, halting", _times(halting["ratio"]), took, ""])
    print_table(("", "iterations per second", "time to the curve", "peak memory"), *rows)


@bench.command
def solve(
    *,
    task: TaskName = "mazes",
    run: Path | None = None,
    size: str | None = None,
    count: int = 10,
    rounds: int = 3,
    device: DeviceName = "auto",
    seed: int = 0,
    out: Path = Path("results"),
) -> None:
    """Measure iterant.solve beside this command line's path and beside the dense network.

    Args:
        run: a network [default: the shipped one]
        size: how hard [default: the training size]
        count: problems
        rounds: rounds, both ways in turns
        seed: of the problems
        out: the folder for the result
    """
    from iterant.bench import bench_solve

    figures = _measure(
        bench_solve, task, out, run=run, size=size, count=count, rounds=rounds,
        device=device, seed=seed,
    )  # fmt: skip
    print_table(
        ("", "seconds"),
        *([side, f"{seconds:.3g}"] for side, seconds in figures["seconds"].items()),
        *([sides, _times(ratio)] for sides, ratio in figures["ratio"].items()),
    )


@bench.command
def scale(
    *,
    task: TaskName = "mazes",
    recipe: str = "quick",
    width: int | None = None,
    batch: int | None = None,
    updates: int = 20,
    rounds: int = 3,
    processes: Annotated[list[int] | None, SEVERAL] = None,
    out: Path = Path("results"),
) -> None:
    """Measure several CPU processes on one run: how much faster, and how much of it is talk.

    Args:
        recipe: which training recipe
        width: features [default: the recipe's]
        batch: problems a step [default: the recipe's]
        updates: updates a round
        rounds: rounds, all numbers of processes in turns
        processes: how many together [default: 1 2]
        out: the folder for the result
    """
    from iterant.bench import bench_scale

    figures = _measure(
        bench_scale, task, out, recipe=recipe, width=width, batch=batch, updates=updates,
        rounds=rounds, processes=processes or [1, 2],
    )  # fmt: skip
    print_table(
        ("processes", "updates per second", "times faster", "efficiency", "talking"),
        *(
            [count, f"{row['updates per second']:.3g}", f"{row['times faster']:.2f}",
             f"{row['efficiency']:.0%}", f"{row['talking']:.0%}"]
            for count, row in figures["processes"].items()
        ),
    )  # fmt: skip


def _measure(
    measure: Callable[..., tuple[str, dict[str, Any]]], task: str, out: Path, **how: Any
) -> dict[str, Any]:
    """Run one of `iterant.bench` with a progress bar and write its figures."""
    from rich.progress import Progress

    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    source = task_of(task)
    if how.get("size") is not None:
        how["size"] = source.parse_size(how["size"])
    screen = console()
    with Progress(console=screen, disable=not screen.is_terminal, transient=True) as bar:
        turns = bar.add_task("measuring", total=None)
        name, figures = measure(
            task,
            progress=lambda done, total: bar.update(turns, completed=done, total=total),
            **how,
        )
    path = write_result(name, figures, seed=how.get("seed", 0), folder=out)
    screen.print(f"written to {path}", soft_wrap=True)
    return figures


def _network(figures: dict[str, Any]) -> str:
    shape = " × ".join(map(str, figures["inputs"]))
    return f"{figures['net']} with {figures['parameters']:,} parameters, inputs {shape}"


def _memory(memory: dict[str, Any] | None) -> tuple[dict[str, str], str]:
    """The peaks of both sides, and how many times less ours is."""
    if memory is None:
        return dict.fromkeys(("ours", "plain"), "not measured"), ""
    peaks = {side: byte_size(memory[side]) for side in ("ours", "plain")}
    return peaks, f"{memory['ratio']:.2f} times less"


def _times(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} times ({ratio['lowest']:.2f} to {ratio['highest']:.2f})"
