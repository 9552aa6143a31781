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

import difflib
import inspect
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.text import Text

from iterant.cli.options import (
    FLAG,
    DataPath,
    DeviceName,
    Patience,
    TaskName,
    Tolerance,
    rule_of,
    task_of,
)
from iterant.cli.screen import console, print_table, progress_bar, warn
from iterant.errors import TaskError, UsageError
from iterant.formatting import counted, percent

if TYPE_CHECKING:
    from rich.live import Live

    from iterant.nets.protocol import Net
    from iterant.solving import Film, Frame, Solution, Viewer
    from iterant.tasks.inputs import Gathered, Problem
    from iterant.tasks.protocol import Task

FORMAT, VERSION = "iterant-solutions", 1
_RULES = ("rest", "stable", "plain", "max-confidence")
_PICTURE_SECONDS, _LINE_SECONDS = 1 / 8, 3.0
_LINES_BESIDE, _LINES_BELOW, _FEWEST_LINES = 4, 9, 6
"""Lines beside the live picture, below the last picture, and that a picture needs"""
_PICTURES = 64
"""Problems in one image file."""
_WIDE = 60
"""Characters of an answer in a table."""


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
        str, Parameter(name=["--halt", "--rule"], help=f"when to stop: {', '.join(_RULES)}")
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
        net: a run folder, weights or a shipped name [default: the one shipped for the task]
        size: of a generated problem [default: as in training]
        seed: of a generated problem [default: 0]
        count: generated problems [default: 1]
        save: write FILE.png, FILE.svg, FILE.gif, FILE.mp4 (with ffmpeg) or FILE.json
        max_steps: most iterations [default: 1000, plus one per cell]
        live: show the iterations while they are computed, on a terminal
        pace: most iterations per second, on a terminal
        legal: also choose the best answer that the rules allow (chess: legal moves)
        pgn: read the problems as games in PGN
    """
    from iterant.solving import solutions

    target = None if save is None else check_target(save)
    rule = rule_of(_RULES, halt, patience, tolerance)
    opened = task_of(task, data)
    inputs = _read(opened, problems, {"size": size, "seed": seed, "count": count}, pgn=pgn)
    loaded = network(opened, net, device)
    screen, total = console(), len(inputs.problems)
    report, solved = Report(opened, screen), []
    with (
        viewer(opened, screen, live=live and total == 1, pace=pace) as view,
        progress_bar("solving", show=live and total > 1) as update,
    ):
        report.print_notes(inputs.problems)
        for solution in solutions(
            loaded, opened, inputs.problems, max_steps=max_steps, rule=rule, restrict=legal,
            viewer=view,
        ):  # fmt: skip
            solved.append(solution)
            update(len(solved), total, f"solved {len(solved)}/{total}")
    report.show(solved)
    if target is not None:
        report.save(solved, target, net=net or opened.spec.name, rule=str(rule or "rest"))
    for name, error in inputs.refused:
        warn(f"iterant: left out {name}: {error}")
    if inputs.refused:
        raise TaskError(
            f"{len(inputs.refused)} of {len(inputs.refused) + total} problems could not be read; "
            "the others are answered above"
        )


def network(task: Task, word: str | None, device: str) -> Net:
    """The network of that name or folder; None: the one that ships for the task."""
    from iterant.zoo.loading import load, shipped

    if word is None and task.spec.name not in shipped():
        raise UsageError(f"no network for {task.spec.name} ships with this version; "
                         "give a run of your own: --net runs/m0")  # fmt: skip
    return load(task.spec.name if word is None else word, device)


def _read(task: Task, words: tuple[str, ...], options: dict[str, Any], *, pgn: bool) -> Gathered:
    """The problems that the words name, or generated ones."""
    from iterant.tasks.inputs import GAMES, Gathered, gather, generated

    # Words may begin with a hyphen, because - is the standard input: check the others here.
    if unknown := [word for word in words if word.startswith("-") and word != "-"]:
        flags = [f"--{name.replace('_', '-')}" for name in inspect.signature(solve).parameters]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], flags, n=1)
        hint = f". Did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown option: {unknown[0]}{hint} (see iterant solve --help)")
    options = {name: value for name, value in options.items() if value is not None}
    if not words:
        if pgn:
            raise UsageError("--pgn says how a file is read; give the file too")
        if "size" in options:
            options["size"] = task.parse_size(options["size"])
        return generated(task, **options)
    if options:
        raise UsageError(
            f"--{next(iter(options))} is for generated problems; give it or a problem, not both"
        )
    kind = GAMES if pgn else None
    parts = [gather(task, word, stdin=sys.stdin.buffer, kind=kind) for word in words]
    return Gathered(
        tuple(problem for part in parts for problem in part.problems),
        tuple(refused for part in parts for refused in part.refused),
    )


class LiveViewer:
    """Shows the iterations: a picture a few times a second, or lines without ``live``."""

    def __init__(
        self,
        task: Task,
        screen: Console,
        live: Live | None = None,
        pace: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``pace``: iterations a second at most; ``clock`` gives the time in seconds."""
        self.task, self.screen, self.live, self.pace, self.clock = task, screen, live, pace, clock
        self.start = clock()
        self.last = self.start if live is None else -math.inf

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Called at each iteration."""
        from iterant.draw.animation import describe_iteration
        from iterant.draw.terminal import terminal

        if self.live is not None and self.pace is not None:
            time.sleep(max(0.0, self.start + frame.step / self.pace - self.clock()))
        if self.clock() - self.last < (_LINE_SECONDS if self.live is None else _PICTURE_SECONDS):
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
        self.last = self.clock()


@contextmanager
def viewer(
    task: Task, screen: Console, *, live: bool, pace: float | None = None
) -> Iterator[Viewer | None]:
    """The viewer that suits the terminal; None without ``live``."""
    from rich.live import Live

    from iterant.draw.terminal import has_colours

    if not live:
        yield None
    elif not screen.is_terminal or screen.is_dumb_terminal or not has_colours(screen):
        yield LiveViewer(task, screen)
    else:
        with Live(
            console=screen, auto_refresh=False, transient=True, vertical_overflow="crop"
        ) as display:
            yield LiveViewer(task, screen, display, pace)


def check_target(path: Path) -> Path:
    """The path, if a file of its kind can be written there."""
    from iterant.draw.animation import ANIMATIONS, check_animation
    from iterant.draw.figure import check_picture
    from iterant.io.files import check_writable_file

    check = {".json": check_writable_file, **dict.fromkeys(ANIMATIONS, check_animation)}
    return check.get(path.suffix.lower(), check_picture)(path)


class Report:
    """Prints and saves solutions."""

    def __init__(self, task: Task, screen: Console) -> None:
        """Of that task, to that console."""
        self.task, self.screen = task, screen
        self.noted: set[str] = set()

    def print_notes(self, problems: Sequence[Problem]) -> None:
        """Print what was recognised or assumed in reading the problems, each note once."""
        names: dict[str, list[str]] = {}
        for problem in problems:
            for note in problem.notes:
                if note not in self.noted:
                    names.setdefault(note, []).append(problem.name)
        for note, named in names.items():
            many = f"{len(named):,} of {len(problems):,} problems"
            where = named[0] if len(named) == 1 else many
            self._print(f"{where}: {note}" if where else note)
        self.noted |= names.keys()

    def show(self, solutions: Sequence[Solution]) -> None:
        """Print one solution with its picture, or a table of many."""
        self.print_notes([solution.problem for solution in solutions])  # noted while solving
        if len(solutions) == 1:
            self._show_one(solutions[0])
            return
        rows = [
            {"problem": solution.problem.name or f"problem {number}", **_cells(solution)}
            for number, solution in enumerate(solutions, start=1)
        ]
        head = ["problem", "answer", "iterations", "settled", "rules", "expected", "right",
                "confidence"]  # fmt: skip
        head = [name for name in head if any(row.get(name) for row in rows)]
        print_table(head, *([row.get(name) or "-" for name in head] for row in rows))
        for lacking in sorted({solution.verdict.lacking for solution in solutions} - {""}):
            self._print(f"rules: {lacking}")
        self._print(_summary(solutions))

    def save(self, solutions: Sequence[Solution], target: Path, *, net: str, rule: str) -> None:
        """Write the answers as a picture, an animation or JSON, by the name of the file."""
        from iterant.draw.animation import (
            ANIMATIONS,
            SIDE_BY_SIDE,
            animation_frames,
            describe_solution,
            save_animation,
        )
        from iterant.draw.figure import save_picture
        from iterant.io.files import write_json

        moving = target.suffix.lower() in ANIMATIONS
        most = SIDE_BY_SIDE if moving else _PICTURES
        if target.suffix.lower() == ".json":
            described = [solution.described() for solution in solutions]
            whole = {"format": FORMAT, "version": VERSION, "task": self.task.spec.name, "net": net,
                     "rule": rule, "solutions": described}  # fmt: skip
            write_json(target, whole, nan_to_null=True)
        else:
            if len(solutions) > most:
                warn(f"iterant: {target.name} shows the first {most} of {len(solutions)}")
            if moving:
                save_animation(animation_frames(self.task, solutions[:most]), target)
            else:
                save_picture([describe_solution(self.task, s) for s in solutions[:most]], target)
        self._print(f"written to {target}")

    def _show_one(self, solution: Solution) -> None:
        from iterant.draw.animation import describe_solution
        from iterant.draw.terminal import TALL, merge_blocks, terminal

        screen, description = self.screen, describe_solution(self.task, solution)
        picture = replace(description, caption="")
        # Leave room for the lines below, but never squeeze the picture for its height.
        least = len(merge_blocks(picture.cells)) // TALL + 2
        lines = max(screen.height - _LINES_BELOW, least) if screen.is_terminal else None
        screen.print(terminal(picture, screen, lines=lines), soft_wrap=True)
        screen.print(description.caption, style="dim", soft_wrap=not screen.is_terminal)
        for name, text in _facts(solution):
            screen.print(Text.assemble((f"{name:<12}", "dim"), text), soft_wrap=True)

    def _print(self, text: str) -> None:
        self.screen.print(text, soft_wrap=True)


def _cells(solution: Solution) -> dict[str, str]:
    """A row of the table, by column; empty columns are left out."""
    if solution.prediction is None:
        return {"answer": f"none: {solution.problem.unsolvable}"}
    answer = solution.answer
    if solution.allowed is not None:
        answer = f"{solution.allowed_answer} (unrestricted: {answer})"
    words = {True: "yes", False: "no", None: "?"}
    return {
        "answer": answer if len(answer) <= _WIDE else f"{answer[: _WIDE - 1]}…",
        "iterations": f"{solution.steps:,}",
        "settled": words[solution.settled],
        "rules": words[solution.verdict.keeps] if solution.verdict.words else "",
        "expected": solution.wanted,
        "right": words[solution.right],
        "confidence": percent(solution.sure),
    }


def _summary(solutions: Sequence[Solution]) -> str:
    tried = [one for one in solutions if one.prediction is not None]
    known = [one for one in tried if one.right is not None]
    ruled = [one.verdict.keeps for one in tried if one.verdict.keeps is not None]
    parts = [f"{len(solutions)} problems"]
    if len(tried) < len(solutions):
        parts.append(f"{len(solutions) - len(tried)} without a solution")
    parts.append(f"{sum(one.settled for one in tried)} settled")
    if ruled:
        parts.append(f"{sum(ruled)} of {len(ruled)} answers keep the rules")
    if known:
        right = sum(one.right is True for one in known)
        parts.append(f"{right} right of {len(known)} whose answer is known")
        if known[0].allowed is not None:
            parts.append(f"{sum(one.allowed_right is True for one in known)} right with --legal")
    return ", ".join([*parts, f"{sum(one.seconds for one in tried):.2f} s"])


def _facts(solution: Solution) -> list[tuple[str, str]]:
    """The lines below the picture of a solution: name and text."""
    from iterant.solving import BUDGET

    if solution.prediction is None:
        return [("answer", f"none: {solution.problem.unsolvable}")]
    verdicts = {True: "yes", False: "no", None: "not known"}
    rows = [("answer", solution.answer)] if solution.answer else []
    if solution.allowed is not None:
        best = f"{solution.allowed_answer}, the best that the rules allow"
        rows += [("allowed", f"{best}; right: {verdicts[solution.allowed_right]}")]
    if solution.verdict.words and solution.verdict.words not in solution.answer:
        rows.append(("rules", solution.verdict.words))
    ending = f"after {counted(solution.steps, 'iteration')}"
    if not solution.settled:
        ending += f" by {solution.stopped_by}"
    if solution.history:
        about = "about " if solution.film.every > 1 else ""
        last = solution.history[-1][0].step
        ending += f"; answer unchanged since {about}iteration {last:,}"
    if solution.stopped_by == BUDGET:
        ending += f"; to continue: --max-steps {4 * solution.steps}"
    rows.append(("settled" if solution.settled else "not settled", ending))
    each = 1000 * solution.seconds / max(1, solution.steps)
    rows.append(("time", f"{solution.seconds:.2f} s, {each:.3g} ms per iteration"))
    expected = f", expected: {solution.wanted}" if solution.wanted else ""
    rows.append(("right", f"{verdicts[solution.right]}{expected}"))
    rows.append(("confidence", f"{percent(solution.sure)} at the least certain position"))
    return rows
