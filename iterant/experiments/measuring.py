"""What is measured on a trained network: every test and study of its model, as plain numbers.

>>> figures = measure(model, run, seed=0, device="cuda")
>>> figures["tests"]["512"]["solved"][-1]

Nothing of the size of a network is kept: curves, counts and a history, some ten thousand bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from iterant.analysis import STUDIES, Convergence, NearMisses, Recovery, Subject, analyze
from iterant.analysis.flips import Flips
from iterant.errors import IterantError
from iterant.evaluation import budget_of, judge
from iterant.experiments.models import Look, Model, Trial
from iterant.halting import MostConfident
from iterant.nets.protocol import Net, depth_of
from iterant.runs import RunFolder
from iterant.tasks.protocol import Batch, Task
from iterant.training.problems import Problems
from iterant.training.recipe import Recipe

SEED = 7
"""Of every test set; training draws from another."""

SEEN = 10_000
"""Training problems that the training accuracy is measured on, at most."""

LOOK_COUNT, LOOK_STEPS = 100, 300
"""Problems and iterations of a study."""

Say = Callable[[str], None]


@torch.no_grad()
def measure(
    model: Model,
    run: RunFolder,
    net: Net,
    task: Task,
    *,
    seed: int,
    problems: Problems | None = None,
    share: float = 1.0,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Every figure of one unit, from its run and its tested weights.

    ``share``: of the problems of every test, study and accuracy, for small machines.
    """
    recipe = Recipe().changed(**run.config["recipe"])
    figures: dict[str, Any] = {
        "training": training(run, net, task, recipe, problems, share),
        "tests": {},
        "studies": {},
    }
    for test in model.tests:
        begun = time.monotonic()
        figures["tests"][test.name] = by_iteration(
            net, task, test.thinned(share), confident=model.confident
        )
        say(f"{model.key} {test.name}: {time.monotonic() - begun:.1f} s")
    subject = Subject(net, task, label=model.key, model=model.net, alpha=model.alpha)
    for look in model.looks:
        if not look.covers(seed):
            continue
        begun = time.monotonic()
        try:
            figures["studies"][look.name] = looked(subject, look, model, share)
        except (IterantError, RuntimeError) as failure:  # what was trained and tested is kept
            figures["studies"][look.name] = {"skipped": f"it failed: {failure}"}
            say(f"{model.key} {look.name} failed: {failure}")
        say(f"{model.key} {look.name}: {time.monotonic() - begun:.1f} s")
    return figures


def training(
    run: RunFolder,
    net: Net,
    task: Task,
    recipe: Recipe,
    problems: Problems | None,
    share: float = 1.0,
) -> dict[str, Any]:
    """How training went, and how well the tested weights do what they were trained on."""
    status, m = run.status, recipe.iterations
    made: dict[str, Any] = {
        "ended": run.state if status.reason is None else status.reason,
        "updates": status.step,
        "of": status.steps,
        "best": dict(status.best),
        "recipe": {name: value for name, value in recipe.described().items() if name != "notes"},
        "history": history(run.metrics()),
    }
    if problems is not None:
        inputs, targets = problems.train[torch.arange(min(len(problems), _part(SEEN, share)))]
        seen, held_out = Batch(inputs.cpu(), targets.cpu()), problems.held_out
        held_out = held_out[: _part(len(held_out), share)] if share < 1 else held_out
        for name, batch in (("train", seen), ("validation", held_out)):
            curve = judge(net, task, batch, steps=m, at=[m], cut=True)
            made[name] = {"solved": int(curve.solved[-1]), "of": curve.count}
    return made


def _part(count: int, share: float) -> int:
    """A share of a count, at least one."""
    return max(1, round(share * count))


def history(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean training loss of every epoch, and the validations: what the authors' logs have."""
    losses: dict[int, list[float]] = {}
    validated: dict[int, float] = {}
    for record in records:
        epoch = math.ceil(record.get("epoch", 0) - 1e-9)
        if record.get("kind") == "train" and record.get("loss") is not None:
            losses.setdefault(epoch, []).append(record["loss"])
        elif record.get("kind") == "validation":
            validated[epoch] = record["figures"].get("validation")
    return [
        {"epoch": epoch, "loss": _short(math.fsum(values) / len(values)),
         **({"validation": validated[epoch]} if epoch in validated else {})}
        for epoch, values in sorted(losses.items())
    ]  # fmt: skip


def by_iteration(net: Net, task: Task, test: Trial, *, confident: bool) -> dict[str, Any]:
    """Problems solved after each iteration; ``confident``: also by the most confident one."""
    batch = task.sample(test.count, size=test.size, seed=SEED)
    steps = budget_of(net, test.steps, cut=True)
    curve = judge(net, task, batch, steps=steps)
    made = {
        "problems": curve.count,
        "solved": curve.solved.tolist(),
        "change": _short(curve.change),
        "broken": curve.broken,
    }
    if confident and depth_of(net) is None:
        sure = judge(net, task, batch, steps=steps, rule=MostConfident())
        made["solved by the most confident"] = sure.solved.tolist()
    return made


def looked(subject: Subject, look: Look, model: Model, share: float = 1.0) -> dict[str, Any]:
    """One study in a few numbers and curves; why not, where it cannot be made."""
    after = STUDIES[look.study].after if look.after is None else look.after
    steps = min(LOOK_STEPS, depth_of(subject.net) or LOOK_STEPS)
    if (after or 0) >= steps:
        return {"skipped": f"there are {steps} iterations"}
    count = max(2, _part(LOOK_COUNT, share))
    report = analyze(
        [subject], [look.study], size=model.look_size, count=count, max_steps=steps,
        after=look.after, seed=SEED,
    )  # fmt: skip
    made: dict[str, Any] = {"after": after, "problems": count}
    for finding in report.found[0].findings:
        made |= _few(finding)
    return made


def _few(finding: Any) -> dict[str, Any]:
    """What tables and figures need of a finding."""
    if isinstance(finding, Recovery):
        made = {
            "samples": finding.count,
            "right": finding.right.tolist(),
            "recovered": finding.recovered,
            "mean iterations": _short(finding.mean_to_solution),
            "mean iterations to first": _short(finding.mean_to_first),
            "left out": finding.left_out,
            "broken": int(finding.broken.sum()),
        }
        if isinstance(finding, Flips):
            made["mean iterations by index"] = _shorts(finding.mean_by_index.tolist())
        return made
    if isinstance(finding, Convergence):
        about = {"change": _shorts(finding.change.tolist()), "features": finding.features}
        return {finding.inputs: {**about, "answers": finding.answers}}
    if isinstance(finding, NearMisses):
        made = finding.figures()
        return {key: value for key, value in made.items() if not isinstance(value, list)}
    return {"starts": finding.headline()}


def _short(value: float | None) -> float | None:
    """Four digits; no number where it is none."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def _shorts(values: Iterable[float]) -> list[float | None]:
    return [_short(value) for value in values]
