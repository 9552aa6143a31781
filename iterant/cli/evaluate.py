"""``iterant evaluate``: accuracy by iteration of trained networks.

iterant evaluate runs/m0 --size 13 59 --max-steps 1000 --save curves.png
iterant evaluate runs/m0 runs/m1 --size 59 --rule stable --json mazes.json
iterant evaluate runs/m0 --size 59 --trade
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iterant import registry
from iterant.cli.options import (
    FLAG,
    DataPath,
    DeviceName,
    Patience,
    Sizes,
    Tolerance,
    console,
    print_table,
    rule_of,
)
from iterant.errors import UsageError
from iterant.formatting import counted, duration, percent, quantity, size_text

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.analysis.studies import Subject
    from iterant.evaluation.evaluator import Progress as OnProgress
    from iterant.tasks.protocol import Size

    Work = list[tuple[Subject, Size]]

_RULES = ("plain", "max-confidence", "stable", "rest")


def evaluate(
    *runs: str,
    size: Sizes = None,
    max_steps: int | None = None,
    count: int = 1000,
    seed: int = 1,
    rule: Annotated[str, Parameter(help=f"when a problem stops: {', '.join(_RULES)}")] = "plain",
    patience: Patience = None,
    tolerance: Tolerance = None,
    trade: Annotated[bool, FLAG] = False,
    check: Annotated[bool, FLAG] = False,
    save: Path | None = None,
    json: Annotated[Path | None, Parameter(name=["--json", "--result"])] = None,
    task: str | None = None,
    device: DeviceName = "auto",
    precision: Annotated[
        str, Parameter(help=f"to compute in: {', '.join(registry.known('precision'))}")
    ] = "fp32",
    portion: int | None = None,
    data: DataPath = None,
) -> None:
    """Measure accuracy after every iteration on fresh problems.

    Args:
        runs: run folders, RUN/checkpoints/last, folders of weights, or shipped names
        max_steps: iterations [default: 1000, or all that a feed-forward network has]
        count: problems a size
        seed: of the problems
        trade: compare many rules in one run instead: accuracy against mean iterations
        check: also count answers that change because stopped problems leave the batch
        save: draw the curves into this .png file
        json: write the figures to this .json
        task: for weights that do not say what they were trained on
        portion: problems at a time [default: as many as seem to fit]
    """
    from iterant.analysis.studies import subject_of
    from iterant.draw.figure import check_picture
    from iterant.io import write_result
    from iterant.io.results import check_result_path

    chosen = rule_of(_RULES, rule, patience, tolerance)
    picture = None if save is None else check_picture(save)
    result = None if json is None else check_result_path(json)
    if trade and (check or picture or chosen):
        raise UsageError(
            "--trade compares all rules and draws no curves; leave out --check, --save and --rule"
        )
    if not runs:
        raise UsageError("which runs? give one or more folders: iterant evaluate runs/m0")
    dtype, work = registry.find("precision", precision), []
    for run in runs:
        subject = subject_of(run, task=task, device=device, data=data)
        net: Any = subject.net
        net.to(dtype)
        sizes = [subject.task.parse_size(text) for text in size or ()]
        work += [(subject, one) for one in sizes or [subject.task.check_size(None)]]
    how: dict[str, Any] = {
        "count": count, "seed": seed, "max_steps": max_steps, "portion": portion
    }  # fmt: skip
    screen = console()
    if trade:
        figures = _tradeoffs(work, how, screen)
    else:
        figures = _curves(work, {**how, "rule": chosen}, picture, screen)
        if check:
            _check_compaction(work, {**how, "rule": chosen}, figures, screen)
    _add_origin(work, figures, screen)
    if result is not None:
        settings = {"rule": "all" if trade else str(chosen or "plain"), "precision": precision}
        whole = {**settings, **how, "evaluations": figures}
        path = write_result(result.stem, whole, seed=seed, folder=result.parent)
        screen.print(f"written to {path}", soft_wrap=True)


def titles(work: Work) -> list[str]:
    """The size of each evaluation, and its run where there are several."""
    labels = [subject.label for subject, _ in work]
    several = len({id(subject) for subject, _ in work}) > 1
    names: list[str] = []
    for place, (subject, size) in enumerate(work):
        title = f"{subject.label}, " * several + f"size {size_text(size)}"
        # Runs of one name in different folders get numbers.
        again = names.count(title) and labels[:place].count(subject.label)
        names.append(f"{title} ({again + 1})" if again else title)
    return names


@contextmanager
def _progress(screen: Console, work: Work) -> Iterator[list[OnProgress]]:
    """A bar for all work, and a function for each piece that moves it."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("thinking"), BarColumn(), TextColumn("{task.percentage:3.0f} %"),
               TimeRemainingColumn())  # fmt: skip
    # Weighted by positions, so that the time left is right for problems of all sizes.
    weights = [float(subject.task.sample(1, size=size).targets.numel()) for subject, size in work]
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        turn = bar.add_task("", total=sum(weights))

        def part(before: float, weight: float) -> OnProgress:
            return lambda done, of: bar.update(turn, completed=before + weight * done / of)

        yield [part(sum(weights[:place]), weight) for place, weight in enumerate(weights)]


