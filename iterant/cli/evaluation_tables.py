"""Tables of evaluations: a row a network and size, or a row a halting rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from iterant import names
from iterant.cli.figures import duration, share

if TYPE_CHECKING:
    from iterant.analysis.subjects import Subject
    from iterant.evaluation import Bargain, Curve
    from iterant.tasks.protocol import Size

    Work = Sequence[tuple[Subject, Size]]

_UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def titles(work: Work) -> list[str]:
    """What each piece of work is called: its size, and its run where there are several."""
    labels = [subject.label for subject, _ in work]
    many = len({id(subject) for subject, _ in work}) > 1
    named: list[str] = []
    for place, (subject, size) in enumerate(work):
        text = f"size {_size(size)}"
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
            share(height),
            str(step),
            share(curve.end),
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
            share(one.accuracy),
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
                f"{title}: features of {curve.broken} of {names.counted(curve.count, 'problem')} "
                "became NaN or infinite; these count as not solved"
            )
        if curve.shrunk is not None:
            few = names.counted(curve.shrunk, "problem")
            yield f"{title}: memory ran short; went on with {few} at a time"


def quantity(value: float) -> str:
    """A large number in three digits: ``3.93 M``."""
    for unit, letter in _UNITS:
        if value >= unit:
            return f"{value / unit:.3g} {letter}"
    return f"{value:.3g}"


def _size(size: Size) -> str:
    return f"{size[0]}:{size[1]}" if isinstance(size, tuple) else str(size)
