"""How a command fails: one line and an exit code; only bugs show a traceback.

code  0    done
      1    a failure of the machine or of a run, or a bug
      2    wrong input, or an error in the user's own code, which shows a traceback too
      130  interrupted
      141  the reader of the output closed it
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
    """Print what went wrong to the error stream; the exit code for it."""
    match failure:
        case SystemExit():
            return failure.code if isinstance(failure.code, int) else int(bool(failure.code))
        case KeyboardInterrupt():
            say("\niterant: interrupted")
            return INTERRUPTED
        case BrokenPipeError():
            _discard_output()
            return NO_READER
        case IterantError():
            say(f"iterant: error: {one_line(str(failure))}")
            return failure.exit_code
        case CycloptsError():
            say(f"iterant: error: {one_line(_usage_error(failure))}")
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
    if (frame := _user_frame(failure)) is not None:
        what = one_line(traceback.format_exception_only(failure)[-1])
        say(
            f"iterant: error: {frame.filename}, line {frame.lineno}, in {frame.name}: {what}; "
            "that is code of your own, and the lines above say how it came there"
        )
        return USAGE
    say(
        "iterant: this is a bug in iterant, not a mistake of yours; please report the lines above, "
        "your command and what 'iterant info' prints on the project's issue tracker"
    )
    return BUG


def _out_of_memory(failure: BaseException) -> bool:
    if "torch" not in sys.modules:
        return isinstance(failure, MemoryError)
    from iterant.evaluation.evaluator import out_of_memory

    return out_of_memory(failure)


def _user_frame(failure: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame outside installed packages, unless a frame of iterant is below it."""
    package = Path(__file__).parent.parent
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    for frame in reversed(traceback.extract_tb(failure.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(package):
            return None
        if path.is_file() and not any(path.is_relative_to(base) for base in installed):
            return frame
    return None


def _usage_error(failure: CycloptsError) -> str:
    """What is wrong with the command line, and where to read more."""
    command = " ".join(["iterant", *(failure.command_chain or ())])
    if isinstance(failure, UnusedCliTokensError) and failure.unused_tokens:
        text = f"unexpected words: {', '.join(map(repr, failure.unused_tokens))}"
    elif isinstance(failure.__cause__, IterantError):  # raised by one of our validators
        text = str(failure.__cause__)
    else:
        # Without cyclopts' list of commands: it is cut short, or a suggestion stands before it.
        text = re.sub(r" Available commands: .*, ?\.\.\.$", "", str(failure).strip())
        text = re.sub(r"(Did you mean .+\?) Available commands: .*", r"\1", text).rstrip(".")
        text = f"{text[:1].lower()}{text[1:]}"
    return f"{text} (see {command} --help)"


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def say(line: str) -> None:
    """Write one line to the error stream; one that is closed is ignored."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")


def _discard_output() -> None:
    """Keep Python from flushing to the closed stream once more when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
