"""What ``iterant solve`` shows while a network works, prints at the end, and saves.

    >>> report = Report(task, console())
    >>> report.show(solutions)
    >>> report.save(solutions, Path("maze.json"), net="mazes", rule="rest")

On a terminal with colours one picture is redrawn a few times a second; elsewhere a line says now
and then which iteration it is.

The JSON file holds ``format`` ("iterant-solutions"), ``version`` (1), ``task``, ``net``, ``rule``
and ``solutions``, a list in the order of the problems. Each solution has

    problem         its name: a file, a line of it, or size and seed
    about           what the task knows besides: a FEN, a puzzle's id and rating, best moves
    notes           what was seen or assumed in reading it, a list
    unsolvable      why there is no answer, or null
    answer          as text: bits, a move, a path; null where there is none
    prediction      rows of digits, a class per position (a maze: a digit per pixel)
    truth           the true answer in the same form (the first of several best moves), or null
                    where it is not known
    right           whether the two are equal, or the answer is another that counts as right; null
                    where that is not known
    settled         whether the state is at rest, or in a cycle that keeps its answer
    stopped_by      why it stopped: "settled", "stable answer", "fixed iterations", "budget" (of
                    --max-steps), "last layer" (of a network of fixed depth)
    iterations      taken; answered_at: the one whose answer it is
    seconds         of computing alone
    sure            the probability of the least confident position, 0 to 1
    keeps_rules     whether it keeps the task's rules (joins the ends, is legal); null: not known
    verdict         the same as text
    changes         every recorded change of the answer: iteration, sure, answer
    allowed         with --legal: the best answer that the rules allow; allowed_answer: as text;
                    allowed_right: whether it is right, which `right` never counts
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from iterant.cli.errors import say
from iterant.draw.animation import (
    ANIMATIONS,
    SIDE_BY_SIDE,
    animation_frames,
    check_animation,
    describe_iteration,
    describe_solution,
    save_animation,
)
from iterant.draw.figure import check_picture, save_picture
from iterant.draw.terminal import TALL, has_colours, merge_blocks, terminal
from iterant.errors import UsageError
from iterant.formatting import counted, percent
from iterant.io.files import check_writable_file, quoted, write_json
from iterant.solving import Solution
from iterant.solving.film import Film, Frame
from iterant.solving.problems import Viewer
from iterant.solving.solver import BUDGET, LAST_LAYER
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import Task

FORMAT, VERSION = "iterant-solutions", 1
_STILL = (".png", ".svg")
_PER_SECOND = 8
_PAUSE = 3.0
"""Seconds between two plain lines."""
_AROUND, _BELOW = 4, 9
"""Lines of the terminal beside the live picture, and beside the last one with its facts."""
_LOWEST = 6
"""Lines that a picture needs at least."""
_PICTURES = 64
"""Problems in one image file."""
_CHANGES = 12
"""Changes of an answer that are printed: the first and the last ones."""
_REPEATED = 3
"""A note that more problems share is printed once."""
_WIDE = 60
"""Characters of an answer in a table."""


class LineViewer:
    """Prints a line every few seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Print to that console; ``clock`` gives the time in seconds."""
        self.console, self.clock = console, clock
        self.last = clock()

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Called at each iteration."""
        if self.clock() - self.last >= _PAUSE:
            self.last = self.clock()
            self.console.print(status(frame, film), soft_wrap=True)


