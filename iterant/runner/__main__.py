"""The process of one run of a sweep; its output is the log of the run.

python -m iterant.runner runs/widths prefix-sums-quick-width32-s0 --device cpu
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from iterant.errors import IterantError
from iterant.runner.worker import STOPPED, run_one
from iterant.training.logging import Progress, Reporter


class _Log(Reporter):
    """Prints how a run starts, its validations, remarks and its end."""

    def begin(self, title: str, folder: Path, report: Progress) -> None:
        """Print the title."""
        _print(title)

    def show(self, report: Progress) -> None:
        """Print a validation."""
        if "validation" in report.fresh:
            _print(f"epoch {report.epoch}, validation {100 * report.figures['validation']:.2f} %, "
                   f"{report.updates_per_second:.0f} updates/s")  # fmt: skip

    def note(self, text: str) -> None:
        """Print it."""
        _print(text)

    end = note


def _print(text: str) -> None:
    if os.environ.get("RANK", "0") == "0":
        sys.stdout.write(f"{text}\n")


def main(words: Sequence[str] | None = None) -> int:
    """Parse, run, print how it ended."""
    parser = argparse.ArgumentParser(prog="python -m iterant.runner")
    parser.add_argument("folder")
    parser.add_argument("name")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--time", type=float)
    parser.add_argument("--resume", action="store_true", default=None)
    parser.add_argument("--begin", dest="resume", action="store_false")
    args = parser.parse_args(words)
    try:
        done = run_one(args.folder, args.name, device=args.device, time_limit=args.time,
                       resume=args.resume, reporter=_Log(), say=_print)  # fmt: skip
    except IterantError as error:
        sys.stderr.write(f"iterant: error: {error}\n")
        return 1
    _print("done" if done else "stopped; go on with the same command")
    return 0 if done else STOPPED


if __name__ == "__main__":
    sys.exit(main())
