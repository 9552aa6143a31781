"""Training recipes: everything that decides a run, as one frozen object.

    >>> recipe("paper", "mazes").alpha
    0.01
    >>> recipe("paper", "prefix-sums").changed(width=64, epochs=20)

The names of fields are flags (``--width 64``), lines of a file (``--recipe-file my.toml``) and
keyword arguments in Python.

The named recipes are at the end: ``paper`` follows the paper's text and tables, with what they
leave out taken from the authors' public code; ``paper-code`` follows the code where the two
disagree; notes in the recipes say where. ``quick``, the default, and ``best`` are ours: ``quick``
trains in minutes on a CPU.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from typing import Any

from iterant import bounds, registry
from iterant.bounds import Bounds
from iterant.errors import RecipeError, UnknownName

OLD_NAMES = {
    "rate": "lr", "average": "ema_decay", "batch": "batch_size", "warmup": "warmup_epochs",
    "warmup_updates": "warmup_steps", "clip": "grad_clip", "decay": "lr_decay",
    "hold": "stable_fraction", "smoothing": "label_smoothing", "places": "position_loss",
    "watch_every": "monitor_every", "watch_count": "monitor_count", "again_below": "restart_below",
    "pool_fresh": "pool_new_fraction", "pool_stay": "pool_insert_fraction",
    "pool_swap": "pool_stale_fraction", "pool_damage": "pool_corrupt_fraction",
    "pool_every": "pool_all_losses", "pool_settle": "pool_change_penalty",
    "pool_shake": "pool_noise", "pool_shake_varied": "pool_noise_varied",
    "pool_hard": "pool_until_solved",
}  # fmt: skip
"""Former names of fields, which flags, files and keyword arguments may still use."""

_REMOVED = {"pool_damage_kinds": ["zeros", "noise", "another"], "choose": "validation"}
"""Fields of earlier versions, and the only values of them that a run can resume with."""

_MOST_ITEMS = 100
_FROM_ZERO = Bounds(0, bounds.UPDATES.most)
_FACTOR = Bounds(0, 1_000_000)
_ABOVE_ZERO = Bounds(1e-300, 1_000_000)


def _field(
    default: Any, about: str, valid: Bounds | tuple[str, ...] | None = None, *, section: str = ""
) -> Any:
    """A field with its help text and its valid values: bounds of numbers, or words.

    Without bounds, a whole number counts epochs or steps, and another number is from 0 to 1.
    ``section`` begins a group of flags in the help.
    """
    return field(default=default, metadata={"help": about, "valid": valid, "section": section})


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a run besides the task and the seed."""

    # fmt: off
    name: str = _field("custom", "name shown in lists of runs", section="The recipe")

    net: str = _field("dt-recall",
        "dt, dt-recall, ff, ff-recall, local-rule, max-plus, or your own class as module:Class",
        section="The network")
    width: int | None = _field(None, "features; none: the paper's for this task", bounds.WIDTH)
    head: tuple[int, ...] | None = _field(None,
        "widths between features and classes; none: the paper's, or (width, width / 2) in 1D",
        bounds.WIDTH)
    group_norm: bool = _field(False,
        "normalise features in 4 groups after every convolution of a block")
    bounded: bool = _field(False,
        "divide each position's features by their root mean square after every iteration")
    hidden: int = _field(64, "of a local rule: hidden units of a cell", bounds.WIDTH)
    isotropic: bool = _field(True, "of a local rule: the same weights for all directions")
    messages: bool = _field(False,
        "of a local rule: cells send each neighbour a message that does not depend on what it sent")
    masked: bool = _field(False, "of a local rule: cells whose input is all zero stay zero")

    size: int | tuple[int, int] | None = _field(None,
        "size of the training problems; none: the task's", _FROM_ZERO, section="The problems")
    count: int | None = _field(None,
        "number of problems, validation included; none: the task's", bounds.COUNT)
    problems: str = _field("",
        "kind of problems, in words of the task: start=any for mazes; \"\": the paper's")
    validation: float = _field(0.2, "fraction held out for validation", Bounds(0, 0.9))
    data_seed: int = _field(0,
        "which problems: the same set for every seed of the run", bounds.SEED)
    mirror: bool = _field(False,
        "mirror half of the problems; only for tasks that define mirror images")

    objective: str = _field("progressive",
        "progressive, progressive-n0, run-time-weighted or pool", registry.known("objective"),
        section="The objective")
    iterations: int = _field(30, "m: iterations in training", bounds.STEPS)
    alpha: float = _field(1.0,
        "weight of the progressive loss; the loss of the full unroll has the rest")
    pool_slots: int = _field(4096, "size of the replay pool, in problems", bounds.COUNT)
    pool_new_fraction: float = _field(0.3, "fraction of a batch that is new problems")
    pool_insert_fraction: float = _field(1.0,
        "fraction of the new problems that enter the pool; the others are used once")
    pool_stale_fraction: float = _field(0.0,
        "fraction of the new problems that start from the final state of another problem")
    pool_corrupt_fraction: float = _field(0.3,
        "fraction of the states that become zeros, noise or another slot's state")
    pool_noise: float = _field(0.0,
        "standard deviation of the noise added to the features before every iteration", _FACTOR)
    pool_noise_varied: bool = _field(False,
        "draw that strength for each problem, uniformly from 0 to pool_noise")
    pool_shortest: int = _field(10, "fewest iterations of a segment", bounds.STEPS)
    pool_longest: int | None = _field(None,
        "most iterations of a segment; none: as many as iterations", bounds.STEPS)
    pool_all_losses: bool = _field(False,
        "a loss after every iteration of a segment, not only after the last")
    pool_change_penalty: float = _field(0.0,
        "weight of a penalty: mean absolute change of the features per iteration", _FACTOR)
    pool_until_solved: bool = _field(False, "a problem stays in its slot until it is solved")
    label_smoothing: float = _field(0.0, "of the cross-entropy", Bounds(0, 0.99))
    position_loss: float = _field(0.0,
        "weight of a second cross-entropy, softmax over positions, if few are of class 1")

    optimizer: str = _field("adam",
        "adam, adamw, sgd or muon (orthogonalised momentum; adamw outside the recurrent kernels)",
        ("adam", "adamw", "sgd", "muon"), section="The optimizer")
    lr: float = _field(1e-3, "learning rate, before warm-up and schedule", _ABOVE_ZERO)
    throttle: bool = _field(False,
        "divide the learning rate of the recurrent parameters by the iterations")
    momentum: float = _field(0.9, "of sgd and muon")
    beta2: float = _field(0.999,
        "of adam, adamw and muon: decay of the mean squared gradient", Bounds(0, 0.99999))
    weight_decay: float = _field(2e-4,
        "as an L2 penalty in adam and sgd, decoupled in adamw and muon", _FACTOR)
    grad_clip: float | None = _field(None,
        "largest norm of the whole gradient; none: no clipping", _ABOVE_ZERO)
    ema_decay: float | None = _field(None,
        "decay of the weights' moving average (EMA), such as 0.999; none: no EMA",
        Bounds(1e-300, 0.9999999))

    batch_size: int = _field(100,
        "problems per optimizer step, over all processes", bounds.COUNT, section="The schedule")
    epochs: int = _field(50,
        "each has as many optimizer steps as there are batches in the training set")
    warmup_epochs: int = _field(10, "epochs of exponential warm-up", _FROM_ZERO)
    warmup_steps: int = _field(0, "optimizer steps of linear warm-up", _FROM_ZERO)
    schedule: str = _field("steps",
        "steps (at milestones), cosine, constant or wsd (warm-up, stable, linear decay)",
        ("steps", "cosine", "constant", "wsd"))
    stable_fraction: float = _field(0.6,
        "of wsd: fraction of the run before the learning rate falls", Bounds(0, 0.99))
    milestones: tuple[int, ...] = _field((),
        "epochs at which the learning rate is multiplied by lr_decay", _FROM_ZERO)
    lr_decay: float = _field(0.1, "factor of the learning rate at a milestone")

    validate_every: int = _field(1,
        "epochs between validations, which also choose the best checkpoint",
        section="Validation and checkpoints")
    restart_below: float = _field(0.0,
        "restart, twice at most, a run of 400 steps or more whose final validation is lower; "
        "not a branch")
    monitor_every: int = _field(5,
        "epochs between evaluations on larger problems; 0: never", _FROM_ZERO)
    monitor_count: int = _field(100, "number of larger problems", bounds.COUNT)
    checkpoint_every: int = _field(1, "epochs between checkpoints")

    precision: str = _field("fp32",
        "fp32, fp16 or bf16 (weights and optimizer stay fp32)", registry.known("precision"),
        section="The arithmetic")
    notes: tuple[str, ...] = _field((),
        "where sources disagree: which one this recipe follows, and how to get the other")
    # fmt: on

    def __post_init__(self) -> None:
        """Check all fields; JSON and TOML lists become tuples."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, list):
                value = tuple(value)
                object.__setattr__(self, each.name, value)
            _check(each, value)
        if self.restart_below and not self.validation:
            raise RecipeError("validation = 0 holds nothing out, so restart_below must be 0, too")

    def changed(self, **changes: Any) -> Recipe:
        """The same recipe with some fields changed; a wrong name gets a suggestion."""
        known = tuple(each.name for each in fields(self))
        changes = current_names(changes)
        for word in changes:
            if word not in known:
                near = " or ".join(map(repr, registry.nearest(word, known)))
                hint = f"did you mean {near}?" if near else "iterant train TASK --show prints all"
                raise RecipeError(f"a recipe has no field {word!r}; {hint}")
        return replace(self, **changes)

    def described(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)


def current_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a recipe, which may have former names, by their present names."""
    renamed = {OLD_NAMES.get(name, name): value for name, value in given.items()}
    if len(renamed) < len(given):
        twice = next(name for name in given if OLD_NAMES.get(name) in given)
        raise RecipeError(f"{twice} is a former name of {OLD_NAMES[twice]}; give one of the two")
    if renamed.get("schedule") == "hold":
        renamed["schedule"] = "wsd"
    return renamed


