"""``iterant evaluate``: accuracy by iteration of trained networks.

iterant evaluate runs/m0 --size 13 59 --max-steps 1000 --save curves.png
iterant evaluate runs/m0 runs/m1 --size 59 --rule stable --json mazes.json
iterant evaluate runs/m0 --size 59 --trade

Tables of evaluations: a row a network and size, or a row a halting rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from iterant import registry
from iterant.cli.options import DataPath, DeviceName, Sizes, console, rule_of
from iterant.errors import UsageError
from iterant.formatting import counted, duration, percent, quantity, size_text

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.analysis.studies import Subject
    from iterant.evaluation import Bargain, Curve
    from iterant.evaluation.evaluator import Progress as Told
    from iterant.tasks.protocol import Size

    Work = list[tuple[Subject, Size]]


def titles(work: Work) -> list[str]:
    """What each piece of work is called: its size, and its run where there are several."""
    labels = [subject.label for subject, _ in work]
    many = len({id(subject) for subject, _ in work}) > 1
    named: list[str] = []
    for place, (subject, size) in enumerate(work):
        text = f"size {size_text(size)}"
        title = f"{subject.label}, {text}" if many else text
        # Runs of one name in different folders are told apart by number.
        again = named.count(title) and labels[:place].count(subject.label)
        named.append(f"{title} ({again + 1})" if again else title)
    return named


def curve_table(work: Work, curves: Sequence[Curve]) -> Table:
    """Peak, where, end, what was lost, interval, mean iterations, operations, time."""
    table = Table(box=None)
    for name in ("", "peak", "at iteration", "end", "after", "lost", "95 % at the end",
                 "mean iterations", "operations a problem", "time"):  # fmt: skip
        table.add_column(name, justify="right" if name else "left")
    for title, curve in zip(titles(work), curves, strict=True):
        step, height = curve.peak
        low, high = curve.interval_at(curve.steps[-1])
        table.add_row(
            title,
            percent(height),
            str(step),
            percent(curve.end),
            str(curve.steps[-1]),
            f"{100 * curve.lost:.1f}",
            f"{100 * low:.1f} – {100 * high:.1f}",
            f"{float(curve.iterations[-1]):.1f}",
            "" if curve.work is None else quantity(float(curve.work[-1])),
            "" if curve.seconds is None else duration(float(curve.seconds[-1])),
        )
    return table


def trade_table(bargains: Sequence[Bargain]) -> Table:
    """Accuracy against cost, a row a rule."""
    table = Table(box=None)
    for name in ("rule", "accuracy", "mean iterations", "operations a problem", "stopped by it"):
        table.add_column(name, justify="left" if name == "rule" else "right")
    for one in bargains:
        table.add_row(
            str(one.rule),
            percent(one.accuracy),
            f"{one.iterations:.1f}",
            quantity(one.work),
            f"{one.stopped} of {one.count}",
        )
    return table


def broken(work: Work, curves: Sequence[Curve]) -> Iterator[str]:
    """A line for each evaluation in which features stopped being numbers, or memory ran short."""
    for title, curve in zip(titles(work), curves, strict=True):
        if curve.broken:
            yield (
                f"{title}: features of {curve.broken} of {counted(curve.count, 'problem')} "
                "became NaN or infinite; these count as not solved"
            )
        if curve.shrunk is not None:
            few = counted(curve.shrunk, "problem")
            yield f"{title}: memory ran short; went on with {few} at a time"


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
        str, Parameter(help=f"to compute in: {', '.join(registry.known('precision'))}")
    ] = "fp32",
    portion: Annotated[
        int | None, Parameter(help="problems at a time [default: as many as seem to fit]")
    ] = None,
    data: DataPath = None,
) -> None:
    """Measure accuracy after every iteration on fresh problems."""
    from iterant.draw.figure import check_png
    from iterant.io.results import check_result_path

    chosen = rule_of(_WORDS, rule, patience, tolerance)
    picture = None if save is None else check_png(save)
    result = None if json is None else check_result_path(json)
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
        from iterant.io import write_result

        told = {"rule": "all" if trade else str(chosen or "plain"), "precision": precision, **how}
        path = write_result(
            result.stem, {**told, "evaluations": figures}, seed=seed, folder=result.parent
        )
        screen.print(f"written to {path}", soft_wrap=True)


def _say_where_from(work: Work, figures: list[dict[str, Any]], screen: Console) -> None:
    """Name the sets that problems were taken from: two sets may have the same sizes."""
    from iterant.tasks.protocol import HasSource

    said: dict[str, None] = {}
    for (subject, _), figure in zip(work, figures, strict=True):
        if isinstance(subject.task, HasSource):
            figure["set"] = subject.task.came_from()
            said[f"{subject.task.spec.title}: {figure['set']}"] = None
    for line in said:
        screen.print(line, soft_wrap=True)


def _work(runs: tuple[str, ...], sizes: list[str] | None, *, precision: str, **how: Any) -> Work:
    """Every network with every size that it is asked for."""
    from iterant.analysis.studies import subject_of

    dtype, work = registry.find("precision", precision), []
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
        from iterant.analysis.studies import shared_regime
        from iterant.draw.plots import save_curves

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
            f"{title}: {found.answers} of {counted(found.count, 'answer')} and "
            f"{counted(found.stops, 'stop')} differ from the run in which no problem leaves "
            "the batch",
            soft_wrap=True,
        )
