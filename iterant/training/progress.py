"""What a run tells the person who started it.

`Reporter` is what the loop talks to; `Silent` says nothing. The live display and the plain lines
of the command line are reporters too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Report:
    """Where a run stands."""

    update: int
    updates: int
    """How many there will be"""
    epoch: int
    epochs: int
    loss: float
    """Mean since the last report"""
    rate: float
    updates_per_second: float
    seconds_left: float
    figures: dict[str, float] = field(default_factory=dict)
    """The newest validation and watch figures by name: "validation", "48 at 4m", "48 change" …"""
    monitoring: tuple[str, ...] = ()
    """The names of those that only monitor and choose nothing"""
    fresh: tuple[str, ...] = ()
    """The names of those that were measured just now"""


class Reporter(Protocol):
    """Somebody who listens to a run."""

    def begin(self, title: str, folder: Path, report: Report) -> None:
        """The run starts, or goes on, here."""

    def show(self, report: Report) -> None:
        """The run stands here now."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""

    def end(self, text: str) -> None:
        """The run has ended: how, in a line."""


class Silent:
    """A reporter that says nothing: the default in Python."""

    def begin(self, title: str, folder: Path, report: Report) -> None:
        """Say nothing."""

    def show(self, report: Report) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def end(self, text: str) -> None:
        """Say nothing."""
