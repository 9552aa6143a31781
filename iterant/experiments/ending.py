"""What ends the training of a unit before its recipe does: nothing left to gain, or a signal.

>>> signals = Joined(listening)
>>> reporter = Deciding(unit, recipe, signals, print)
"""

from __future__ import annotations

from iterant.experiments.measuring import Say
from iterant.experiments.models import Unit
from iterant.training.progress import Report, Silent
from iterant.training.recipe import Recipe
from iterant.training.stopping import Signals

DECIDED = "a perfect validation"
"""What ends a run whose tested weights cannot change any more."""


class Joined(Signals):
    """What the reporter of one unit raises, or what all of them hear; it does not listen itself."""

    def __init__(self, heard: Signals) -> None:
        """Nothing of its own yet."""
        self.heard = heard
        self.own: str | None = None

    @property
    def raised(self) -> str | None:
        """Why to stop; None: go on."""
        return self.own or self.heard.raised

    @raised.setter
    def raised(self, reason: str | None) -> None:
        self.own = reason


class Deciding(Silent):
    """Ends a run as soon as what is tested cannot change, and says how it goes."""

    def __init__(self, unit: Unit, recipe: Recipe, signals: Signals, say: Say) -> None:
        """For a unit trained by that recipe; it raises ``signals``."""
        self.unit, self.signals, self.say = unit, signals, say
        # Averaged weights are tested as they are in the end, whatever validation said before.
        self.decides = recipe.average is None

    def show(self, report: Report) -> None:
        """Say how validation went, and whether that is the end."""
        if "validation" not in report.fresh:
            return
        accuracy = report.figures["validation"]
        self.say(f"{self.unit.name}: epoch {report.epoch}, validation {100 * accuracy:.2f} %, "
                 f"{report.updates_per_second:.0f} updates/s")  # fmt: skip
        if accuracy == 1.0 and self.decides:
            self.signals.raised = DECIDED

    def end(self, text: str) -> None:
        """Say how it ended."""
        self.say(f"{self.unit.name}: {text}")
