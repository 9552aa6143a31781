"""RESULTS.md: every table and figure beside the paper's, made from results and nothing else.

>>> Path("RESULTS.md").write_text(results_page("results"))
>>> rows_of(EXPERIMENTS["mazes-201"], records)[0]["all seeds"]
'96.00 ± 1.00 % after 2,000 and 4,000'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from iterant.experiments.catalogue import EXPERIMENTS, PEAKS, Experiment, Row
from iterant.experiments.claims import AT_REST, CLAIMS, LINEAR, MARGIN, REACHED, VERDICTS
from iterant.experiments.figures import pictures
from iterant.experiments.measures import PeakMeasure, Peaks, Solved
from iterant.experiments.models import MODELS, OURS
from iterant.experiments.records import Record, Records, read_results
from iterant.experiments.shifts import MAZE_EXPERIMENTS, MazeExperiment, TableRow
from iterant.experiments.statistics import LEAST_SEEDS, VISIBLE, mean_of, verdict
from iterant.formatting import markdown
from iterant.io.files import PathLike

ALL_EXPERIMENTS: dict[str, Experiment | MazeExperiment] = {**EXPERIMENTS, **MAZE_EXPERIMENTS}
"""All tables and figures by name: the paper's, then those of other mazes."""

_PAGE = Path(__file__).with_name("results.md")
"""The text of RESULTS.md, with the names of its parts in braces."""


def results_page(results: PathLike, records: Records | None = None) -> str:
    """RESULTS.md from a folder of results, or from these records; reduced runs are left out."""
    records = (read_results(results) if records is None else records).whole
    return _PAGE.read_text(encoding="utf-8").format(
        claims=_claims(records),
        precision=precisions(
            one.precision
            for one in records.all
            if one.model in MODELS and MODELS[one.model].recipe_name != OURS
        )
        or "unknown",
        headline=headline(records),
        contents=_contents(records, Path(results)),
        experiments="\n\n".join(_experiment(one, records) for one in EXPERIMENTS.values()),
        past="\n\n".join(_maze_section(one, records) for one in MAZE_EXPERIMENTS.values()),
        missing=_missing(records),
        margin=MARGIN,
        reached=100 * REACHED,
        at_rest=100 * AT_REST,
        linear=LINEAR,
        least_seeds=LEAST_SEEDS,
        visible=VISIBLE,
    )


def _claims(records: Records) -> str:
    """The number of claims with each verdict, then the table of all claims."""
    rows, verdicts = [], Counter[str]()
    for claim in CLAIMS.values():
        result = claim.check(records)
        verdicts[result.verdict] += 1
        tables = [EXPERIMENTS[name] for name in claim.tables]
        rows.append({
            "claim": claim.text,
            "verdict": f"**{result.verdict}**",
            "in the paper": claim.place,
            "theirs": claim.theirs,
            "ours": "<br>".join(result.ours) or "–",
            "tables": "<br>".join(f"[{table.title}](#{table.anchor})" for table in tables),
        })  # fmt: skip
    tally = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS if verdicts[verdict])
    return f"Of {len(rows)} claims: {tally}.\n\n{markdown(rows)}"


def _contents(records: Records, results: Path) -> str:
    """Every table and figure, how many of its runs are done, and the files of all records."""
    lines = ["| | where in the paper | runs |", "| --- | --- | --- |"]
    for one in EXPERIMENTS.values():
        done, planned = state_of(one, records)
        lines.append(f"| [{one.title}](#{one.anchor}) | {one.place} | {done} of {planned} |")
    files = sorted({one.file for one in records.all})
    links = ", ".join(
        f"[{file.stem}](results/{file.relative_to(results).as_posix()})"
        if file.is_relative_to(results)
        else file.stem
        for file in files
    )
    about = "Records, each with its command, commit, date and hardware"
    return "\n".join([*lines, "", f"{about}: {links or 'none'}."])


