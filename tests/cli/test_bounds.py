"""Every number that a command takes has bounds, checked before any work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from iterant.errors import UsageError

sys.path.append(str(Path(__file__).parents[1] / "faults"))
from fuzzing import all_commands

WORDS: dict[str, dict[str, str]] = {
    "solve": {"": "prefix-sums", "--size": "8", "--max-steps": "9"},
    "sample": {"": "mazes", "--size": "5"},
    "demo": {"": "--no-browser"},
    "train": {"": "prefix-sums --show"},
    "evaluate": {"": "prefix-sums", "--size": "8", "--count": "2", "--max-steps": "9"},
    "analyze": {"": "prefix-sums", "--what": "clean", "--size": "8", "--count": "2",
                "--max-steps": "9"},
    "reproduce": {"": "fig-width --results none"},
    "sweep": {"": "study.toml --on nowhere"},
    "bench train": {"--width": "4", "--steps": "1", "--rounds": "1", "--batch": "2"},
    "bench solve": {"--task": "prefix-sums", "--size": "8", "--rounds": "1", "--count": "1"},
}  # fmt: skip
"""The shortest valid work of each command that takes numbers; its positional words are under ''."""
TEXTS = ("--size", "--seeds", "--time-limit", "--time", "--budget")
"""Flags whose text contains numbers."""
NEVER = [str(10**30), str(-(10**30)), "-1", "nan", "inf", "-inf", "1e400", "9" * 5000]
SOMETIMES = ["0", "-0", str(2**63), str(2**64), "1e5", "1e-320", "0x10"]
WRONG_VALUE = ("must", "unable to convert", "is written like", "are written like", "whole number",
               "must be", "a size", "unknown")  # fmt: skip


def _types(hint: Any) -> set[Any]:
    inner = get_args(hint)
    return set().union(*map(_types, inner)) if inner else {hint}


def numbers() -> list[tuple[str, str]]:
    """Every command with each of its flags that takes a number."""
    flags = []
    for words, one in all_commands().items():
        if one.default_command is not None:
            flags += [
                (" ".join(words), argument.names[0])
                for argument in one.assemble_argument_collection()
                if _types(argument.hint) & {int, float} or set(argument.names) & set(TEXTS)
            ]
    assert len(flags) > 80, "flags are no longer seen"
    return flags


@pytest.mark.parametrize(("name", "flag"), numbers(), ids=lambda word: word)
def test_numbers_are_checked(
    name: str, flag: str, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def page(*_: object) -> None:
        raise UsageError("the page would be served now")

    monkeypatch.setattr("iterant.web.find_page", page)
    Path("study.toml").write_text('task = "prefix-sums"\n')
    given = {key: value for key, value in WORDS[name].items() if key != flag}
    words = [word for pair in given.items() for word in " ".join(pair).split()]
    for value in NEVER + SOMETIMES:
        code, output, errors = command(*name.split(), *words, f"{flag}={value}")
        assert code in (0, 2), (value, errors)
        assert "Traceback" not in errors, value
        assert errors.count("\n") == (code == 2), (value, errors)
        assert len(errors) < 600, value
        if value in NEVER:
            assert code == 2, (value, output)
            assert any(word in errors.lower() for word in WRONG_VALUE), (value, errors)
