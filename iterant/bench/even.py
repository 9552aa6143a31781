"""Draws that stand for all others: a few updates, as long on average as very many.

>>> [Progressive(30).draw(Even(0, update)) for update in range(3)]
[(7, 2), (0, 20), (23, 2)]
"""

from __future__ import annotations

from dataclasses import dataclass

from iterant.training.moments import Moment

_AXES = {"prefix": 0.7548776662466927, "stretch": 0.5698402909980532}
"""The plastic number's powers: their multiples fill the square evenly, one axis a kind of draw."""


@dataclass(frozen=True)
class Even(Moment):
    """An update of the progressive loss whose draws, over several updates, cover all evenly.

    A few updates drawn at random may by chance be long or short; these few stand for all.
    """

    def whole(self, low: int, high: int, what: str) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        share = (0.5 + _AXES[what] * (self.update + 1)) % 1.0
        return low + int(share * (high - low + 1))
