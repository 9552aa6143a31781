"""The results of a sweep: means over seeds as a dict, a table, a picture and a result file.

    >>> folder = SweepFolder.open("runs/widths")
    >>> results_of(folder)["points"]["mazes-quick-width32"]["seeds"]
    '4 of 5'

A point is a combination of settings with all its seeds. Runs that failed are named beside the means
of their point, with the error.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iterant.draw.figure import write_figure
from iterant.draw.plots import Line, Plot, Trace, panels_figure
from iterant.formatting import percent, size_text
from iterant.io import write_result
from iterant.io.files import PathLike, make_folder
from iterant.runner.folder import SweepFolder, status
from iterant.runner.plan import Plan, PlannedRun

_TICKS_WIDTH, _SHIFT = 90, 0.08
"""Characters below the axis of a picture, at most; distance between figures of one point."""


def results_of(folder: SweepFolder) -> dict[str, Any]:
    """Settings, state and figures of every run, and their means by point: the result file."""
    now = status(folder)
    runs: dict[str, Any] = {}
    groups: dict[str, list[PlannedRun]] = {}
    for state in now.runs:
        run, outcome = folder.run(state.name), folder.outcome(state.name)
        groups.setdefault(run.point, []).append(run)
        runs[run.name] = {
            "task": run.task, "recipe": run.recipe, "seed": run.seed, "changes": run.changes,
            "state": state.state, **({"error": state.error} if state.error else {}),
        }  # fmt: skip
        if outcome is not None:
            # A job other than ours may not give all of them.
            figures = ("seconds", "steps", "best", "tests")
            runs[run.name] |= {key: outcome.get(key) for key in figures}
    points = {
        name: {"settings": group[0].varied, **_means({run.name: runs[run.name] for run in group})}
        for name, group in groups.items()
    }
    complete = now.counts["done"] == len(now.runs)
    return {"complete": complete, "counts": now.counts, "points": points, "runs": runs}


def _means(runs: dict[str, Any]) -> dict[str, Any]:
    """Means over the seeds of a point, and the runs that are missing from them."""
    done = [run for run in runs.values() if run["state"] == "done"]
    tests: dict[str, Any] = {}
    for key in dict.fromkeys(key for run in done for key in run["tests"]):
        figures = [run["tests"][key] for run in done if key in run["tests"]]
        tests[key] = {
            what: _spread([test[what]["accuracy"] for test in figures]) for what in ("peak", "end")
        }
    return {
        "seeds": f"{len(done)} of {len(runs)}",
        "missing": {name: run.get("error") or run["state"] for name, run in runs.items()
                    if run["state"] != "done"},
        "best on validation": _spread([(run["best"] or {}).get("validation") for run in done]),
        "tests": tests,
    }  # fmt: skip


def _spread(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean, standard deviation and range over the runs that have the figure."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {
        "runs": len(known),
        "mean": statistics.fmean(known),
        "deviation": statistics.stdev(known) if len(known) > 1 else None,
        "lowest": min(known),
        "highest": max(known),
    }


def table(folder: SweepFolder) -> tuple[list[str], list[list[str]]]:
    """The head and a row for each point: mean ± standard deviation over the seeds that are done.

        >>> table(SweepFolder.open("runs/widths"))[0]
        ['', 'seeds', 'validation', 'size 64', 'size 512']

    No rows before the first run is done, and where a function other than ours executes the runs.
    Accuracies of tests are those after the last iteration; a higher peak is named beside them.
    """
    tests = _test_names(folder.plan)
    rows = []
    for run, point in _points(folder, results_of(folder)):
        cells = [_spread_text(point["best on validation"])]
        for key in tests:
            test = point["tests"].get(key, {})
            end, peak = test.get("end"), test.get("peak")
            more = f" (peak {percent(peak['mean'])})" if end and peak["mean"] > end["mean"] else ""
            cells.append(_spread_text(end) + more)
        rows.append([_title(run), point["seeds"], *cells])
    return ["", "seeds", "validation", *tests.values()], rows


def save_picture(folder: SweepFolder) -> Path | None:
    """Draw the table into ``sweep.png`` in the sweep's folder; None where it has no rows.

    >>> save_picture(SweepFolder.open("runs/widths"))
    PosixPath('runs/widths/sweep.png')
    """
    points = _points(folder, results_of(folder))
    series = {"validation": [point["best on validation"] for _, point in points]}
    for key, name in _test_names(folder.plan).items():
        series[name] = [point["tests"].get(key, {}).get("end") for _, point in points]
    lines = []
    for index, (name, spreads) in enumerate(series.items()):
        # Side by side: equal accuracies would hide one another.
        shift = _SHIFT * (index - (len(series) - 1) / 2)
        known = [(at + shift, spread) for at, spread in enumerate(spreads) if spread is not None]
        if known:
            trace = Trace([x for x, _ in known], [100 * spread["mean"] for _, spread in known])
            errors = [100 * (spread["deviation"] or 0.0) for _, spread in known]
            lines.append(Line(trace, name, index, marker="osD^v"[index % 5], spread=errors))
    if not lines:
        return None
    differ = [
        key for key in ("task", "recipe") if len({getattr(run, key) for run, _ in points}) > 1
    ]
    settings = [{key: getattr(run, key) for key in differ} | run.varied for run, _ in points]
    names = list(dict.fromkeys(name for each in settings for name in each))
    ticks = [", ".join(str(each.get(name, "")) for name in names) for each in settings]
    if len("  ".join(ticks)) > _TICKS_WIDTH:
        names, ticks = ["row of the table, from 0"], []
    plot = Plot(folder.plan.name, ", ".join(names), "problems solved (%)", share=True, shade=False,
                ticks=tuple(ticks))  # fmt: skip
    return write_figure(panels_figure([(plot, lines)]), folder.path / "sweep.png")


def collect(folder: SweepFolder, results: PathLike = "results") -> Path:
    """Write the result file and return its path."""
    seeds = sorted({run.seed for run in folder.plan.runs})
    name, target = folder.plan.name, make_folder(results)
    return write_result(name, results_of(folder), seed=seeds, folder=target)


def _points(
    folder: SweepFolder, content: dict[str, Any]
) -> list[tuple[PlannedRun, dict[str, Any]]]:
    """Each point with its first run; none before a run is done, or if their job is not ours."""
    if folder.plan.job is not None or not content["counts"]["done"]:
        return []
    first = {run.point: run for run in reversed(folder.plan.runs)}
    return [(first[name], point) for name, point in content["points"].items()]


def _title(run: PlannedRun) -> str:
    """The point of a run: its task, its recipe, and the settings that vary."""
    varied = [f"{name} {value}" for name, value in run.varied.items()]
    return ", ".join([str(run.task), str(run.recipe), *varied])  # any JSON, if the file was edited


def _test_names(plan: Plan) -> dict[str, str]:
    """A short name of every test, by its key."""
    short = {test.key: "training size" if test.size is None else f"size {size_text(test.size)}"
             for test in plan.tests}  # fmt: skip
    return short if len({*short.values()}) == len(short) else {key: key for key in short}


def _spread_text(spread: dict[str, Any] | None) -> str:
    if spread is None:
        return "-"
    deviation = spread["deviation"]
    return percent(spread["mean"]) + (f" ± {100 * deviation:.1f}" if deviation else "")