def _check(declared: Field[Any], value: Any) -> None:
    """Check a field by its declared type and valid values."""
    name, kind, limits = declared.name, str(declared.type), declared.metadata["valid"]
    if value is None and kind.endswith("None"):
        return
    if isinstance(limits, tuple):
        if value not in limits:
            word = value if isinstance(value, str) else reprlib.repr(value)
            raise RecipeError(registry.unknown_name(name, word, limits))
        return
    several, items = isinstance(value, tuple), value if isinstance(value, tuple) else (value,)
    types, word = ((int, float), "number") if "float" in kind else (int, "whole number")
    limits = limits or (Bounds(0, 1) if "float" in kind else bounds.UPDATES)
    numbers = all(isinstance(item, types) and limits.holds(item) for item in items)
    if kind == "bool":
        valid, requirement = isinstance(value, bool), "true or false"
    elif kind == "str":
        valid, requirement = isinstance(value, str), "a word"
    elif kind == "tuple[str, ...]":
        valid = several and all(isinstance(line, str) for line in items)
        requirement = "lines of text"
    elif name == "size":  # the task checks the number
        valid, requirement = numbers and len(items) == 1 + several, "a number, or two for a range"
    elif kind.startswith("tuple[int, ...]"):
        valid = several and numbers and len(items) <= _MOST_ITEMS
        requirement = f"at most {_MOST_ITEMS} whole numbers {limits}"
    else:
        valid, requirement = numbers and not several, f"a {word} {limits}"
    if not valid:
        raise RecipeError(f"{name} must be {requirement}, got {reprlib.repr(value)}")


