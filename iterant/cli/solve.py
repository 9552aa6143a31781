"""``iterant solve``: solve problems with a network, and watch it iterate.

iterant solve mazes --size 59 --seed 3 --save maze.gif
iterant solve mazes photo.png
iterant solve prefix-sums 1011001
echo 1011001 | iterant solve prefix-sums -
iterant solve chess "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1" --legal
iterant solve chess games.pgn --save answers.json
iterant solve chess suite.epd

On a terminal with colours one picture is redrawn a few times a second; elsewhere a line every few
seconds names the iteration. docs/how-to/solve.md describes the JSON file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.text import Text

from iterant.cli.options import (
    FLAG,
    RULES,
    DataPath,
    DeviceName,
    Patience,
    TaskName,
    Tolerance,
    rule_of,
    task_of,
)
from iterant.cli.output import console, echo, print_table, progress_bar, warn
from iterant.errors import IterantError, TaskError, UsageError
from iterant.formatting import percent

if TYPE_CHECKING:
    from rich.live import Live

    from iterant.solving import Film, Frame, Solution, Viewer
    from iterant.tasks.inputs import Problem
    from iterant.tasks.protocol import Task

FORMAT, VERSION = "iterant-solutions", 1
_PICTURE_SECONDS, _LINE_SECONDS = 1 / 8, 3.0
_LINES_BESIDE, _LINES_BELOW, _FEWEST_LINES = 4, 9, 6
"""Terminal lines for text beside the live picture and below the final one; least height of one."""
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
    seed: int | None = None,
    count: int | None = None,
    save: Path | None = None,
    max_steps: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    halt: Annotated[
        str, Parameter(name=["--halt", "--rule"], help=f"when to stop: {', '.join(RULES)}")
    ] = "rest",
    patience: Patience = None,
    tolerance: Tolerance = None,
    live: bool = True,
    pace: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    legal: Annotated[bool, FLAG] = False,
    pgn: Annotated[bool, FLAG] = False,
    device: DeviceName = "cpu",
    data: DataPath = None,
) -> None:
    """Solve problems with a network and report the answers.

    Args:
        problems: a problem as text, a file, a folder, or - for standard input: bits, a maze drawn
            with # and spaces or in a picture, a FEN or an EPD, games in PGN; none: one is generated
        net: a run folder, a folder of weights or a shipped name [default: as shipped for the task]
        size: of a generated problem [default: as in training]
        seed: of a generated problem [default: 0]
        count: number of generated problems [default: 1]
        save: write FILE.png, FILE.svg, FILE.gif, FILE.mp4 (with ffmpeg) or FILE.json
        max_steps: limit on the iterations [default: 1000, plus one per cell]
        live: show the iterations while they are computed, on a terminal
        pace: limit on the iterations per second, on a terminal
        legal: also choose the best answer that the rules allow (chess: legal moves)
        pgn: read the problems as games in PGN
    """
    from iterant.solving import solutions
    from iterant.zoo.loading import load

    target = None if save is None else check_target(save)
    rule = rule_of(halt, patience, tolerance, default="rest")
    task_object = task_of(task, data)
    inputs, unreadable = _read(task_object, problems, size=size, seed=seed, count=count, pgn=pgn)
    name = net or task_object.spec.name
    network = load(name, device)
    screen, total, solved = console(), len(inputs), []
    with (
        viewer(task_object, screen, live=live and total == 1, pace=pace) as view,
        progress_bar("solving", show=live and total > 1) as update,
    ):
        for solution in solutions(
            network,
            task_object,
            inputs,
            max_steps=max_steps,
            rule=rule,
            restrict=legal,
            viewer=view,
        ):
            solved.append(solution)
            update(len(solved), total, f"solved {len(solved)}/{total}")
    show(task_object, screen, solved)
    if target is not None:
        save_solutions(task_object, solved, target, net=name, rule=str(rule or "rest"))
    for where, error in unreadable:
        warn(f"iterant: left out {where}: {error}")
    if unreadable:
        raise TaskError(
            f"{len(unreadable)} of {len(unreadable) + total} problems could not be read; "
            "the others are answered above"
        )


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
    from iterant.tasks.inputs import GAMES, gather, generated

    # Words may begin with a hyphen, because - is the standard input: check the others here.
    if unknown := [word for word in words if word.startswith("-") and word != "-"]:
        raise UsageError(f"unknown option: {unknown[0]} (see iterant solve --help)")
    if words:
        if (size, seed, count) != (None, None, None):
            raise UsageError(
                "--size, --seed and --count are for generated problems; give them or a problem, "
                "not both"
            )
        kind = GAMES if pgn else None
        parts = [gather(task, word, stdin=sys.stdin.buffer, kind=kind) for word in words]
    elif pgn:
        raise UsageError("--pgn says how a file is read; give the file too")
    else:
        task_size = None if size is None else task.parse_size(size)
        count = 1 if count is None else count
        parts = [generated(task, size=task_size, seed=seed or 0, count=count)]
    unreadable = [each for part in parts for each in part.refused]
    return [problem for part in parts for problem in part.problems], unreadable


class LiveViewer:
    """Shows the iterations: a picture a few times a second, or lines without ``live``."""

    def __init__(
        self, task: Task, screen: Console, live: Live | None = None, pace: float | None = None
    ) -> None:
        """``pace``: most iterations per second."""
        self.task, self.screen, self.live, self.pace = task, screen, live, pace
        self.start = monotonic()
        self.last = self.start if live is None else -math.inf

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Called after every iteration."""
        from iterant.draw.animation import describe_iteration
        from iterant.draw.terminal import terminal

        if self.live is not None and self.pace is not None:
            sleep(max(0.0, self.start + frame.step / self.pace - monotonic()))
        if monotonic() - self.last < (_LINE_SECONDS if self.live is None else _PICTURE_SECONDS):
            return
        since = film.changes()[-1].step
        status = f"iteration {frame.step:,}, answer unchanged since iteration {since:,}"
        if self.live is None:
            self.screen.print(status, soft_wrap=True)
        else:
            lines = self.screen.height - _LINES_BESIDE
            text = Text(status, no_wrap=True, overflow="ellipsis")
            if lines >= _FEWEST_LINES:
                description = replace(describe_iteration(self.task, problem, frame), caption="")
                text = Text("\n").join([terminal(description, self.screen, lines=lines), text])
            self.live.update(text, refresh=True)
        # From the end of drawing: a slow terminal gets fewer pictures and does not slow us down.
        self.last = monotonic()


