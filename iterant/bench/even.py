"""Draws that stand for all others: a few updates, as long on average as very many.

>>> [Progressive(30).draw(Even(0, update, of=3)) for update in range(3)]
[(5, 13), (15, 2), (25, 4)]
"""

from __future__ import annotations

from dataclasses import dataclass

from iterant.training.moments import Moment

_GOLDEN = 0.618033988749895
"""Its multiples, without their whole parts, fill the line evenly however many there are."""


@dataclass(frozen=True)
class Even(Moment):
    """An update of the progressive loss; ``of`` such updates cover all draws evenly.

    A few updates drawn at random may by chance be long or short; these few stand for all.
    """

    of: int

    def whole(self, low: int, high: int, what: str) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        shares = {
            "prefix": (self.update + 0.5) / self.of,
            "stretch": (self.update * _GOLDEN + 0.5) % 1.0,
        }
        return low + int(shares[what] * (high - low + 1))
