"""Everything that iterant raises on purpose.

A message says what came, what was wanted and what to do, in one line: the command line prints
exactly that line and leaves with code 2 for what the user gave, 1 for what the machine did.

    IterantError
    ├── UsageError         the caller's values
    │   ├── UnknownName        a word that names nothing: task, recipe, network, readout
    │   ├── TaskError          a problem, a size or a prediction that the task cannot take
    │   ├── NetError           a shape, dtype or configuration that the network cannot take
    │   ├── RecipeError        a training recipe that contradicts itself
    │   └── MissingExtra       an optional dependency that is not installed
    ├── DataError          a file that does not hold what it should
    │   └── RunError           a run folder that cannot be read, resumed or written
    └── TrainingStopped    training that cannot go on: NaN, explosion, a lost process
"""


class IterantError(Exception):
    """The root: catch this to catch everything that iterant raises on purpose."""

    exit_code = 1


class UsageError(IterantError, ValueError):
    """The caller gave a value that cannot be used."""

    exit_code = 2


class UnknownName(UsageError):
    """A word that names nothing here; the message suggests the nearest that does."""


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
    """A file that does not hold what it should."""


class RunError(DataError):
    """A run folder that cannot be read, resumed or written."""


class TrainingStopped(IterantError):
    """Training that cannot go on: NaN, explosion, a lost process."""
