"""``iterant bench``: ours beside the plain way, as ratios in one run.

iterant bench train --task mazes --width 32
iterant bench evaluate --task mazes --run runs/m0 --size 33 --steps 300
iterant bench solve --task mazes --size 59 --count 10
iterant bench scale --task mazes --processes 1 2
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from iterant.cli.options import DeviceName, TaskName, console, parameters, task_of
from iterant.formatting import byte_size, counted

if TYPE_CHECKING:
    from rich.console import Console

bench = App(
    name="bench",
    help="Measure iterant beside the plain way of doing the same.",
    group_parameters=parameters(),
)


@bench.command
def train(
    *,
    task: TaskName = "prefix-sums",
    recipe: Annotated[str, Parameter(help="which training recipe")] = "paper",
    net: Annotated[str | None, Parameter(help="dt, dt-recall, ff or ff-recall")] = None,
    width: Annotated[int | None, Parameter(help="features [default: the recipe's]")] = None,
    batch: Annotated[int | None, Parameter(help="problems a step [default: the recipe's]")] = None,
    steps: Annotated[int, Parameter(help="steps a round")] = 20,
    rounds: Annotated[int, Parameter(help="rounds, ours and plain in turns")] = 5,
    device: DeviceName = "auto",
    precision: Annotated[
        str | None, Parameter(help="fp32 or bf16, of ours [default: bf16 on a GPU]")
    ] = None,
    seed: Annotated[int, Parameter(help="of weights and problems")] = 0,
    memory: Annotated[bool, Parameter(help="measure the peak memory too")] = True,
    out: Annotated[Path, Parameter(help="the folder for the result")] = Path("results"),
) -> None:
    """Measure our training step beside one written the way the reference works."""
    from rich.progress import Progress

    from iterant.bench import bench_train, result_name
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    screen = console()
    with Progress(console=screen, disable=not screen.is_terminal, transient=True) as bar:
        turns = bar.add_task("measuring", total=rounds)
        figures = bench_train(
            task_of(task),
            recipe=recipe,
            net=net,
            width=width,
            batch=batch,
            steps=steps,
            rounds=rounds,
            device=device,
            precision=precision,
            seed=seed,
            memory=memory,
            progress=lambda done, total: bar.update(turns, completed=done, total=total),
        )
    path = write_result(result_name(figures), figures, seed=seed, folder=out)
    _show(figures, screen)
    screen.print(f"written to {path}", soft_wrap=True)


@bench.command
def evaluate(
    *,
    task: TaskName = "prefix-sums",
    run: Annotated[
        Path | None, Parameter(help="a trained network, for halting too [default: random weights]")
    ] = None,
    net: Annotated[str, Parameter(help="dt, dt-recall, ff or ff-recall, without --run")] = (
        "dt-recall"
    ),
    width: Annotated[int | None, Parameter(help="features [default: the paper's]")] = None,
    size: Annotated[str | None, Parameter(help="how hard [default: the training size]")] = None,
    count: Annotated[int, Parameter(help="problems")] = 100,
    steps: Annotated[int, Parameter(help="iterations")] = 100,
    rounds: Annotated[int, Parameter(help="rounds, ours and plain in turns")] = 5,
    device: DeviceName = "auto",
    seed: Annotated[int, Parameter(help="of weights and problems")] = 0,
    memory: Annotated[bool, Parameter(help="measure the peak memory too")] = True,
    out: Annotated[Path, Parameter(help="the folder for the result")] = Path("results"),
) -> None:
    """Measure our evaluation beside one that keeps every output and stops nothing."""
    from rich.progress import Progress

    from iterant.bench import bench_evaluate, evaluation_name
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    screen, made = console(), task_of(task)
    with Progress(console=screen, disable=not screen.is_terminal, transient=True) as bar:
        turns = bar.add_task("measuring", total=None)
        figures = bench_evaluate(
            task,
            run=run,
            net=net,
            width=width,
            size=None if size is None else made.parse_size(size),
            count=count,
            steps=steps,
            rounds=rounds,
            device=device,
            seed=seed,
            memory=memory,
            progress=lambda done, total: bar.update(turns, completed=done, total=total),
        )
    path = write_result(evaluation_name(figures), figures, seed=seed, folder=out)
    _show_evaluation(figures, screen)
    screen.print(f"written to {path}", soft_wrap=True)


@bench.command
def solve(
    *,
    task: TaskName = "mazes",
    run: Annotated[Path | None, Parameter(help="a network [default: the shipped one]")] = None,
    size: Annotated[str | None, Parameter(help="how hard [default: the training size]")] = None,
    count: Annotated[int, Parameter(help="problems")] = 10,
    rounds: Annotated[int, Parameter(help="rounds, both ways in turns")] = 3,
    device: DeviceName = "auto",
    seed: Annotated[int, Parameter(help="of the problems")] = 0,
    out: Annotated[Path, Parameter(help="the folder for the result")] = Path("results"),
) -> None:
    """Measure iterant.solve beside this command line's path and beside the dense network."""
    from rich.table import Table

    from iterant.bench import bench_solve, solving_name
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    screen, made = console(), task_of(task)
    figures = bench_solve(
        task,
        run=run,
        size=None if size is None else made.parse_size(size),
        count=count,
        rounds=rounds,
        device=device,
        seed=seed,
    )
    path = write_result(solving_name(figures), figures, seed=seed, folder=out)
    table = Table("", "seconds", box=None)
    for side, seconds in figures["seconds"].items():
        table.add_row(side, f"{seconds:.3g}")
    for sides, ratio in figures["ratio"].items():
        table.add_row(sides, _times(ratio))
    screen.print(table)
    screen.print(f"written to {path}", soft_wrap=True)


