"""``iterant bench``: speed compared with a plain implementation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from iterant import bounds
from iterant.cli.options import Count, DeviceName, Seed, Steps, TaskName, TrustCode
from iterant.cli.output import echo, print_table
from iterant.formatting import byte_size
from iterant.progress import progress_estimates

bench = App(
    name="bench",
    help="""Compare speed with a plain implementation.

iterant bench train --task mazes --width 32
iterant bench solve --task mazes --size 59 --count 10""",
)

Rounds = Annotated[int, Parameter(validator=bounds.ROUNDS)]


@bench.command
def train(
    *,
    task: TaskName = "prefix-sums",
    recipe: str = "paper",
    net: str | None = None,
    width: Annotated[int | None, Parameter(validator=bounds.WIDTH)] = None,
    batch: Count | None = None,
    steps: Steps = 20,
    rounds: Rounds = 5,
    device: DeviceName = "auto",
    precision: str | None = None,
    seed: Seed = 0,
    memory: bool = True,
    out: Path = Path("results"),
) -> None:
    """Compare our training step with a plain one, written like the authors' code.

    iterant bench train --task mazes --width 32

    Args:
        recipe: the training recipe
        net: dt, dt-recall, ff or ff-recall
        width: number of features [default: the recipe's]
        batch: problems per step [default: the recipe's]
        steps: optimizer steps per round
        rounds: repetitions; the implementations take turns
        precision: of our step: fp32 or bf16 [default: bf16 on a GPU]
        seed: of weights and problems
        memory: on a GPU, measure the peak memory too
        out: folder for the result
    """
    from iterant.bench import bench_train

    figures = _measure(
        bench_train, out, task=task, recipe=recipe, net=net, width=width, batch_size=batch,
        steps=steps, rounds=rounds, device=device, precision=precision, seed=seed, memory=memory,
    )  # fmt: skip
    echo(f"{figures['net']}, {figures['parameters']:,} parameters, on {figures['device']}")
    print_table(
        ("", "precision", "steps per second"),
        *([side, precision, f"{figures['steps per second'][side]:,.4g}"]
          for side, precision in figures["precision"].items()),
        ["ratio", "", _times(figures["ratio"])],
    )  # fmt: skip
    if peak := figures["memory"]:
        ours, plain = byte_size(peak["ours"]), byte_size(peak["plain"])
        echo(f"peak memory: ours {ours}, plain {plain}, {peak['ratio']:.2f} times as much")


@bench.command
def solve(
    *,
    task: TaskName = "mazes",
    run: str | None = None,
    size: str | None = None,
    count: Count = 10,
    rounds: Rounds = 3,
    device: DeviceName = "auto",
    seed: Seed = 0,
    trust_code: TrustCode = False,
    out: Path = Path("results"),
) -> None:
    """Compare iterant.solve with the same on the dense network, which computes every cell.

    iterant bench solve --task mazes --size 59 --count 10

    Args:
        run: a network [default: the shipped one]
        size: of the problems [default: the task's]
        count: number of problems
        rounds: repetitions of iterant.solve
        seed: of the problems
        out: folder for the result
    """
    from iterant.bench import bench_solve

    figures = _measure(
        bench_solve, out, task=task, run=run, size=size, count=count, rounds=rounds, device=device,
        seed=seed, trust=trust_code,
    )  # fmt: skip
    print_table(
        ("", "seconds"),
        *([side, f"{seconds:.3g}"] for side, seconds in figures["seconds"].items()),
        *([sides, _times(ratio)] for sides, ratio in figures["ratio"].items()),
    )


def _measure(benchmark: Callable[..., Any], out: Path, **options: Any) -> dict[str, Any]:
    """Run a benchmark, showing its progress, and write its figures."""
    from iterant.io import write_result
    from iterant.io.files import check_writable_folder

    check_writable_folder(out)
    name, figures = benchmark(**options, progress=progress_estimates("measuring"))
    echo(f"written to {write_result(name, figures, seed=options['seed'], folder=out)}")
    return dict(figures)


def _times(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} times ({ratio['lowest']:.2f} to {ratio['highest']:.2f})"
