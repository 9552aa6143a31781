"""RESULTS.md: every table and figure beside the paper's, made from results and nothing else.

>>> Path("RESULTS.md").write_text(results_page("results"))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from iterant.experiments.captions import caption, caption_by_time
from iterant.experiments.catalogue import BESIDES, EXPERIMENTS
from iterant.experiments.counting import uncounted
from iterant.experiments.counts import Counts, read_counts
from iterant.experiments.drawing import BY_TIME, has_figure
from iterant.experiments.every_seed import every_seed_section
from iterant.experiments.layout import Experiment
from iterant.experiments.measures import Peaks
from iterant.experiments.models import MODELS
from iterant.experiments.older import has_changed
from iterant.experiments.paper import seeds_told
from iterant.experiments.records import Record, Records, read_records
from iterant.experiments.reference import Reference
from iterant.experiments.rows import NONE, rows_of, state_of
from iterant.experiments.singles import singles_section
from iterant.experiments.timed import Timed, read_timed, remarks, timed_rows
from iterant.runs.files import PathLike

FIGURES = "results/figures"
"""Where RESULTS.md finds the pictures."""

_INTRODUCTION = """\
# Results

Every table and figure of the paper, ours beside theirs. This file is generated:
`iterant reproduce --all --write RESULTS.md`; a test compares it with what `results/` gives.

- **all seeds**: mean ± standard error over every finished run, none left out; of a curve, the peak
  of the mean curve and its iteration; a run that broke down solves nothing. **converged**: the same
  over those with at least 99 % training accuracy, which is what the paper reports; **of them** says
  how many those are.
- In brackets: of an intervention the peak accuracy, behind the mean iterations until a problem is
  right for the first time; of ‖Δφ‖ the seeds with the least and the most.
- **95 %**: the interval of all seeds, by Student's t over seeds and no narrower than the number of
  test problems allows, which are the same for every seed; of one seed, by its problems alone.
- **beside it**: above or below only where the 95 % intervals are apart; otherwise no difference is
  shown. The paper's are 1.96 standard errors: it does not say of how many seeds, and those of few
  would be wider. One seed says nothing, and nothing is said where the paper gives no error.
- **after** so many iterations, instead of at: more or larger problems without a curve, judged after
  these and after twice as many; the results are named above the table.
- Test sets are ours and smaller than the paper's: 200 strings of 512 bits, 1,000 of 48, 1,000 mazes
  of 13×13, 100 of 33×33 and 59×59. Other differences: `docs/deviations.md`.
- A row with fewer seeds than planned is no fair sample of them: what validates perfectly early is
  recorded first, what has trouble comes later. Which seeds are missing stands at the end.
- Lines of figures are means over all seeds, bands one standard error: dashed without recall, as in
  the paper, dotted feed-forward, light without the progressive loss. × and + are the paper's peaks
  without and with that loss, with its errors; in grids × is either. Plain DT is drawn by its most
  confident iteration, as in the paper, and thin without that rule.
- A run ends when its validation is perfect: the first of equally good checkpoints is tested, so
  nothing later could replace it.
