"""Names to objects: ``task("mazes")``, ``find("net", "local-rule")``.

A module is imported only when one of its names is looked up. A user-defined class needs no entry
here: it is named ``module:Class``. Importing a module runs its code, so `find` imports one only if
the user typed the name or passed ``trust=True`` (`allow`).
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iterant.errors import UnknownName, UntrustedCode, UsageError, argument

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
        "max-plus": "iterant.nets.max_plus:MaxPlus",
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
        "pool": "iterant.training.objectives:ReplayPool",
    },
    "picture": {
        "description": "iterant.draw.figure:png",
        "curve": "iterant.draw.plots:curve_png",
        "film": "iterant.draw.animation:solution_gif",
    },
    "precision": {"fp32": "torch:float32", "bf16": "torch:bfloat16", "fp16": "torch:float16"},
    "job": {
        "train-and-evaluate": "iterant.runner.worker:train_and_evaluate",
        "train-and-measure": "iterant.experiments.reproduce:train_and_measure",
    },
}

_PROTOCOLS = {
    "task": "iterant.tasks.protocol:Task",
    "net": "iterant.nets.protocol:Net",
    "readout": "iterant.nets.protocol:Readout",
    "rule": "iterant.halting:Rule",
}
"""The methods that a user-defined class must have; there are none of the other kinds."""

_allowed: set[str] = set()
"""The names ``module:Class`` that `find` may import in this process."""


def known(kind: str) -> tuple[str, ...]:
    """The names of one kind, in the order of help texts: ``known("task")``."""
    return tuple(LOCATIONS[kind])


def allow(names: Any) -> None:
    """Let `find` import these names ``module:Class``: one, or all in a configuration.

    Call it with what the caller gave, never with what a file holds, unless the caller trusts it.
    """
    if isinstance(names, str):
        if ":" in names:
            _allowed.add(names)
    elif isinstance(names, Mapping | list | tuple):
        for each in names.values() if isinstance(names, Mapping) else names:
            allow(each)


def allowed() -> tuple[str, ...]:
    """All names that `allow` was given in this process."""
    return tuple(sorted(_allowed))


@contextlib.contextmanager
def names_of_file(path: object, content: Any, *, trust: bool) -> Iterator[None]:
    """Look up names from a file inside the block: ``trust`` allows them, errors name the file."""
    if trust:
        allow(content)
    try:
        yield
    except UntrustedCode as error:
        raise UntrustedCode(f"{str(path)!r}: {error}") from error


def find(kind: str, word: str) -> Any:
    """The class or function of a registered name, or the class of an allowed ``module:Class``."""
    locations = LOCATIONS[kind]
    if not isinstance(word, str):
        raise UnknownName(f"a {kind} is given by its name, got {word!r}")
    if word in locations:
        return _import(locations[word])
    module_name, _, attribute = word.partition(":")
    if not attribute or kind not in _PROTOCOLS:
        raise UnknownName(unknown_name(kind, word, known(kind)))
    dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
    if dotted != module_name:
        raise UnknownName(f"{kind} {word!r} names a file; wanted {dotted}:{attribute}")
    if word not in _allowed:
        raise UntrustedCode(
            f"the {kind} {word!r} is not part of iterant, and loading it would import the module "
            f"{module_name!r}; if you trust that code, add {argument('trust', True)}"
        )
    # The current folder is on the path as for scripts, but last, so that no file in it replaces an
    # installed module, and only when user-defined code is asked for, so that no file in it is taken
    # for a missing optional package.
    with contextlib.suppress(OSError):  # the folder was deleted
        if (here := str(Path.cwd())) not in sys.path and "" not in sys.path:
            sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:  # ValueError: an empty module name
        raise UnknownName(
            f"{kind} {word!r} cannot be imported ({error}); wanted one of "
            f"{', '.join(known(kind))}, or module:Class, installed or in this folder"
        ) from error
    cls = getattr(module, attribute, None)
    if cls is None:
        raise UnknownName(
            f"the module {module_name!r} holds no {attribute!r}; check the name of the class"
        )
    protocol = vars(_import(_PROTOCOLS[kind])).items()
    methods = [name for name, value in protocol if callable(value) and not name.startswith("_")]
    # Checked before anything is called: the name may be that of any function.
    if not isinstance(cls, type) or not all(callable(getattr(cls, name, None)) for name in methods):
        raise UsageError(
            f"{word!r} is not a {kind}: wanted a class with the methods {', '.join(methods)}"
        )
    return cls


def _import(location: str) -> Any:
    module_name, _, attribute = location.partition(":")
    return getattr(importlib.import_module(module_name), attribute)


def name_of(kind: str, cls: type) -> str:
    """The name under which `find` returns this class, also in another process."""
    module = cls.__module__
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if module == "__main__" and script:
        module = Path(script).stem  # other processes import a script by the name of its file
    location = f"{module}:{cls.__qualname__}"
    names = (word for word, known_location in LOCATIONS[kind].items() if known_location == location)
    return next(names, location)


def unknown_name(kind: str, word: str, words: tuple[str, ...], *, or_give: str = "") -> str:
    """The error message for an unknown name, with the nearest known one.

    >>> unknown_name("network", "dtt", ("dt", "ff"), or_give="module:Class")
    "unknown network 'dtt'; did you mean 'dt'? Or give module:Class"
    """
    near = difflib.get_close_matches(word, words, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"choose one of: {', '.join(words)}"
    other = f"{' Or' if near else '; or'} give {or_give}" if or_give else ""
    return f"unknown {kind} {word!r}; {hint}{other}"


_SYNONYMS = {
    "max_steps": "steps num_steps n_steps iters max_iters iterations num_iterations n_iter depth",
    "epochs": "steps num_steps n_steps max_steps n_iter updates",
    "iterations": "steps num_steps n_steps max_steps max_iters n_iter m t depth",
    "lr": "learning_rate lrate", "weight_decay": "wd l2", "lr_decay": "gamma", "ema_decay": "ema",
    "grad_clip": "clip_grad max_grad_norm", "batch_size": "bs", "optimizer": "opt optim",
    "objective": "loss criterion", "width": "channels hidden_size",
    "net": "model arch architecture", "precision": "dtype amp half fp16",
    "data": "dataset data_path", "validation": "val_split", "size": "difficulty",
    "count": "n num num_samples n_samples num_problems train_size",
    "checkpoint_every": "save_every", "seed": "random_seed random_state", "device": "gpu cuda",
    "out": "output output_dir out_dir path save", "time_limit": "time timeout",
    "resume": "checkpoint from_checkpoint resume_from", "reporter": "progress verbose",
    "recipe_file": "config",
}  # fmt: skip
"""What others call fields of recipes and flags, where that is not similar to our name."""


def nearest(word: str, words: Collection[str]) -> list[str]:
    """The names that a wrong name of a field or a flag may mean: synonyms, else a similar one.

    >>> nearest("learning-rate", ["lr", "alpha"]), nearest("steps", ["epochs", "iterations"])
    (['lr'], ['epochs', 'iterations'])
    """
    word = word.lower().replace("-", "_")
    known = [name for name, others in _SYNONYMS.items() if word in others.split()]
    return [name for name in known if name in words] or difflib.get_close_matches(word, words, n=1)


def device(word: str | torch.device = "auto", *, present: bool = True) -> torch.device:
    """The torch device of that name; ``auto``: the GPU if there is one.

    Each process of torchrun takes the GPU of its local rank. ``present=False``: check the name
    only, not whether this machine has such a GPU.
    """
    import torch

    word = str(word)
    if word == "auto":
        word = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, index = word.partition(":")
    if kind not in ("cpu", "cuda", "mps") or not (index.isdecimal() or word == kind):
        raise UsageError(f"unknown device {word!r}; use auto, cpu, cuda or cuda:0")
    if kind == "cuda":
        index = index or os.environ.get("LOCAL_RANK", "0")
        word = f"cuda:{index}"
        missing = int(index) >= torch.cuda.device_count()
    else:
        missing = kind == "mps" and not torch.backends.mps.is_available()
    if missing and present:
        raise UsageError(f"device {word!r} is not available; use {argument('device', 'cpu')}")
    return torch.device(word)


def task(word: str, **options: Any) -> Task:
    """The task of a registered name, or of an allowed ``module:Class``; as `find`.

        >>> task("mazes").spec.train_size
        9

    Options are arguments of the task, ``task("chess", data="puzzles/")``; None leaves one out.
    ``data`` may come from a file, so its type is checked: it must be a path.
    """
    # os.path, because Path.is_dir raises an error for a word that cannot be a path.
    if isinstance(word, str) and word not in known("task") and os.path.isdir(word):  # noqa: PTH112
        raise UsageError(
            f"{word!r} is a folder, and a task is wanted: {', '.join(known('task'))} or "
            f"module:Class; a run is given as {argument('net', word)} or {argument('resume', word)}"
        )
    if not isinstance(data := options.get("data"), str | os.PathLike | None):
        raise UsageError(f"data must be the path of a file or folder, got {data!r}")
    instance: Task = _make("task", word, options)
    if word not in known("task"):
        _import("iterant.tasks.user:check_task")(instance, word)
        allow(instance.spec.readout)  # its own code names it
    return instance


def rule(word: str, **options: Any) -> Rule:
    """The halting rule of this name; an option that is None is left out.

    >>> rule("stable", patience=5, tolerance=None)
    StableAnswer(patience=5)
    """
    made: Rule = _make("rule", "rest" if word == "settled" else word, options)  # before 0.2
    return made


def _make(kind: str, word: str, options: dict[str, Any]) -> Any:
    """An instance of the class of that name, with the options that are not None."""
    cls = find(kind, word)
    arguments = {name: value for name, value in options.items() if value is not None}
    try:
        return cls(**arguments)
    except TypeError as error:
        given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        raise UsageError(f"{kind} {word!r} cannot be made with ({given}): {error}") from error
