"""``iterant analyze``: intervene while trained networks think, and see what becomes of it.

iterant analyze runs/m0 runs/m1 --what noise zeros swap --size 13
iterant analyze runs/m0 --what near-misses --save-failures failures
iterant analyze chess --what near-misses --size 1600:1900 --save-failures bad
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant.cli.options import SEVERAL, DataPath, DeviceName, console, print_table, task_of
from iterant.errors import UsageError
from iterant.formatting import counted

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.analysis import Report

_STUDIES = (
    "clean, noise, zeros, swap, swap-input, bit-flip, move-end, convergence, near-misses, kinds"
)


def analyze(
    *runs: str,
    what: Annotated[
        list[str] | None,
        SEVERAL,
        Parameter(help=f"which studies: {_STUDIES} [default: all that the task offers]"),
    ] = None,
    size: str | None = None,
    count: int = 100,
    max_steps: int | None = None,
    after: int | None = None,
    tolerance: float = 1e-3,
    seed: int = 1,
    out: Path = Path("analysis"),
    save_failures: Path | None = None,
    task: str | None = None,
    device: DeviceName = "auto",
    data: DataPath = None,
) -> None:
    """See how trained networks take interventions, whether they rest, and how they fail.

    Args:
        runs: run folders, folders of weights or shipped names
        size: how hard the problems are [default: 48 bits, mazes of 13 …]
        count: how many problems
        max_steps: iterations in all [default: 300, or what the network has]
        after: intervene after this iteration [default: as in the paper, 1 or 50]
        tolerance: features that move by less of their norm are settled
        seed: of problems, noise and swaps
        out: the folder for JSON, pictures and index.html
        save_failures: draw wrong answers into this folder (adds near-misses)
        task: for weights that do not say what they were trained on
    """
    from rich.progress import Progress

    from iterant.analysis import analyze as analyze_runs
    from iterant.io.files import check_writable_folder

    if not runs:
        raise UsageError(
            "which runs? give one or more folders before the options: iterant analyze runs/m0 …"
        )
    for folder in (out, save_failures):
        if folder is not None:
            check_writable_folder(folder)
    words = None if what is None else [*what, *(["near-misses"] if save_failures else [])]
    screen = console()
    with Progress(console=screen, disable=not screen.is_terminal, transient=True) as bar:
        turn = bar.add_task("loading", total=1.0)
        report = analyze_runs(
            list(runs), words, size=size, count=count, max_steps=max_steps, after=after,
            seed=seed, task=None if task is None else task_of(task, data), device=device,
            data=data, tolerance=tolerance,
            progress=lambda label, done: bar.update(turn, description=label, completed=done),
        )  # fmt: skip
    _show(report, screen)
    page = report.save(out)
    if save_failures is not None:
        pictures = report.save_failures(save_failures)
        many = counted(len(pictures), "failure")
        screen.print(f"{many} drawn in {save_failures}", soft_wrap=True)
    screen.print(f"written to {page}", soft_wrap=True)


def _show(report: Report, screen: Console) -> None:
    """The table of interventions, the tables of other studies, and what was skipped."""
    from iterant.analysis import Recovery

    def show(title: str, rows: list[list[str]]) -> None:
        if title:  # outside the table, which would fold it to its own width
            screen.print(title, style="italic", soft_wrap=True)
        print_table(*rows)

    if table := report.table():
        show("iterations to solution (peak accuracy)", table)
    for word in report.studies:
        if not table or word not in table[0]:
            for place, rows in enumerate(report.headlines(word)):
                show("" if place else word, rows)
    for outcome in report.outcomes:
        for finding in outcome.results:
            if isinstance(finding, Recovery) and finding.broken.any():
                screen.print(f"{outcome.subject.label}: {outcome.what}: features of "
                             f"{int(finding.broken.sum())} of {finding.count} problems became NaN "
                             "or infinite; these count as not solved", soft_wrap=True)  # fmt: skip
    for one in report.skipped:
        screen.print(f"{one.label}: {one.what} skipped: {one.why}", soft_wrap=True)
