"""Training recipes: everything that decides a run, as one frozen object, and the named ones.

    >>> recipe("paper", "mazes").alpha
    0.01
    >>> recipe("paper", "prefix-sums").changed(width=64, epochs=20)

The names of fields are flags (``--width 64``), lines of a file (``--recipe-file my.toml``) and
keyword arguments in Python. The command line shows the strings below the fields as help.

``paper`` follows the paper's text and tables, with what they leave out taken from the authors'
public code; ``paper-code`` follows the code where the two disagree; notes in the recipes say where.
``quick``, the default, and ``best`` are ours: ``quick`` trains in minutes on a CPU.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from iterant import bounds, registry
from iterant.bounds import Bounds
from iterant.errors import RecipeError, UnknownName
from iterant.io.files import read_toml

Fields = dict[str, Any]

OLD_NAMES = {"pool_shake": "pool_noise", "pool_shake_varied": "pool_noise_varied",
             "pool_hard": "pool_until_solved", "again_below": "restart_below"}  # fmt: skip
"""Former names of fields. Flags and files may use either name; JSON is written with the former
ones, so that other versions of iterant read it."""

_REMOVED = {"pool_damage_kinds": ["zeros", "noise", "another"], "choose": "validation"}
"""Fields of earlier versions, and the values that are left."""

_NET_FIELDS = ("width", "head", "group_norm", "bounded", "hidden", "isotropic", "messages",
               "masked")  # fmt: skip
"""Fields that configure the networks of iterant; user-defined ones do not get them."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a run besides the task and the seed."""

    name: str = "custom"
    """Name shown in lists of runs"""

    # The network
    net: str = "dt-recall"
    """dt, dt-recall, ff, ff-recall, local-rule, max-plus, or your own class as module:Class"""
    width: int | None = None
    """Features; None: the paper's for this task"""
    head: tuple[int, ...] | None = None
    """Widths between features and classes; None: the paper's, or (width, width / 2) in 1D"""
    group_norm: bool = False
    """Normalise features in 4 groups after every convolution of a block"""
    bounded: bool = False
    """Divide each position's features by their root mean square after every iteration"""
    hidden: int = 64
    """Of a local rule: hidden units of a cell"""
    isotropic: bool = True
    """Of a local rule: the same weights for all directions"""
    messages: bool = False
    """Of a local rule: cells send each neighbour a message that does not depend on what it sent"""
    masked: bool = False
    """Of a local rule: cells whose input is all zero stay zero"""

    # The problems
    size: int | tuple[int, int] | None = None
    """Size of the training problems; None: the task's"""
    count: int | None = None
    """Number of problems, validation included; None: the task's"""
    problems: str = ""
    """Kind of problems, in words of the task: start=any for mazes; "": the paper's"""
    validation: float = 0.2
    """Share held out for validation"""
    data_seed: int = 0
    """Which problems: the same set for every seed of the run"""
    mirror: bool = False
    """Mirror half of the problems; only for tasks that define mirror images"""

    # The objective
    objective: str = "progressive"
    """progressive, progressive-n0, run-time-weighted or pool"""
    iterations: int = 30
    """m: iterations in training"""
    alpha: float = 1.0
    """Weight of the progressive loss; the loss of the full unroll has the rest"""
    pool_slots: int = 4096
    """Size of the replay pool, in problems"""
    pool_fresh: float = 0.3
    """Share of a batch that is new problems"""
    pool_stay: float = 1.0
    """Share of the new problems that enter the pool; the others are used once"""
    pool_swap: float = 0.0
    """Share of the new problems that start from the final state of another problem"""
    pool_damage: float = 0.3
    """Share of the states that are corrupted: zeros, noise, or another slot's state"""
    pool_noise: float = 0.0
    """Standard deviation of the noise added to the features before every iteration"""
    pool_noise_varied: bool = False
    """Draw that strength for each problem, uniformly from 0 to pool_noise"""
    pool_shortest: int = 10
    """Fewest iterations of a segment"""
    pool_longest: int | None = None
    """Most iterations of a segment; None: as many as iterations"""
    pool_every: bool = False
    """A loss after every iteration of a segment, not only after the last"""
    pool_settle: float = 0.0
    """Weight of a penalty: mean absolute change of the features per iteration"""
    pool_until_solved: bool = False
    """A problem stays in its slot until it is solved"""
    smoothing: float = 0.0
    """Label smoothing"""
    places: float = 0.0
    """Weight of a cross-entropy over positions (where is class 1?) against the usual one"""

    # The optimizer
    optimizer: str = "adam"
    """adam, adamw, sgd or muon (orthogonalised momentum; adamw outside the recurrent kernels)"""
    rate: float = 1e-3
    """Learning rate, before warm-up and schedule"""
    throttle: bool = False
    """Divide the rate of the recurrent parameters by the iterations"""
    momentum: float = 0.9
    """Of sgd and muon"""
    beta2: float = 0.999
    """Of adam, adamw and muon: decay of the mean squared gradient"""
    weight_decay: float = 2e-4
    """As an L2 penalty in adam and sgd, decoupled in adamw and muon"""
    clip: float | None = None
    """Largest norm of the whole gradient; None: no clipping"""
    average: float | None = None
    """Decay of the weights' moving average (EMA), such as 0.999; None: no EMA"""

    # The schedule
    batch: int = 100
    """Problems per optimizer step, over all processes"""
    epochs: int = 50
    """Each has as many optimizer steps as there are batches in the training set"""
    warmup: int = 10
    """Epochs of exponential warm-up"""
    warmup_updates: int = 0
    """Optimizer steps of linear warm-up"""
    schedule: str = "steps"
    """steps (at milestones), cosine, constant or hold"""
    hold: float = 0.6
    """Of the schedule hold: share of the run before the learning rate falls"""
    milestones: tuple[int, ...] = ()
    """Epochs at which the learning rate is multiplied by decay"""
    decay: float = 0.1
    """Factor of the learning rate at a milestone"""

    # Validation and checkpoints
    validate_every: int = 1
    """Epochs between validations, which also choose the best checkpoint"""
    restart_below: float = 0.0
    """Restart, twice at most, a run of 1,000 steps or more whose final validation is lower"""
    watch_every: int = 5
    """Epochs between evaluations on larger problems; 0: never"""
    watch_count: int = 100
    """Number of larger problems"""
    checkpoint_every: int = 1
    """Epochs between checkpoints"""

    # The arithmetic
    precision: str = "fp32"
    """fp32, fp16 or bf16 (weights and optimizer stay fp32)"""

    # Notes
    notes: tuple[str, ...] = ()
    """Where sources disagree: which one this recipe follows, and how to get the other"""

    def __post_init__(self) -> None:
        """Check all fields; JSON and TOML lists become tuples."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):
                value = tuple(value)
                object.__setattr__(self, field.name, value)
            _check(field.name, str(field.type), value)
        if self.restart_below and not self.validation:
            raise RecipeError("validation = 0 holds nothing out, so restart_below must be 0, too")

    def changed(self, **changes: Any) -> Recipe:
        """The same recipe with some fields changed; a wrong name gets a suggestion."""
        known = tuple(field.name for field in fields(self))
        changes = {OLD_NAMES.get(word, word): value for word, value in changes.items()}
        for word in changes:
            if word not in known:
                near = " or ".join(map(repr, registry.nearest(word, known)))
                hint = f"did you mean {near}?" if near else "iterant train TASK --show prints all"
                raise RecipeError(f"a recipe has no field {word!r}; {hint}")
        return replace(self, **changes)

    def changed_by_user(self, **changes: Any) -> Recipe:
        """As `changed`, but fields that a user-defined network would ignore are an error."""
        net = str(changes.get("net") or self.net)
        if ":" in net and (ignored := [name for name in _NET_FIELDS if name in changes]):
            raise RecipeError(
                f"{', '.join(ignored)}: for networks that come with iterant; {net} is built from "
                "dims and channels alone, so write its sizes as defaults of its own"
            )
        return self.changed(**changes)

    def described(self) -> dict[str, Any]:
        """All fields by the names they have in JSON: four of them are in `OLD_NAMES`."""
        stored = {name: old for old, name in OLD_NAMES.items()}
        return {stored.get(name, name): value for name, value in asdict(self).items()}


_MOST_ITEMS = {"head": 16, "milestones": 1000}
_FROM_ZERO = Bounds(0, bounds.UPDATES.most)
_ANY = Bounds(0, 1_000_000)
_ABOVE_ZERO = Bounds(1e-300, 1_000_000)
_BOUNDS = {"width": bounds.WIDTH, "head": bounds.WIDTH, "hidden": bounds.WIDTH, "size": _FROM_ZERO,
           "count": bounds.COUNT, "data_seed": bounds.SEED, "iterations": bounds.STEPS,
           "pool_slots": bounds.COUNT, "pool_shortest": bounds.STEPS, "pool_longest": bounds.STEPS,
           "batch": bounds.COUNT, "warmup": _FROM_ZERO, "warmup_updates": _FROM_ZERO,
           "milestones": _FROM_ZERO, "watch_every": _FROM_ZERO, "watch_count": bounds.COUNT,
           "validation": Bounds(0, 0.9), "smoothing": Bounds(0, 0.99), "hold": Bounds(0, 0.99),
           "beta2": Bounds(0, 0.99999), "average": Bounds(1e-300, 0.9999999), "rate": _ABOVE_ZERO,
           "clip": _ABOVE_ZERO, "weight_decay": _ANY, "pool_settle": _ANY,
           "pool_noise": _ANY}  # fmt: skip
"""Bounds of numbers; other whole numbers count epochs, the rest are shares from 0 to 1."""
_CHOICES = {
    "objective": registry.known("objective"),
    "optimizer": ("adam", "adamw", "sgd", "muon"),
    "schedule": ("steps", "cosine", "constant", "hold"),
    "precision": registry.known("precision"),
}


def _check(name: str, kind: str, value: Any) -> None:
    """Check a field by its declared type."""
    if value is None and kind.endswith("None"):
        return
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            word = value if isinstance(value, str) else reprlib.repr(value)
            raise RecipeError(registry.unknown_name(name, word, _CHOICES[name]))
        return
    several, items = isinstance(value, tuple), value if isinstance(value, tuple) else (value,)
    types, word = ((int, float), "number") if "float" in kind else (int, "whole number")
    limits = _BOUNDS.get(name, Bounds(0, 1) if "float" in kind else bounds.UPDATES)
    numbers = all(isinstance(item, types) and limits.holds(item) for item in items)
    if kind == "bool":
        valid, requirement = isinstance(value, bool), "true or false"
    elif kind == "str":
        valid, requirement = isinstance(value, str), "a word"
    elif name == "notes":
        valid = several and all(isinstance(line, str) for line in items)
        requirement = "lines of text"
    elif name == "size":  # the task checks the number
        valid, requirement = numbers and len(items) == 1 + several, "a number, or two for a range"
    elif name in _MOST_ITEMS:
        valid = several and numbers and len(items) <= _MOST_ITEMS[name]
        requirement = f"at most {_MOST_ITEMS[name]} whole numbers {limits}"
    else:
        valid, requirement = numbers and not several, f"a {word} {limits}"
    if not valid:
        raise RecipeError(f"{name} must be {requirement}, got {reprlib.repr(value)}")


def recipe_from_file(path: Path, base: Recipe) -> Recipe:
    """``base`` with the fields that a TOML file changes."""
    return base.changed(**read_toml(path))


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


_FACTOR = "decay 0.01 as in the paper's table; the authors' code has 0.1: recipe paper-code"
_CHESS = (
    "warm-up 3 epochs, 120 epochs and milestones 100/110 as in the paper's table; the authors' "
    "code has 10, 130 and 100/115: recipe paper-code"
)
_DT_RATE = (
    "rate 1e-4 for DT with alpha 1 as in the authors' code; the paper's table, and the code for "
    "other alphas, have 1e-3"
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
    "an hour of one H200; a time limit trains it for minutes at a time, and a branch that starts "
    "from it lets the rate fall (docs/chess.md). On a CPU try width 32, batch 64, pool_slots 256 "
    "and precision fp32"
)

_CHESS_ON_A_CPU = (
    "on two CPU cores: with the 1,600 puzzles that ship, about a minute, and no held-out puzzle is "
    "solved; with 600,000 puzzles (docs/chess.md), half of the held-out ones after 1,000 steps, in "
    "about 4 minutes. The network that ships solves 98 % of those: iterant solve chess"
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
    ("prefix-sums", "dt"): {"rate": 1e-4, "notes": (_FACTOR, _DT_RATE, _VALIDATION)},
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

_NO_BETTER_RECIPE = (
    "no recipe is known to be better for this task than the quick one, which this is"
)

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
        "watch_every": 1, "watch_count": 50, "notes": (_CHESS_ON_A_CPU,),
    },
}  # fmt: skip

_BEST: dict[str, Fields] = {
    "prefix-sums": {
        "net": "local-rule", "width": 16, "hidden": 64, "isotropic": False,
        "objective": "pool", "iterations": 40, "pool_slots": 1024, "pool_fresh": 0.25,
        "pool_damage": 0.0, "pool_noise": 0.1, "pool_shortest": 12, "pool_longest": 12,
        "pool_every": True, "pool_settle": 0.3, "optimizer": "adam", "rate": 4e-3,
        "weight_decay": 0.0, "clip": 1.0, "average": 0.99, "batch": 100, "epochs": 5, "warmup": 0,
        "warmup_updates": 100, "schedule": "hold", "hold": 0.6,
        "watch_every": 5, "watch_count": 100, "checkpoint_every": 5,
    },
    "mazes": {
        "net": "local-rule", "width": 24, "hidden": 80, "messages": True, "masked": True,
        "problems": "start=any", "objective": "pool", "iterations": 150, "pool_slots": 1024,
        "pool_fresh": 0.25, "pool_damage": 0.0, "pool_noise": 0.6, "pool_noise_varied": True,
        "pool_shortest": 12, "pool_longest": 12, "pool_until_solved": True, "optimizer": "adam",
        "rate": 8e-3, "weight_decay": 0.0, "clip": 1.0, "batch": 64, "epochs": 6, "warmup": 0,
        "warmup_updates": 100, "schedule": "hold", "hold": 0.6, "validate_every": 6,
        "restart_below": 0.99, "watch_every": 6, "watch_count": 200, "checkpoint_every": 1,
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

_QUICK_ENOUGH = ("mazes",)
"""Tasks whose best recipe trains in minutes on a CPU: ``quick`` is the same, but for networks that
``best`` is not made for."""

_BEST_NETS: dict[tuple[str, str], Fields] = {
    ("mazes", "max-plus"): {
        "width": 8, "hidden": 4, "problems": "start=any,walls=0.3", "size": 7, "count": 20_000,
        "iterations": 36, "alpha": 0.0, "optimizer": "adam", "rate": 0.03, "weight_decay": 0.0,
        "clip": 1.0, "batch": 64, "epochs": 2, "warmup": 0, "warmup_updates": 20,
        "schedule": "hold", "hold": 0.5, "validate_every": 2, "watch_every": 2, "watch_count": 50,
    },
}  # fmt: skip

_GENERIC: Fields = {
    "width": 64, "objective": "pool", "pool_slots": 512, "batch": 50, "epochs": 5,
    "rate": 2e-3, "warmup": 0, "schedule": "cosine", "weight_decay": 0.0, "clip": 1.0,
    "average": 0.99, "watch_every": 1, "watch_count": 50,
}  # fmt: skip
"""``quick`` for user-defined tasks."""

RECIPES = ("paper", "paper-code", "quick", "best")
"""Names of the recipes; each works for every task."""


def _fields(name: str, task: str, net: str) -> Fields:
    """The fields in which a recipe differs from the defaults."""
    if name.startswith("paper"):
        paper = {**_PAPER.get(task, {}), **_PAPER_NETS.get((task, net), {})}
        if name == "paper":
            return paper
        code = _CODE.get(task, {})
        notes = [note for note in paper.get("notes", ()) if note not in (_FACTOR, _CHESS)]
        return {**paper, **code, "notes": (*code.get("notes", ()), *notes)}
    if (task, net) in _BEST_NETS:
        return _BEST_NETS[task, net]
    quick = {**_GENERIC, **_QUICK.get(task, {})}
    if name == "quick" and not (task in _QUICK_ENOUGH and net == _default_net("best", task)):
        return quick
    best = _BEST.get(task, {**quick, "notes": (_NO_BETTER_RECIPE,)})
    # The recipe's width is for its own network; other networks get the paper's width.
    other = task in _BEST and net != _default_net("best", task)
    return {**best, "width": None} if other else best


def _default_net(name: str, task: str) -> str:
    """The network of a recipe if none is given."""
    best = name == "best" or (name == "quick" and task in _QUICK_ENOUGH)
    return str(_BEST.get(task, {}).get("net", "dt-recall")) if best else "dt-recall"


def recipe(name: str, task: str, net: str | None = None) -> Recipe:
    """The recipe of that name for a task, and for another network if ``net`` is given."""
    if name not in RECIPES:
        raise UnknownName(registry.unknown_name("recipe", name, RECIPES))
    if not isinstance(net, str | None):
        raise RecipeError(f"net must be a word, got {net!r}")
    net = net or _default_net(name, task)
    return Recipe(**{**_fields(name, task, net), "name": name, "net": net})


def label_changes(changed: Recipe, task: str) -> Recipe:
    """The recipe, renamed to "paper, changed" where fields differ from the recipe of that name."""
    name = changed.name
    if name not in RECIPES or changed == recipe(name, task, changed.net):
        return changed
    return changed.changed(name=f"{name}, changed")
