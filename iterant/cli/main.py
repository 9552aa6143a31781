"""The command ``iterant``: which commands there are, and how it ends.

iterant --help
iterant sample mazes --size 13
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from cyclopts import App

from iterant.cli.analyze import analyze
from iterant.cli.bench import bench
from iterant.cli.data import data
from iterant.cli.demo import demo
from iterant.cli.evaluate import evaluate
from iterant.cli.export import export
from iterant.cli.failures import exit_code
from iterant.cli.importing import import_
from iterant.cli.info import info
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
    version=lambda: version("iterant"),
    help_format="plaintext",
    # Failures are ours to print: one line, whoever found them.
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
# The task comes before the options: --size takes every word that follows it.
app.command(sample, usage="Usage: iterant sample TASK [OPTIONS]")
app.command(solve, usage="Usage: iterant solve TASK [PROBLEM…] [OPTIONS]")
app.command(train, usage="Usage: iterant train TASK [OPTIONS]")
app.command(analyze, usage="Usage: iterant analyze RUN… [OPTIONS]")
app.command(evaluate, usage="Usage: iterant evaluate RUN… [OPTIONS]")
app.command(reproduce, usage="Usage: iterant reproduce NAME [OPTIONS]")
app.command(runs)
app.command(info)
app.command(data)
app.command(bench)
app.command(sweep)
app.command(demo)
app.command(export, usage="Usage: iterant export RUN --to onnx|hub [OPTIONS]")
app.command(import_, name="import", usage="Usage: iterant import FILE --task TASK --out DIR")


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
