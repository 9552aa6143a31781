"""What a sweep showed: one result file with every run, and a picture of the curves.

    >>> collect(folder, results="results")
    [PosixPath('results/widths.json'), PosixPath('results/widths-size-512.png')]

Seeds of a point are averaged, and an average says over how many of how many: a run that failed is
named beside it with its error, never left out in silence.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from iterant.draw.curves import save_curves
from iterant.evaluation import Curve
from iterant.runs import write_result
from iterant.runs.files import PathLike, make_folder
from iterant.sweeps.folder import SweepFolder
from iterant.sweeps.plan import Exam, PlannedRun
from iterant.sweeps.state import Survey, survey

_MOST_CURVES = 12
"""Curves that one picture can hold."""


def collect(
    folder: SweepFolder, results: PathLike = "results", *, command: str | None = None
) -> list[Path]:
    """Write the result and its pictures, and give their paths back."""
    seen = survey(folder)
    place = make_folder(results)
    seeds = sorted({run.seed for run in folder.plan.runs})
    written = [
        write_result(folder.plan.name, figures(folder, seen), seed=seeds, folder=place,
                     command=command)
    ]  # fmt: skip
    for test in folder.plan.tests:
        curves, regimes = _curves(folder, test)
        if curves:
            path = place / f"{folder.plan.name}-{_slug(test)}.png"
            regime = regimes.pop() if len(regimes) == 1 else None
            written.append(save_curves(curves, path, regime=regime, title=test.key))
    return written


def figures(folder: SweepFolder, seen: Survey) -> dict[str, Any]:
    """Everything that was measured: the counts, the points, and each run."""
    counts = seen.counts
    states = {run.name: run for run in seen.runs}
    runs: dict[str, Any] = {}
    for name, planned in folder.planned.items():
        outcome = folder.outcome(name)
        state = states[name]
        runs[name] = {
            "task": planned.task, "recipe": planned.recipe, "seed": planned.seed,
            "changes": planned.changes, "state": state.state,
            **({"error": state.error} if state.error else {}),
            **({key: outcome.get(key) for key in ("seconds", "steps", "best", "tests")}
               if outcome else {}),
        }  # fmt: skip
    return {
        "complete": counts["done"] == len(seen.runs),
        "counts": counts,
        "points": {point: _point(some, runs) for point, some in points_of(folder).items()},
        "runs": runs,
    }


def points_of(folder: SweepFolder) -> dict[str, list[PlannedRun]]:
    """The runs of each point, in the order of the plan."""
    found: dict[str, list[PlannedRun]] = {}
    for run in folder.plan.runs:
        found.setdefault(run.point, []).append(run)
    return found


def _point(planned: Sequence[PlannedRun], runs: Mapping[str, Any]) -> dict[str, Any]:
    done = [runs[run.name] for run in planned if runs[run.name]["state"] == "done"]
    missing = {
        run.name: runs[run.name].get("error") or runs[run.name]["state"]
        for run in planned
        if runs[run.name]["state"] != "done"
    }
    tests = dict.fromkeys(key for run in done for key in run["tests"])
    return {
        "settings": planned[0].varied,
        "seeds": f"{len(done)} of {len(planned)}",
        "missing": missing,
        "best on validation": _spread([run["best"].get("validation") for run in done]),
        "tests": {
            key: {
                what: _spread([run["tests"][key][what]["accuracy"] for run in done
                               if key in run["tests"]])
                for what in ("peak", "end")
            }
            for key in tests
        },
    }  # fmt: skip


def _spread(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean and spread over the runs that have the figure."""
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


def _curves(folder: SweepFolder, test: Exam) -> tuple[dict[str, Curve], set[int]]:
    """The curve of each point, its seeds' problems taken together."""
    curves: dict[str, Curve] = {}
    regimes: set[int] = set()
    for planned in points_of(folder).values():
        outcomes = [folder.outcome(run.name) for run in planned]
        done = [outcome for outcome in outcomes if outcome and test.key in outcome["tests"]]
        taken = [outcome["tests"][test.key] for outcome in done]
        if not taken or len(curves) == _MOST_CURVES:
            continue
        lengths = {len(one["solved"]) for one in taken}
        if len(lengths) > 1:
            continue
        settings = ", ".join(f"{key} {value}" for key, value in planned[0].varied.items())
        title = ", ".join(filter(None, [planned[0].task, planned[0].recipe, settings]))
        curves[f"{title} ({len(taken)} of {len(planned)} seeds)"] = Curve(
            steps=tuple(taken[0].get("steps") or range(1, lengths.pop() + 1)),
            solved=torch.tensor([one["solved"] for one in taken]).sum(0),
            count=sum(one["problems"] for one in taken),
            change=float("nan"),
        )
        regimes |= {outcome["iterations"] for outcome in done}
    return curves, regimes


def _slug(test: Exam) -> str:
    """A test as part of a file's name; those that differ in more than size have it all."""
    return re.sub(r"[^A-Za-z0-9]+", "-", test.key).strip("-")
