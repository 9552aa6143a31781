"""``iterant analyze``: intervene in trained networks while they iterate, and measure the effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant import bounds
from iterant.cli.options import (
    SEVERAL,
    Count,
    DataPath,
    DeviceName,
    Problems,
    Seed,
    Steps,
    TrustCode,
)
from iterant.cli.output import echo, print_table
from iterant.formatting import counted

if TYPE_CHECKING:
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
    count: Count = 100,
    max_steps: Steps | None = None,
    after: Annotated[int | None, Parameter(validator=bounds.AFTER)] = None,
    tolerance: Annotated[float, Parameter(validator=bounds.TOLERANCE)] = 1e-3,
    seed: Seed = 1,
    out: Path = Path("analysis"),
    save_failures: Path | None = None,
    task: str | None = None,
    device: DeviceName = "auto",
    data: DataPath = None,
    problems: Problems = "",
    trust_code: TrustCode = False,
) -> None:
    """Study interventions on trained networks, their convergence and their errors.

    iterant analyze runs/m0 runs/m1 --what noise zeros swap --size 13
    iterant analyze runs/m0 --what near-misses --save-failures failures
    iterant analyze chess --what near-misses --size 1600:1900 --save-failures bad

    Args:
        runs: run folders, folders of weights or shipped names
        size: of the problems [default: 48 bits, mazes of 13×13 …]
        count: number of problems
        max_steps: iterations [default: 300, or the depth of the network]
        after: intervene after this iteration [default: as in the paper, 1 or 50]
        tolerance: relative change of the features below which they count as settled
        seed: of problems, noise and swaps
        out: the folder for JSON, pictures and index.html
        save_failures: draw wrong answers into this folder (adds near-misses)
        task: for weights that do not name the task they were trained on
    """
    from iterant.analysis import analyze as analyze_runs
    from iterant.io.files import check_writable_folder

    for folder in (out, save_failures):
        if folder is not None:
            check_writable_folder(folder)
    studies = None if what is None else [*what, *(["near-misses"] if save_failures else [])]
    report = analyze_runs(
        list(runs), studies, size=size, count=count, max_steps=max_steps, after=after, seed=seed,
        task=task, device=device, data=data, problems=problems, tolerance=tolerance,
        trust=trust_code,
    )  # fmt: skip
    _show(report)
    page = report.save(out)
    if save_failures is not None:
        pictures = report.save_failures(save_failures)
        echo(f"{counted(len(pictures), 'failure')} drawn in {save_failures}")
    echo(f"written to {page}")


def _show(report: Report) -> None:
    """The table of interventions, the tables of other studies, and what was skipped."""
    if table := report.table():
        echo("iterations to solution (peak accuracy)", style="italic")
        print_table(*table)
    for word in report.studies:
        if not table or word not in table[0]:
            echo(word, style="italic")
            for rows in report.headlines(word):
                print_table(*rows)
    for word in report.studies:
        for label, (result, *_) in report.results[word].items():
            figures = result.figures
            if figures.get("recovered") is not None and figures["broken"]:
                echo(
                    f"{label}: {word}: features of {figures['broken']} of {figures['problems']} "
                    "problems became NaN or infinite; these count as not solved"
                )
    for skipped in report.skipped:
        echo(f"{skipped.label}: {skipped.what} skipped: {skipped.why}")
