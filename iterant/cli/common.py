"""What the commands share: types of flags, tasks and rules by name, and how they print."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import App, ArgumentCollection, Parameter
from rich.console import Console

from iterant import registry
from iterant.errors import UsageError

if TYPE_CHECKING:
    from iterant.halting import Rule
    from iterant.tasks.protocol import Task


def _check_device(_: object, word: str) -> None:
    """Check the word now; whether that GPU exists is checked when it is used."""
    if word != "auto":
        registry.device(word, present=False)


SEVERAL = Parameter(consume_multiple=1, negative="")
"""A list: ``--size 13 59``."""
FLAG = Parameter(negative="", show_default=False)
"""A switch without ``--no-…``."""
TASKS = f"{', '.join(registry.known('task'))}, or module:Class of your own"
RULES = ("rest", "stable", "plain", "max-confidence")
TaskName = Annotated[str, Parameter(help=TASKS)]
DeviceName = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0", validator=_check_device)]
DataPath = Annotated[
    Path | None, Parameter(help="folder of problem files, used instead of the task's own problems")
]
Sizes = Annotated[
    list[str] | None,
    SEVERAL,
    Parameter(
        help="difficulty, one or several: number of bits, side of a maze, FIRST:STOP of puzzles by "
        "rating [default: the training size]"
    ),
]
Patience = Annotated[
    int | None,
    Parameter(help="of stable: iterations for which the answer must not change [default: 30]"),
]
Tolerance = Annotated[
    float | None,
    Parameter(
        help="of rest: change of a feature over 16 iterations, relative to the largest feature "
        "[default: 1e-4]"
    ),
]


def task_of(word: str, data: Path | None = None) -> Task:
    """The task of that name, with problems from the user's files if there are any."""
    if word and Path(word).is_dir() and ":" not in word and word not in registry.known("task"):
        raise UsageError(
            f"{word!r} is a folder, and the task comes first: {TASKS}; "
            f"a run is given as --net {word} or --resume {word}"
        )
    return registry.task(word) if data is None else registry.task(word, data=data)


def rule_of(
    word: str, patience: int | None, tolerance: float | None, *, default: str
) -> Rule | None:
    """The halting rule of that name; None for the command's default rule without options.

    >>> rule_of("stable", 5, None, default="rest")
    StableAnswer(patience=5)
    """
    from iterant import halting

    word = "rest" if word == "settled" else word  # its name before version 0.2
    if word not in RULES:
        raise UsageError(registry.unknown_name("rule", word, RULES))
    flags = {"patience": patience, "tolerance": tolerance}
    options: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    if word == default and not options:
        return None
    rules: dict[str, Callable[..., Rule]] = {
        "rest": halting.Resting,
        "stable": halting.StableAnswer,
        "plain": halting.Fixed,
        "max-confidence": halting.MostConfident,
    }
    try:
        return rules[word](**options)
    except TypeError:
        names = " or ".join(f"--{name}" for name in options)
        raise UsageError(f"the rule {word} takes no {names}; leave it out") from None


def refuse_fractions(_: App, __: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse ``--seed 1.5``, which cyclopts would round; a configuration of an `App`."""

    def types(hint: Any) -> set[Any]:
        inner = get_args(hint)
        return set().union(*map(types, inner)) if inner else {hint}

    for argument in arguments:
        if int in (accepted := types(argument.hint)) and not accepted & {float, str}:
            for token in argument.tokens:
                if "." in token.value:
                    name = token.keyword or argument.name
                    raise UsageError(f"{name} takes a whole number, got {token.value}; round it")


def console() -> Console:
    """A console on the current standard output; a pipe gets wide lines and no colours.

    Of several processes of torchrun, the one of rank 0 prints.
    """
    return Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else 200,
        quiet=os.environ.get("RANK", "0") != "0",
        highlight=False,
        markup=False,
        emoji=False,
    )


def echo(text: str = "", style: str | None = None) -> None:
    """Print one line without wrapping it."""
    console().print(text, style=style, soft_wrap=True)


def warn(text: str) -> None:
    """Write one line to the error stream; a closed stream is ignored."""
    # Flush the output first, so that the two streams appear in order.
    for stream, line in ((sys.stdout, ""), (sys.stderr, f"{' '.join(text.split())}\n")):
        with contextlib.suppress(OSError):
            stream.write(line)
            stream.flush()


def print_table(head: Sequence[str] | None, *rows: Sequence[str], right: bool = False) -> None:
    """Print a table without lines; ``right``: all columns but the first are aligned right."""
    from rich.table import Table

    table = Table(box=None, show_header=head is not None, padding=(0, 1) if head else (0, 2, 0, 0))
    for index, name in enumerate(head or [""] * len(rows[0])):
        table.add_column(name, justify="right" if right and index else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


@contextlib.contextmanager
def progress_bar(label: str, *, show: bool = True) -> Iterator[Callable[..., None]]:
    """A bar on a terminal, nothing elsewhere; yields ``update(done, total, label)``."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    screen = console()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    hidden = not (show and screen.is_terminal)
    with Progress(*columns, console=screen, transient=True, disable=hidden) as bar:
        task_id = bar.add_task(label, total=None)
        yield lambda done, total, label=label: bar.update(
            task_id, completed=done, total=total, description=label
        )