def _experiment(experiment: Experiment, records: Records) -> str:
    """The section of one table or figure."""
    about = f"{experiment.place} · `iterant reproduce {experiment.name}`"
    blocks = [f"## {experiment.title}", about, experiment.note]
    blocks += [_picture(name, experiment.title) for name in pictures(experiment, records)]
    return "\n\n".join(filter(None, [*blocks, _numbers(experiment, records)]))


def _maze_section(experiment: MazeExperiment, records: Records) -> str:
    """The section of networks on other mazes."""
    blocks = [f"### {experiment.title}", f"`iterant reproduce {experiment.name}`", experiment.note]
    blocks += [_picture(name, name) for name in pictures(experiment, records)]
    return "\n\n".join([*blocks, *map(markdown, experiment.tables(records))])


def _picture(name: str, title: str) -> str:
    return f"[![{title}](results/figures/{name}.png)](results/figures/{name}.svg)"


def _numbers(experiment: Experiment, records: Records) -> str:
    """The table of an experiment, or links to the tables of the paper that have all its rows."""
    rows = set(experiment.rows)
    others = [one for one in EXPERIMENTS.values() if one is not experiment]
    tables = [one for one in others if one.name.startswith("table-") and rows & {*one.rows}]
    if rows and rows <= {row for table in tables for row in table.rows}:
        links = ", ".join(f"[{table.title}](#{table.anchor})" for table in tables)
        return f"The numbers: {links}."
    cells = rows_of(experiment, records)
    # Rows that were not run and that the paper has no number for say nothing.
    cells = [row for row in cells if row["all seeds"] or row["the paper"]]
    return markdown(cells) if cells else "Not run; the paper gives a picture only."


def _missing(records: Records) -> str:
    """Table of the seeds to be run, a row per model and per test without curves."""
    rows = []  # name, planned seeds, and seeds that are missing, diverged, by an older recipe
    for model in MODELS.values():
        done = {one.seed: one for one in records.runs(model.key)}
        missing = [seed for seed in range(model.seeds) if seed not in done]
        diverged = [seed for seed, one in done.items() if one.failed]
        older = [seed for seed, one in done.items() if one.older]
        rows.append((model.key, model.seeds, (missing, diverged, older)))
    for row in (row for experiment in EXPERIMENTS.values() for row in experiment.rows):
        if isinstance(row.measure, Solved):
            tested = {one.seed for one in row.measure.counts(records.of(row.model))}
            missing = [seed for seed in range(row.seeds) if seed not in tested]
            rows.append((f"{row.model} at {row.measure.title}", row.seeds, (missing, [], [])))
    reasons = ("missing", "diverged", "by an older recipe")
    return markdown([
        {"model": name, "planned seeds": "0" if planned == 1 else f"0 to {planned - 1}"}
        | dict(zip(reasons, (", ".join(map(str, some)) for some in seeds), strict=True))
        for name, planned, seeds in rows if any(seeds)
    ])  # fmt: skip


# Tables


def tables_of(experiment: Experiment | MazeExperiment, records: Records) -> list[list[TableRow]]:
    """The tables of an experiment."""
    if isinstance(experiment, MazeExperiment):
        return experiment.tables(records)
    return [rows_of(experiment, records)]


def rows_of(experiment: Experiment, records: Records) -> list[TableRow]:
    """The table of a table or figure of the paper."""
    # Labels repeat between tasks, so rows name the task too.
    several = len({MODELS[row.model].task for row in experiment.rows}) > 1
    return [_row(row, records.of(row.model), several) for row in experiment.rows]


def progress(experiment: Experiment | MazeExperiment, records: Records) -> str:
    """How much of it is there: ``29 of 30 runs``, ``8 networks``."""
    if isinstance(experiment, MazeExperiment):
        return experiment.state(records)
    done, planned = state_of(experiment, records)
    return f"{done} of {planned} runs"


