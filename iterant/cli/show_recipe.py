"""``iterant train … --show``: a recipe with every open question answered, to read or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from iterant.cli.recipe_flags import recipe_fields
from iterant.cli.screen import console
from iterant.training.recipe import Recipe

if TYPE_CHECKING:
    from iterant.tasks.protocol import Task
    from iterant.training.plan import Plan


def show_recipe(task: Task, recipe: Recipe, base: Recipe, *, as_json: bool) -> None:
    """Print the recipe, what differs from the one in the book, and what it comes to."""
    from iterant.training.plan import plan

    found = plan(task, recipe)
    if as_json:
        whole = {"task": task.spec.name, "recipe": recipe.described(), **asdict(found)}
        print_plain(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    _print_table(task, recipe, base, found)


def print_plain(text: str) -> None:
    """Text as it is, however wide."""
    console().print(text, soft_wrap=True)


def _print_table(task: Task, recipe: Recipe, base: Recipe, found: Plan) -> None:
    from rich.table import Table

    from iterant.training.plan import plan

    screen = console()
    screen.print(f"{task.spec.title}: recipe {recipe.name}", style="bold")
    answers, before, section = _answers(found), _answers(plan(task, base)), ""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    for field in recipe_fields():
        if field.name in ("name", "notes"):
            continue
        if field.section != section:
            section = field.section
            table.add_row()
            table.add_row(section)
        value, old = getattr(recipe, field.name), getattr(base, field.name)
        text, was = (
            _written(found.get(field.name) if given is None else given)
            for given, found in ((value, answers), (old, before))
        )
        about = f"({base.name}: {was}) " if value != old else ""
        table.add_row(f"  {field.name}", text, f"{about}{field.words}")
    screen.print(table)
    screen.print()
    kind = found.network["kind"]
    for line in (
        f"network: {kind}, {found.parameters:,} parameters",
        f"problems: {found.problems:,} trained on, {found.held_out:,} held out for validation",
        f"updates: {found.updates_per_epoch:,} an epoch, {found.updates:,} in all",
        *(f"note: {note}" for note in recipe.notes),
    ):
        screen.print(line, soft_wrap=not screen.is_terminal)


def _answers(found: Plan) -> dict[str, Any]:
    """What a field that is None comes to."""
    config = found.network["config"]
    return {
        "width": config.get("width"),
        "head": config.get("head"),
        "size": found.size,
        "count": found.problems + found.held_out,
    }


def _written(value: Any) -> str:
    """A value as its flag takes it."""
    if isinstance(value, tuple | list):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
