"""``iterant solve``: let a network solve a problem, and watch it.

iterant solve mazes --size 59 --seed 3 --save maze.gif
iterant solve mazes photo.png
iterant solve prefix-sums 1011001
echo 1011001 | iterant solve prefix-sums -
iterant solve chess "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1" --legal
iterant solve chess games.pgn --save answers.json
iterant solve chess suite.epd
"""

from __future__ import annotations

import difflib
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from iterant.cli.options import (
    FLAG,
    DataPath,
    DeviceName,
    Patience,
    TaskName,
    Tolerance,
    console,
    rule_of,
    task_of,
)
from iterant.errors import TaskError, UsageError

if TYPE_CHECKING:
    from iterant.nets.protocol import Net
    from iterant.tasks.inputs import Gathered
    from iterant.tasks.protocol import Task

_RULES = ("rest", "stable", "plain", "max-confidence")


def solve(
    task: TaskName,
    /,
    *problems: Annotated[str, Parameter(allow_leading_hyphen=True)],
    net: str | None = None,
    size: str | None = None,
    seed: int | None = None,
    count: int | None = None,
    save: Path | None = None,
    max_steps: int | None = None,
    halt: Annotated[
        str, Parameter(name=["--halt", "--rule"], help=f"when to stop: {', '.join(_RULES)}")
    ] = "rest",
    patience: Patience = None,
    tolerance: Tolerance = None,
    live: bool = True,
    pace: float | None = None,
    legal: Annotated[bool, FLAG] = False,
    pgn: Annotated[bool, FLAG] = False,
    device: DeviceName = "cpu",
    data: DataPath = None,
) -> None:
    """Let a network think about problems and say what it found.

    Args:
        problems: a problem as text, a file, a folder, or - for standard input: bits, a maze drawn
            with # and spaces or in a picture, a FEN or an EPD, games in PGN; none: one is generated
        net: a run folder, weights or a shipped name [default: the task's own]
        size: how hard a generated problem is
        seed: of a generated problem [default: 0]
        count: generated problems [default: 1]
        save: write FILE.png, FILE.svg, FILE.gif, FILE.mp4 (with ffmpeg) or FILE.json
        max_steps: iterations at most [default: 1000 and one for each square]
        live: show the thinking while it goes on, where there is a terminal
        pace: iterations a second at most, for the eye to follow on a terminal
        legal: also choose the best answer that the rules allow (chess: legal moves)
        pgn: read the problems as games in PGN
    """
    from iterant.cli.errors import one_line, say
    from iterant.cli.solve_report import Report, check_target, progress_bar, viewer
    from iterant.solving import solutions

    target = None if save is None else check_target(save)
    rule = rule_of(_RULES, halt, patience, tolerance)
    if max_steps is not None and max_steps < 1:
        raise UsageError(f"--max-steps must be 1 or more, got {max_steps}")
    if pace is not None and not pace > 0:
        raise UsageError(f"--pace must be above 0, got {pace}")
    opened = task_of(task, data)
    inputs = _read(opened, problems, {"size": size, "seed": seed, "count": count}, pgn=pgn)
    thinker = network(opened, net, device)
    screen, alone = console(), len(inputs.problems) == 1
    report, solved = Report(opened, screen), []
    with (
        viewer(opened, screen, live=live and alone, pace=pace) as view,
        progress_bar(screen, len(inputs.problems), live=live and not alone) as advance,
    ):
        report.print_notes(inputs.problems)
        for solution in solutions(
            thinker, opened, inputs.problems, max_steps=max_steps, rule=rule, restrict=legal,
            viewer=view,
        ):  # fmt: skip
            solved.append(solution)
            advance()
    report.show(solved)
    if target is not None:
        report.save(solved, target, net=net or opened.spec.name, rule=str(rule or "rest"))
    if inputs.refused:
        for name, error in inputs.refused:
            say(f"iterant: left out {name}: {one_line(str(error))}")
        raise TaskError(
            f"{len(inputs.refused)} of {len(inputs.refused) + len(inputs.problems)} problems could "
            "not be read; the others are answered above"
        )


def network(task: Task, word: str | None, device: str) -> Net:
    """The network of that name or folder; None: the one that ships for the task."""
    from iterant.zoo.loading import load, shipped

    if word is None and task.spec.name not in shipped():
        raise UsageError(
            f"no network for {task.spec.name} ships with this version; "
            "give one of your own: --net runs/m0"
        )
    return load(task.spec.name if word is None else word, device)


def _read(task: Task, words: tuple[str, ...], options: dict[str, Any], *, pgn: bool) -> Gathered:
    """The problems that the words name, or generated ones."""
    from iterant.tasks.inputs import GAMES, Gathered, gather, generated

    # Words may begin with a hyphen, because - is the standard input: check the others here.
    if unknown := [word for word in words if word.startswith("-") and word != "-"]:
        flags = [
            f"--{one.name.replace('_', '-')}"
            for one in inspect.signature(solve).parameters.values()
            if one.kind is one.KEYWORD_ONLY
        ]
        flags += ["--no-live", "--rule", "--help"]
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
    parts = [gather(task, word, stdin=sys.stdin.buffer, kind=GAMES if pgn else None)
             for word in words]  # fmt: skip
    return Gathered(
        tuple(problem for part in parts for problem in part.problems),
        tuple(refused for part in parts for refused in part.refused),
    )
