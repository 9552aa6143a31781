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

from iterant import names
from iterant.cli.devices import DeviceName
from iterant.cli.rules import rule_of
from iterant.cli.screen import console
from iterant.cli.tasks import DataPath, Sizes
from iterant.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.analysis.subjects import Subject
    from iterant.evaluation.judging import Progress as Told
    from iterant.tasks.protocol import Size

    Work = list[tuple[Subject, Size]]

_WORDS = ("plain", "max-confidence", "stable", "rest")


def evaluate(
    *runs: Annotated[
        str,
        Parameter(help="run folders, RUN/checkpoints/last, folders of weights, or shipped names"),
    ],
    size: Sizes = None,
    max_steps: Annotated[
        int | None,
        Parameter(help="iterations [default: 1000, or all that a feed-forward network has]"),
    ] = None,
    count: Annotated[int, Parameter(help="problems a size")] = 1000,
    seed: Annotated[int, Parameter(help="of the problems")] = 1,
    rule: Annotated[str, Parameter(help=f"when a problem stops: {', '.join(_WORDS)}")] = "plain",
    patience: Annotated[
        int | None,
        Parameter(help="iterations that an answer must stay the same, for stable [default: 30]"),
    ] = None,
    tolerance: Annotated[
        float | None,
        Parameter(
            help="how far features may move in 16 iterations, as a share of the largest, for rest "
            "[default: 1e-4]"
        ),
    ] = None,
    trade: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="compare many rules in one run instead: accuracy against mean iterations",
        ),
    ] = False,
    check: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="also count answers that change because stopped problems leave the batch",
        ),
    ] = False,
    save: Annotated[Path | None, Parameter(help="draw the curves into this .png file")] = None,
    json: Annotated[
        Path | None, Parameter(name=["--json", "--result"], help="write the figures to this .json")
    ] = None,
    task: Annotated[
        str | None, Parameter(help="for weights that do not say what they were trained on")
    ] = None,
    device: DeviceName = "auto",
    precision: Annotated[
        str, Parameter(help=f"to compute in: {', '.join(names.known('precision'))}")
    ] = "fp32",
    portion: Annotated[
        int | None, Parameter(help="problems at a time [default: as many as seem to fit]")
    ] = None,
    data: DataPath = None,
) -> None:
    """Measure accuracy after every iteration on fresh problems."""
    from iterant.draw.pictures import check_png
    from iterant.runs.results import check_result_place

    chosen = rule_of(_WORDS, rule, patience, tolerance)
    picture = None if save is None else check_png(save)
    result = None if json is None else check_result_place(json)
    if trade and (check or picture or chosen):
        raise UsageError(
            "--trade compares all rules and draws no curves; leave out --check, --save and --rule"
        )
    if not runs:
        raise UsageError("which runs? give one or more folders: iterant evaluate runs/m0")
    work = _work(runs, size, task=task, device=device, data=data, precision=precision)
    how = {"count": count, "seed": seed, "max_steps": max_steps, "portion": portion}
    screen = console()
    if trade:
        figures = _trade(work, how, screen)
    else:
        figures = _curves(work, {**how, "rule": chosen}, picture, screen)
        if check:
            _check(work, {**how, "rule": chosen}, figures, screen)
    _say_where_from(work, figures, screen)
    if result is not None:
        from iterant.runs import write_result

        told = {"rule": "all" if trade else str(chosen or "plain"), "precision": precision, **how}
        path = write_result(
            result.stem, {**told, "evaluations": figures}, seed=seed, folder=result.parent
        )
        screen.print(f"written to {path}", soft_wrap=True)


def _say_where_from(work: Work, figures: list[dict[str, Any]], screen: Console) -> None:
    """Name the sets that problems were taken from: two sets may have the same sizes."""
    from iterant.tasks.edits import Collected

    said: dict[str, None] = {}
    for (subject, _), figure in zip(work, figures, strict=True):
        if isinstance(subject.task, Collected):
            figure["set"] = subject.task.came_from()
            said[f"{subject.task.spec.title}: {figure['set']}"] = None
    for line in said:
        screen.print(line, soft_wrap=True)


