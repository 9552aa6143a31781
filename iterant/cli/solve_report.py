"""What ``iterant solve`` prints and writes when the thinking is done.

    >>> report = Report(task, console(), many=False)
    >>> report.add(solution)
    >>> report.save(Path("maze.json"), net="mazes", rule="rest")

The JSON file holds ``format`` ("iterant-solutions"), ``version`` (1), ``task``, ``net``, ``rule``
and ``solutions``, a list in the order of the problems. Each solution has

    problem         what it was called: a file, a line of it, or size and seed
    about           what the task says of it besides: a FEN, a puzzle's id and rating, best moves
    notes           what was seen or assumed in reading it, a list
    unsolvable      why there is no answer, or null
    answer          in words: bits, a move, a way; null where there are none
    prediction      the answer, rows of digits, a class a position (a maze: a digit a pixel)
    truth           the true answer in the same form (the first of several best moves), or null
                    where it is not known
    right           whether the two are the same, or the answer is another of those that its maker
                    calls right; null where that is not known
    settled         whether the state is at rest, or in a cycle that keeps its answer
    stopped_by      why it stopped: "settled", "stable answer", "fixed iterations", "budget" (of
                    --max-steps), "last layer" (of a network of fixed depth)
    iterations      taken; answered_at: the one whose answer it is
    seconds         of thinking alone
    sure            the probability of the least sure position, 0 to 1
    keeps_rules     whether it keeps the task's rules (joins the ends, is legal); null: not known
    verdict         the same in words
    changes         every change of the answer that was kept: iteration, sure, answer in words
    allowed         with --legal: the best answer that the rules allow; allowed_answer: in words;
                    allowed_right: whether it is right, which `right` never counts

What a person sees while a network thinks: one picture that redraws, or plain lines.

The picture is drawn a few times a second, however fast the iterations are, and fits the terminal:
what is larger is made smaller. Where there is no terminal, or none with colours, a line now and
then says how far it is.
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
from iterant.draw.animation import MOVING, check_animation, save_animation
from iterant.draw.figure import check_picture, save_picture
from iterant.draw.iterations import SIDE_BY_SIDE, at_work, lasting, outcome, thinking
from iterant.draw.terminal import TALL, has_colours, squeezed, terminal
from iterant.errors import UsageError
from iterant.formatting import counted, percent
from iterant.io.files import check_writable_file, quoted, write_json
from iterant.solving import Solution
from iterant.solving.film import Film, Frame
from iterant.solving.problems import Spectator
from iterant.solving.solver import BUDGET, LAST_LAYER
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import Task

PICTURES = 8
"""A second."""
PAUSE = 3.0
"""Seconds between two plain lines."""
_AROUND = 4
"""Lines of the terminal that the picture leaves free: title, status, cursor."""
_LOWEST = 6
"""Lines: a picture in fewer shows nothing."""


class Plain:
    """A line now and then; a spectator."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Print there; ``clock`` tells the time in seconds."""
        self.console, self.clock = console, clock
        self.last = clock()

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Say how far it is, if there was a pause."""
        if self.clock() - self.last >= PAUSE:
            self.last = self.clock()
            self.console.print(status(frame, film), soft_wrap=True)


class Moving:
    """One picture that is drawn anew; a spectator."""

    def __init__(
        self,
        task: Task,
        live: Live,
        pace: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Draw there; ``pace``: iterations a second at most; ``clock`` tells the time."""
        self.task, self.live, self.pace, self.clock = task, live, pace, clock
        self.began, self.last = clock(), -1.0

    def __call__(self, problem: Problem, frame: Frame, film: Film) -> None:
        """Draw the answer as it stands, unless it was drawn a moment ago."""
        if self.pace is not None:
            time.sleep(max(0.0, self.began + frame.step / self.pace - self.clock()))
        if self.clock() - self.last < 1 / PICTURES:
            return
        self.live.update(self.drawn(problem, frame, film), refresh=True)
        # Counted from the end of drawing: a slow terminal gets fewer pictures, not all the time.
        self.last = self.clock()

    def drawn(self, problem: Problem, frame: Frame, film: Film) -> Text:
        """The picture and a line below it, in what room there is."""
        console = self.live.console
        room = console.height - _AROUND
        said = Text(status(frame, film), no_wrap=True, overflow="ellipsis")
        if room < _LOWEST:
            return said
        described = replace(at_work(self.task, problem, frame), caption="")
        picture = terminal(described, console, lines=room)
        return Text("\n").join([picture, said])


def status(frame: Frame, film: Film) -> str:
    """How far it is: the iteration, how sure, and how long the answer has stood."""
    changes = film.changes()
    since = changes[-1].step if changes else frame.step
    stood = frame.step - since
    held = f"the answer stands since iteration {since}" if stood else "the answer is changing"
    return f"thinking: iteration {frame.step:,}, {held}"