def recipe_from_json(stored: Mapping[str, Any], *, resume: bool = False) -> Recipe:
    """The recipe in the config.json of a run, also of an earlier version.

    ``resume``: raise RecipeError if the run depends on a field that was removed since.
    """
    for name, value in _REMOVED.items():
        if resume and stored.get(name, value) != value:
            raise RecipeError(
                f"the run was trained with {name} = {stored[name]!r}, which this version of "
                "iterant does not have; resume it with the version that began it"
            )
    return Recipe().changed(**{name: x for name, x in stored.items() if name not in _REMOVED})


def recipe(name: str, task: str, net: str | None = None) -> Recipe:
    """The recipe of that name for a task, and for another network if ``net`` is given."""
    if name not in RECIPES:
        raise UnknownName(registry.unknown_name("recipe", name, RECIPES))
    if not isinstance(net, str | None):
        raise RecipeError(f"net must be a word, got {net!r}")
    by_net = NAMED[name].get(task) or NAMED[name][ANY]
    default = next(iter(by_net))
    net = net or default
    settings = by_net.get(net) or by_net.get(ANY) or by_net[default]
    return Recipe(**{**settings, "name": name, "net": net})


Fields = dict[str, Any]

# The paper's recipes

_VALIDATION = (
    "validated after every epoch, the first of equals is the best: the authors' code; the paper "
    "says only that the best on validation is tested"
)
_LR_DECAY = "lr_decay 0.01 as in the paper's table; the authors' code has 0.1: recipe paper-code"
_LR_DECAY_CODE = "lr_decay 0.1 as in the authors' code"
_LR_DT = (
    "lr 1e-4 for DT with alpha 1 as in the authors' code; the paper's table, and the code for "
    "other alphas, have 1e-3"
)