def _curves(
    work: Work, how: dict[str, Any], picture: Path | None, screen: Console
) -> list[dict[str, Any]]:
    """Evaluate, print, draw; the figures for the result."""
    from iterant.analysis.studies import shared_regime
    from iterant.evaluation import evaluate as evaluate_net

    with _progress(screen, work) as parts:
        curves = [
            evaluate_net(subject.net, subject.task, size=size, progress=on_progress, **how)
            for (subject, size), on_progress in zip(work, parts, strict=True)
        ]
    named = dict(zip(titles(work), curves, strict=True))
    rows = []
    for title, curve in named.items():
        step, height = curve.peak
        low, high = curve.interval_at(curve.steps[-1])
        rows.append(
            [title, percent(height), str(step), percent(curve.end), str(curve.steps[-1]),
             f"{100 * curve.lost:.1f}", f"{100 * low:.1f} – {100 * high:.1f}",
             f"{float(curve.iterations[-1]):.1f}",
             "" if curve.work is None else quantity(float(curve.work[-1])),
             "" if curve.seconds is None else duration(float(curve.seconds[-1]))]
        )  # fmt: skip
    print_table(
        ("", "peak", "at iteration", "end", "after", "lost", "95 % at the end", "mean iterations",
         "operations a problem", "time"),
        *rows, right=True,
    )  # fmt: skip
    for title, curve in named.items():
        if curve.broken:
            screen.print(
                f"{title}: features of {curve.broken} of {counted(curve.count, 'problem')} "
                "became NaN or infinite; these count as not solved",
                soft_wrap=True,
            )
        if curve.shrunk is not None:
            few = counted(curve.shrunk, "problem")
            screen.print(f"{title}: memory ran short; went on with {few} at a time", soft_wrap=True)
    if picture is not None:
        from iterant.draw.plots import save_curves

        tasks = ", ".join(dict.fromkeys(subject.task.spec.title for subject, _ in work))
        regime = shared_regime(subject for subject, _ in work)
        save_curves(named, picture, regime=regime, title=tasks)
        screen.print(f"drawn in {picture}", soft_wrap=True)
    return [
        {"run": subject.label, "size": size, **curve.described()}
        for (subject, size), curve in zip(work, curves, strict=True)
    ]


def _tradeoffs(work: Work, how: dict[str, Any], screen: Console) -> list[dict[str, Any]]:
    """Compare all rules and print a table each; the figures for the result."""
    from iterant.evaluation import budget_of, tradeoff

    figures = []
    with _progress(screen, work) as parts:
        for title, (subject, size), on_progress in zip(titles(work), work, parts, strict=True):
            batch = subject.task.sample(how["count"], size=size, seed=how["seed"])
            points = tradeoff(
                subject.net, subject.task, batch, steps=budget_of(subject.net, how["max_steps"]),
                portion=how["portion"], progress=on_progress,
            )  # fmt: skip
            screen.print(title, soft_wrap=True)
            print_table(
                ("rule", "accuracy", "mean iterations", "operations a problem", "stopped by it"),
                *(
                    [str(one.rule), percent(one.accuracy), f"{one.iterations:.1f}",
                     quantity(one.work), f"{one.stopped} of {one.count}"]
                    for one in points
                ), right=True,
            )  # fmt: skip
            described = [one.described() for one in points]
            figures.append({"run": subject.label, "size": size, "trade": described})
    return figures


def _check_compaction(
    work: Work, how: dict[str, Any], figures: list[dict[str, Any]], screen: Console
) -> None:
    """Solve once more with all problems kept in the batch, and add what differs."""
    from iterant.evaluation import budget_of, compaction
    from iterant.halting import Fixed

    for title, (subject, size), figure in zip(titles(work), work, figures, strict=True):
        batch = subject.task.sample(how["count"], size=size, seed=how["seed"])
        answers, stops = compaction(
            subject.net, batch, how["rule"] or Fixed(),
            steps=budget_of(subject.net, how["max_steps"]), portion=how["portion"],
        )  # fmt: skip
        figure["compaction"] = {"answers that differ": answers, "stops": stops}
        screen.print(
            f"{title}: {answers} of {counted(len(batch), 'answer')} and "
            f"{counted(stops, 'stop')} differ from the run in which no problem leaves "
            "the batch",
            soft_wrap=True,
        )


def _add_origin(work: Work, figures: list[dict[str, Any]], screen: Console) -> None:
    """Name the set that problems were taken from: two sets may have the same sizes."""
    from iterant.tasks.protocol import HasSource

    lines: dict[str, None] = {}
    for (subject, _), figure in zip(work, figures, strict=True):
        if isinstance(subject.task, HasSource):
            figure["set"] = subject.task.came_from()
            lines[f"{subject.task.spec.title}: {figure['set']}"] = None
    for line in lines:
        screen.print(line, soft_wrap=True)
