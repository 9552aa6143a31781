"""RESULTS.md: every table and figure beside the paper's, made from records and nothing else.

>>> Path("RESULTS.md").write_text(results_page("results"))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from iterant.experiments.catalogue import EXPERIMENTS, Experiment, Row
from iterant.experiments.drawing import BY_TIME, has_figure
from iterant.experiments.every_seed import every_seed_section
from iterant.experiments.measures import Cell, Changes, Indices, Peaks, Recovered
from iterant.experiments.models import MODELS
from iterant.experiments.paper import SEEDS
from iterant.experiments.records import Record, Records, read_records
from iterant.experiments.reference import Reference
from iterant.experiments.singles import singles_section
from iterant.experiments.statistics import Summary, Value, verdict
from iterant.experiments.timed import Timed, read_timed, remarks, timed_rows
from iterant.runs.files import PathLike
from iterant.runs.plain import plain
from iterant.training.recipe import Recipe

FIGURES = "results/figures"
"""Where RESULTS.md finds the pictures."""

HEAD = ["model", "α", "measured", "all seeds", "seeds", "converged", "of them", "the paper",
        "all seeds beside it", "converged beside it"]  # fmt: skip

_NOT_OF_A_RECIPE = {"name", "notes", "precision"}
"""Fields that may differ from run to run of one recipe."""

_INTRODUCTION = """\
# Results

Every table and figure of the paper, ours beside theirs. This file is generated:
`iterant reproduce --all --write RESULTS.md`; a test compares it with what `results/` gives.

- **all seeds**: mean ± standard error over every finished run, none left out; of a curve, the peak
  of the mean curve and its iteration; a run that broke down solves nothing. **converged**: the same
  over those with at least 99 % training accuracy, which is what the paper reports; **of them** says
  how many those are.
- **beside it**: above or below only where the 95 % intervals are apart (ours: Student's t over
  seeds, and no narrower than the number of test problems allows; the paper's: 1.96 standard
  errors); otherwise no difference is shown. One seed says nothing.
- Test sets are ours and smaller than the paper's: 200 strings of 512 bits, 1,000 of 48, 1,000 mazes
  of 13×13, 100 of 33×33 and 59×59. Other differences: `docs/deviations.md`.
- A row with fewer seeds than planned is no fair sample of them: what validates perfectly early is
  recorded first, what has trouble comes later. Which seeds are missing stands at the end.
- Lines of figures are means over all seeds, bands one standard error; × and + are the paper's peaks
  without and with the progressive loss, with its errors. Plain DT is drawn by its most confident
  iteration, as in the paper, and thin without that rule.
- A run ends when its validation is perfect: the first of equally good checkpoints is tested, so
  nothing later could replace it.
