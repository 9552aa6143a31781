"""The named recipes, as data: ``paper``, ``paper-code``, ``quick`` and ``best``.

    >>> recipe("paper", "mazes", net="ff").epochs
    200

``paper`` follows the paper's text and tables, with what they leave out taken from the authors'
public code; ``paper-code`` follows the code where the two disagree; notes in the recipes say where.
"""

from __future__ import annotations

from typing import Any

from iterant import registry
from iterant.errors import UnknownName
from iterant.training.recipe import Recipe

Fields = dict[str, Any]

_FACTOR = "decay 0.01 as in the paper's table; the authors' code has 0.1: --recipe paper-code"
_CHESS = (
    "warm-up 3 epochs, 120 epochs and milestones 100/110 as in the paper's table; the authors' "
    "code has 10, 130 and 100/115: --recipe paper-code"
)
_DT_RATE = (
    "rate 1e-4 for DT with alpha 1 as in the authors' code; the paper's table, and the code for "
    "other alphas, have 1e-3: --rate 1e-3"
)
_MASK = (
    "the loss is averaged over open pixels as in the authors' code; the paper's text says all "
    "pixels"
)

_VALIDATION = (
    "validated after every epoch, the first of equals is the best: the authors' code; the paper "
    "says only that the best on validation is tested"
)

_AN_HOUR = (
    "an hour of one H200; scripts/train-chess trains it for minutes at a time and lets the rate "
    "fall on a branch. On a CPU try --width 32 --batch 64 --pool-slots 256 --precision fp32"
)

_PAPER: dict[str, Fields] = {
    "prefix-sums": {
        "batch": 100, "epochs": 150, "alpha": 1.0, "optimizer": "adam", "rate": 1e-3,
        "warmup": 10, "milestones": (60, 100), "decay": 0.01, "clip": 1.0,
        "validate_every": 1, "watch_every": 50, "checkpoint_every": 30,
        "notes": (_FACTOR, _VALIDATION),
    },
    "mazes": {
        "batch": 50, "epochs": 50, "alpha": 0.01, "optimizer": "adam", "rate": 1e-3,
        "warmup": 10, "schedule": "constant", "throttle": True,
        "validate_every": 1, "watch_every": 10, "checkpoint_every": 5,
        "notes": (_MASK, _VALIDATION),
    },
    "chess": {
        "batch": 300, "epochs": 120, "alpha": 0.5, "optimizer": "sgd", "rate": 1e-2,
        "warmup": 3, "milestones": (100, 110), "decay": 0.01,
        "validate_every": 1, "watch_every": 5, "checkpoint_every": 1,
        "notes": (_CHESS, _FACTOR, _VALIDATION),
    },
}  # fmt: skip

_MAZES_FF: Fields = {
    "rate": 1e-4, "epochs": 200, "schedule": "steps", "milestones": (175,), "decay": 0.1,
    "throttle": False, "alpha": 0.0,
}  # fmt: skip

_PAPER_NETS: dict[tuple[str, str], Fields] = {
    ("prefix-sums", "dt"): {
        "rate": 1e-4,
        "notes": (_FACTOR, _DT_RATE, _VALIDATION),
    },
    ("prefix-sums", "ff"): {"alpha": 0.0},
    ("prefix-sums", "ff-recall"): {"alpha": 0.0},
    ("mazes", "ff"): _MAZES_FF,
    ("mazes", "ff-recall"): _MAZES_FF,
    ("chess", "ff"): {"alpha": 0.0},
    ("chess", "ff-recall"): {"alpha": 0.0},
}

_CODE: dict[str, Fields] = {
    "prefix-sums": {"decay": 0.1, "notes": ("decay 0.1 as in the authors' code",)},
    "mazes": {},
    "chess": {"decay": 0.1, "warmup": 10, "epochs": 130, "milestones": (100, 115),
              "notes": ("decay, warm-up, epochs and milestones as in the authors' code",)},
}  # fmt: skip

_NONE_BETTER = "no recipe is known to be better for this task than the quick one, which this is"

_QUICK: dict[str, Fields] = {
    "prefix-sums": {
        "width": 32, "objective": "pool", "pool_slots": 1024, "pool_shortest": 5, "batch": 100,
        "epochs": 4, "optimizer": "adam", "rate": 6e-3, "warmup": 0, "schedule": "cosine",
        "weight_decay": 0.0, "clip": 1.0, "average": 0.98, "watch_every": 1, "watch_count": 100,
    },
    "mazes": {
        "width": 32, "objective": "pool", "pool_slots": 512, "batch": 50, "epochs": 2,
        "count": 10_000, "optimizer": "adam", "rate": 3e-3, "warmup": 0, "schedule": "cosine",
        "weight_decay": 0.0, "clip": 1.0, "average": 0.99, "smoothing": 0.2, "watch_every": 1,
        "watch_count": 50,
    },
    "chess": {
        "width": 32, "bounded": True, "validation": 0.02, "mirror": True, "objective": "pool",
        "pool_slots": 256, "pool_fresh": 0.85, "pool_stay": 0.06, "pool_swap": 0.25,
        "pool_damage": 0.0, "pool_shortest": 5, "pool_longest": 5, "pool_every": True,
        "places": 0.06, "batch": 64, "epochs": 1, "optimizer": "muon", "rate": 4e-3,
        "momentum": 0.95, "beta2": 0.95, "weight_decay": 0.0, "clip": 1.0, "warmup": 0,
        "warmup_updates": 60, "schedule": "hold", "hold": 0.3, "average": 0.99,
        "watch_every": 1, "watch_count": 50,
    },
}  # fmt: skip

