"""``iterant bench``: speed and memory compared with a plain implementation.

iterant bench train --task mazes --width 32
iterant bench evaluate --task mazes --run runs/m0 --size 33 --steps 300
iterant bench solve --task mazes --size 59 --count 10
iterant bench scale --task mazes --processes 1 2
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from iterant.bench.options import EvaluateOptions, ScaleOptions, SolveOptions, TrainOptions
from iterant.cli.output import echo, print_table, progress_bar
from iterant.formatting import byte_size

bench = App(name="bench", help="Compare speed and memory with a plain implementation.")

FLAGS = Parameter(name="*")
"""Each field of the options is a flag."""
Out = Annotated[Path, Parameter(help="folder for the result")]


@bench.command
def train(
    *, options: Annotated[TrainOptions | None, FLAGS] = None, out: Out = Path("results")
) -> None:
    """Compare our training step with a plain one, written like the authors' code."""
    figures = _measure("train", options or TrainOptions(), out)
    _print_sides(figures, "precision", figures["precision"], "steps per second")


@bench.command
def evaluate(
    *, options: Annotated[EvaluateOptions | None, FLAGS] = None, out: Out = Path("results")
) -> None:
    """Compare our evaluation with one that keeps all outputs and stops no problem early."""
    figures = _measure("evaluate", options or EvaluateOptions(), out)
    seconds = {side: f"{s:.3g} s" for side, s in figures["seconds to the curve"].items()}
    _print_sides(figures, "time to the curve", seconds, "iterations per second")
    if halting := figures.get("with halting"):
        took = halting["seconds to the curve"]["ours"]
        echo(f"ours, halting: {took:.3g} s, {_times(halting['ratio'])}")


@bench.command
def solve(
    *, options: Annotated[SolveOptions | None, FLAGS] = None, out: Out = Path("results")
) -> None:
    """Compare iterant.solve with the command `iterant solve` and with the dense network."""
    figures = _measure("solve", options or SolveOptions(), out)
    print_table(
        ("", "seconds"),
        *([side, f"{seconds:.3g}"] for side, seconds in figures["seconds"].items()),
        *([sides, _times(ratio)] for sides, ratio in figures["ratio"].items()),
    )


@bench.command
def scale(
    *, options: Annotated[ScaleOptions | None, FLAGS] = None, out: Out = Path("results")
) -> None:
    """Measure training by several CPU processes: speed-up and the share of communication."""
    figures = _measure("scale", options or ScaleOptions(), out)
    rows = [
        [
            count,
            f"{row['updates per second']:.3g}",
            f"{row['times faster']:.2f}",
            f"{row['efficiency']:.0%}",
            f"{row['talking']:.0%}",
        ]
        for count, row in figures["processes"].items()
    ]
    head = ("processes", "updates per second", "speed-up", "efficiency", "communication")
    print_table(head, *rows)


def _measure(what: str, options: Any, out: Path) -> dict[str, Any]:
    """Run a benchmark with a progress bar and write its figures."""
    from iterant.bench import benchmarks
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    with progress_bar("measuring") as update:
        name, figures = getattr(benchmarks, f"bench_{what}")(options, progress=update)
    seed = getattr(options, "seed", 0)
    echo(f"written to {write_result(name, figures, seed=seed, folder=out)}")
    return dict(figures)


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