class PictureViewer:
    """Redraws one picture a few times a second."""

    def __init__(
        self,
        task: Task,
        live: Live,
        pace: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Draw there; ``pace``: iterations a second at most; ``clock`` gives the time."""
        self.task, self.live, self.pace, self.clock = task, live, pace, clock
        self.start, self.last = clock(), -1.0

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Called at each iteration."""
        if self.pace is not None:
            time.sleep(max(0.0, self.start + frame.step / self.pace - self.clock()))
        if self.clock() - self.last < 1 / _PER_SECOND:
            return
        console = self.live.console
        lines = console.height - _AROUND
        text = Text(status(frame, film), no_wrap=True, overflow="ellipsis")
        if lines >= _LOWEST:
            description = replace(describe_iteration(self.task, problem, frame), caption="")
            text = Text("\n").join([terminal(description, console, lines=lines), text])
        self.live.update(text, refresh=True)
        # From the end of drawing: a slow terminal gets fewer pictures and does not slow us down.
        self.last = self.clock()


def status(frame: Frame, film: Film) -> str:
    """The iteration, and since when the answer is the same."""
    changes = film.changes()
    since = changes[-1].step if changes else frame.step
    same = f"the answer stands since iteration {since}"
    text = same if frame.step > since else "the answer is changing"
    return f"thinking: iteration {frame.step:,}, {text}"


@contextmanager
def viewer(
    task: Task, console: Console, *, live: bool, pace: float | None = None
) -> Iterator[Viewer | None]:
    """The viewer that suits the terminal; None without ``live``."""
    if not live:
        yield None
    elif not console.is_terminal or console.is_dumb_terminal or not has_colours(console):
        yield LineViewer(console)
    else:
        with Live(
            console=console, auto_refresh=False, transient=True, vertical_overflow="crop"
        ) as display:
            yield PictureViewer(task, display, pace)


@contextmanager
def progress_bar(console: Console, total: int, *, live: bool) -> Iterator[Callable[[], None]]:
    """A function to call after each of many problems; a terminal shows how many are done."""
    columns = (TextColumn("thinking:"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
    show = live and console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not show) as bar:
        turn = bar.add_task("thinking", total=total)
        yield lambda: bar.advance(turn)


def check_target(path: Path) -> Path:
    """The path, if a file of its kind can be written there."""
    suffix = path.suffix.lower()
    if suffix in ANIMATIONS:
        return check_animation(path)
    if suffix in _STILL:
        return check_picture(path)
    if suffix == ".json":
        return check_writable_file(path)
    better = path.with_suffix(".gif") if path.name else Path("thinking.gif")
    raise UsageError(
        "what was thought is written as .png, .svg, .gif, .mp4 or .json, "
        f"got {quoted(path)}; try {quoted(better)}"
    )


class Report:
    """Prints and saves solutions."""

    def __init__(self, task: Task, console: Console) -> None:
        """Of that task, to that console."""
        self.task, self.console = task, console
        self.noted: set[str] = set()

    def print_notes(self, problems: Sequence[Problem]) -> None:
        """Print what was seen or assumed in reading the problems, each note once."""
        names: dict[str, list[str]] = {}
        for problem in problems:
            for note in problem.notes:
                names.setdefault(note, []).append(problem.name)
        for note in names:
            if note in self.noted:
                continue
            if len(names[note]) > _REPEATED:
                self._print(f"{len(names[note]):,} of {len(problems):,} problems: {note}")
            else:
                for name in names[note]:
                    self._print(f"{name}: {note}" if name else note)
        self.noted |= names.keys()

    def show(self, solutions: Sequence[Solution]) -> None:
        """Print one solution with its picture, or a table of many."""
        self.print_notes([solution.problem for solution in solutions])  # noted while solving
        if len(solutions) == 1:
            self._show_one(solutions[0])
            return
        self.console.print(_table(solutions))
        for lacking in sorted({solution.verdict.lacking for solution in solutions} - {""}):
            self._print(f"rules: {lacking}")
        self._print(_summary(solutions))

    def save(self, solutions: Sequence[Solution], target: Path, *, net: str, rule: str) -> None:
        """Write the answers as a picture, an animation or JSON, by the name of the file."""
        suffix = target.suffix.lower()
        if suffix == ".json":
            described = [solution.described() for solution in solutions]
            whole = {"format": FORMAT, "version": VERSION, "task": self.task.spec.name, "net": net,
                     "rule": rule, "solutions": described}  # fmt: skip
            write_json(target, whole, nan_to_null=True)
        else:
            most = SIDE_BY_SIDE if suffix in ANIMATIONS else _PICTURES
            if len(solutions) > most:
                say(f"iterant: {target.name} shows the first {most} of {len(solutions)}")
            if suffix in ANIMATIONS:
                save_animation(animation_frames(self.task, solutions[:most]), target)
            else:
                save_picture(
                    [describe_solution(self.task, one) for one in solutions[:most]], target
                )
        self._print(f"written to {target}")

    def _show_one(self, solution: Solution) -> None:
        screen = self.console
        description = describe_solution(self.task, solution)
        picture = replace(description, caption="")
        # Leave room for the facts below, but never squeeze the picture for its height.
        least = len(merge_blocks(picture.cells)) // TALL + 2
        lines = max(screen.height - _BELOW, least) if screen.is_terminal else None
        screen.print(terminal(picture, screen, lines=lines), soft_wrap=True)
        screen.print(description.caption, style="dim", soft_wrap=not screen.is_terminal)
        for name, text in facts(solution):
            screen.print(Text.assemble((f"{name:<10}", "dim"), text), soft_wrap=True)

    def _print(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


def _table(solutions: Sequence[Solution]) -> Table:
    names = ["problem", "answer", "iterations", "settled", "rules", "wanted", "right", "sure"]
    if not any(solution.verdict.words for solution in solutions):
        names.remove("rules")
    if not any(solution.wanted for solution in solutions):
        names.remove("wanted")
    table = Table(box=None)
    for name in names:
        table.add_column(name, no_wrap=name not in ("answer", "wanted"), overflow="fold")
    for number, solution in enumerate(solutions, start=1):
        cells = {"problem": solution.problem.name or f"problem {number}", **_cells(solution)}
        table.add_row(*(cells.get(name, "-") for name in names))
    return table


def _cells(solution: Solution) -> dict[str, str]:
    """A row of the table, by column."""
    if solution.prediction is None:
        return {"answer": f"none: {solution.problem.unsolvable}"}
    answer = solution.answer
    if solution.allowed is not None:
        answer = f"{solution.allowed_answer} (plain: {answer})"
    words = {True: "yes", False: "no", None: "?"}
    return {
        "answer": answer if len(answer) <= _WIDE else f"{answer[: _WIDE - 1]}…",
        "iterations": f"{solution.steps:,}",
        "settled": words[solution.settled],
        "rules": words[solution.verdict.keeps],
        "wanted": solution.wanted or "?",
        "right": words[solution.right],
        "sure": percent(solution.sure),
    }


def _summary(solutions: Sequence[Solution]) -> str:
    tried = [one for one in solutions if one.prediction is not None]
    known = [one for one in tried if one.right is not None]
    ruled = [one.verdict.keeps for one in tried if one.verdict.keeps is not None]
    allowed = [one for one in known if one.allowed is not None]
    parts = [f"{len(solutions)} problems"]
    if len(tried) < len(solutions):
        parts.append(f"{len(solutions) - len(tried)} without a solution")
    parts.append(f"{sum(one.settled for one in tried)} settled")
    if ended := sum(one.stopped_by == BUDGET for one in tried):
        parts.append(f"{ended} not after all iterations allowed (more: --max-steps)")
    if ruled:
        parts.append(f"{sum(ruled)} of {len(ruled)} answers keep the rules")
    if known:
        right = sum(one.right is True for one in known)
        parts.append(f"{right} right of {len(known)} whose answer is known")
    if allowed:
        right = sum(one.allowed_right is True for one in allowed)
        parts.append(f"{right} with what the rules allow")
    parts.append(f"{sum(one.seconds for one in tried):.2f} s of thinking")
    return ", ".join(parts)


def facts(solution: Solution) -> list[tuple[str, str]]:
    """The lines below the picture of a solution: name and text."""
    if solution.prediction is None:
        return [("answer", f"none: {solution.problem.unsolvable}")]
    rows = [("answer", solution.answer)] if solution.answer else []
    if solution.allowed is not None:
        verdict = {None: "", True: ": right", False: ": wrong"}[solution.allowed_right]
        best = f"{solution.allowed_answer}, the best that the rules allow{verdict}"
        rows[-1:] = [("allowed", best), ("plain", f"{solution.answer}, whatever the rules")]
    if solution.verdict.words and solution.verdict.words not in solution.answer:
        rows.append(("rules", solution.verdict.words))
    rows.append(("settled" if solution.settled else "stopped", _ending(solution)))
    each = 1000 * solution.seconds / max(1, solution.steps)
    rows.append(("thinking", f"{solution.seconds:.2f} s, {each:.3g} ms an iteration"))
    if solution.right is None:
        right = "not known: there is no true answer to compare with"
    elif solution.wanted:
        right = f"{'yes' if solution.right else 'no'}, wanted: {solution.wanted}"
    else:
        right = "yes, it equals the true answer" if solution.right else (
            "no, it differs from the true answer")  # fmt: skip
    rows.append(("right", right))
    rows.append(("sure", f"{percent(solution.sure)} at the least sure position"))
    changes = [
        f"{frame.step}: {text} ({percent(frame.sure)})"
        for frame, text in solution.history
        if text and len(text) <= _WIDE // 2
    ]
    if len(changes) > _CHANGES:
        changes = [*changes[: _CHANGES // 2], "…", *changes[-_CHANGES // 2 :]]
    if changes and len(solution.history) > 1:
        rows.append(("changes", ", ".join(changes)))
    return rows


def _ending(solution: Solution) -> str:
    """When and why the network stopped."""
    after, every = f"after {counted(solution.steps, 'iteration')}", solution.film.every
    since = solution.history[-1][0].step if solution.history else solution.steps
    text = f"the answer is the same since {'' if every == 1 else 'about '}iteration {since:,}"
    if since == solution.steps > 1:
        text = "the answer was still changing"
        if solution.settled:  # the film has gaps: the answer changed within the last one
            late = "iteration" if every == 1 else f"{every} iterations"
            text = f"the answer last changed in the last {late}"
    if solution.settled:
        return f"{after}; {text}"
    if solution.answered_at < solution.steps:
        return f"{after}; the answer is that of {solution.answered_at:,}"
    if solution.stopped_by == LAST_LAYER:
        return f"{after}, the last layer of this network; {text}"
    if solution.stopped_by != BUDGET:
        return f"{after} by the rule: {solution.stopped_by}; not known to be settled; {text}"
    more = f"allow more iterations with --max-steps {4 * solution.steps}"
    return f"{after}, all that were allowed, and not settled; {text}; {more}"
