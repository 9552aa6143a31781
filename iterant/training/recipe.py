"""Training recipes: everything that decides a run, as one frozen object.

    >>> recipe("paper", "mazes").alpha
    0.01
    >>> recipe("paper", "prefix-sums").changed(width=64, epochs=20)

The names of fields are flags (``--width 64``), lines of a file (``--recipe-file my.toml``) and
keyword arguments in Python. The named recipes are in ``recipes.py``.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from iterant import bounds, registry
from iterant.bounds import Bounds
from iterant.errors import RecipeError, UnknownName
from iterant.io.files import read_toml
from iterant.training.recipes import ANY, NAMED

RECIPES = tuple(NAMED)
"""Names of the recipes; each works for every task."""

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
"""Fields of earlier versions, and the values that are left."""

_NET_FIELDS = ("width", "head", "group_norm", "bounded", "hidden", "isotropic", "messages",
               "masked")  # fmt: skip
"""Fields that configure the networks of iterant; user-defined ones do not get them."""

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
        "restart, twice at most, a run of 1,000 steps or more whose final validation is lower")
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


def label_changes(changed: Recipe, task: str) -> Recipe:
    """The recipe, renamed to "paper, changed" where fields differ from the recipe of that name."""
    name = changed.name
    if name not in RECIPES or changed == recipe(name, task, changed.net):
        return changed
    return changed.changed(name=f"{name}, changed")
