"""A training recipe: everything that decides a run, as one frozen object.

    >>> recipe("paper", "mazes").alpha
    0.01
    >>> recipe("paper", "prefix-sums").changed(width=64, epochs=20)

The same names are flags (``--width 64``), lines of a file (``--recipe-file my.toml``) and keyword
arguments in Python. The command line shows the strings below the fields as help.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from iterant import registry
from iterant.errors import RecipeError

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
    """dt, dt-recall, ff, ff-recall, local-rule, or your own class as module:Class"""
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
    """Share of the states that are corrupted"""
    pool_damage_kinds: tuple[str, ...] = ("zeros", "noise", "another")
    """How: zeros, noise, another (slot's state), jitter (added noise), disc (zeros in a disc)"""
    pool_shake: float = 0.0
    """Standard deviation of the noise added to the features before every iteration"""
    pool_shake_varied: bool = False
    """Draw that strength for each problem, uniformly from 0 to pool_shake"""
    pool_shortest: int = 10
    """Fewest iterations of a segment"""
    pool_longest: int | None = None
    """Most iterations of a segment; None: as many as iterations"""
    pool_every: bool = False
    """A loss after every iteration of a segment, not only after the last"""
    pool_settle: float = 0.0
    """Weight of a penalty: mean absolute change of the features per iteration"""
    pool_hard: bool = False
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
    again_below: float = 0.0
    """Restart, twice at most, a run of 1,000 steps or more whose final validation is lower"""
    choose: str = "validation"
    """What chooses the best weights: validation, or watch (the accuracy on larger problems)"""
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
        for name in ("head", "milestones", "notes", "size", "pool_damage_kinds"):
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        _check(self)

    def changed(self, **changes: Any) -> Recipe:
        """The same recipe with some fields changed; a wrong name gets a suggestion."""
        known = tuple(field.name for field in fields(self))
        for word in changes:
            if word not in known:
                near = difflib.get_close_matches(word, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "see --show for all of them"
                raise RecipeError(f"a recipe has no field {word!r}; {hint}")
        return replace(self, **changes)

    def asked(self, **changes: Any) -> Recipe:
        """The same as `changed`, but also refuse fields that a user-defined network ignores."""
        net = str(changes.get("net") or self.net)
        if ":" in net and (ignored := [name for name in _NET_FIELDS if name in changes]):
            raise RecipeError(
                f"{', '.join(ignored)}: for networks that come with iterant; {net} is built from "
                "dims and channels alone, so write its sizes as defaults of its own"
            )
        return self.changed(**changes)

    def described(self) -> dict[str, Any]:
        """All fields by name, for JSON."""
        return asdict(self)


_WHOLE = {"iterations": 1, "batch": 1, "epochs": 1, "warmup": 0, "validate_every": 1,
          "watch_every": 0, "watch_count": 1, "checkpoint_every": 1, "pool_slots": 1,
          "pool_shortest": 1, "data_seed": 0, "hidden": 1, "warmup_updates": 0}  # fmt: skip
_SHARES = {"alpha": (0, 1), "validation": (0, 0.9), "smoothing": (0, 0.99), "pool_fresh": (0, 1),
           "pool_stay": (0, 1), "pool_swap": (0, 1), "places": (0, 1),
           "pool_damage": (0, 1), "momentum": (0, 1), "decay": (0, 1), "hold": (0, 0.99),
           "beta2": (0, 0.99999), "again_below": (0, 1)}  # fmt: skip
_CHOICES = ("objective", "optimizer", "schedule", "choose", "precision")


def _check(recipe: Recipe) -> None:
    """Check every field; the error names the first bad one."""
    values = vars(recipe)

    def require(name: str, valid: bool, text: str, hint: str = "", remedy: str = "") -> None:
        if not valid:
            raise RecipeError(f"{name}{hint} must {text}, got {values[name]!r}{remedy}")

    for name, least in _WHOLE.items():
        hint = " (m; the paper has 30)" if name == "iterations" else ""
        whole = _is_whole(values[name], least)
        require(name, whole, f"be a whole number from {least} on", hint)
    for name in ("width", "count", "pool_longest"):
        valid = values[name] is None or _is_whole(values[name], 1)
        require(name, valid, "be a whole number above 0")
    for name, (low, high) in _SHARES.items():
        valid = _is_number(values[name]) and low <= values[name] <= high
        require(name, valid, f"lie between {low} and {high}")
    require("rate", _is_number(recipe.rate) and recipe.rate > 0, "be above 0")
    clip, average = recipe.clip, recipe.average
    require("clip", clip is None or (_is_number(clip) and clip > 0), "be above 0")
    valid = average is None or (_is_number(average) and 0 < average < 1)
    require("average", valid, "lie between 0 and 1", remedy="; try 0.999")
    for name in ("weight_decay", "pool_settle", "pool_shake"):
        require(name, _is_number(values[name]) and values[name] >= 0, "be 0 or more")
    for field in fields(recipe):
        if field.type == "bool":
            require(field.name, isinstance(values[field.name], bool), "be true or false")
    if recipe.again_below and not recipe.validation:
        raise RecipeError("validation = 0 holds nothing out, so again_below must be 0, too")
    for name, least in (("head", 1), ("milestones", 0)):
        value = values[name]
        valid = isinstance(value, tuple) and all(_is_whole(item, least) for item in value)
        valid = valid or (name == "head" and value is None)
        require(name, valid, f"be whole numbers from {least} on")
    size = recipe.size
    pair = isinstance(size, tuple) and len(size) == 2 and all(_is_whole(end, 0) for end in size)
    require("size", size is None or _is_whole(size, 1) or pair, "be a number, or two for a range")
    notes, kinds = recipe.notes, recipe.pool_damage_kinds
    valid = isinstance(notes, tuple) and all(isinstance(line, str) for line in notes)
    require("notes", valid, "be lines of text")
    for name in ("name", "net"):
        require(name, isinstance(values[name], str), "be a word")
    known = ", ".join(registry.known("damage"))
    valid = isinstance(kinds, tuple) and len(kinds) > 0
    require("pool_damage_kinds", valid, f"be one or more of {known}")
    choices = [(kind, values[kind]) for kind in _CHOICES] + [("damage", kind) for kind in kinds]
    for kind, word in choices:
        if word not in registry.known(kind):
            raise RecipeError(registry.unknown_name(kind, str(word), registry.known(kind)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def recipe_from_file(path: Path, base: Recipe) -> Recipe:
    """``base`` with the fields that a TOML file changes."""
    try:
        with path.open("rb") as file:
            content = file.read(2**20 + 1)
        if len(content) > 2**20:
            raise RecipeError(f"{path.name} is larger than 1 MiB, too large for a recipe file")
        changes = tomllib.loads(content.decode())
    except OSError as error:
        name = path.name or path
        raise RecipeError(f"cannot read the recipe file {name}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecipeError(f"{path.name} is not a TOML file: {error}") from error
    return base.changed(**changes)
