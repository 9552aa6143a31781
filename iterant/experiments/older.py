"""Whether a model's recipe has changed since something was made by it.

>>> has_changed("mazes-ours", {"beta2": 0.95})
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iterant.experiments.models import MODELS
from iterant.runs.plain import plain
from iterant.training.recipe import Recipe

_NOT_OF_A_RECIPE = {"name", "notes", "precision"}
"""Fields that may differ from run to run of one recipe."""


def has_changed(model: str, was: Mapping[str, Any] | None) -> bool:
    """Whether its recipe is another now; nothing is said of what kept no recipe."""
    if model not in MODELS or not was:
        return False
    usual, now = Recipe().described(), plain(MODELS[model].recipe().described())
    # What a recipe did not know then was as usual.
    fields = {key for key, value in now.items() if was.get(key, plain(usual[key])) != value}
    return bool(fields - _NOT_OF_A_RECIPE)