"""


def section(
    experiment: Experiment,
    records: Records,
    timed: Sequence[Timed] = (),
    counts: Counts = NONE,
) -> str:
    """One experiment as Markdown."""
    done, wanted = state_of(experiment, records, counts)
    lines = [
        f"## {experiment.title}",
        "",
        " · ".join(
            [
                f"`iterant reproduce {experiment.name}`",
                experiment.place,
                f"{done} of {wanted} runs",
                f"seeds in the paper: {seeds_told(experiment.tasks)}",
            ]
        ),
        "",
    ]
    if experiment.note:
        lines += [experiment.note, ""]
    for told, files in (
        ("Rows with “after” come from", _sources(experiment, counts)),
        ("See also", [_link(name) for name in experiment.see]),
    ):
        if files:
            lines += [f"{told}: {', '.join(files)}.", ""]
    if has_figure(experiment, records):
        lines += [*_picture(experiment.title, experiment.name), caption(experiment, records), ""]
    lines += _table(rows_of(experiment, records, counts))
    if by_time := timed_rows(experiment, timed):
        for remark in remarks(experiment, timed):
            lines += [remark, ""]
        if has_figure(experiment, *(group.records for group in timed)):
            lines += _picture(
                f"{experiment.title}, trained for a time", f"{experiment.name}-{BY_TIME}"
            )
            lines += [caption_by_time(experiment, timed), ""]
        lines += _table(by_time)
    return "\n".join(lines)


def _sources(experiment: Experiment, counts: Counts) -> list[str]:
    """The results that its rows without curves come from, and whether their recipe is the last."""
    found = [one for row in experiment.counted for one in counts.of(row.model, row.size)]
    told = [_link(one.file.stem) + (" (by an older recipe)" if one.older else "") for one in found]
    return list(dict.fromkeys(told))


def _link(name: str) -> str:
    return f"[{name}](results/{name}.json)"


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
    timed, counts = read_timed(results), read_counts(results)
    parts = [_INTRODUCTION, _contents(records, counts)]
    parts += [section(one, records, timed, counts) for one in EXPERIMENTS.values()]
    if any(records.of(model.key) for model in BESIDES.models):
        table = "\n".join(_table(rows_of(BESIDES, records)))
        parts.append(f"## {BESIDES.title}\n\n{BESIDES.note}\n\n{table}")
    if reference is not None:
        parts.append(reference.section(records, FIGURES))
    parts += [text for text in (every_seed_section(results), singles_section(results)) if text]
    if broken := [record for record in records.all if record.failed]:
        parts.append(_broken(broken))
    if records.unfinished():
        parts.append(_unfinished(records.unfinished()))
    if unlike := unlike_tests(records):
        parts.append(_otherwise(unlike))
    if older := by_older_recipes(records):
        parts.append(_older(older))
    return "\n".join([*parts, _missing(records, counts)])


def _contents(records: Records, counts: Counts) -> str:
    """Where everything stands, and how far it is."""
    lines = ["| | where in the paper | runs |", "| --- | --- | --- |"]
    for one in EXPERIMENTS.values():
        done, wanted = state_of(one, records, counts)
        anchor = re.sub(r"[^\w\- ]", "", one.title.lower()).replace(" ", "-")
        lines.append(f"| [{one.title}](#{anchor}) | {one.place} | {done} of {wanted} |")
    return "\n".join([*lines, ""])


def by_older_recipes(records: Records) -> list[str]:
    """Models whose recipe has changed since they were recorded."""
    found = [
        record.model
        for record in records.all
        if has_changed(
            record.model,
            record.figures["training"].get("recipe"),
            [record.figures["training"].get("best", {}).get("validation")],
        )
    ]
    return list(dict.fromkeys(found))


def unlike_tests(records: Records) -> list[str]:
    """Tests that not all seeds of a model had alike, a line each."""
    found = []
    for key in MODELS:
        tests: dict[str, dict[tuple[int, int], list[str]]] = {}
        for record in records.of(key):
            for size, test in record.tests.items():
                had = tests.setdefault(size, {})
                had.setdefault((test["problems"], len(test["solved"])), []).append(str(record.seed))
        for size, had in tests.items():
            if len(had) > 1:
                told = [f"{problems:,} problems, {steps:,} iterations (seed {', '.join(seeds)})"
                        for (problems, steps), seeds in had.items()]  # fmt: skip
                found.append(f"{key} at {size}: {'; '.join(told)}")
    return found


def _otherwise(tests: Sequence[str]) -> str:
    about = "Their means go as far as the shortest, their intervals by the fewest problems."
    lines = [f"- {test}" for test in tests]
    return "\n".join(["## Seeds that were not tested alike", "", about, "", *lines, ""])


def _broken(records: Sequence[Record]) -> str:
    """Runs that had nothing to test."""
    about = "Their training broke down in float32, too. They count above, as solving nothing."
    lines = [f"- {one.model}-s{one.seed}: {_ended(one)}" for one in records]
    return "\n".join(["## Runs that broke down", "", about, "", *lines, ""])


def _ended(record: Record) -> str:
    """How training ended, in a few words."""
    return str(record.figures["training"].get("ended", "")).partition(" (")[0].partition(";")[0]


def _older(models: Sequence[str]) -> str:
    about = "They count above, but the recipe has changed since they were recorded: "
    return "\n".join(["## Runs by an older recipe", "", f"{about}{', '.join(models)}.", ""])


def _missing(records: Records, counts: Counts) -> str:
    """Planned seeds that are not there, a line a model, and a line a row without curves."""
    lines = ["## Seeds that are missing", ""]
    for model in MODELS.values():
        left = [seed for seed in range(model.seeds) if f"{model.key}-s{seed}" not in records.names]
        if left:
            lines.append(f"- {model.key}: seed {', '.join(map(str, left))}; planned {model.seeds}")
    tests = [one for experiment in EXPERIMENTS.values() for one in uncounted(experiment, counts)]
    for row in dict.fromkeys(one.row for one in tests):
        seeds = ", ".join(str(one.unit.seed) for one in tests if one.row == row)
        lines.append(f"- {row.model} at size {row.size}: seed {seeds}; planned {row.seeds}")
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
        lines.append(_line([f"{record.model}-s{record.seed}", done,
                            "" if held is None else f"{100 * held:.2f} %",
                            "; ".join(peaks), _ended(record)]))  # fmt: skip
    return "\n".join([*lines, ""])