"""


def rows_of(experiment: Experiment, records: Records) -> list[list[str]]:
    """The table of an experiment, its head first."""
    return [HEAD, *(_cells(row, records.of(row.model)) for row in experiment.rows)]


def _cells(row: Row, records: Sequence[Record]) -> list[str]:
    model, cell = MODELS[row.model], row.measure.of(records)
    done = cell.seeds if cell.every is None else cell.every.seeds
    fit = sum(record.converged for record in records)
    return [
        model.label,
        "" if model.alpha is None or model.label == "FF" else f"{model.alpha:g}",
        row.measure.title,
        _said(cell, row, cell.every, cell.step),
        str(done) if done else "not run",
        _said(cell, row, cell.filtered, None) if done else "",
        f"{fit} of {len(records)}" if records else "",
        _theirs(row.paper, row.said),
        verdict(cell.every, row.paper),
        verdict(cell.filtered, row.paper),
    ]


def _said(cell: Cell, row: Row, value: Summary | None, step: int | None) -> str:
    if value is None:
        return f"– ({cell.text})" if cell.seeds else "–" if cell.every is not None else ""
    if isinstance(row.measure, Changes):
        return f"{value.mean:.2g}"
    unit = "" if isinstance(row.measure, Indices) else " %"
    number = f"{value.mean:.2f}" + ("" if value.error is None else f" ± {value.error:.2f}") + unit
    if isinstance(row.measure, Recovered):
        return f"{cell.text} ({number})"
    if isinstance(row.measure, Indices):
        return f"{number} ({cell.text})"
    return number + (f" at {step}" if step is not None and value.mean > 0 else "")


def _theirs(value: Value | None, said: str) -> str:
    if value is None:
        return "–"
    return f"{said} ({value.mean:g} %)" if said else value.told


def state_of(experiment: Experiment, records: Records) -> tuple[int, int]:
    """Seeds done and wanted, over all models of an experiment."""
    models = experiment.models
    done = sum(min(len(records.of(model.key)), model.seeds) for model in models)
    return done, sum(model.seeds for model in models)


def section(experiment: Experiment, records: Records, timed: Sequence[Timed] = ()) -> str:
    """One experiment as Markdown."""
    done, wanted = state_of(experiment, records)
    theirs = "; ".join(dict.fromkeys(SEEDS[model.task] for model in experiment.models))
    lines = [
        f"## {experiment.title}",
        "",
        " · ".join(
            [
                f"`iterant reproduce {experiment.name}`",
                experiment.place,
                f"{done} of {wanted} runs",
                f"seeds in the paper: {theirs}",
            ]
        ),
        "",
    ]
    if experiment.note:
        lines += [experiment.note, ""]
    if experiment.see:
        files = ", ".join(f"[{name}](results/{name}.json)" for name in experiment.see)
        lines += [f"See also: {files}.", ""]
    if has_figure(experiment, records):
        lines += _picture(experiment.title, experiment.name)
    lines += _table(rows_of(experiment, records))
    if by_time := timed_rows(experiment, timed):
        for remark in remarks(experiment, timed):
            lines += [remark, ""]
        if has_figure(experiment, *(group.records for group in timed)):
            lines += _picture(
                f"{experiment.title}, trained for a time", f"{experiment.name}-{BY_TIME}"
            )
        lines += _table(by_time)
    return "\n".join(lines)


def _picture(title: str, name: str) -> list[str]:
    return [f"[![{title}]({FIGURES}/{name}.png)]({FIGURES}/{name}.svg)", ""]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """As Markdown, without columns that say nothing."""
    said = [place for place in range(len(rows[0])) if any(row[place] for row in rows[1:])]
    head, *rest = [[row[place] for place in said] for row in rows]
    return [_line(head), _line(["---"] * len(head)), *map(_line, rest), ""]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def results_page(results: PathLike) -> str:
    """The whole of RESULTS.md, from a folder of results and its ``runs``.

    Runs that were made smaller are no part of it.
    """
    records, reference = read_records(Path(results) / "runs").whole, Reference.read(results)
    timed = read_timed(results)
    parts = [_INTRODUCTION, _contents(records)]
    parts += [section(one, records, timed) for one in EXPERIMENTS.values()]
    if reference is not None:
        parts.append(reference.section(records, FIGURES))
    parts += [text for text in (every_seed_section(results), singles_section(results)) if text]
    if records.unfinished():
        parts.append(_unfinished(records.unfinished()))
    if older := by_older_recipes(records):
        parts.append(_older(older))
    return "\n".join([*parts, _missing(records)])


def _contents(records: Records) -> str:
    """Where everything stands, and how far it is."""
    lines = ["| | where in the paper | runs |", "| --- | --- | --- |"]
    for one in EXPERIMENTS.values():
        done, wanted = state_of(one, records)
        anchor = re.sub(r"[^\w\- ]", "", one.title.lower()).replace(" ", "-")
        lines.append(f"| [{one.title}](#{anchor}) | {one.place} | {done} of {wanted} |")
    return "\n".join([*lines, ""])


def by_older_recipes(records: Records) -> list[str]:
    """Models whose recipe has changed since they were recorded."""
    usual = Recipe().described()
    found: dict[str, None] = {}
    for record in records.all:
        was = record.figures["training"].get("recipe")
        if record.model not in MODELS or not was:
            continue
        now = plain(MODELS[record.model].recipe().described())
        # What a recipe did not know then was as usual.
        fields = [key for key, value in now.items() if was.get(key, plain(usual[key])) != value]
        if set(fields) - _NOT_OF_A_RECIPE:
            found[record.model] = None
    return list(found)


def _older(models: Sequence[str]) -> str:
    about = "They count above, but the recipe has changed since they were recorded: "
    return "\n".join(["## Runs by an older recipe", "", f"{about}{', '.join(models)}.", ""])


def _missing(records: Records) -> str:
    """Planned seeds that are not recorded, a line a model."""
    lines = ["## Seeds that are missing", ""]
    for model in MODELS.values():
        left = [seed for seed in range(model.seeds) if f"{model.key}-s{seed}" not in records.names]
        if left:
            lines.append(f"- {model.key}: seed {', '.join(map(str, left))}; planned {model.seeds}")
    return "\n".join([*lines, ""])


def _unfinished(records: Sequence[Record]) -> str:
    """Runs that count nowhere above, with what they reached."""
    head = ["run", "updates", "validation", "peaks by size", "how it ended"]
    about = (
        "Their time ended before their recipe did, or they broke down in half precision and wait "
        "to be done again in float32; they count nowhere above."
    )
    lines = ["## Runs that were cut off", "", about, "", _line(head), _line(["---"] * len(head))]
    for record in records:
        training = record.figures["training"]
        peaks = [f"{size}: {cell.every.mean:.1f} % at {cell.step}" for size in record.tests
                 if (cell := Peaks(size).of([record])).every is not None]  # fmt: skip
        held = record.accuracy("validation")
        done = f"{training['updates']} of {training['of']}" if "updates" in training else ""
        ended = str(training.get("ended", "")).partition(" (")[0].partition(";")[0]
        lines.append(_line([f"{record.model}-s{record.seed}", done,
                            "" if held is None else f"{100 * held:.2f} %",
                            "; ".join(peaks), ended]))  # fmt: skip
    return "\n".join([*lines, ""])
