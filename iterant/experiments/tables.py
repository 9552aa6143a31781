"""The rows of tables: ours, how sure it is, and the paper's beside it.

>>> head, *rows = rows_of(EXPERIMENTS["mazes-201"], records, counts)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from iterant.experiments.catalogue import Counted, Experiment, Row
from iterant.experiments.counts import Counts, Group
from iterant.experiments.measures import Cell, Changes, Indices, Peaks, Recovered
from iterant.experiments.models import MODELS
from iterant.experiments.records import Record, Records
from iterant.experiments.statistics import Summary, Value, verdict

HEAD = ["model", "α", "measured", "all seeds", "95 %", "seeds", "precision", "converged", "of them",
        "the paper", "all seeds beside it", "converged beside it"]  # fmt: skip

NONE = Counts()


def rows_of(experiment: Experiment, records: Records, counts: Counts = NONE) -> list[list[str]]:
    """The table of an experiment, its head first: what records say, then results without curves."""
    several = len(experiment.tasks) > 1  # then a label alone does not say which network it is
    recorded = [_cells(row, records.of(row.model), several) for row in experiment.rows]
    counted = [cells for row in experiment.counted for cells in _counted(row, counts, records)]
    return [HEAD, *recorded, *counted]


def state_of(
    experiment: Experiment, records: Records, counts: Counts = NONE
) -> tuple[int, int]:  # fmt: skip
    """Runs done and wanted, over all models of an experiment."""
    parts = [(len(records.of(model.key)), model.seeds) for model in experiment.models]
    parts += [
        (len({one.seed for one in counts.of(row.model, row.size)}), row.seeds)
        for row in experiment.counted
    ]
    return sum(min(done, wanted) for done, wanted in parts), sum(wanted for _, wanted in parts)


def _cells(row: Row, records: Sequence[Record], several: bool) -> list[str]:
    cell = row.measure.of(records)
    done = cell.seeds if cell.every is None else cell.every.seeds
    part = [record for record in records if _counts(row, record)]
    fit = sum(record.converged for record in part)
    label, alpha = _model(row.model)
    return [
        row.name or label,
        alpha,
        f"{MODELS[row.model].task}: {row.measure.title}" if several else row.measure.title,
        _said(cell, row, cell.every, cell.text, cell.step),
        "" if cell.every is None else cell.every.told_interval,
        str(done) if done else "not run",
        precisions(record.precision for record in part),
        _said(cell, row, cell.filtered, cell.filtered_text) if done else "",
        f"{fit} of {len(part)}" if done else "",
        _theirs(row.paper, row.said),
        verdict(cell.every, row.paper),
        verdict(cell.filtered, row.paper),
    ]


def precisions(found: Iterable[str]) -> str:
    """What networks were trained in: ``fp16``, or ``fp16 (4), fp32 (1)``.

    >>> precisions(["fp16", "fp32", "fp16"])
    'fp16 (2), fp32 (1)'
    """
    counted = Counter(one for one in found if one)
    if len(counted) < 2:
        return "".join(counted)
    return ", ".join(f"{name} ({count})" for name, count in sorted(counted.items()))


def _counts(row: Row, record: Record) -> bool:
    """Whether a run has a part in the number: some studies are of the first seeds only."""
    if record.failed:
        return isinstance(row.measure, Peaks | Recovered)
    alone = row.measure.of([record])
    return alone.every is not None or alone.seeds > 0


def _counted(row: Counted, counts: Counts, records: Records) -> Iterator[list[str]]:
    """A line a test; one that it was not run, where it is wanted."""
    trained_in: dict[int | None, str] = {one.seed: one.precision for one in records.of(row.model)}
    theirs, groups = row.said or _theirs(row.paper, ""), counts.groups(row.model, row.size)
    for group in groups:
        first, solved = group.counts[0], group.solved
        yield [
            *_model(row.model),
            f"size {row.size}, {first.problems:,} problems",
            _twice(group, first.iterations),
            solved.told_interval,
            str(solved.seeds),
            precisions(one.precision or trained_in.get(one.seed, "") for one in group.counts),
            "",
            "",
            theirs,
            verdict(solved, row.paper),
            "",
        ]
    if row.seeds and not groups:
        yield [*_model(row.model), f"size {row.size}", "", "", "not run", "", "", "", theirs, "",
               ""]  # fmt: skip


def _twice(group: Group, iterations: int) -> str:
    """Both looks, in one where they say the same."""
    first, second = (Value(look.mean, look.error).told for look in (group.solved, group.twice))
    if first == second:
        return f"{first} after {iterations:,} and {2 * iterations:,}"
    return f"{first} after {iterations:,}, {second} after {2 * iterations:,}"


def _model(key: str) -> tuple[str, str]:
    model = MODELS[key]
    none = model.alpha is None or model.label == "FF"
    return model.label, "" if none else f"{model.alpha:g}"


def _said(
    cell: Cell, row: Row, value: Summary | None, text: str, step: int | None = None
) -> str:  # fmt: skip
    if value is None:
        if cell.every is None and not cell.seeds:
            return ""
        return f"– ({text})" if cell.seeds and text else "–"
    if isinstance(row.measure, Changes):
        return f"{value.mean:.2g}" + (f" ({text})" if text else "")
    unit = "" if isinstance(row.measure, Indices) else " %"
    number = f"{value.mean:.2f}" + ("" if value.error is None else f" ± {value.error:.2f}") + unit
    if isinstance(row.measure, Recovered):
        return f"{text} ({number})"
    if isinstance(row.measure, Indices):
        return f"{number} ({text})"
    return number + (f" at {step}" if step is not None and value.mean > 0 else "")


def _theirs(value: Value | None, said: str) -> str:
    if value is None:
        return "–"
    return f"{said} ({value.mean:g} %)" if said else value.told
