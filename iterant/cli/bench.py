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

from cyclopts import App, Parameter

from iterant.cli.common import (
    SEVERAL,
    DeviceName,
    TaskName,
    echo,
    print_table,
    progress_bar,
    task_of,
)
from iterant.formatting import byte_size

bench = App(name="bench", help="Measure iterant beside the plain way of doing the same.")

Recipe = Annotated[str, Parameter(help="the training recipe")]
Width = Annotated[int | None, Parameter(help="features [default: the recipe's]")]
BatchSize = Annotated[int | None, Parameter(help="problems per step [default: the recipe's]")]
ProblemSize = Annotated[str | None, Parameter(help="of the problems [default: as in training]")]
Count = Annotated[int, Parameter(help="problems")]
Rounds = Annotated[int, Parameter(help="rounds; all sides take turns")]
Seed = Annotated[int, Parameter(help="of weights and problems")]
Memory = Annotated[bool, Parameter(help="measure the peak memory too")]
Out = Annotated[Path, Parameter(help="the folder for the result")]


@bench.command
def train(
    *,
    task: TaskName = "prefix-sums",
    recipe: Recipe = "paper",
    net: str | None = None,
    width: Width = None,
    batch: BatchSize = None,
    steps: int = 20,
    rounds: Rounds = 5,
    device: DeviceName = "auto",
    precision: str | None = None,
    seed: Seed = 0,
    memory: Memory = True,
    out: Out = Path("results"),
) -> None:
    """Measure our training step beside one written the way the reference works.

    Args:
        net: dt, dt-recall, ff or ff-recall
        steps: steps per round
        precision: fp32 or bf16, of ours [default: bf16 on a GPU]
    """
    from iterant.bench import bench_train

    figures = _measure(
        bench_train, task, out, recipe=recipe, net=net, width=width, batch=batch,
        steps=steps, rounds=rounds, device=device, precision=precision, seed=seed, memory=memory,
    )  # fmt: skip
    _print_sides(figures, "precision", figures["precision"], "steps per second")


@bench.command
def evaluate(
    *,
    task: TaskName = "prefix-sums",
    run: Path | None = None,
    net: str = "dt-recall",
    width: Width = None,
    size: ProblemSize = None,
    count: Count = 100,
    steps: int = 100,
    rounds: Rounds = 5,
    device: DeviceName = "auto",
    seed: Seed = 0,
    memory: Memory = True,
    out: Out = Path("results"),
) -> None:
    """Measure our evaluation beside one that keeps every output and stops nothing.

    Args:
        run: a trained network, for halting too [default: random weights]
        net: dt, dt-recall, ff or ff-recall, without --run
        steps: iterations
    """
    from iterant.bench import bench_evaluate

    figures = _measure(
        bench_evaluate, task, out, run=run, net=net, width=width, size=size,
        count=count, steps=steps, rounds=rounds, device=device, seed=seed, memory=memory,
    )  # fmt: skip
    seconds = {side: f"{s:.3g} s" for side, s in figures["seconds to the curve"].items()}
    _print_sides(figures, "time to the curve", seconds, "iterations per second")
    if halting := figures.get("with halting"):
        took = halting["seconds to the curve"]["ours"]
        echo(f"ours, halting: {took:.3g} s, {_times(halting['ratio'])}")


@bench.command
def solve(
    *,
    task: TaskName = "mazes",
    run: Path | None = None,
    size: ProblemSize = None,
    count: Count = 10,
    rounds: Rounds = 3,
    device: DeviceName = "auto",
    seed: Seed = 0,
    out: Out = Path("results"),
) -> None:
    """Measure iterant.solve beside this command line's path and beside the dense network.

    Args:
        run: a network [default: the shipped one]
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
    recipe: Recipe = "quick",
    width: Width = None,
    batch: BatchSize = None,
    updates: int = 20,
    rounds: Rounds = 3,
    processes: Annotated[list[int] | None, SEVERAL] = None,
    out: Out = Path("results"),
) -> None:
    """Measure several CPU processes on one run: speed-up, and the share of communication.

    Args:
        updates: updates per round
        processes: numbers of processes to compare [default: 1 2]
    """
    from iterant.bench import bench_scale

    figures = _measure(
        bench_scale, task, out, recipe=recipe, width=width, batch=batch, updates=updates,
        rounds=rounds, processes=processes or [1, 2],
    )  # fmt: skip
    print_table(
        ("processes", "updates per second", "speed-up", "efficiency", "communication"),
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
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    opened = task_of(task)
    if how.get("size") is not None:
        how["size"] = opened.parse_size(how["size"])
    with progress_bar("measuring") as update:
        name, figures = measure(task, progress=update, **how)
    echo(f"written to {write_result(name, figures, seed=how.get('seed', 0), folder=out)}")
    return figures


def _print_sides(figures: dict[str, Any], name: str, cells: dict[str, str], speed: str) -> None:
    """Ours beside plain: the column ``name``, the speed and its ratio, the peak memory."""
    echo(f"{figures['net']}, {figures['parameters']:,} parameters, on {figures['device']}")
    memory = figures["memory"]
    peaks = {side: byte_size(memory[side]) if memory else "not measured" for side in cells}
    rows = [[side, cells[side], f"{figures[speed][side]:,.4g}", peaks[side]] for side in cells]
    less = f"{memory['ratio']:.2f} times less" if memory else ""
    rows.append(["ratio", "", _times(figures["ratio"]), less])
    print_table(("", name, speed, "peak memory"), *rows)


def _times(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} times ({ratio['lowest']:.2f} to {ratio['highest']:.2f})"
