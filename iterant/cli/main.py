"""The command ``iterant``: its commands, and how it fails and exits.

Errors are one line with a remedy; only bugs and errors in the user's own code show a traceback.

code  0    done
      1    a failure of the machine or of a run, an unexpected error
      2    wrong input
      130  interrupted
      141  the reader of the output closed it

Commands that train go on if their output fails; the code is then that of the work.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, get_args

from cyclopts import (
    App,
    ArgumentCollection,
    CycloptsError,
    Group,
    UnknownOptionError,
    UnusedCliTokensError,
)

from iterant.cli.analyze import analyze
from iterant.cli.bench import bench
from iterant.cli.evaluate import evaluate
from iterant.cli.export import demo, export, import_
from iterant.cli.info import info, runs
from iterant.cli.output import discard_output
from iterant.cli.reproduce import reproduce
from iterant.cli.solve import data, sample, solve
from iterant.cli.sweep import sweep
from iterant.cli.train import train
from iterant.errors import IterantError, UsageError, naming_flags
from iterant.formatting import printable
from iterant.progress import warn
from iterant.registry import nearest


def refuse_fractions(_: App, __: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse ``--epochs 1.5``, which cyclopts would round; a configuration of an `App`."""

    def types(hint: Any) -> set[Any]:
        return {hint}.union(*map(types, get_args(hint)))

    for argument in arguments:
        if int in (accepted := types(argument.hint)) and not accepted & {float, str}:
            for token in argument.tokens:
                if "." in token.value:
                    name = token.keyword or argument.name
                    raise UsageError(f"{name} takes a whole number, got {token.value}; round it")


def format_help(console: Any, options: Any, panel: Any) -> None:
    """Print a panel of ``--help``; the lines of a docstring are joined."""
    from cyclopts.help import DefaultFormatter

    for entry in panel.entries:
        text = getattr(entry.description, "primary_renderable", None)
        if text is not None:
            text.plain = " ".join(text.plain.split())
    DefaultFormatter()(console, options, panel)


app = App(
    name="iterant",
    help="Small recurrent networks learn an algorithm on easy problems and solve much harder "
    "ones by running more iterations.",
    usage="""Usage: iterant COMMAND

  iterant solve mazes --size 59      watch a network solve a maze
  iterant train prefix-sums          train a network in a minute or so
  iterant COMMAND --help             examples, and every option""",
    help_format="plaintext",
    help_formatter=format_help,
    config=refuse_fractions,
    # `exit_code` prints cyclopts' errors like all others.
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
_COMMANDS: dict[str, list[tuple[Callable[..., None] | App, str, str]]] = {
    # The task comes before the options: --size takes every word that follows it.
    "Solve problems": [
        (solve, "solve", "TASK [PROBLEM…] [OPTIONS]"),
        (sample, "sample", "TASK [OPTIONS]"),
        (demo, "demo", "[OPTIONS]"),
    ],
    "Train and study networks": [
        (train, "train", "TASK [OPTIONS]"),
        (evaluate, "evaluate", "RUN… [OPTIONS]"),
        (analyze, "analyze", "RUN… [OPTIONS]"),
        (runs, "runs", "[FOLDER]"),
        (export, "export", "RUN --to onnx|hub [OPTIONS]"),
    ],
    "The paper": [
        (reproduce, "reproduce", "NAME [OPTIONS]"),
        (import_, "import", "FILE --task TASK --out DIR"),
    ],
    "More": [
        (sweep, "sweep", "FILE.toml [OPTIONS], or: iterant sweep status|stop|one DIR"),
        (bench, "bench", "COMMAND"),
        (data, "data", "COMMAND"),
        (info, "info", ""),
    ],
}


for title, commands in _COMMANDS.items():
    group = Group.create_ordered(title)
    for place, (command, name, words) in enumerate(commands):
        app.command(command)
        app[name].group, app[name].sort_key = (group,), place
        app[name].usage = f"Usage: iterant {name} {words}".rstrip()
# The last group also has these:
app.register_install_completion_command(
    group=group,
    help="""Let Tab complete commands and options in bash, zsh or fish.

iterant --install-completion""",
)
for flag in ("--help", "--version"):
    app[flag].group = (group,)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command line (None: that of the process) and exit with its code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # A stream closed by the caller (``>&-``) is None, and its number free for the next file.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        # Terminals without Unicode show a question mark for a character they lack.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        with naming_flags():
            app(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BaseException as failure:
        sys.exit(exit_code(failure))
    sys.exit(0)


def exit_code(failure: BaseException) -> int:
    """Print what went wrong to the error stream; the exit code for it."""
    match failure:
        case SystemExit():
            return failure.code if isinstance(failure.code, int) else int(bool(failure.code))
        case KeyboardInterrupt():
            warn("")
            warn("iterant: interrupted")
            return 130
        case BrokenPipeError():
            discard_output(sys.stdout)
            return 141
        case IterantError():
            warn(f"iterant: error: {failure}")
            return failure.exit_code
        case CycloptsError():
            command = " ".join(["iterant", *(failure.command_chain or ())])
            warn(f"iterant: error: {_usage_error(failure)} (see {command} --help)")
            return 2
        case OSError():
            warn(f"iterant: error: {failure}; check the path and the disk")
            return 1
    if _out_of_memory(failure):
        warn("iterant: error: out of memory; give fewer problems or a smaller batch or network")
        return 1
    sys.stderr.write(printable("".join(traceback.format_exception(failure))))
    warn(
        "iterant: unexpected error; if the traceback does not end in your own code, please report "
        "it with your command and the output of 'iterant info'"
    )
    return 1


def _out_of_memory(failure: BaseException) -> bool:
    """Whether memory ran out; on a CPU only the message of PyTorch's RuntimeError tells."""
    phrases = ("can't allocate memory", "not enough memory", "out of memory", "bad allocation")
    text = str(failure).lower() if isinstance(failure, RuntimeError) else ""
    return isinstance(failure, MemoryError) or any(phrase in text for phrase in phrases)


def _usage_error(failure: CycloptsError) -> str:
    """What is wrong with the command line."""
    if isinstance(failure, UnknownOptionError):
        option = (failure.token.keyword or failure.token.value).partition("=")[0]
        names = [name for one in failure.argument_collection if one.show for name in one.names]
        flags = [name[2:].replace("-", "_") for name in names if name.startswith("--")]
        near = [f"--{name.replace('_', '-')}" for name in nearest(option.lstrip("-"), flags)]
        return f"unknown option: {option}" + f". Did you mean {' or '.join(near)}?" * bool(near)
    if isinstance(failure, UnusedCliTokensError):
        return f"unexpected argument: {' '.join(failure.unused_tokens or ())}"
    if isinstance(failure.__cause__, IterantError):  # raised by one of our validators
        return str(failure.__cause__)
    text = str(failure).strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"
