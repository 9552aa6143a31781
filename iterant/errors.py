"""The exceptions that iterant raises.

A message is one line: what is wrong, what was expected and a remedy. The command line prints that
line and exits with code 2 for wrong input, 1 for a failure of the machine or of a run.

    IterantError
    ├── UsageError         the caller's values
    │   ├── UnknownName        an unknown name of a task, recipe, network or readout
    │   ├── UntrustedCode      a file that names user-defined code, without trust=True
    │   ├── TaskError          a problem, a size or a prediction that the task cannot take
    │   ├── NetError           a shape, dtype or configuration that the network cannot take
    │   ├── RecipeError        a training recipe that contradicts itself
    │   └── MissingExtra       an optional dependency that is not installed
    ├── DataError          a file with wrong or corrupt contents
    │   └── RunError           a run folder that cannot be read, resumed or written
    └── TrainingStopped    training that cannot go on: NaN, explosion, a lost process

Messages name the arguments of Python; within a command, the flags (`argument`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_names_flags = False


@contextlib.contextmanager
def naming_flags() -> Iterator[None]:
    """Within it, messages name flags of the command line."""
    global _names_flags
    before, _names_flags = _names_flags, True
    try:
        yield
    finally:
        _names_flags = before


def argument(name: str, value: object = None) -> str:
    """An argument in a message: its name, or with the value to give.

    >>> argument("time_limit"), argument("device", "cpu")
    ('time_limit', "device='cpu'")
    >>> with naming_flags():
    ...     argument("time_limit"), argument("device", "cpu")
    ('--time-limit', '--device cpu')
    """
    if not _names_flags:
        shown = str(value) if isinstance(value, int | float) else repr(str(value))
        return name if value is None else f"{name}={shown}"
    flag = "--trust-code" if name == "trust" else f"--{name.replace('_', '-')}"
    return flag if value is None or value is True else f"{flag} {value}"


class IterantError(Exception):
    """The base class of all exceptions of iterant."""

    exit_code = 1


class UsageError(IterantError, ValueError):
    """A value of the caller that cannot be used."""

    exit_code = 2


class UnknownName(UsageError):
    """An unknown name; the message suggests the nearest known one."""


class UntrustedCode(UsageError):
    """A file names user-defined code, and the caller did not allow its import."""


class TaskError(UsageError):
    """A problem, a size or a prediction that the task cannot take."""


class NetError(UsageError):
    """A shape, a dtype or a configuration that the network cannot take."""


class RecipeError(UsageError):
    """A training recipe that contradicts itself."""


class MissingExtra(UsageError):
    """An optional dependency that is needed here and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        """Say which package is missing, what for, and how to install it."""
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f"try: pip install 'iterant[{extra}]'"
        )


class DataError(IterantError):
    """A file with wrong or corrupt contents."""


class RunError(DataError):
    """A run folder that cannot be read, resumed or written."""


class TrainingStopped(IterantError):
    """Training that cannot go on: NaN, explosion, a lost process."""
