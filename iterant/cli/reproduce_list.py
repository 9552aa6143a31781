"""``iterant reproduce --list``: all tables and figures, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iterant.cli.grouped import Cells, show_grouped

if TYPE_CHECKING:
    from rich.console import Console

    from iterant.experiments.counts import Counts
    from iterant.experiments.layout import Experiment, Row
    from iterant.experiments.records import Records
    from iterant.experiments.timed import Timed

_HEAD = ("", "seeds", "ours", "the paper's")
_SURE = ", most confident iteration"


def show_list(
    records: Records, timed: Sequence[Timed], counts: Counts, screen: Console
) -> None:  # fmt: skip
    """Every experiment with its runs, what is missing, the paper's seeds, and both numbers."""
    from rich.padding import Padding

    from iterant.experiments.catalogue import EXPERIMENTS

    for one in EXPERIMENTS.values():
        screen.print(f"{one.name}  {one.title} ({one.place})", style="bold")
        for line in _state(one, records, counts):
            screen.print(Padding(line, (0, 0, 0, 2), expand=False))
        if rows := list(_rows(one, records, timed, counts)):
            show_grouped(_HEAD, rows, screen)
        else:
            screen.print("  no number yet, and none in the paper")
        screen.print()


def _state(one: Experiment, records: Records, counts: Counts) -> Iterator[str]:
    """How many runs there are and what the rest would take; of the paper, what it says of its."""
    from iterant.cli.figures import duration
    from iterant.experiments.counting import estimate_counts, uncounted
    from iterant.experiments.paper import SEEDS
    from iterant.experiments.reproducing import RUNS, estimate, missing
    from iterant.experiments.rows import state_of

    done, wanted = state_of(one, records, counts)
    left = estimate(missing(one, records)) + estimate_counts(uncounted(one, counts), RUNS)
    yield f"{done} of {wanted} runs" + (
        f", the rest about {duration(left)} of an H200" if left else ""
    )
    for task in one.tasks:
        which = f" ({task})" if len(one.tasks) > 1 else ""
        yield f"seeds in the paper{which}: {SEEDS[task]}"


def _rows(
    one: Experiment, records: Records, timed: Sequence[Timed], counts: Counts
) -> Iterator[tuple[Cells, str]]:
    """A network, its seeds, our number and the paper's; and what is measured."""
    from iterant.experiments.rows import HEAD, rows_of
    from iterant.experiments.timed import HEAD as TIMED_HEAD
    from iterant.experiments.timed import timed_rows

    found = [dict(zip(HEAD, cells, strict=True)) for cells in rows_of(one, records, counts)[1:]]
    by_time, none = timed_rows(one, timed)[1:], not any(row["all seeds"] for row in found)
    for number, row in enumerate(found):
        ours, theirs = row["all seeds"], row["the paper"]
        # Of what there is no number at all, and of what had a time, the other rows say enough.
        if not ours and theirs == "–" and (none or by_time):
            continue
        seeds = row["seeds"] if ours else "0"
        plan = _planned(one.rows[number]) if number < len(one.rows) else _wanted(one, row)
        told = f"{seeds}/{plan}" if int(seeds) < plan else seeds
        who, measured = who_and_what(row)
        yield (who, told, ours or "not run", theirs), measured
    for cells in by_time:
        row = dict(zip(TIMED_HEAD, cells, strict=True))
        who, measured = who_and_what(row)
        name = f"{who}, {row['trained for']}"
        yield (name, row["seeds"], row["solved"], cells[-1]), f"{measured}, trained for a time"


def _planned(row: Row) -> int:
    """How many seeds a row is to have: some studies are of the first ones only."""
    from iterant.experiments.models import MODELS

    model = MODELS[row.model]
    fewer = {look.name: look.seeds for look in model.looks if look.seeds is not None}
    return fewer.get(row.measure.needs, model.seeds)


def _wanted(one: Experiment, row: dict[str, str]) -> int:
    """The same of a row without curves; 0: it is shown where there is any."""
    from iterant.experiments.models import MODELS

    size = row["measured"].removeprefix("size ").partition(",")[0]
    return max(
        (wanted.seeds for wanted in one.counted
         if (MODELS[wanted.model].label, wanted.size) == (row["model"], size)),
        default=0,
    )  # fmt: skip


def who_and_what(row: dict[str, str]) -> tuple[str, str]:
    """The network and the rule by which it stops; and what is measured."""
    measured, sure, _ = row["measured"].partition(_SURE)
    alpha = f" α = {row['α']}" if row["α"] else ""
    return f"{row['model']}{alpha}{', most confident' if sure else ''}", measured