@contextmanager
def viewer(
    task: Task, screen: Console, *, live: bool, pace: float | None = None
) -> Iterator[Viewer | None]:
    """The viewer that suits the terminal; None without ``live``."""
    from rich.live import Live

    from iterant.draw.terminal import has_colours

    if not live:
        yield None
    elif not has_colours(screen):
        yield LiveViewer(task, screen)
    else:
        with Live(console=screen, auto_refresh=False, transient=True) as display:
            yield LiveViewer(task, screen, display, pace)


def check_target(path: Path) -> Path:
    """The path, if a file of its kind can be written there."""
    from iterant.draw.animation import ANIMATIONS, check_animation
    from iterant.draw.figure import check_picture
    from iterant.io.files import check_writable_file

    check = {".json": check_writable_file, **dict.fromkeys(ANIMATIONS, check_animation)}
    return check.get(path.suffix.lower(), check_picture)(path)


def show(task: Task, screen: Console, solutions: Sequence[Solution]) -> None:
    """Print the notes of all problems, then one solution with its picture, or a table of many."""
    from iterant.draw.animation import describe_solution
    from iterant.draw.terminal import TALL, merge_blocks, terminal
    from iterant.solving import BUDGET

    names: dict[str, list[str]] = {}
    for solution in solutions:
        for note in solution.problem.notes:
            names.setdefault(note, []).append(solution.problem.name)
    for note, problems in names.items():
        many = f"{len(problems):,} of {len(solutions):,} problems"
        where = problems[0] if len(problems) == 1 else many
        echo(f"{where}: {note}" if where else note)
    rows = [_cells(solution, number) for number, solution in enumerate(solutions, start=1)]
    if len(solutions) == 1:
        description = describe_solution(task, solutions[0])
        picture = replace(description, caption="")
        # Leave room for the lines below, but never squeeze the picture for its height.
        least = len(merge_blocks(picture.cells)) // TALL + 2
        lines = max(screen.height - _LINES_BELOW, least) if screen.is_terminal else None
        screen.print(terminal(picture, screen, lines=lines), soft_wrap=True)
        screen.print(description.caption, style="dim", soft_wrap=not screen.is_terminal)
        for name, text in list(rows[0].items())[1:]:
            if text:
                screen.print(Text.assemble((f"{name:<12}", "dim"), text), soft_wrap=True)
    else:
        head = [name for name in rows[0] if any(row[name] for row in rows)]
        print_table(head, *([_short(row[name]) for name in head] for row in rows))
        echo(_summary(solutions))
    for lacking in sorted({solution.verdict.lacking for solution in solutions} - {""}):
        echo(f"rules: {lacking}")
    if limited := [one for one in solutions if one.stopped_by == BUDGET]:
        most = max(one.steps for one in limited)
        echo(f"{len(limited)} not settled within {most:,} iterations; try --max-steps {4 * most}")


