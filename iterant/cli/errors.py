"""How a command fails: one line and a code for people's and machines' failures, all for bugs.

code  0    done
      1    the machine's failure, or a bug: a bug alone shows a traceback
      2    what the user gave; code of the user's own that fails shows a traceback
      130  interrupted
      141  the reader of the output went away
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import sysconfig
import traceback
from pathlib import Path

from cyclopts import CycloptsError, UnusedCliTokensError

from iterant.errors import IterantError

USAGE, BUG, INTERRUPTED, NO_READER = 2, 1, 130, 141


def exit_code(failure: BaseException) -> int:
    """Say what went wrong, on the error stream, and give the exit code for it."""
    match failure:
        case SystemExit():
            return failure.code if isinstance(failure.code, int) else int(bool(failure.code))
        case KeyboardInterrupt():
            say("\niterant: interrupted")
            return INTERRUPTED
        case BrokenPipeError():
            _forget_output()
            return NO_READER
        case IterantError():
            say(f"iterant: error: {one_line(str(failure))}")
            return failure.exit_code
        case CycloptsError():
            say(f"iterant: error: {one_line(usage(failure))}")
            return USAGE
        case OSError():
            say(f"iterant: error: {one_line(str(failure))}; check the path and the disk")
            return 1
        case MemoryError() | RuntimeError() if _out_of_memory(failure):
            say(
                "iterant: error: out of memory; try fewer or smaller problems, or a smaller network"
            )
            return 1
    traceback.print_exception(failure)
    if (own := _in_own_code(failure)) is not None:
        what = traceback.format_exception_only(failure)[-1]
        say(
            f"iterant: error: {own.filename}, line {own.lineno}, in {own.name}: {one_line(what)}; "
            "that is code of your own, and the lines above say how it came there"
        )
        return USAGE
    say(
        "iterant: this is a bug in iterant, not a mistake of yours; please report the lines above, "
        "your command and what 'iterant info' prints on the project's issue tracker"
    )
    return BUG


def _out_of_memory(failure: BaseException) -> bool:
    """Whether memory ran out, in torch's own words too."""
    if "torch" not in sys.modules:  # where it is not loaded yet, it has not failed
        return isinstance(failure, MemoryError)
    from iterant.evaluation.evaluator import out_of_memory

    return out_of_memory(failure)


def _in_own_code(failure: BaseException) -> traceback.FrameSummary | None:
    """The last line before the failure that is neither ours nor installed nor Python's own."""
    ours = Path(__file__).parent.parent
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    for frame in reversed(traceback.extract_tb(failure.__traceback__)):
        place = Path(frame.filename)
        if place.is_relative_to(ours):
            return None  # whoever called us, it is we who failed
        if place.is_file() and not any(place.is_relative_to(base) for base in installed):
            return frame
    return None


def usage(failure: CycloptsError) -> str:
    """What was wrong with the words of the command line, and where to read more."""
    command = " ".join(["iterant", *(failure.command_chain or ())])
    if isinstance(failure, UnusedCliTokensError) and failure.unused_tokens:
        words = ", ".join(map(repr, failure.unused_tokens))
        return f"unexpected words: {words} (see {command} --help)"
    if isinstance(failure.__cause__, IterantError):  # our own check of a value
        return f"{failure.__cause__} (see {command} --help)"
    # The list is cut short, and the help has all of them in their groups.
    text = re.sub(r" Available commands: .*, ?\.\.\.$", "", str(failure).strip())
    # With a suggestion there is no need for it at all.
    text = re.sub(r"(Did you mean .+\?) Available commands: .*", r"\1", text).rstrip(".")
    return f"{text[:1].lower()}{text[1:]} (see {command} --help)"


def one_line(text: str) -> str:
    """The text without line breaks, whatever names it quotes."""
    return " ".join(text.split())


def say(line: str) -> None:
    """One line on the error stream, if anyone still reads it."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")


def _forget_output() -> None:
    """Keep Python from trying once more, at its end, what nobody reads."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
