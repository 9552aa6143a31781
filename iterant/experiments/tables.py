"""Rows of tables: our number, its interval, and the paper's number beside it.

>>> head, *rows = rows_of(EXPERIMENTS["mazes-201"], records)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from iterant.experiments.catalogue import Counted, Experiment, Row
from iterant.experiments.claims import SolvedAfter
from iterant.experiments.measures import Accuracy, Cell, Changes, Indices, Peaks, Recovered
from iterant.experiments.models import MODELS, OURS
from iterant.experiments.paper_numbers import PEAKS
from iterant.experiments.records import Count, Record, Records, Timed
from iterant.experiments.statistics import (
    Summary,
    Value,
    over_problems,
    summary,
    verdict,
)
from iterant.formatting import markdown_table

HEAD = ["model", "α", "measured", "all seeds", "95 %", "seeds", "precision", "converged", "of them",
        "the paper", "all seeds beside it", "converged beside it"]  # fmt: skip

TIMED_HEAD = ["model", "α", "trained for", "setting", "measured", "solved", "95 % over puzzles",
              "at the end", "seeds", "the paper (its recipe, its puzzles)"]  # fmt: skip


def rows_of(experiment: Experiment, records: Records) -> list[list[str]]:
    """The table of an experiment, its head first: rows with curves, then rows without."""
    several = len(experiment.tasks) > 1  # then a label alone does not say which network it is
    with_curves = [_cells(row, records.of(row.model), several) for row in experiment.rows]
    without = [cells for row in experiment.counted for cells in _counted(row, records)]
    return [HEAD, *with_curves, *without]


def state_of(experiment: Experiment, records: Records) -> tuple[int, int]:
    """Runs done and planned, over all models of an experiment."""
    parts = [(len(records.of(model.key)), model.seeds) for model in experiment.models]
    parts += [
        (len({one.seed for one in records.counts(row.model, row.size)}), row.seeds)
        for row in experiment.counted
    ]
    return sum(min(part) for part in parts), sum(planned for _, planned in parts)


def _cells(row: Row, records: Sequence[Record], several: bool) -> list[str]:
    cell = row.measure.of(records)
    done = cell.seeds if cell.every is None else cell.every.seeds
    measured = [record for record in records if _is_measured(row, record)]
    converged = sum(record.converged for record in measured)
    label, alpha = _model(row.model)
    return [
        row.name or label,
        alpha,
        f"{MODELS[row.model].task}: {row.measure.title}" if several else row.measure.title,
        _number(cell, row, cell.every, cell.text, cell.step),
        "" if cell.every is None else cell.every.interval_text,
        str(done) if done else "not run",
        precisions(record.precision for record in measured),
        _number(cell, row, cell.filtered, cell.filtered_text) if done else "",
        f"{converged} of {len(measured)}" if done else "",
        _paper_cell(row.paper, row.prefix),
        verdict(cell.every, row.paper),
        verdict(cell.filtered, row.paper),
    ]


def precisions(names: Iterable[str]) -> str:
    """Precisions of training: ``fp16``, or ``fp16 (4), fp32 (1)``.

    >>> precisions(["fp16", "fp32", "fp16"])
    'fp16 (2), fp32 (1)'
    """
    counter = Counter(name for name in names if name)
    if len(counter) < 2:
        return "".join(counter)
    return ", ".join(f"{name} ({count})" for name, count in sorted(counter.items()))


def _is_measured(row: Row, record: Record) -> bool:
    """Whether a run contributes to the number: some studies are of the first seeds only."""
    if record.failed:
        return isinstance(row.measure, Peaks | Recovered)
    alone = row.measure.of([record])
    return alone.every is not None or alone.seeds > 0


def _counted(row: Counted, records: Records) -> Iterator[list[str]]:
    """A row for every test without curves; "not run" where one is planned."""
    trained = {one.seed: one.precision for one in records.of(row.model)}
    paper, groups = (
        row.text or _paper_cell(row.paper, ""),
        records.count_groups(row.model, row.size),
    )
    for group in groups:
        test = group.counts[0]
        first, second = (group.over_seeds(steps) for steps in test.solved)
        one, other = (Value(look.mean, look.error).text for look in (first, second))
        steps, twice = (f"{steps:,}" for steps in test.solved)
        same = one == other
        yield [
            *_model(row.model),
            f"size {row.size}, {test.problems:,} problems",
            f"{one} after {steps} and {twice}" if same
            else f"{one} after {steps}, {other} after {twice}",
            first.interval_text,
            str(first.seeds),
            precisions(one.precision or trained.get(one.seed, "") for one in group.counts),
            "", "", paper, verdict(first, row.paper), "",
        ]  # fmt: skip
    if row.seeds and not groups:
        yield [*_model(row.model), f"size {row.size}", "", "", "not run", "", "", "", paper, "",
               ""]  # fmt: skip


def _model(key: str) -> tuple[str, str]:
    model = MODELS[key]
    return model.label, "" if model.alpha is None or model.label == "FF" else f"{model.alpha:g}"


def _number(
    cell: Cell, row: Row, value: Summary | None, text: str, step: int | None = None
) -> str:  # fmt: skip
    if value is None:
        if cell.every is None and not cell.seeds:
            return ""
        return f"– ({text})" if cell.seeds and text else "–"
    if isinstance(row.measure, Changes):
        return f"{value.mean:.2g}" + (f" ({text})" if text else "")
    number = f"{value.mean:.2f}" + ("" if value.error is None else f" ± {value.error:.2f}")
    if isinstance(row.measure, Indices):
        return f"{number} ({text})"
    if isinstance(row.measure, Recovered):
        return f"{text} ({number} %)"
    return f"{number} %" + (f" at {step}" if step is not None and value.mean > 0 else "")


def _paper_cell(value: Value | None, prefix: str) -> str:
    if value is None:
        return "–"
    return f"{prefix} ({value.mean:g} %)" if prefix else value.text


def markdown(rows: Sequence[Sequence[str]], *, drop_empty: bool = True) -> list[str]:
    """A Markdown table, by default without columns that are empty below their head."""
    used = [place for place in range(len(rows[0]))
            if not drop_empty or any(row[place] for row in rows[1:])]  # fmt: skip
    head, *rest = [[row[place] for place in used] for row in rows]
    return markdown_table(head, rest)


# Networks that were trained for a time. They do not reproduce the paper's recipe, so they have
# tables of their own, and no verdict.

ABOUT_TIMED = (
    "**Trained for a time, not by the paper's recipe.** Every network had the seconds given here, "
    "of one H200, instead of 120 epochs: half of the paper's width, our optimiser and loss, and "
    "puzzles that are not the paper's of 2021: about 61 % of Lichess's list of early 2025, thinner "
    "between ratings 800 and 1,200 (45 %) and nearly complete above 2,600, and of it 1.5 million "
    "([chess](docs/chess.md)). Equal indices are not equal difficulty: the paper's values stand "
    "beside so that they need not be looked up, and a difference from them says nothing."
)
MIXED = (
    "**The order of these rows does not say which network is better**: they were not all trained "
    "at the same rate or with the same features (see “setting”), and a rate that suits one holds "
    "another back. What a row loses from its peak to the end is its own."
)


def timed_remarks(experiment: Experiment, records: Records) -> list[str]:
    """Remarks on the timed rows of an experiment, a paragraph each."""
    models = {row.model for row in experiment.rows}
    groups = [
        group for group in records.timed if any(one.model in models for one in group.records.all)
    ]
    notes = [f"{group.time}: {note}." for group in groups for note in group.notes]
    return [ABOUT_TIMED, *([MIXED] if any(group.mixed for group in groups) else []), *notes]


def timed_rows(experiment: Experiment, records: Records) -> list[list[str]]:
    """The timed table of an experiment, its head first; [] where there is none."""
    groups = records.timed
    rows = [
        cells for row in experiment.rows for group in groups if (cells := _timed_cells(row, group))
    ]
    return [TIMED_HEAD, *rows] if rows else []


def _timed_cells(row: Row, group: Timed) -> list[str] | None:
    records, measure = group.records.of(row.model), row.measure
    cell = measure.of(records)
    if cell.every is None or not isinstance(measure, Peaks | Accuracy):
        return None
    error = "" if cell.every.error is None else f" ± {cell.every.error:.2f}"
    step = "" if cell.step is None else f" at {cell.step}"
    problems = [
        one.tests.get(measure.size, {"problems": 0})["problems"] if isinstance(measure, Peaks)
        else one.figures["training"][measure.which]["of"] for one in records
    ]  # fmt: skip
    low, high = over_problems(cell.every.mean, max(problems))
    end = ""
    if curves := measure.curves(records):
        length = min(map(len, curves))
        mean = sum(curve[length - 1] for curve in curves) / len(curves)
        end = f"{mean:.2f} % after {length}"
    return [
        *_model(row.model),
        group.time,
        " / ".join(dict.fromkeys(one.setting for one in records)),
        measure.title,
        f"{cell.every.mean:.2f}{error} %{step}",
        f"{low:.1f} to {high:.1f} of {max(problems):,}",
        end,
        str(cell.every.seeds),
        "–" if row.paper is None else row.paper.text,
    ]


# The paper's network after as many iterations as the paper needed: README.md has this table word
# for word, and a test compares it.

HEADLINE = ("DT-Recall, trained by the paper's recipe", "iterations", "paper", "here", "peak here",
            "seeds", "precision")  # fmt: skip

_HEADLINE_ROWS = (
    ("prefix sums, 48 bits", "48", "sums-recall-a1"),
    ("prefix sums, 512 bits", "512", "sums-recall-a1"),
    ("mazes, 13×13", "13", "mazes-recall-a0.01"),
    ("mazes, 59×59", "59", "mazes-recall-a0.01"),
    ("mazes, 201×201", "201", "mazes-recall-a0.01"),
    ("chess puzzles 600K–700K", "600000:700000", "chess-recall-a0.5"),
)
"""Label, size and model: the one with the progressive loss."""


def headline(records: Records) -> list[str]:
    """The lines of the table."""
    rows = [list(HEADLINE)]
    for name, size, model in _HEADLINE_ROWS:
        paper = PEAKS[size][model]
        steps = paper.step or 0
        shares = [share for one in records.of(model)
                  if (share := _share_after(one, size, steps)) is not None]  # fmt: skip
        ours = summary(shares) or SolvedAfter(size, steps).of(records, model)
        cells = [f"{name}, α = {MODELS[model].alpha:g}", f"{steps:,}",
                 Value(paper.mean, paper.error).text]  # fmt: skip
        if ours is None:
            cells += ["not run", "", "", ""]
        else:
            top = Peaks(size).of(records.of(model))
            peak = Value(top.every.mean, top.every.error, top.step).text if top.every else ""
            cells += [Value(ours.mean, ours.error).text, peak, str(ours.seeds),
                      precisions(one.precision for one in records.of(model))]  # fmt: skip
        rows.append(cells)
    return markdown(rows, drop_empty=False)


def _share_after(record: Record, size: str, steps: int) -> float | None:
    """Per cent solved after some iterations; a run that diverged solves nothing."""
    if record.failed:
        return 0.0
    curve = next(iter(Peaks(size).curves([record])), [])
    return curve[steps - 1] if len(curve) >= steps else None


# Our own recipes from every seed: files with the tests of several seeds, without curves.

_EVERY_SEED_HEAD = ["result", "network", "size", "iterations", "solved, mean over seeds",
                    "the worst seed", "after twice as many", "seeds tested", "problems each",
                    "the paper's best", "beside it"]  # fmt: skip
_ABOUT_EVERY_SEED = (
    "None of the trained seeds is left out by how well it did; where fewer were tested than "
    "trained, that is for want of time. The paper's best is that of any of its networks on "
    "problems of that size, by its own recipe, with its own problems and numbers of iterations."
)


def every_seed_section(records: Records, link: Any) -> str:
    """As Markdown; "" where there is none. ``link`` makes a link of a file."""
    files: dict[Path, list[Record]] = {}
    for one in records.all:
        if not one.is_run and one.reduced != BY_HAND and one.model in MODELS:
            files.setdefault(one.file, []).append(one)
    order = list(MODELS)
    several = sorted(
        (some for some in files.values() if len(some) > 1),
        key=lambda some: (order.index(some[0].model), some[0].file.stem),
    )
    if not several:
        return ""
    rows = [cells for some in several for cells in _every_seed_rows(some, link)]
    notes = []
    for some in several:
        older = "by an older recipe" if any(one.changed_fields for one in some) else ""
        note = "; ".join(filter(None, (older, some[0].figures.get("provenance", ""))))
        notes += [f"- {some[0].file.stem}: {note}."] if note else []
    return "\n".join(
        ["## Our own recipes from every seed", "", _ABOUT_EVERY_SEED, "",
         *markdown([_EVERY_SEED_HEAD, *rows]), "", *notes, *([""] if notes else [])]
    )  # fmt: skip


def _every_seed_rows(records: Sequence[Record], link: Any) -> Iterator[list[str]]:
    tests: dict[tuple[str, int, int], list[Count]] = {}
    for count in (count for one in records for count in one.counts):
        tests.setdefault((count.size, count.problems, count.iterations), []).append(count)
    figures = records[0].figures
    recipe = figures["recipe"]
    known = [one.figures["parameters"] for one in records if "parameters" in one.figures]
    parameters = f"{known[0]:,}" if known else "?"
    for (size, problems, steps), counts in tests.items():
        shares, twice = (
            [100 * tuple(one.solved.values())[place] / problems for one in counts]
            for place in (0, -1)
        )
        mean, later = summary(shares, problems), summary(twice)
        best = _papers_best(size)
        if mean is not None and later is not None:
            yield [
                link(records[0].file),
                f"{recipe['net']}, {parameters} parameters, {recipe['precision']}",
                size,
                f"{steps:,}",
                Value(mean.mean, mean.error).text,
                f"{min(shares):.1f} %",
                f"{later.mean:.2f} %",
                f"{len(counts)} of {len(records)}",
                f"{problems:,}",
                "–" if best is None else best.text,
                verdict(mean, best),
            ]


def _papers_best(size: str) -> Value | None:
    return max(PEAKS.get(size, {}).values(), key=lambda value: value.mean, default=None)


BY_HAND: Mapping[str, Any] = {"by hand": True}
"""Marks single runs made outside the plan, which count in no mean."""

_ABOUT_SINGLES = (
    "Trained and tested by hand on one seed, before records were kept or outside them; they "
    "count in no mean above. The paper's numbers are means over seeds."
)


def singles_section(records: Records, link: Any) -> str:
    """Single runs as Markdown; "" where there is none."""
    rows = [["result", "network", "seed", "size", "ours", "the paper"]]
    order = list(MODELS)
    singles = [one for one in records.all if one.reduced == BY_HAND and one.model in MODELS]
    for one in sorted(singles, key=lambda one: (order.index(one.model), one.file.stem)):
        ours = MODELS[one.model].word == OURS
        recipe = one.figures.get("recipe", {})
        network = (
            f"ours, {one.figures['parameters']:,} parameters, {one.precision}" if ours
            else f"{recipe['net']}, α = {recipe['alpha']:g}, {recipe['precision']}"
        )  # fmt: skip
        for count in one.counts:
            (step, solved), *later = count.solved.items()
            cell = f"{solved} of {count.problems} {'at' if later else 'after'} {step}"
            cell += "".join(f", {solved} after {step}" for step, solved in later)
            value = PEAKS.get(count.size, {}).get(one.model)
            paper = _papers_best(count.size) if ours else value
            rows.append([link(one.file), network, str(one.seed), count.size, cell,
                         "–" if paper is None else replace(paper, step=None).text])  # fmt: skip
    if len(rows) == 1:
        return ""
    return "\n".join(["## Single runs", "", _ABOUT_SINGLES, "", *markdown(rows), ""])
