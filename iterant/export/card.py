"""The model card of an exported network: what it is, in words that people and the hub read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from iterant import names
from iterant.export.source import Source
from iterant.nets import depth_of
from iterant.zoo.cards import card as shipped_card
from iterant.zoo.cards import written

_RECIPE = ("objective", "epochs", "batch", "alpha", "optimizer", "rate", "precision")
"""What of a recipe is worth a line in a card."""


def card(source: Source) -> str:
    """The text of ``README.md``: a header that the hub reads, then prose."""
    return "\n".join([*_header(source), "", *_what(source), "", *_use(source), *_training(source)])


def pictures(source: Source) -> list[Path]:
    """The files that the card of a shipped network shows; nothing from outside its folder."""
    if source.folder is None or "card" not in source.about:
        return []
    named = shipped_card(str(source.folder)).pictures
    found = [source.folder / name for name in named if Path(name).name == name]
    return [path for path in found if path.is_file()]


def _header(source: Source) -> list[str]:
    tags = ["iterant", "logical-extrapolation", "deep-thinking", *([source.task or ""])]
    return [
        "---",
        "library_name: iterant",
        "tags:",
        *(f"- {json.dumps(tag)}" for tag in tags if tag),
        "---",
    ]


def _what(source: Source) -> list[str]:
    config, depth = source.config, depth_of(source.net)
    task = f" for the task `{source.task}`" if source.task else ""
    thinks = (
        "It repeats one step: harder problems take more iterations, not more weights."
        if depth is None
        else f"It has {names.counted(depth, 'iteration')}, each with weights of its own."
    )
    return [
        f"# {source.name}",
        "",
        f"A network of kind `{source.kind}` with {source.parameters:,} parameters{task}. {thinks}",
        "",
        "| field | value |",
        "|---|---|",
        *(f"| {name} | `{_shown(value)}` |" for name, value in config.items()),
    ]


def _use(source: Source) -> list[str]:
    if source.task is None:
        problems = ["inputs = ...   # what it was trained on"]
    else:
        problems = [
            f"task = iterant.task({json.dumps(source.task)})",
            "inputs = task.sample(4, seed=1).inputs",
        ]
    return [
        "## Use",
        "```python",
        "import iterant",
        "",
        'net = iterant.load("PATH/TO/THIS/FOLDER")',
        *problems,
        "answer = iterant.solve(net, inputs, max_steps=1000)",
        "print(answer.prediction, answer.steps, answer.settled)",
        "```",
        "",
    ]


def _training(source: Source) -> list[str]:
    """What the folder says about the training; only what is known is claimed."""
    about = dict(source.about)
    if source.folder is not None and "card" in about:
        # A shipped network has a card of its own; its first lines say what is said above.
        return [
            "## Training and figures",
            *written(shipped_card(str(source.folder))).splitlines()[4:],
            "",
        ]
    recipe = about.pop("recipe", None)
    rows: list[tuple[str, Any]] = []
    if isinstance(recipe, dict):
        rows += [(name, recipe[name]) for name in _RECIPE if recipe.get(name) is not None]
    rows += list(about.items())
    if not rows:
        return ["## Training", "How it was trained is not recorded.", ""]
    return [
        "## Training",
        "| what | value |",
        "|---|---|",
        *(f"| {name} | `{_shown(value)}` |" for name, value in rows),
        "",
    ]


def _shown(value: Any) -> str:
    """A value in one cell of a table."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")
