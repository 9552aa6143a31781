"""Whether a model's recipe has changed since something was made by it.

>>> has_changed("mazes-ours", {"beta2": 0.95})
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iterant.experiments.models import MODELS
from iterant.runs.plain import plain
from iterant.training.recipe import Recipe

_NOT_OF_A_RECIPE = {"name", "notes", "precision"}
"""Fields that may differ from run to run of one recipe."""


def has_changed(
    model: str, was: Mapping[str, Any] | None, validated: Iterable[float | None] = ()
) -> bool:
    """Whether its recipe is another now; nothing is said of what kept no recipe.

    ``validated`` is how its runs validated: those that reached what the recipe asks of a run now
    would not have begun again, and are the same.
    """
    if model not in MODELS or not was:
        return False
    usual, now = Recipe().described(), plain(MODELS[model].recipe().described())
    # What a recipe did not know then was as usual.
    fields = {key for key, value in now.items() if was.get(key, plain(usual[key])) != value}
    reached = list(validated)
    if reached and all(one is not None and one >= now["again_below"] for one in reached):
        fields.discard("again_below")
    return bool(fields - _NOT_OF_A_RECIPE)


def validations(seeds: object) -> list[float | None]:
    """How the seeds of a result validated; None where it does not say."""
    if not isinstance(seeds, Mapping):
        return []
    best = [part.get("best") for part in seeds.values() if isinstance(part, Mapping)]
    return [one.get("validation") if isinstance(one, Mapping) else None for one in best]