@contextmanager
def watching(
    task: Task, console: Console, *, wanted: bool, pace: float | None = None
) -> Iterator[Spectator | None]:
    """The spectator that suits the terminal; None where nobody wants to watch."""
    if not wanted:
        yield None
    elif not console.is_terminal or console.is_dumb_terminal or not has_colours(console):
        yield Plain(console)
    else:
        with Live(
            console=console, auto_refresh=False, transient=True, vertical_overflow="crop"
        ) as live:
            yield Moving(task, live, pace)


@contextmanager
def counting(console: Console, total: int, *, wanted: bool) -> Iterator[Callable[[], None]]:
    """Something to call for each of many problems; a terminal shows how many are done."""
    if not (wanted and console.is_terminal):
        yield lambda: None
        return
    columns = (TextColumn("thinking:"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        done = bar.add_task("thinking", total=total)
        yield lambda: bar.advance(done)


FORMAT, VERSION = "iterant-solutions", 1

STILL = (".png", ".svg")
"""Endings of pictures that do not move."""
_SHEET = 64
"""Problems on one picture."""
_TURNS = 12
"""Changes of an answer that are printed: the first and the last ones."""
_BELOW = 9
"""Lines of the terminal for what is said below a picture, the title and the prompt."""
_ALIKE = 3
"""Problems of which a note is said one by one; of more it is said once."""
_WIDE = 60
"""Signs of an answer in a table."""


def check_target(path: Path) -> Path:
    """The path itself if something can be written there: asked before thinking, not after."""
    suffix = path.suffix.lower()
    if suffix in MOVING:
        return check_animation(path)
    if suffix != ".json":
        if suffix not in STILL:
            better = path.with_suffix(".gif") if path.name else Path("thinking.gif")
            raise UsageError(
                "what was thought is written as .png, .svg, .gif, .mp4 or .json, "
                f"got {quoted(path)}; try {quoted(better)}"
            )
        return check_picture(path)
    return check_writable_file(path)


class Report:
    """Solutions as they come in."""

    def __init__(self, task: Task, console: Console, *, many: bool) -> None:
        """Print there: one solution at length, many as a table."""
        self.task, self.console, self.many = task, console, many
        self.solutions: list[Solution] = []
        self.noted: set[str] = set()

    def begin(self, problems: Sequence[Problem]) -> None:
        """Say what was read or assumed, once, before anyone thinks about it."""
        holders: dict[str, list[str]] = {}
        for problem in problems:
            for note in problem.notes:
                holders.setdefault(note, []).append(problem.name)
        for note, whose in holders.items():
            if note in self.noted:
                continue
            self.noted.add(note)
            if len(whose) > _ALIKE:
                self._line(f"{len(whose):,} of {len(problems):,} problems: {note}")
                continue
            for name in whose:
                self._line(f"{name}: {note}" if name else note)

    def add(self, solution: Solution) -> None:
        """Take a solution; one alone is shown when the live picture is gone."""
        self.solutions.append(solution)

    def end(self) -> None:
        """Print everything."""
        self.begin([solution.problem for solution in self.solutions])  # noted while solving
        if not self.many:
            self._one(self.solutions[0])
            return
        self.console.print(self._table())
        for lacking in sorted({solution.verdict.lacking for solution in self.solutions} - {""}):
            self._line(f"rules: {lacking}")
        self._line(self._summary())

    def save(self, target: Path, *, net: str, rule: str) -> None:
        """Write the answers as what the name of the file says."""
        suffix = target.suffix.lower()
        if suffix == ".json":
            head = {"format": FORMAT, "version": VERSION, "task": self.task.spec.name}
            told = [solution.described() for solution in self.solutions]
            write_json(
                target, {**head, "net": net, "rule": rule, "solutions": told}, nan_to_null=True
            )
        else:
            most = SIDE_BY_SIDE if suffix in MOVING else _SHEET
            if len(self.solutions) > most:
                say(f"iterant: {target.name} shows the first {most} of {len(self.solutions)}")
            chosen = self.solutions[:most]
            if suffix in MOVING:
                frames = thinking(self.task, chosen)
                save_animation(frames, target, milliseconds=lasting(len(frames)))
            else:
                save_picture([outcome(self.task, solution) for solution in chosen], target)
        self._line(f"written to {target}")

    def _one(self, solution: Solution) -> None:
        """The picture and the facts of one solution."""
        screen = self.console
        whole = outcome(self.task, solution)
        drawn = replace(whole, caption="")
        # Whole in sight with the facts below it if it can be; never made smaller for its height.
        least = len(squeezed(drawn.cells)) // TALL + 2
        room = max(screen.height - _BELOW, least) if screen.is_terminal else None
        text = terminal(drawn, screen, lines=room)
        screen.print(text, soft_wrap=True)
        screen.print(whole.caption, style="dim", soft_wrap=not screen.is_terminal)
        for name, words in facts(solution):
            line = Text.assemble((f"{name:<10}", "dim"), words)
            screen.print(line, soft_wrap=True)

    def _table(self) -> Table:
        heads = ["problem", "answer", "iterations", "settled", "rules", "wanted", "right", "sure"]
        idle = {
            "rules": not any(solution.verdict.words for solution in self.solutions),
            "wanted": not any(solution.wanted for solution in self.solutions),
        }
        columns = [name for name in heads if not idle.get(name)]
        table = Table(box=None)
        for name in columns:
            table.add_column(name, no_wrap=name not in ("answer", "wanted"), overflow="fold")
        for number, solution in enumerate(self.solutions, start=1):
            cells = {"problem": solution.problem.name or f"problem {number}", **_cells(solution)}
            table.add_row(*(cells.get(name, "-") for name in columns))
        return table

    def _summary(self) -> str:
        done = [solution for solution in self.solutions if solution.prediction is not None]
        judged = [solution for solution in done if solution.right is not None]
        parts = [f"{len(self.solutions)} problems"]
        if len(done) < len(self.solutions):
            parts.append(f"{len(self.solutions) - len(done)} without a solution")
        parts.append(f"{sum(solution.settled for solution in done)} settled")
        if ended := sum(solution.stopped_by == BUDGET for solution in done):
            parts.append(f"{ended} not after all iterations allowed (more: --max-steps)")
        ruled = [solution.verdict.keeps for solution in done if solution.verdict.keeps is not None]
        if ruled:
            parts.append(f"{sum(ruled)} of {len(ruled)} answers keep the rules")
        if judged:
            right = sum(solution.right is True for solution in judged)
            parts.append(f"{right} right of {len(judged)} whose answer is known")
            allowed = [solution for solution in judged if solution.allowed is not None]
            if allowed:
                right = sum(solution.allowed_right is True for solution in allowed)
                parts.append(f"{right} with what the rules allow")
        parts.append(f"{sum(solution.seconds for solution in done):.2f} s of thinking")
        return ", ".join(parts)

    def _line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


def facts(solution: Solution) -> list[tuple[str, str]]:
    """What is to be said of a solution, a name and words each."""
    if solution.prediction is None:
        return [("answer", f"none: {solution.problem.unsolvable}")]
    rows = [("answer", solution.answer)] if solution.answer else []
    if solution.allowed is not None:
        judged = {None: "", True: ": right", False: ": wrong"}[solution.allowed_right]
        best = f"{solution.allowed_answer}, the best that the rules allow{judged}"
        rows[-1:] = [("allowed", best), ("plain", f"{solution.answer}, whatever the rules")]
    if solution.verdict.words and solution.verdict.words not in solution.answer:
        rows.append(("rules", solution.verdict.words))
    rows.append(("settled" if solution.settled else "stopped", _ending(solution)))
    each = 1000 * solution.seconds / max(1, solution.steps)
    rows.append(("thinking", f"{solution.seconds:.2f} s, {each:.3g} ms an iteration"))
    rows.append(("right", _judgement(solution)))
    rows.append(("sure", f"{percent(solution.sure)} at the least sure position"))
    if (turns := history(solution)) and len(solution.history) > 1:
        rows.append(("changes", turns))
    return rows


def _ending(solution: Solution) -> str:
    """When and why thinking stopped."""
    taken = counted(solution.steps, "iteration")
    since = solution.history[-1][0].step if solution.history else solution.steps
    about = "" if solution.film.every == 1 else "about "
    held = f"the answer is the same since {about}iteration {since:,}"
    if since == solution.steps > 1:
        held = "the answer was still changing"
        if solution.settled:  # at rest, so it has stopped; the film saw it change late
            late = "iteration" if solution.film.every == 1 else f"{solution.film.every} iterations"
            held = f"the answer last changed in the last {late}"
    if solution.settled:
        return f"after {taken}; {held}"
    if solution.answered_at < solution.steps:
        return f"after {taken}; the answer is that of {solution.answered_at:,}"
    if solution.stopped_by == LAST_LAYER:
        return f"after {taken}, the last layer of this network; {held}"
    if solution.stopped_by != BUDGET:
        return f"after {taken} by the rule: {solution.stopped_by}; not known to be settled; {held}"
    more = f"allow more iterations with --max-steps {4 * solution.steps}"
    return f"after {taken}, all that were allowed, and not settled; {held}; {more}"


def _judgement(solution: Solution) -> str:
    """Whether it equals the true answer, or is among those that are wanted."""
    if solution.right is None:
        return "not known: there is no true answer to compare with"
    if solution.wanted:
        return f"{'yes' if solution.right else 'no'}, wanted: {solution.wanted}"
    same = solution.right
    return "yes, it equals the true answer" if same else "no, it differs from the true answer"


def history(solution: Solution) -> str:
    """How the answer changed, where the task has short words for it."""
    turns = [
        f"{frame.step}: {words} ({percent(frame.sure)})"
        for frame, words in solution.history
        if words and len(words) <= _WIDE // 2
    ]
    if len(turns) > _TURNS:
        turns = [*turns[: _TURNS // 2], "…", *turns[-_TURNS // 2 :]]
    return ", ".join(turns)


def _cells(solution: Solution) -> dict[str, str]:
    """A solution among many, by the heads of the table; what has no answer has no more."""
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
