"""``iterant bench``: speed compared with a plain implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from iterant.bench.options import EvaluateOptions, SolveOptions, TrainOptions
from iterant.cli.output import echo, print_table, progress_bar
from iterant.formatting import byte_size

bench = App(
    name="bench",
    help="""Compare speed with a plain implementation.

iterant bench train --task mazes --width 32
iterant bench evaluate --task mazes --run runs/m0 --size 33 --steps 300
iterant bench solve --task mazes --size 59 --count 10""",
)

FLAGS = Parameter(name="*")
"""Each field of the options is a flag."""
Out = Annotated[Path, Parameter(help="folder for the result")]


@bench.command
def train(
    *, options: Annotated[TrainOptions | None, FLAGS] = None, out: Out = Path("results")
) -> None:
    """Compare our training step with a plain one, written like the authors' code.

    iterant bench train --task mazes --width 32
    """
    figures = _measure("train", options or TrainOptions(), out)
    _print_sides(figures, "precision", figures["precision"], "steps per second")


@bench.command
def evaluate(
    *, options: Annotated[EvaluateOptions | None, FLAGS] = None, out: Out = Path("results")
) -> None:
    """Compare our evaluation with one that keeps all outputs and stops no problem early.

    iterant bench evaluate --task mazes --run runs/m0 --size 33 --steps 300
    """
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
    """Compare iterant.solve with the same on the dense network, which computes every cell.

    iterant bench solve --task mazes --size 59 --count 10
    """
    figures = _measure("solve", options or SolveOptions(), out)
    print_table(
        ("", "seconds"),
        *([side, f"{seconds:.3g}"] for side, seconds in figures["seconds"].items()),
        *([sides, _times(ratio)] for sides, ratio in figures["ratio"].items()),
    )


def _measure(what: str, options: Any, out: Path) -> dict[str, Any]:
    """Run a benchmark with a progress bar and write its figures."""
    from iterant.bench import benchmarks
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    with progress_bar("measuring") as update:
        name, figures = getattr(benchmarks, f"bench_{what}")(options, progress=update)
    echo(f"written to {write_result(name, figures, seed=options.seed, folder=out)}")
    return dict(figures)


def _print_sides(figures: dict[str, Any], name: str, cells: dict[str, str], speed: str) -> None:
    """Ours beside plain: the column ``name``, the speed and its ratio; a GPU's peak memory."""
    echo(f"{figures['net']}, {figures['parameters']:,} parameters, on {figures['device']}")
    rows = [[side, cells[side], f"{figures[speed][side]:,.4g}"] for side in cells]
    print_table(("", name, speed), *rows, ["ratio", "", _times(figures["ratio"])])
    if memory := figures["memory"]:
        ours, plain = byte_size(memory["ours"]), byte_size(memory["plain"])
        echo(f"peak memory: ours {ours}, plain {plain}, {memory['ratio']:.2f} times as much")


def _times(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} times ({ratio['lowest']:.2f} to {ratio['highest']:.2f})"