_SUMS_PAPER: Fields = {
    "batch_size": 100, "epochs": 150, "alpha": 1.0, "optimizer": "adam", "lr": 1e-3,
    "warmup_epochs": 10, "milestones": (60, 100), "lr_decay": 0.01, "grad_clip": 1.0,
    "validate_every": 1, "monitor_every": 50, "checkpoint_every": 30,
    "notes": (_LR_DECAY, _VALIDATION),
}  # fmt: skip
_SUMS_PAPER_DT: Fields = {**_SUMS_PAPER, "lr": 1e-4, "notes": (_LR_DECAY, _LR_DT, _VALIDATION)}
_SUMS_PAPER_FF: Fields = {**_SUMS_PAPER, "alpha": 0.0}

_SUMS_CODE: Fields = {**_SUMS_PAPER, "lr_decay": 0.1, "notes": (_LR_DECAY_CODE, _VALIDATION)}
_SUMS_CODE_DT: Fields = {
    **_SUMS_CODE, "lr": 1e-4, "notes": (_LR_DECAY_CODE, _LR_DT, _VALIDATION),
}  # fmt: skip
_SUMS_CODE_FF: Fields = {**_SUMS_CODE, "alpha": 0.0}

_OPEN_PIXELS = (
    "the loss is averaged over open pixels as in the authors' code; the paper's text says all "
    "pixels"
)
_MAZES_PAPER: Fields = {
    "batch_size": 50, "epochs": 50, "alpha": 0.01, "optimizer": "adam", "lr": 1e-3,
    "warmup_epochs": 10, "schedule": "constant", "throttle": True,
    "validate_every": 1, "monitor_every": 10, "checkpoint_every": 5,
    "notes": (_OPEN_PIXELS, _VALIDATION),
}  # fmt: skip
_MAZES_PAPER_FF: Fields = {
    **_MAZES_PAPER, "lr": 1e-4, "epochs": 200, "schedule": "steps", "milestones": (175,),
    "lr_decay": 0.1, "throttle": False, "alpha": 0.0,
}  # fmt: skip

_CHESS_EPOCHS = (
    "warm-up 3 epochs, 120 epochs and milestones 100/110 as in the paper's table; the authors' "
    "code has 10, 130 and 100/115: recipe paper-code"
)
_CHESS_EPOCHS_CODE = "lr_decay, warm-up, epochs and milestones as in the authors' code"
_CHESS_PAPER: Fields = {
    "batch_size": 300, "epochs": 120, "alpha": 0.5, "optimizer": "sgd", "lr": 1e-2,
    "warmup_epochs": 3, "milestones": (100, 110), "lr_decay": 0.01,
    "validate_every": 1, "monitor_every": 5, "checkpoint_every": 1,
    "notes": (_CHESS_EPOCHS, _LR_DECAY, _VALIDATION),
}  # fmt: skip
_CHESS_PAPER_FF: Fields = {**_CHESS_PAPER, "alpha": 0.0}

_CHESS_CODE: Fields = {
    **_CHESS_PAPER, "lr_decay": 0.1, "warmup_epochs": 10, "epochs": 130, "milestones": (100, 115),
    "notes": (_CHESS_EPOCHS_CODE, _VALIDATION),
}  # fmt: skip
_CHESS_CODE_FF: Fields = {**_CHESS_CODE, "alpha": 0.0}

# Our recipes

_OURS: Fields = {"weight_decay": 0.0, "grad_clip": 1.0, "warmup_epochs": 0}
"""What all of them share"""

