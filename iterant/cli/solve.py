"""``iterant solve``, ``iterant sample`` and ``iterant data``: problems and their answers.

docs/how-to/solve.md describes the JSON file of ``solve --save``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from rich.text import Text

from iterant import bounds, registry
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
    TaskName,
    Tolerance,
    TrustCode,
)
from iterant.cli.output import console, echo, iteration_display, print_rows
from iterant.errors import IterantError, TaskError, UsageError
from iterant.formatting import counted, percent
from iterant.progress import progress_estimates, warn

if TYPE_CHECKING:
    from iterant.solving import Solution
    from iterant.tasks.protocol import Problem, Task

_LINES_BELOW = 10
"""Terminal lines for the text below the picture of an answer."""
_PICTURES = 64
"""Problems in one image file."""
_WIDE = 60
"""Most characters of a table cell."""


def solve(
    task: TaskName,
    /,
    *problems: Annotated[str, Parameter(allow_leading_hyphen=True)],
    net: str | None = None,
    size: str | None = None,
    seed: Seed | None = None,
    count: Count | None = None,
    save: Path | None = None,
    max_steps: Steps | None = None,
    halt: Annotated[
        str, Parameter(name=["--halt", "--rule"], help=f"when to stop: {RULES}")
    ] = "rest",
    patience: Patience = None,
    tolerance: Tolerance = None,
    live: bool = True,
    pace: Annotated[float | None, Parameter(validator=bounds.PACE)] = None,
    legal: Annotated[bool, FLAG] = False,
    pgn: Annotated[bool, FLAG] = False,
    device: DeviceName = "cpu",
    data: DataPath = None,
    kind: Problems = "",
    trust_code: TrustCode = False,
) -> None:
    """Solve problems with a network and report the answers.

    iterant solve mazes --size 59 --seed 3 --save maze.gif
    iterant solve mazes photo.png
    iterant solve prefix-sums 1011001
    echo 1011001 | iterant solve prefix-sums -
    iterant solve chess "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1" --legal
    iterant solve chess games.pgn --save answers.json

    Args:
        problems: a problem as text, a file, a folder, or - for standard input: bits, a maze in text
            or in a picture, a FEN, games in PGN; none: one is generated
        net: a run folder, a folder of weights or a shipped name [default: as shipped for the task]
        size: of a generated problem [default: the task's]
        seed: of a generated problem [default: 0]
        count: number of generated problems [default: 1]
        save: write FILE.png, FILE.svg, FILE.gif or FILE.json
        max_steps: limit on the iterations [default: 1000, plus one per cell]
        live: show the iterations while they are computed, on a terminal
        pace: limit on the iterations per second, on a terminal
        legal: also choose the best answer that the rules allow (chess: legal moves)
        pgn: read the problems as games in PGN
    """
    from iterant.halting import Fixed, MostConfident
    from iterant.io.files import check_writable_file, quoted
    from iterant.solving import solutions
    from iterant.tasks.protocol import task as named_task
    from iterant.tasks.protocol import with_problems
    from iterant.zoo.loading import load

    if save is not None:
        if save.suffix.lower() not in (".png", ".svg", ".gif", ".json"):
            raise UsageError(
                f"answers are written as .png, .svg, .gif or .json, got {quoted(save)}"
            )
        check_writable_file(save)
    rule = None  # the fastest form of rest
    if (halt, patience, tolerance) != ("rest", None, None):
        registry.allow(halt)
        rule = registry.rule(halt, patience=patience, tolerance=tolerance)
    task_object = with_problems(named_task(task, data=data), kind)
    inputs, unreadable = _read(task_object, problems, size=size, seed=seed, count=count, pgn=pgn)
    name, total = net or task_object.spec.name, len(inputs)
    answers: list[Solution] = []
    network = load(name, device, trust=trust_code)
    _warn_unlike(task_object, network, inputs, name)
    progress = progress_estimates("solving")
    with iteration_display(task_object, console(), live=live and total == 1, pace=pace) as viewer:
        for answer in solutions(
            network, task_object, inputs, max_steps=max_steps, rule=rule, restrict=legal,
            viewer=viewer,
        ):  # fmt: skip
            answers.append(answer)
            if live:
                progress(len(answers), total)
    # These two always spend the budget: a larger one would not make them stop.
    show(task_object, answers, may_stop=not isinstance(rule, Fixed | MostConfident))
    if save is not None:
        save_solutions(task_object, answers, save, net=name, rule=str(rule or "rest"))
    for where, error in unreadable:
        warn(f"iterant: left out {where}: {error}")
    if unreadable:
        raise TaskError(
            f"{len(unreadable)} of {len(unreadable) + total} problems could not be read; "
            "the others are answered above"
        )


def _warn_unlike(task: Task, network: Any, problems: Sequence[Problem], name: str) -> None:
    """Say before solving which problems a network was not made for."""
    from iterant.tasks.protocol import offers

    trained = getattr(network, "trained_problems", None)
    if trained is None or not offers(task, "unlike"):
        return
    for problem in problems:
        if not problem.unsolvable and (what := task.unlike(problem.batch, 0, trained)):
            warn(f"iterant: {name} may be wrong: {problem.name}: {what}")


def _read(
    task: Task,
    words: tuple[str, ...],
    *,
    size: str | None,
    seed: int | None,
    count: int | None,
    pgn: bool,
) -> tuple[list[Problem], list[tuple[str, IterantError]]]:
    """The problems that the words name, or generated ones; name and error of those not read."""
    from iterant.tasks.inputs import GAMES, gather
    from iterant.tasks.protocol import sample_problems

    # Words may begin with a hyphen, because - is the standard input: check the others here.
    if unknown := [word for word in words if word.startswith("-") and word != "-"]:
        raise UsageError(f"unknown option: {unknown[0]} (see iterant solve --help)")
    if not words:
        if pgn:
            raise UsageError("--pgn says how a file is read; give the file too")
        task_size = None if size is None else task.parse_size(size)
        count = 1 if count is None else count
        return sample_problems(task, size=task_size, seed=seed or 0, count=count), []
    if (size, seed, count) != (None, None, None):
        raise UsageError(
            "--size, --seed and --count are for generated problems; give them or a problem, "
            "not both"
        )
    kind = GAMES if pgn else None
    parts = [gather(task, word, stdin=sys.stdin.buffer, kind=kind) for word in words]
    unreadable = [each for part in parts for each in part.refused]
    return [problem for part in parts for problem in part.problems], unreadable


def show(task: Task, solutions: Sequence[Solution], *, may_stop: bool = True) -> None:
    """Print the notes of all problems, then one solution with its picture, or a table of many.

    ``may_stop``: whether the halting rule can stop before the budget is spent.
    """
    from iterant.draw.animation import describe_solution
    from iterant.draw.terminal import TALL, legend, merge_blocks, terminal
    from iterant.solving import BUDGET

    screen = console()
    names_by_note: dict[str, list[str]] = {}
    for solution in solutions:
        for note in solution.problem.notes:
            names_by_note.setdefault(note, []).append(solution.problem.name)
    for note, (name, *others) in names_by_note.items():
        where = f"{1 + len(others):,} of {len(solutions):,} problems" if others else name
        echo(f"{where}: {note}" if where else note)
    rows = [_cells(solution, number) for number, solution in enumerate(solutions, start=1)]
    if len(solutions) == 1:
        description = describe_solution(task, solutions[0])
        picture = replace(description, caption="")
        # Leave room for the lines below, but never squeeze the picture for its height.
        least = len(merge_blocks(picture.cells)) // TALL + 2
        lines = max(screen.height - _LINES_BELOW, least) if screen.is_terminal else None
        screen.print(terminal(picture, screen, lines=lines), soft_wrap=True)
        if description.legend:
            screen.print(legend(description, screen), soft_wrap=True)
        screen.print(description.caption, style="dim", soft_wrap=not screen.is_terminal)
        for name, text in list(rows[0].items())[1:]:
            if text:
                screen.print(Text.assemble((f"{name:<12}", "dim"), text), soft_wrap=True)
    else:
        print_rows([{name: _short(text) for name, text in row.items()} for row in rows])
        echo(_summary(solutions))
    for reason in sorted({solution.verdict.unchecked_because for solution in solutions} - {""}):
        echo(f"rules: {reason}")
    steps = [one.steps for one in solutions if one.stopped_by == BUDGET]
    if steps and may_stop:
        most = max(steps)
        echo(f"{len(steps)} not settled within {most:,} iterations; try --max-steps {4 * most}")


def save_solutions(
    task: Task, solutions: Sequence[Solution], target: Path, *, net: str, rule: str
) -> None:
    """Write the answers as a picture, an animation or JSON, by the name of the file."""
    from iterant.draw import animation
    from iterant.draw.figure import save_picture
    from iterant.io.files import write_json

    animated = target.suffix.lower() == ".gif"
    if target.suffix.lower() == ".json":
        content = {
            "format": "iterant-solutions",
            "version": 1,
            "task": task.spec.name,
            "net": net,
            "rule": rule,
            "solutions": [solution.described() for solution in solutions],
        }
        write_json(target, content, nan_to_null=True)
    else:
        most = animation.SIDE_BY_SIDE if animated else _PICTURES
        if len(solutions) > most:
            warn(f"iterant: {target.name} shows the first {most} of {len(solutions)}")
        first = solutions[:most]
        if animated:
            animation.save_animation(animation.animation_frames(task, first), target)
        else:
            save_picture([animation.describe_solution(task, one) for one in first], target)
    echo(f"written to {target}")


def _cells(solution: Solution, number: int) -> dict[str, str]:
    """The columns of a solution, by name; empty where unknown."""
    name = solution.problem.name or f"problem {number}"
    if solution.prediction is None:
        return {"problem": name, "answer": f"none: {solution.problem.unsolvable}"}
    words = {True: "yes", False: "no", None: "?"}
    allowed = f"{solution.allowed_answer} (right: {words[solution.allowed_right]})"
    return {
        "problem": name,
        "answer": solution.answer,
        "allowed": allowed if solution.allowed is not None else "",
        "rules": words[solution.verdict.legal] if solution.verdict.words else "",
        "iterations": f"{solution.steps:,}",
        "unchanged": f"since {solution.history[-1][0].step:,}",
        "settled": words[solution.settled],
        "right": words[solution.right],
        "confidence": percent(solution.min_confidence),
        "time": f"{solution.seconds:.2f} s",
    }


def _short(text: str) -> str:
    return text[: _WIDE - 1] + "…" if len(text) > _WIDE else text


def _summary(solutions: Sequence[Solution]) -> str:
    unsolvable = sum(one.prediction is None for one in solutions)
    known = [one for one in solutions if one.right is not None]
    verdicts = [one.verdict.legal for one in solutions if one.verdict.legal is not None]
    parts = [f"{len(solutions)} problems", f"{sum(one.settled for one in solutions)} settled"]
    if unsolvable:
        parts.append(f"{unsolvable} without a solution")
    if verdicts:
        parts.append(f"{sum(verdicts)} of {len(verdicts)} answers keep the rules")
    if known:
        right = sum(one.right is True for one in known)
        parts.append(f"{right} right of {len(known)} whose answer is known")
        if known[0].allowed is not None:
            parts.append(f"{sum(one.allowed_right is True for one in known)} right with --legal")
    return ", ".join([*parts, f"{sum(one.seconds for one in solutions):.2f} s"])


def sample(
    task: TaskName,
    /,
    *,
    size: Sizes = None,
    count: Count = 1,
    seed: Seed = 0,
    save: Path | None = None,
    solution: bool = True,
    data: DataPath = None,
    problems: Problems = "",
) -> None:
    """Generate problems of a task and show them.

    iterant sample mazes --size 13 --seed 1 --save m.png
    iterant sample mazes --size 13 --problems start=any,p=0.1

    Args:
        count: problems per size
        seed: the same seed gives the same problems
        save: draw them into this .png or .svg file
        solution: show the answers
    """
    import torch

    from iterant.draw.figure import check_picture, save_picture
    from iterant.draw.terminal import terminal
    from iterant.tasks.protocol import task as named_task
    from iterant.tasks.protocol import with_problems

    target = None if save is None else check_picture(save)
    task_object = with_problems(named_task(task, data=data), problems)
    descriptions, screen = [], console()
    sizes = [task_object.parse_size(text) for text in size or ()]
    for problem_size in sizes or [task_object.check_size(None)]:
        batch = task_object.sample(count, size=problem_size, seed=seed)
        if not solution:
            batch = replace(batch, targets=torch.full_like(batch.targets, -1))
        descriptions += [task_object.describe(batch, index) for index in range(len(batch))]
    for index, description in enumerate(descriptions):
        if index:
            screen.print()
        lines = screen.height if screen.is_terminal else None
        screen.print(terminal(description, screen, lines=lines), soft_wrap=True)
    if target is not None:
        if len(descriptions) > _PICTURES:
            warn(f"iterant: {target.name} shows the first {_PICTURES} of {len(descriptions)}")
        save_picture(descriptions[:_PICTURES], target)
        echo(f"drawn in {target}")


data = App(
    name="data",
    help="""Convert datasets that are not generated from a seed.

iterant data chess lichess_db_puzzle.csv.zst --out puzzles""",
)


@data.command
def chess(file: Path, /, *, out: Path) -> None:
    """Pack Lichess's puzzle CSV into the arrays that the chess task reads.

    iterant data chess lichess_db_puzzle.csv.zst --out puzzles

    Args:
        file: Lichess's puzzle file: .csv, .csv.zst or .csv.bz2
        out: the new folder for the packed puzzles
    """
    from iterant.tasks.chess.puzzles import pack_csv

    progress = progress_estimates()
    report = pack_csv(file, out, lambda rows, share: progress(share, 1, f"{rows:,} rows"))
    echo(
        f"{counted(report.kept, 'puzzle')} written to {out} in {report.seconds:.0f} s: "
        f"{counted(report.rows, 'row')} read, {report.broken:,} broken, "
        f"{report.repeated:,} repeated"
    )
    for line, reason in report.first_broken:
        echo(f"  line {line}: {reason}")
    echo(f"use them: iterant sample chess --data {out}")
