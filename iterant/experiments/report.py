"""RESULTS.md: every table and figure beside the paper's, made from results and nothing else.

>>> Path("RESULTS.md").write_text(results_page("results"))
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from iterant.experiments.catalogue import EXPERIMENTS, PEAKS, Experiment
from iterant.experiments.claims import AT_REST, CLAIMS, LINEAR, MARGIN, VERDICTS
from iterant.experiments.figures import pictures
from iterant.experiments.measures import REACHED, Peaks, Solved
from iterant.experiments.models import MODELS, OURS
from iterant.experiments.records import Records, precisions, read_results
from iterant.experiments.shifts import MAZE_EXPERIMENTS, MazeExperiment
from iterant.experiments.statistics import LEAST_SEEDS, VISIBLE, mean_of
from iterant.formatting import markdown
from iterant.io.files import PathLike

ALL_EXPERIMENTS: dict[str, Experiment | MazeExperiment] = {**EXPERIMENTS, **MAZE_EXPERIMENTS}
"""All tables and figures by name: the paper's, then those of other mazes."""

_PAGE = Path(__file__).with_name("results.md")
"""The text of RESULTS.md, with the names of its parts in braces."""


def results_page(results: PathLike, records: Records | None = None) -> str:
    """RESULTS.md from a folder of results, or from these records."""
    records = read_results(results) if records is None else records
    contents = [
        {"table or figure": _link(one), "in the paper": one.place, "recorded": one.state(records)}
        for one in EXPERIMENTS.values()
    ]
    return _PAGE.read_text(encoding="utf-8").format(
        claims=_claims(records),
        precision=precisions(
            one
            for one in records.all
            if one.model in MODELS and MODELS[one.model].recipe_name != OURS
        ),
        headline=headline(records),
        contents=markdown(contents),
        files=_files(records, Path(results)),
        experiments="\n\n".join(_section(one, records) for one in EXPERIMENTS.values()),
        past="\n\n".join(_section(one, records) for one in MAZE_EXPERIMENTS.values()),
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
        rows.append({
            "claim": claim.text,
            "verdict": f"**{result.verdict}**",
            "in the paper": claim.place,
            "theirs": claim.theirs,
            "ours": "<br>".join(result.ours) or "–",
            "tables": "<br>".join(_link(EXPERIMENTS[name]) for name in claim.tables),
        })  # fmt: skip
    tally = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS if verdicts[verdict])
    return f"Of {len(rows)} claims: {tally}.\n\n{markdown(rows)}"


def _files(records: Records, results: Path) -> str:
    """The files of all records, as links."""
    files = sorted({one.file for one in records.all})
    links = [
        f"[{file.stem}](results/{file.relative_to(results).as_posix()})"
        if file.is_relative_to(results)
        else file.stem
        for file in files
    ]
    return ", ".join(links) or "none"


def _section(one: Experiment | MazeExperiment, records: Records) -> str:
    """The section of one table or figure."""
    pictured = [
        f"[![{one.title}](results/figures/{name}.png)](results/figures/{name}.svg)"
        for name in pictures(one, records)
    ]
    about = f"{one.place} · `iterant reproduce {one.name}`"
    blocks = [f"### {one.title}", about, one.note, *pictured, *_numbers(one, records)]
    return "\n\n".join(filter(None, blocks))


def _numbers(one: Experiment | MazeExperiment, records: Records) -> list[str]:
    """Its tables, or links to the tables of the paper that have all its rows."""
    if isinstance(one, MazeExperiment):
        return [markdown(one.make_table(records))]
    rows = set(one.rows)
    tables = [
        table for table in EXPERIMENTS.values()
        if table is not one and table.name.startswith("table-") and rows & {*table.rows}
    ]  # fmt: skip
    if rows <= {row for table in tables for row in table.rows}:
        return [f"The numbers: {', '.join(map(_link, tables))}."]
    # Rows that were not run and that the paper has no number for say nothing.
    cells = [row for row in one.make_table(records) if row["all seeds"] or row["the paper"]]
    return [markdown(cells) if cells else "Not run; the paper gives a picture only."]


def _link(one: Experiment) -> str:
    return f"[{one.title}](#{one.anchor})"


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
            "precision": precisions(one for one in tested if one.is_run) if ours else "",
        })  # fmt: skip
    return markdown(rows)