_SUMS_QUICK: Fields = {
    **_OURS, "width": 32, "objective": "pool", "pool_slots": 1024, "pool_shortest": 5, "epochs": 4,
    "lr": 6e-3, "schedule": "cosine", "ema_decay": 0.98, "monitor_every": 1,
}  # fmt: skip
_SUMS_BEST: Fields = {
    **_OURS, "width": 16, "hidden": 64, "isotropic": False, "objective": "pool", "iterations": 40,
    "pool_slots": 1024, "pool_new_fraction": 0.25, "pool_corrupt_fraction": 0.0, "pool_noise": 0.1,
    "pool_shortest": 12, "pool_longest": 12, "pool_all_losses": True, "pool_change_penalty": 0.3,
    "lr": 4e-3, "ema_decay": 0.99, "epochs": 5, "warmup_steps": 100, "schedule": "wsd",
    "checkpoint_every": 5,
}  # fmt: skip

_MAZES_QUICK: Fields = {
    **_OURS, "width": 32, "objective": "pool", "pool_slots": 512, "batch_size": 50, "epochs": 2,
    "count": 10_000, "lr": 3e-3, "schedule": "cosine", "ema_decay": 0.99, "label_smoothing": 0.2,
    "monitor_every": 1, "monitor_count": 50,
}  # fmt: skip
_MAZES_BEST: Fields = {
    **_OURS, "width": 24, "hidden": 80, "messages": True, "masked": True, "problems": "start=any",
    "objective": "pool", "iterations": 150, "pool_slots": 1024, "pool_new_fraction": 0.25,
    "pool_corrupt_fraction": 0.0, "pool_noise": 0.6, "pool_noise_varied": True,
    "pool_shortest": 12, "pool_longest": 12, "pool_until_solved": True, "lr": 8e-3,
    "batch_size": 64, "epochs": 6, "warmup_steps": 100, "schedule": "wsd", "validate_every": 6,
    "restart_below": 0.99, "monitor_every": 6, "monitor_count": 200,
}  # fmt: skip
_NARROW = (
    "width 32 instead of the paper's 128; on a CPU that has instructions for bfloat16 give "
    "precision bf16: 40 to 50 minutes of one core; on an H200 a minute and a half"
)
_MAZES_DT_RECALL: Fields = {
    **_MAZES_BEST, "width": 32, "problems": "", "count": 41_000, "validation": 0.0244,
    "pool_change_penalty": 0.3, "pool_corrupt_fraction": 0.2, "lr": 1e-3, "ema_decay": 0.998,
    "epochs": 8, "validate_every": 8, "monitor_every": 8, "monitor_count": 40, "notes": (_NARROW,),
}  # fmt: skip
_MAZES_MAX_PLUS: Fields = {
    **_OURS, "width": 4, "hidden": 8, "problems": "start=any,walls=0.15,path=12-22", "size": 12,
    "count": 18_000, "iterations": 48, "alpha": 0.0, "lr": 0.03, "batch_size": 32, "epochs": 1,
    "warmup_steps": 20, "schedule": "wsd", "stable_fraction": 0.5, "restart_below": 0.995,
    "monitor_every": 1, "monitor_count": 50,
}  # fmt: skip

_ON_A_CPU = (
    "on two CPU cores: with the 1,600 puzzles that ship, well under a minute, and no held-out "
    "puzzle is solved; with 600,000 puzzles (docs/chess.md), half of the held-out ones after 1,000 "
    "steps, in about 4 minutes. The network that ships solves 98 % of those: iterant solve chess"
)
_AN_HOUR = (
    "an hour of one H200; a time limit trains it for minutes at a time, and a branch that starts "
    "from it lets the learning rate fall (docs/chess.md). On a CPU try width 32, batch_size 64, "
    "pool_slots 256 and precision fp32"
)
_CHESS_OURS: Fields = {
    **_OURS, "bounded": True, "validation": 0.02, "mirror": True, "objective": "pool",
    "pool_new_fraction": 0.85, "pool_insert_fraction": 0.06, "pool_stale_fraction": 0.25,
    "pool_corrupt_fraction": 0.0, "pool_all_losses": True, "position_loss": 0.06,
    "optimizer": "muon", "momentum": 0.95, "beta2": 0.95, "schedule": "wsd",
}  # fmt: skip
_CHESS_QUICK: Fields = {
    **_CHESS_OURS, "width": 32, "pool_slots": 256, "pool_shortest": 5, "pool_longest": 5,
    "batch_size": 64, "epochs": 1, "lr": 4e-3, "warmup_steps": 60, "stable_fraction": 0.3,
    "ema_decay": 0.99, "monitor_every": 1, "monitor_count": 50,
    "notes": (_ON_A_CPU,),
}  # fmt: skip
_CHESS_BEST: Fields = {
    **_CHESS_OURS, "width": 256, "pool_slots": 2048, "pool_shortest": 6, "pool_longest": 6,
    "lr": 3e-3, "weight_decay": 0.05, "ema_decay": 0.999, "batch_size": 256, "epochs": 260,
    "warmup_steps": 300, "stable_fraction": 0.8, "validate_every": 5, "monitor_every": 10,
    "monitor_count": 2000, "checkpoint_every": 10, "precision": "bf16",
    "notes": (_AN_HOUR,),
}  # fmt: skip

