"""The command ``iterant``: which commands there are, and how it ends.

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
    # Failures are ours to print: one line, whoever found them.
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
_SEE, _STUDY, _PAPER, _MORE = (
    Group(title, sort_key=place)
    for place, title in enumerate(
        ("See it think", "Train and study networks", "The paper", "And more"), start=1
    )
)
_COMMANDS: tuple[tuple[Group, Callable[..., None] | App, str, str], ...] = (
    # The task comes before the options: --size takes every word that follows it.
    (_SEE, solve, "solve", "TASK [PROBLEM…] [OPTIONS]"),
    (_SEE, sample, "sample", "TASK [OPTIONS]"),
    (_SEE, demo, "demo", "[OPTIONS]"),
    (_STUDY, train, "train", "TASK [OPTIONS]"),
    (_STUDY, evaluate, "evaluate", "RUN… [OPTIONS]"),
    (_STUDY, analyze, "analyze", "RUN… [OPTIONS]"),
    (_STUDY, runs, "runs", "[FOLDER]"),
    (_STUDY, export, "export", "RUN --to onnx|hub [OPTIONS]"),
    (_PAPER, reproduce, "reproduce", "NAME [OPTIONS]"),
    (_PAPER, import_, "import", "FILE --task TASK --out DIR"),
    (_MORE, sweep, "sweep", "FILE.toml [OPTIONS], or: iterant sweep status|stop|one DIR"),
    (_MORE, bench, "bench", "COMMAND"),
    (_MORE, data, "data", "COMMAND"),
    (_MORE, info, "info", ""),
)


def _usage(name: str, words: str) -> str:
    """How a command is called, and examples: those at the top of its module."""
    module = sys.modules[f"iterant.cli.{'import_' if name == 'import' else name}"]
    lines = (module.__doc__ or "").splitlines()
    examples = [f"  {line}" for line in lines if f"iterant {name}" in line and "``" not in line]
    shown = ["", *examples] if examples else []
    return "\n".join([f"Usage: iterant {name} {words}".rstrip(), *shown])


for _place, (_group, _command, _name, _words) in enumerate(_COMMANDS):
    if isinstance(_command, App):
        _command.group, _command.usage = (_group,), _usage(_name, _words)
        _command.sort_key = _place
        app.command(_command)
    else:
        app.command(
            _command, name=_name, group=_group, usage=_usage(_name, _words), sort_key=_place
        )
app.register_install_completion_command(
    group=_MORE, help="Let Tab complete commands and options in bash, zsh or fish."
)
for _flag in ("--help", "--version"):
    app[_flag].group = (_MORE,)


def find_own_modules() -> None:
    """Let ``mine:Task`` name a file of the folder we are in, as ``python -m iterant`` does.

    It comes last, so that no file there takes the place of an installed module.
    """
    try:
        here = str(Path.cwd())
    except OSError:  # the folder was deleted
        return
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command line (None: the process's own) and leave with its exit code."""
    find_own_modules()
    for stream in (sys.stdout, sys.stderr):
        # An old terminal shows a question mark for a sign that it does not have.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BaseException as failure:
        sys.exit(exit_code(failure))
    sys.exit(0)
