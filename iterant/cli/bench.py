"""``iterant bench``: ours beside the plain way, as ratios in one run.

iterant bench train --task mazes --width 32
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from iterant.cli.screen import console
from iterant.cli.tasks import TaskName, task_of

if TYPE_CHECKING:
    from rich.console import Console

bench = App(name="bench", help="Measure iterant beside the plain way of doing the same.")


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
    device: Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0")] = "auto",
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
    from iterant.runs import write_result

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
        peak = f"{memory[side] / 2**20:,.0f} MiB" if memory else "not measured"
        speed = f"{figures['steps per second'][side]:.4g}"
        table.add_row(side, figures["precision"][side], speed, peak)
    spread = f"{ratio['median']:.2f} times ({ratio['lowest']:.2f} to {ratio['highest']:.2f})"
    less = f"{memory['ratio']:.2f} times less" if memory else ""
    table.add_row("ratio", "", spread, less)
    screen.print(table)