_BEST: dict[str, Fields] = {
    "prefix-sums": {
        "net": "local-rule", "width": 16, "hidden": 64, "isotropic": False,
        "objective": "pool", "iterations": 40, "pool_slots": 1024, "pool_fresh": 0.25,
        "pool_damage": 0.0, "pool_shake": 0.1, "pool_shortest": 12, "pool_longest": 12,
        "pool_every": True, "pool_settle": 0.3, "optimizer": "adam", "rate": 4e-3,
        "weight_decay": 0.0, "clip": 1.0, "average": 0.99, "batch": 100, "epochs": 5, "warmup": 0,
        "warmup_updates": 100, "schedule": "hold", "hold": 0.6,
        "watch_every": 5, "watch_count": 100, "checkpoint_every": 5,
    },
    "mazes": {
        "net": "local-rule", "width": 24, "hidden": 80, "messages": True, "masked": True,
        "objective": "pool", "iterations": 150, "pool_slots": 1024, "pool_fresh": 0.25,
        "pool_damage": 0.0, "pool_shake": 0.6, "pool_shake_varied": True, "pool_shortest": 12,
        "pool_longest": 12, "pool_hard": True, "optimizer": "adam", "rate": 8e-3,
        "weight_decay": 0.0, "clip": 1.0, "batch": 64, "epochs": 6, "warmup": 0,
        "warmup_updates": 100, "schedule": "hold", "hold": 0.6, "validate_every": 6,
        "again_below": 0.99, "watch_every": 6, "watch_count": 200, "checkpoint_every": 1,
    },
    "chess": {
        "net": "dt-recall", "width": 256, "bounded": True, "validation": 0.02, "mirror": True,
        "objective": "pool", "iterations": 30, "pool_slots": 2048, "pool_fresh": 0.85,
        "pool_stay": 0.06, "pool_swap": 0.25, "pool_damage": 0.0, "pool_shortest": 6,
        "pool_longest": 6, "pool_every": True, "places": 0.06, "optimizer": "muon", "rate": 3e-3,
        "momentum": 0.95, "beta2": 0.95, "weight_decay": 0.05, "clip": 1.0, "average": 0.999,
        "batch": 256, "epochs": 260, "warmup": 0, "warmup_updates": 300, "schedule": "hold",
        "hold": 0.8, "validate_every": 5, "watch_every": 10, "watch_count": 2000,
        "checkpoint_every": 10, "precision": "bf16", "notes": (_AN_HOUR,),
    },
}  # fmt: skip

_GENERIC: Fields = {
    "width": 64, "objective": "pool", "pool_slots": 512, "batch": 50, "epochs": 5,
    "rate": 2e-3, "warmup": 0, "schedule": "cosine", "weight_decay": 0.0, "clip": 1.0,
    "average": 0.99, "watch_every": 1, "watch_count": 50,
}  # fmt: skip
"""``quick`` for user-defined tasks."""


def _paper(problem: str, net: str) -> Fields:
    return {**_PAPER.get(problem, {}), **_PAPER_NETS.get((problem, net), {})}


def _paper_code(problem: str, net: str) -> Fields:
    paper, code = _paper(problem, net), _CODE.get(problem, {})
    notes = [note for note in paper.get("notes", ()) if note not in (_FACTOR, _CHESS)]
    return {**paper, **code, "notes": (*code.get("notes", ()), *notes)}


def _quick(problem: str, net: str) -> Fields:
    return {**_GENERIC, **_QUICK.get(problem, {})}


def _best(problem: str, net: str) -> Fields:
    fields = _BEST.get(problem)
    if fields is None:
        return {**_quick(problem, net), "notes": (_NONE_BETTER,)}
    # The width is that of the local rule; another network keeps the paper's.
    return fields if net == fields.get("net", "dt-recall") else {**fields, "width": None}


_BUILDERS = {"paper": _paper, "paper-code": _paper_code, "quick": _quick, "best": _best}

RECIPES = tuple(_BUILDERS)
"""Names of the recipes; each works for every task."""

_DEFAULT_NETS = {
    ("best", problem): fields.get("net", "dt-recall") for problem, fields in _BEST.items()
}
"""Networks of recipes that do not use the paper's."""


def recipe(word: str, problem: str, net: str | None = None) -> Recipe:
    """The recipe of that name for a task, and for another network if ``net`` is given."""
    if word not in _BUILDERS:
        raise UnknownName(registry.unknown_name("recipe", word, RECIPES))
    fields = _BUILDERS[word](problem, net or _DEFAULT_NETS.get((word, problem), "dt-recall"))
    return Recipe(**{**fields, "name": word, **({} if net is None else {"net": net})})


def label_changes(recipe: Recipe, problem: str) -> Recipe:
    """The recipe, renamed to "paper, changed" where fields differ from the recipe of that name."""
    if recipe.name not in _BUILDERS:
        return recipe
    original = Recipe(**{**_BUILDERS[recipe.name](problem, recipe.net), "name": recipe.name,
                    "net": recipe.net})  # fmt: skip
    return recipe if recipe == original else recipe.changed(name=f"{recipe.name}, changed")
