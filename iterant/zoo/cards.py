"""Cards: the training and test results of shipped networks.

    >>> card("mazes").figures["59"].solved
    1000

A card is data in the ``config.json`` of the weights; ``CARD.md`` beside it, which scripts/ship
writes, is the same as text. Every figure has its number of problems, iterations and confidence
interval. Figures are of the weights as they ship; measurements before they were converted are
separate (`Earlier`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from iterant.errors import DataError
from iterant.evaluation import wilson
from iterant.io import read_weights

CARD = "CARD.md"


@dataclass(frozen=True)
class Figure:
    """The test result on problems of one size."""

    problems: int
    iterations: int
    solved: int
    twice: int | None = None
    """Solved after twice the iterations, if measured"""
    seed: int = 7
    """The seed of the test problems"""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the accuracy."""
        low, high = wilson(torch.tensor(self.solved), self.problems).tolist()
        return low, high


@dataclass(frozen=True)
class Earlier:
    """Test results of a network before it was converted for shipping."""

    what: str
    """Which weights, measured where"""
    results: tuple[str, ...]
    figures: dict[str, Figure]


@dataclass(frozen=True)
class Card:
    """The origin and the test results of a network."""

    name: str
    task: str
    parameters: int
    trained_on: str
    how: str
    command: str
    commit: str
    seed: int
    hardware: str
    results: tuple[str, ...]
    """Files in results/ with these figures"""
    figures: dict[str, Figure] = field(default_factory=dict)
    """By size, as flags write it: "59", or "600000:700000" for chess"""
    failures: str = "none seen in these tests"
    pictures: dict[str, str] = field(default_factory=dict)
    """Files beside the card, with captions"""
    notes: tuple[str, ...] = ()
    earlier: Earlier | None = None


def card(name: str) -> Card:
    """The card of a shipped network, or of a folder; also ``iterant.load(name).card``."""
    from iterant.zoo.loading import folder_of  # which gives every network its card

    found = card_of(read_weights(folder_of(name))[0], name)
    if found is None:
        raise DataError(f"{name} has no card; its weights were not written by scripts/ship")
    return found


def card_of(config: Mapping[str, Any], name: str) -> Card | None:
    """The card in the configuration of weights; None if it has none, as that of a run."""
    content = config.get("card")
    if not isinstance(content, dict):
        return None

    def figures(part: dict[str, Any]) -> dict[str, Figure]:
        return {size: Figure(**figure) for size, figure in part["figures"].items()}

    try:
        parts: dict[str, Any] = {key: tuple(content[key]) for key in ("results", "notes")}
        if before := content.get("earlier"):
            results = tuple(before["results"])
            parts["earlier"] = Earlier(before["what"], results, figures(before))
        return Card(**{**content, **parts, "figures": figures(content)})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DataError(f"the card of {name} is not one of this version ({error})") from error