_OTHER_QUICK: Fields = {
    **_OURS, "width": 32, "objective": "pool", "pool_slots": 512, "batch_size": 50, "epochs": 5,
    "lr": 2e-3, "schedule": "cosine", "ema_decay": 0.99, "monitor_every": 1, "monitor_count": 50,
}  # fmt: skip
_OTHER_BEST: Fields = {
    **_OTHER_QUICK,
    "notes": ("no recipe is known to be better for this task than the quick one, which this is",),
}

ANY = "any other"
_PAPER_WIDTH: Fields = {"width": None}
"""For a network that a recipe was not made for."""
_MAZES_OTHER_LR: Fields = {"lr": 1e-3}
"""DT-Recall learned with it (docs/mazes.md), and nothing with that for 622 parameters."""

NAMED: dict[str, dict[str, dict[str, Fields]]] = {
    "paper": {
        "prefix-sums": {"dt-recall": _SUMS_PAPER, "dt": _SUMS_PAPER_DT, "ff": _SUMS_PAPER_FF,
                        "ff-recall": _SUMS_PAPER_FF},
        "mazes": {"dt-recall": _MAZES_PAPER, "ff": _MAZES_PAPER_FF, "ff-recall": _MAZES_PAPER_FF},
        "chess": {"dt-recall": _CHESS_PAPER, "ff": _CHESS_PAPER_FF, "ff-recall": _CHESS_PAPER_FF},
        ANY: {"dt-recall": {}},
    },
    "paper-code": {
        "prefix-sums": {"dt-recall": _SUMS_CODE, "dt": _SUMS_CODE_DT, "ff": _SUMS_CODE_FF,
                        "ff-recall": _SUMS_CODE_FF},
        "mazes": {"dt-recall": _MAZES_PAPER, "ff": _MAZES_PAPER_FF, "ff-recall": _MAZES_PAPER_FF},
        "chess": {"dt-recall": _CHESS_CODE, "ff": _CHESS_CODE_FF, "ff-recall": _CHESS_CODE_FF},
        ANY: {"dt-recall": {}},
    },
    "quick": {
        "prefix-sums": {"dt-recall": _SUMS_QUICK},
        "mazes": {"local-rule": _MAZES_BEST, "max-plus": _MAZES_MAX_PLUS, ANY: _MAZES_QUICK},
        "chess": {"dt-recall": _CHESS_QUICK},
        ANY: {"dt-recall": _OTHER_QUICK},
    },
    "best": {
        "prefix-sums": {"local-rule": _SUMS_BEST, ANY: _SUMS_BEST | _PAPER_WIDTH},
        "mazes": {"local-rule": _MAZES_BEST, "max-plus": _MAZES_MAX_PLUS,
                  "dt-recall": _MAZES_DT_RECALL,
                  ANY: _MAZES_BEST | _PAPER_WIDTH | _MAZES_OTHER_LR},
        "chess": {"dt-recall": _CHESS_BEST, ANY: _CHESS_BEST | _PAPER_WIDTH},
        ANY: {"dt-recall": _OTHER_BEST},
    },
}  # fmt: skip
"""The fields of a recipe by task and network: the first network is the default of the task, and a
network that is not listed has the fields of `ANY`, or else of the first."""

RECIPES = tuple(NAMED)
"""Names of the recipes; each works for every task."""
