"""``iterant solve``: let a network think about a problem, and watch it.

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

from iterant.cli.options import DataPath, DeviceName, TaskName, console, rule_of, task_of
from iterant.errors import TaskError, UsageError

if TYPE_CHECKING:
    from iterant.nets.protocol import Net
    from iterant.tasks.inputs import Gathered
    from iterant.tasks.protocol import Task

_WORDS = ("rest", "stable", "plain", "max-confidence")


def solve(
    task: TaskName,
    /,
    *problems: Annotated[
        str,
        Parameter(
            help="a problem as text, a file, a folder, or - for standard input: bits, a maze drawn "
            "with # and spaces or in a picture, a FEN or an EPD, games in PGN; none: one is "
            "generated",
            allow_leading_hyphen=True,
        ),
    ],
    net: Annotated[
        str | None,
        Parameter(help="a run folder, weights or a shipped name [default: the task's own]"),
    ] = None,
    size: Annotated[str | None, Parameter(help="how hard a generated problem is")] = None,
    seed: Annotated[int | None, Parameter(help="of a generated problem [default: 0]")] = None,
    count: Annotated[int | None, Parameter(help="generated problems [default: 1]")] = None,
    save: Annotated[
        Path | None,
        Parameter(help="write FILE.png, FILE.svg, FILE.gif, FILE.mp4 (with ffmpeg) or FILE.json"),
    ] = None,
    max_steps: Annotated[
        int | None,
        Parameter(help="iterations at most [default: 1000 and one for each square]"),
    ] = None,
    halt: Annotated[
        str, Parameter(name=["--halt", "--rule"], help=f"when to stop: {', '.join(_WORDS)}")
    ] = "rest",
    patience: Annotated[
        int | None,
        Parameter(help="iterations that an answer must stay the same, for stable [default: 30]"),
    ] = None,
    tolerance: Annotated[
        float | None,
        Parameter(
            help="how far features may move in 16 iterations, as a share of the largest, for rest "
            "[default: 1e-4]"
        ),
    ] = None,
    live: Annotated[
        bool, Parameter(help="show the thinking while it goes on, where there is a terminal")
    ] = True,
    pace: Annotated[
        float | None,
        Parameter(help="iterations a second at most, for the eye to follow on a terminal"),
    ] = None,
    legal: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="also choose the best answer that the rules allow (chess: legal moves)",
        ),
    ] = False,
    pgn: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="read the problems as games in PGN"),
    ] = False,
    device: DeviceName = "cpu",
    data: DataPath = None,
) -> None:
    """Let a network think about problems and say what it found."""
    from iterant.cli.solve_report import Report, check_target, counting, watching
    from iterant.solving import solutions

    target = None if save is None else check_target(save)
    rule = rule_of(_WORDS, halt, patience, tolerance)
    if max_steps is not None and max_steps < 1:
        raise UsageError(f"--max-steps must be 1 or more, got {max_steps}")
    if pace is not None and not pace > 0:
        raise UsageError(f"--pace must be above 0, got {pace}")
    made = task_of(task, data)
    asked = {"size": size, "seed": seed, "count": count}
    found = _found(
        made, problems, {name: value for name, value in asked.items() if value is not None}, pgn=pgn
    )
    thinker = network(made, net, device)
    screen = console()
    report = Report(made, screen, many=len(found.problems) > 1)
    alone = live and len(found.problems) == 1
    with (
        watching(made, screen, wanted=alone, pace=pace) as spectator,
        counting(screen, len(found.problems), wanted=live and not alone) as one_more,
    ):
        report.begin(found.problems)
        for solution in solutions(
            thinker, made, found.problems, max_steps=max_steps, rule=rule, restrict=legal,
            spectator=spectator,
        ):  # fmt: skip
            report.add(solution)
            one_more()
    report.end()
    if target is not None:
        report.save(target, net=net or made.spec.name, rule=str(rule or "rest"))
    if found.refused:
        from iterant.cli.errors import one_line, say

        for name, error in found.refused:
            say(f"iterant: left out {name}: {one_line(str(error))}")
        raise TaskError(
            f"{len(found.refused)} of {len(found.refused) + len(found.problems)} problems could "
            "not be read; the others are answered above"
        )


def network(task: Task, word: str | None, device: str) -> Net:
    """The network that is asked for, or the one that ships for the task."""
    from iterant.zoo.loading import load, shipped

    if word is None and task.spec.name not in shipped():
        raise UsageError(
            f"no network for {task.spec.name} ships with this version; "
            "give one of your own: --net runs/m0"
        )
    return load(task.spec.name if word is None else word, device)


def _options() -> list[str]:
    """What may be written with two hyphens."""
    names_of = inspect.signature(solve).parameters.values()
    flags = [one.name for one in names_of if one.kind is inspect.Parameter.KEYWORD_ONLY]
    return [f"--{flag.replace('_', '-')}" for flag in [*flags, "no-live", "rule", "help"]]


def _found(task: Task, words: tuple[str, ...], asked: dict[str, Any], *, pgn: bool) -> Gathered:
    """The problems that are given, or some of the task's own making."""
    from iterant.tasks.inputs import GAMES, Gathered, gather, generated

    # A lone - is a problem's place, so words that begin with one come this far.
    if strange := [word for word in words if word.startswith("-") and word != "-"]:
        near = difflib.get_close_matches(strange[0].partition("=")[0], _options(), n=1)
        hint = f". Did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown option: {strange[0]}{hint} (see iterant solve --help)")
    if not words:
        if pgn:
            raise UsageError("--pgn says how a file is read; give the file too")
        if "size" in asked:
            asked = {**asked, "size": task.parse_size(asked["size"])}
        return generated(task, **asked)
    if asked:
        raise UsageError(
            f"--{next(iter(asked))} is for generated problems; give it or a problem, not both"
        )
    kind = GAMES if pgn else None
    parts = [gather(task, word, stdin=sys.stdin.buffer, kind=kind) for word in words]
    return Gathered(
        tuple(problem for part in parts for problem in part.problems),
        tuple(refused for part in parts for refused in part.refused),
    )