def state_of(experiment: Experiment, records: Records) -> tuple[int, int]:
    """Runs done and planned, over all models of an experiment."""
    parts = [(len(records.runs(model.key)), model.seeds) for model in experiment.models]
    parts += [
        (row.measure.of(records.of(row.model)).seeds, row.seeds)
        for row in experiment.rows
        if row.seeds
    ]
    return sum(min(part) for part in parts), sum(planned for _, planned in parts)


def _row(row: Row, records: Sequence[Record], several: bool) -> TableRow:
    cell, model = row.measure.of(records), MODELS[row.model]
    # Some studies are made on the first seeds only; a run that diverged solves nothing.
    is_peak = isinstance(row.measure, PeakMeasure)
    measured = [one for one in records if row.measure.of([one]).seeds or (is_peak and one.failed)]
    runs = [one for one in measured if one.is_run]
    converged = [one for one in runs if one.converged]
    text = cell.text
    if isinstance(row.measure, Peaks) and cell.value and cell.value.mean > 0:
        text = cell.value.text  # with the iteration of the peak
    task = f"{model.task}: " if several else ""
    if len(converged) == len(runs):
        filtered = "all" if runs else ""
    else:
        number = row.measure.of(converged).text
        filtered = f"{number} ({len(converged)} of {len(runs)})" if converged else "none"
    trained = precisions(one.precision for one in measured)
    return {
        "model": row.name or model.ours,
        "measured": task + ", ".join(filter(None, (row.measure.title, cell.tests))),
        "all seeds": text,
        "95 %": "" if cell.value is None else cell.value.interval_text,
        "seeds": ", ".join(filter(None, (str(cell.seeds), trained))) if cell.seeds else "not run",
        "converged": filtered,
        "the paper": row.paper.text,
        "beside the paper": "" if model.shortened else verdict(cell.value, row.paper.value),
    }


def precisions(names: Iterable[str]) -> str:
    """Precisions of training: ``fp16``, or ``fp16 (4), fp32 (1)``.

    >>> precisions(["fp16", "fp32", "fp16"])
    'fp16 (2), fp32 (1)'
    """
    counter = Counter(name for name in names if name)
    if len(counter) < 2:
        return "".join(counter)
    return ", ".join(f"{name} ({count})" for name, count in sorted(counter.items()))


# The paper's network after as many iterations as the paper needed. README.md repeats this table,
# and a test compares the two.

_HEADLINE_ROWS = (
    ("prefix sums, 48 bits", "48", "sums-recall-a1"),
    ("prefix sums, 512 bits", "512", "sums-recall-a1"),
    ("mazes, 13×13", "13", "mazes-recall-a0.01"),
    ("mazes, 59×59", "59", "mazes-recall-a0.01"),
    ("mazes, 201×201", "201", "mazes-recall-a0.01"),
    ("chess puzzles 600K–700K", "600000:700000", "chess-recall-a0.5"),
)
"""Label, size and model: the one with the progressive loss."""


def headline(records: Records) -> str:
    """The table of the paper's network at the paper's iterations, in Markdown."""
    rows = []
    for name, size, model in _HEADLINE_ROWS:
        paper, tested = PEAKS[size][model], records.of(model)
        steps = paper.step or 0
        curves = [curve for curve in Peaks(size).curves(tested) if len(curve) >= steps]
        ours = mean_of([curve[steps - 1] for curve in curves])
        ours = ours or Solved(size).after(steps, tested)
        peak = Peaks(size).of(tested).value
        rows.append({
            "DT-Recall, trained by the paper's recipe": f"{name}, "
            + MODELS[model].ours.removeprefix("DT-Recall "),
            "iterations": f"{steps:,}",
            "paper": paper.percent,
            "here": ours.percent if ours else "not run",
            "peak here": peak.text if ours and peak else "",
            "seeds": str(ours.seeds) if ours else "",
            "precision": precisions(one.precision for one in tested if one.is_run) if ours else "",
        })  # fmt: skip
    return markdown(rows)
