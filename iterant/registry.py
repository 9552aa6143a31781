"""Names to objects: ``task("mazes")``, ``find("net", "local-rule")``.

    >>> task("mazes").spec.train_size
    9

A module is imported only when one of its names is looked up. A user-defined class needs no entry
here: it is named ``module:Class``.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import UnknownName, UsageError

if TYPE_CHECKING:
    import torch

    from iterant.halting import Rule
    from iterant.tasks.protocol import Task


LOCATIONS: dict[str, dict[str, str]] = {
    "task": {
        "prefix-sums": "iterant.tasks.prefix_sums:PrefixSums",
        "mazes": "iterant.tasks.mazes.task:Mazes",
        "chess": "iterant.tasks.chess.task:Chess",
    },
    "net": {
        "deep-thinking": "iterant.nets.deep_thinking:DeepThinking",
        "feed-forward": "iterant.nets.deep_thinking:FeedForward",
        "local-rule": "iterant.nets.local_rule:LocalRule",
    },
    "readout": {
        "argmax": "iterant.nets.protocol:Argmax",
        "argmax-open": "iterant.nets.protocol:ArgmaxOpen",
        "two-best": "iterant.nets.protocol:TwoBest",
    },
    "rule": {
        "rest": "iterant.halting:Resting",
        "stable": "iterant.halting:StableAnswer",
        "plain": "iterant.halting:Fixed",
        "max-confidence": "iterant.halting:MostConfident",
    },
    "objective": {
        "progressive": "iterant.training.objectives:Progressive",
        "progressive-n0": "iterant.training.objectives:Progressive",
        "run-time-weighted": "iterant.training.objectives:RunTimeWeighted",
        "pool": "iterant.training.replay_pool:ReplayPool",
    },
    "picture": {
        "description": "iterant.draw.figure:png",
        "curve": "iterant.draw.plots:curve_png",
    },
    "precision": {"fp32": "torch:float32", "bf16": "torch:bfloat16", "fp16": "torch:float16"},
}


def known(kind: str) -> tuple[str, ...]:
    """The names of one kind, in the order of help texts: ``known("task")``."""
    return tuple(LOCATIONS[kind])


def find(kind: str, word: str) -> Any:
    """The class or function of a name, or of ``module:object``."""
    module_name, _, attribute = LOCATIONS[kind].get(word, word).partition(":")
    if not attribute:
        raise UnknownName(unknown_name(kind, word, known(kind)))
    dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
    if dotted != module_name:
        raise UnknownName(f"{kind} {word!r} names a file; wanted {dotted}:{attribute}")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:  # ValueError: an empty module name
        raise UnknownName(
            f"{kind} {word!r} cannot be imported ({error}); wanted one of "
            f"{', '.join(known(kind))}, or module:Class, installed or in this folder"
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise UnknownName(
            f"the module {module_name!r} holds no {attribute!r}; check the name of the class"
        ) from error


def name_of(kind: str, cls: type) -> str:
    """The name under which `find` returns this class, also in another process."""
    module, name = cls.__module__, cls.__qualname__
    main = sys.modules.get("__main__")
    if module == "__main__" and isinstance(getattr(main, "__file__", None), str):
        # Other processes import a script by the name of its file.
        module = str(vars(main)["__file__"]).replace("\\", "/").rpartition("/")[2].partition(".")[0]
    location = f"{module}:{name}"
    names = (word for word, known_location in LOCATIONS[kind].items() if known_location == location)
    return next(names, location)


def unknown_name(kind: str, word: str, words: tuple[str, ...]) -> str:
    """The error message for an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(word, words, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"choose one of: {', '.join(words)}"
    return f"unknown {kind} {word!r}; {hint}"


def device(word: str = "auto", *, present: bool = True) -> torch.device:
    """The torch device of that name; ``auto``: the GPU if there is one.

    Each process of torchrun takes the GPU of its local rank. ``present=False``: check the name
    only, not whether this machine has such a GPU.
    """
    import torch

    if word == "auto":
        word = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, index = word.partition(":")
    if kind not in ("cpu", "cuda", "mps") or not (index.isdecimal() or word == kind):
        raise UsageError(f"unknown device {word!r}; use auto, cpu, cuda or cuda:0")
    if kind == "cuda" and not index:
        word = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    if kind == "mps":
        missing = not torch.backends.mps.is_available()
    else:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        missing = kind == "cuda" and int(word.partition(":")[2]) >= count
    if missing and present:
        raise UsageError(f"device {word!r} is not available; use --device cpu")
    return torch.device(word)


def task(word: str, **options: Any) -> Task:
    """The task of this name, or a user-defined class as ``module:Class``.

        >>> task("mazes").spec.train_size
        9
        >>> task("iterant.tasks.prefix_sums:PrefixSums").spec.watch_sizes
        (48, 64)

    Options are arguments of the task, ``task("chess", data="puzzles/")``; None leaves one out.
    """
    if word and word not in known("task") and Path(word).is_dir():
        raise UsageError(
            f"{word!r} is a folder, and a task is wanted: {', '.join(known('task'))} or "
            f"module:Class; a run is given as --net {word} or --resume {word}"
        )
    cls = find("task", word)
    arguments = {name: value for name, value in options.items() if value is not None}
    try:
        instance: Task = cls(**arguments)
    except TypeError as error:
        given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        raise UsageError(f"task {word!r} cannot be made with ({given}): {error}") from error
    protocol = find("task", "iterant.tasks.protocol:Task")
    members = [name for name in vars(protocol) if not name.startswith("_")]
    missing = ", ".join(name for name in members if not hasattr(instance, name))
    if missing:
        raise UsageError(f"{word!r} is no task: it lacks {missing}; add that or choose another")
    if word not in known("task"):
        find("task", "iterant.tasks.user:check_task")(instance, word)
    return instance


def rule(word: str, **options: Any) -> Rule:
    """The halting rule of this name; an option that is None is left out.

    >>> rule("stable", patience=5, tolerance=None)
    StableAnswer(patience=5)
    """
    arguments = {name: value for name, value in options.items() if value is not None}
    cls: Callable[..., Rule] = find("rule", "rest" if word == "settled" else word)  # before 0.2
    try:
        return cls(**arguments)
    except TypeError:
        names = " or ".join(arguments)
        raise UsageError(f"the rule {word} takes no {names}; leave it out") from None