@bench.command
def scale(
    *,
    task: TaskName = "mazes",
    recipe: Annotated[str, Parameter(help="which training recipe")] = "quick",
    width: Annotated[int | None, Parameter(help="features [default: the recipe's]")] = None,
    batch: Annotated[int | None, Parameter(help="problems a step [default: the recipe's]")] = None,
    updates: Annotated[int, Parameter(help="a round")] = 20,
    rounds: Annotated[int, Parameter(help="rounds, all counts in turns")] = 3,
    processes: Annotated[
        list[int] | None,
        Parameter(consume_multiple=1, negative="", help="how many together [default: 1 2]"),
    ] = None,
    out: Annotated[Path, Parameter(help="the folder for the result")] = Path("results"),
) -> None:
    """Measure several CPU processes on one run: how much faster, and how much of it is talk."""
    from rich.table import Table

    from iterant.bench.scale import bench_scale
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    task_of(task)
    screen, counts = console(), processes or [1, 2]
    figures = bench_scale(task, recipe=recipe, width=width, batch=batch, updates=updates,
                          rounds=rounds, processes=counts)  # fmt: skip
    path = write_result(f"bench-scale-{task}-cpu", figures, seed=0, folder=out)
    table = Table("processes", "updates per second", "times faster", "efficiency", "talking",
                  box=None)  # fmt: skip
    for count, row in figures["processes"].items():
        table.add_row(count, f"{row['updates per second']:.3g}", f"{row['times faster']:.2f}",
                      f"{row['efficiency']:.0%}", f"{row['talking']:.0%}")  # fmt: skip
    screen.print(table)
    screen.print(f"written to {path}", soft_wrap=True)


def _show_evaluation(figures: dict[str, Any], screen: Console) -> None:
    """What was measured on one line, and a row a side."""
    from rich.table import Table

    memory = figures["memory"]
    shape = " × ".join(map(str, figures["inputs"]))
    screen.print(
        f"{figures['task']}, {figures['net']} with {figures['parameters']:,} parameters, inputs "
        f"{shape}, {counted(figures['iterations'], 'iteration')}, on {figures['device']}",
        soft_wrap=True,
    )
    table = Table("", "iterations per second", "time to the curve", "peak memory", box=None)
    for side in ("ours", "plain"):
        peak = byte_size(memory[side]) if memory else "not measured"
        speed = f"{figures['iterations per second'][side]:,.4g}"
        table.add_row(side, speed, f"{figures['seconds to the curve'][side]:.3g} s", peak)
    table.add_row("ratio", _times(figures["ratio"]), "",
                  f"{memory['ratio']:.2f} times less" if memory else "")  # fmt: skip
    if halting := figures.get("with halting"):
        seconds = f"{halting['seconds to the curve']['ours']:.3g} s"
        table.add_row("ours, halting", _times(halting["ratio"]), seconds, "")
    screen.print(table)


def _times(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} times ({ratio['lowest']:.2f} to {ratio['highest']:.2f})"


def _show(figures: dict[str, Any], screen: Console) -> None:
    """What was measured on one line, and a row a side."""
    from rich.table import Table

    ratio, memory = figures["ratio"], figures["memory"]
    shape = " × ".join(map(str, figures["inputs"]))
    screen.print(
        f"{figures['task']}, recipe {figures['recipe']}, {figures['net']} with "
        f"{figures['parameters']:,} parameters, inputs {shape}, alpha {figures['alpha']:g}, "
        f"on {figures['device']}",
        soft_wrap=True,
    )
    table = Table("", "precision", "steps per second", "peak memory", box=None)
    for side in ("ours", "plain"):
        peak = byte_size(memory[side]) if memory else "not measured"
        speed = f"{figures['steps per second'][side]:.4g}"
        table.add_row(side, figures["precision"][side], speed, peak)
    spread = _times(ratio)
    less = f"{memory['ratio']:.2f} times less" if memory else ""
    table.add_row("ratio", "", spread, less)
    screen.print(table)
