"""The command ``iterant``: its commands, and how it exits.

iterant --help
iterant sample mazes --size 13
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from cyclopts import App, Group

from iterant.cli.analyze import analyze
from iterant.cli.bench import bench
from iterant.cli.data import data
from iterant.cli.demo import demo
from iterant.cli.errors import exit_code
from iterant.cli.evaluate import evaluate
from iterant.cli.export import export
from iterant.cli.import_ import import_
from iterant.cli.info import info
from iterant.cli.options import parameters
from iterant.cli.reproduce import reproduce
from iterant.cli.runs import runs
from iterant.cli.sample import sample
from iterant.cli.solve import solve
from iterant.cli.sweep import sweep
from iterant.cli.train import train

app = App(
    name="iterant",
    help="Small recurrent networks learn an algorithm on easy problems and solve far harder ones "
    "by thinking longer.",
    usage="""Usage: iterant COMMAND

  iterant solve mazes --size 59      watch a network think
  iterant train prefix-sums          train one of your own in a minute or so
  iterant COMMAND --help             examples, and every option""",
    version=lambda: version("iterant"),
    help_format="plaintext",
    group_parameters=parameters(),
    # cyclopts' errors are printed as all others: see iterant.cli.errors.
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
_COMMANDS: dict[str, list[tuple[Callable[..., None] | App, str, str]]] = {
    # The task comes before the options: --size takes every word that follows it.
    "See it think": [
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
    "And more": [
        (sweep, "sweep", "FILE.toml [OPTIONS], or: iterant sweep status|stop|one DIR"),
        (bench, "bench", "COMMAND"),
        (data, "data", "COMMAND"),
        (info, "info", ""),
    ],
}


def _usage(name: str, words: str) -> str:
    """The usage line, and the examples in the docstring of the command's module."""
    module = sys.modules[f"iterant.cli.{'import_' if name == 'import' else name}"]
    lines = (module.__doc__ or "").splitlines()
    examples = [f"  {line}" for line in lines if f"iterant {name}" in line and "``" not in line]
    return "\n".join([f"Usage: iterant {name} {words}".rstrip(), "", *examples]).rstrip()


def _register() -> None:
    place = 0
    for order, (title, commands) in enumerate(_COMMANDS.items(), start=1):
        group = Group(title, sort_key=order)
        for command, name, words in commands:
            place, usage = place + 1, _usage(name, words)
            if isinstance(command, App):
                command.group, command.usage, command.sort_key = (group,), usage, place
                app.command(command)
            else:
                app.command(command, name=name, group=group, usage=usage, sort_key=place)
    # `group` is the last one now.
    completion = "Let Tab complete commands and options in bash, zsh or fish."
    app.register_install_completion_command(group=group, help=completion)
    for flag in ("--help", "--version"):
        app[flag].group = (group,)


_register()


def find_user_modules() -> None:
    """Let ``mine:Task`` name a module in the working folder, as ``python -m iterant`` does.

    The folder comes last in the path, so that no file there replaces an installed module.
    """
    try:
        here = str(Path.cwd())
    except OSError:  # the folder was deleted
        return
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command line (None: that of the process) and exit with its code."""
    find_user_modules()
    for stream in (sys.stdout, sys.stderr):
        # Terminals without Unicode show a question mark for a character they lack.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BaseException as failure:
        sys.exit(exit_code(failure))
    sys.exit(0)
