"""``iterant evaluate``: accuracy by iteration of trained networks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iterant import registry
from iterant.cli.options import (
    FLAG,
    RULES,
    Count,
    DataPath,
    DeviceName,
    Patience,
    Problems,
    Seed,
    Sizes,
    Steps,
    Tolerance,
    TrustCode,
)
from iterant.cli.output import echo, print_rows
from iterant.errors import UsageError
from iterant.formatting import counted, duration, percent, quantity, size_text
from iterant.progress import progress_estimates

if TYPE_CHECKING:
    from iterant.evaluation import Curve
    from iterant.halting import Rule


def evaluate(
    *runs: str,
    size: Sizes = None,
    max_steps: Steps | None = None,
    count: Count = 1000,
    seed: Seed = 1,
    rule: Annotated[str, Parameter(help=f"when a problem stops: {RULES}")] = "plain",
    patience: Patience = None,
    tolerance: Tolerance = None,
    trade: Annotated[bool, FLAG] = False,
    save: Path | None = None,
    json: Annotated[Path | None, Parameter(name=["--json", "--result"])] = None,
    task: str | None = None,
    device: DeviceName = "auto",
    precision: Annotated[
        str, Parameter(help=f"of the network: {', '.join(registry.known('precision'))}")
    ] = "fp32",
    batch_size: Annotated[Count | None, Parameter(name=["--batch-size", "--portion"])] = None,
    data: DataPath = None,
    problems: Problems = "",
    trust_code: TrustCode = False,
) -> None:
    """Measure accuracy after every iteration on new problems.

    iterant evaluate runs/m0 --size 13 59 --max-steps 1000 --save curves.png
    iterant evaluate runs/m0 runs/m1 --size 59 --rule stable --json mazes.json
    iterant evaluate runs/m0 --size 59 --trade

    Args:
        runs: run folders, RUN/checkpoints/last, folders of weights, or shipped names
        max_steps: iterations [default: 1000, or the depth of a feed-forward network]
        count: problems per size
        seed: of the problems
        trade: compare many halting rules instead: accuracy against mean iterations
        save: draw the curves into this .png or .svg file
        json: write the figures to this .json file
        task: for weights that do not name the task they were trained on
        batch_size: problems in a batch [default: as many as should fit in memory]
    """
    from iterant.analysis.report import shared_regime
    from iterant.analysis.studies import subject_of
    from iterant.draw.figure import check_picture
    from iterant.evaluation import RULES as ALL_RULES
    from iterant.evaluation import evaluate_batch, resolve_steps
    from iterant.io import write_result
    from iterant.io.results import check_result_path
    from iterant.tasks.protocol import offers

    halting_rule = None
    if (rule, patience, tolerance) != ("plain", None, None):
        registry.allow(rule)
        halting_rule = registry.rule(rule, patience=patience, tolerance=tolerance)
    picture = None if save is None else check_picture(save)
    result = None if json is None else check_result_path(json)
    if trade and (picture or halting_rule):
        raise UsageError(
            "--trade compares all rules and draws no curves; leave out --save and --rule"
        )
    if not runs:
        raise UsageError("which runs? give one or more folders: iterant evaluate runs/m0")
    dtype, work = registry.find("precision", precision), []
    for run in runs:
        subject = subject_of(
            run, task=task, device=device, data=data, problems=problems, trust=trust_code
        )
        net: Any = subject.net
        net.to(dtype)
        steps = resolve_steps(net, max_steps)
        sizes = [subject.task.parse_size(text) for text in size or ()]
        work += [(run, subject, each, steps) for each in sizes or [subject.task.check_size(None)]]

    curves: dict[str, Curve] = {}
    tradeoffs: dict[str, list[dict[str, Any]]] = {}
    figures, notes = [], []
    labels = Counter({run: subject.label for run, subject, *_ in work}.values())
    for run, subject, problem_size, steps in work:
        title = f"{run}, " * (len(runs) > 1) + f"size {size_text(problem_size)}"
        figure: dict[str, Any] = {
            "run": subject.label if labels[subject.label] == 1 else str(run), "size": problem_size
        }  # fmt: skip
        batch = subject.task.sample(count, size=problem_size, seed=seed)
        by_rule = []
        for one in ALL_RULES if trade else (halting_rule,):
            what = f"evaluating {title}, {counted(count, 'problem')}" + f", rule {one}" * trade
            curve = evaluate_batch(
                subject.net, subject.task, batch, steps=steps, at=[steps] if trade else None,
                rule=one, batch_size=batch_size, cost=True, progress=progress_estimates(what),
            )  # fmt: skip
            by_rule.append(_rule_figures(one, curve) if trade else curve.described())
        if trade:
            figure["trade"] = tradeoffs[title] = by_rule
        else:
            figure |= by_rule[0]
            curves[title] = curve
        if offers(subject.task, "source"):  # two datasets may have the same sizes
            figure["set"] = subject.task.source()
            notes.append(f"{subject.task.spec.title}: {figure['set']}")
        figures.append(figure)

    _print_curves(curves)
    _print_tradeoffs(tradeoffs, count)
    for note in dict.fromkeys(notes):
        echo(note)
    if picture is not None:
        from iterant.draw.plots import save_curves

        titles = ", ".join(dict.fromkeys(subject.task.spec.title for _, subject, *_ in work))
        regime = shared_regime(subject for _, subject, *_ in work)
        save_curves(curves, picture, regime=regime, title=titles)
        echo(f"drawn in {picture}")
    if result is not None:
        content = {
            "rule": "all" if trade else str(halting_rule or "plain"),
            "precision": precision,
            "count": count,
            "seed": seed,
            "max_steps": max_steps,
            "portion": batch_size,
            "evaluations": figures,
        }
        path = write_result(result.stem, content, seed=seed, folder=result.parent)
        echo(f"written to {path}")


def _print_curves(curves: dict[str, Curve]) -> None:
    rows = []
    for title, curve in curves.items():
        step, height = curve.peak
        low, high = curve.interval[-1].tolist()
        rows.append({
            "": title,
            "peak": percent(height),
            "at": str(step),
            "end": percent(curve.end),
            "after": str(curve.steps[-1]),
            "lost": f"{100 * curve.lost:.1f}",
            "95 %": f"{100 * low:.1f} – {100 * high:.1f}",
            "iterations": "" if curve.stopped is None else f"{float(curve.iterations[-1]):.1f}",
            "operations": "" if curve.work is None else quantity(float(curve.work[-1])),
            "time": duration(curve.seconds),
        })  # fmt: skip
    if rows:
        print_rows(rows, right=True)
        means = "iterations: mean of a problem; " * any(row["iterations"] for row in rows)
        echo(
            "peak: highest accuracy, at that iteration; end: accuracy after the last iteration; "
            f"lost: peak minus end; 95 %: interval of the end; {means}"
            "operations: of a problem, if every cell is computed"
        )
    for title, curve in curves.items():
        problems = counted(curve.count, "problem")
        if curve.nonfinite:
            echo(
                f"{title}: features of {curve.nonfinite} of {problems} became NaN or infinite; "
                "these count as not solved"
            )
        if curve.any_right is not None:
            right, any_right = int(curve.right.sum()), int(curve.any_right.sum())
            if right != any_right:
                echo(
                    f"{title}: at the end {any_right} of {problems} have a right answer if any "
                    f"counts (mazes: any shortest path), {right} that of the target"
                )
        if curve.answers_changing:
            echo(
                f"{title}: {curve.answers_changing} of {counted(curve.count, 'answer')} were still "
                f"changing at the last iteration; try --max-steps {4 * curve.steps[-1]}"
            )


def _rule_figures(rule: Rule | None, curve: Curve) -> dict[str, Any]:
    """Accuracy and cost under one rule."""
    full = curve.described()
    return {
        "rule": str(rule),
        "accuracy": full["end"]["accuracy"],
        "interval": full["end"]["interval"],
        "mean iterations": full["mean iterations"],
        "stopped by the rule": full["stopped by the rule"],
        "not finite": full["not finite"],
        "operations a problem": full["operations a problem"][-1],
    }


def _print_tradeoffs(tradeoffs: dict[str, list[dict[str, Any]]], count: int) -> None:
    for title, rules in tradeoffs.items():
        echo(title)
        rows = [
            {
                "rule": rule["rule"],
                "accuracy": percent(rule["accuracy"]),
                "mean iterations": f"{rule['mean iterations']:.1f}",
                "operations per problem": quantity(rule["operations a problem"]),
                "stopped by it": f"{rule['stopped by the rule']} of {count}",
            }
            for rule in rules
        ]
        print_rows(rows, right=True)