def save_solutions(
    task: Task, solutions: Sequence[Solution], target: Path, *, net: str, rule: str
) -> None:
    """Write the answers as a picture, an animation or JSON, by the name of the file."""
    from iterant.draw import animation
    from iterant.draw.figure import save_picture
    from iterant.io.files import write_json

    animated = target.suffix.lower() in animation.ANIMATIONS
    if target.suffix.lower() == ".json":
        content = {
            "format": FORMAT,
            "version": VERSION,
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
    words = {True: "yes", False: "no", None: "?"}
    tried = solution.prediction is not None
    since = solution.history[-1][0].step if solution.history else solution.steps
    allowed = f"{solution.allowed_answer} (right: {words[solution.allowed_right]})"
    return {
        "problem": solution.problem.name or f"problem {number}",
        "answer": solution.answer if tried else f"none: {solution.problem.unsolvable}",
        "allowed": allowed if solution.allowed is not None else "",
        "rules": words[solution.verdict.keeps] if solution.verdict.words else "",
        "iterations": f"{solution.steps:,}" if tried else "",
        "unchanged": f"since {since:,}" if tried else "",
        "settled": words[solution.settled] if tried else "",
        "right": words[solution.right] if tried else "",
        "expected": solution.wanted,
        "confidence": percent(solution.sure) if tried else "",
        "time": f"{solution.seconds:.2f} s" if tried else "",
    }


def _short(text: str) -> str:
    return text[: _WIDE - 1] + "…" if len(text) > _WIDE else text or "-"


def _summary(solutions: Sequence[Solution]) -> str:
    tried = [one for one in solutions if one.prediction is not None]
    known = [one for one in tried if one.right is not None]
    ruled = [one.verdict.keeps for one in tried if one.verdict.keeps is not None]
    parts = [f"{len(solutions)} problems", f"{sum(one.settled for one in tried)} settled"]
    if len(tried) < len(solutions):
        parts.append(f"{len(solutions) - len(tried)} without a solution")
    if ruled:
        parts.append(f"{sum(ruled)} of {len(ruled)} answers keep the rules")
    if known:
        right = sum(one.right is True for one in known)
        parts.append(f"{right} right of {len(known)} whose answer is known")
        if known[0].allowed is not None:
            parts.append(f"{sum(one.allowed_right is True for one in known)} right with --legal")
    return ", ".join([*parts, f"{sum(one.seconds for one in tried):.2f} s"])