def _work(runs: tuple[str, ...], sizes: list[str] | None, *, precision: str, **how: Any) -> Work:
    """Every network with every size that it is asked for."""
    from iterant.analysis.subjects import subject_of

    dtype, work = names.find("precision", precision), []
    for run in runs:
        subject = subject_of(run, **how)
        net: Any = subject.net
        net.to(dtype)
        work += [
            (subject, size)
            for size in (
                [subject.task.parse_size(text) for text in sizes]
                if sizes
                else [subject.task.check_size(None)]
            )
        ]
    return work


@contextmanager
def _progress(screen: Console, work: Work) -> Iterator[list[Told]]:
    """A bar with the time left, and what moves it for each piece of work."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("thinking"), BarColumn(), TextColumn("{task.percentage:3.0f} %"),
               TimeRemainingColumn())  # fmt: skip
    # Time left should be right for small and large problems alike: weigh them by their positions.
    shares = [float(subject.task.sample(1, size=size).targets.numel()) for subject, size in work]
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        whole = bar.add_task("", total=sum(shares))

        def mover(before: float, share: float) -> Told:
            return lambda done, of: bar.update(whole, completed=before + share * done / of)

        yield [mover(sum(shares[:place]), share) for place, share in enumerate(shares)]


def _curves(
    work: Work, how: dict[str, Any], picture: Path | None, screen: Console
) -> list[dict[str, Any]]:
    """Evaluate, print a row each, draw; the figures."""
    from iterant.cli.evaluation_tables import broken, curve_table, titles
    from iterant.evaluation import evaluate as evaluated

    with _progress(screen, work) as movers:
        curves = [
            evaluated(subject.net, subject.task, size=size, progress=moved, **how)
            for (subject, size), moved in zip(work, movers, strict=True)
        ]
    screen.print(curve_table(work, curves))
    for line in broken(work, curves):
        screen.print(line, soft_wrap=True)
    if picture is not None:
        from iterant.analysis.subjects import shared_regime
        from iterant.draw.curves import save_curves

        save_curves(
            dict(zip(titles(work), curves, strict=True)),
            picture,
            regime=shared_regime(subject for subject, _ in work),
            title=", ".join(dict.fromkeys(subject.task.spec.title for subject, _ in work)),
        )
        screen.print(f"drawn in {picture}", soft_wrap=True)
    return [
        {"run": subject.label, "size": size, **curve.described()}
        for (subject, size), curve in zip(work, curves, strict=True)
    ]


def _trade(work: Work, how: dict[str, Any], screen: Console) -> list[dict[str, Any]]:
    """Every rule in one run, a table each; the figures."""
    from iterant.cli.evaluation_tables import titles, trade_table
    from iterant.evaluation import budget_of, trade

    figures = []
    with _progress(screen, work) as movers:
        for title, (subject, size), moved in zip(titles(work), work, movers, strict=True):
            net, task = subject.net, subject.task
            bargains = trade(
                net, task, task.sample(how["count"], size=size, seed=how["seed"]),
                steps=budget_of(net, how["max_steps"]), portion=how["portion"], progress=moved,
            )  # fmt: skip
            screen.print(title, soft_wrap=True)
            screen.print(trade_table(bargains))
            figures.append(
                {"run": subject.label, "size": size, "trade": [b.described() for b in bargains]}
            )
    return figures


def _check(work: Work, how: dict[str, Any], figures: list[dict[str, Any]], screen: Console) -> None:
    """Think once more without letting problems leave, and say what differs."""
    from iterant.cli.evaluation_tables import titles
    from iterant.evaluation import budget_of, compaction
    from iterant.halting import Fixed

    for title, (subject, size), figure in zip(titles(work), work, figures, strict=True):
        batch = subject.task.sample(how["count"], size=size, seed=how["seed"])
        found = compaction(
            subject.net, batch, how["rule"] or Fixed(),
            steps=budget_of(subject.net, how["max_steps"]), portion=how["portion"],
        )  # fmt: skip
        figure["compaction"] = {"answers that differ": found.answers, "stops": found.stops}
        screen.print(
            f"{title}: {found.answers} of {names.counted(found.count, 'answer')} and "
            f"{names.counted(found.stops, 'stop')} differ from the run in which no problem leaves "
            "the batch",
            soft_wrap=True,
        )
