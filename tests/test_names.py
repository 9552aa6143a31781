"""Words and classes: each finds the other again."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import iterant
from iterant import registry
from iterant.formatting import counted
from iterant.nets import LocalRule


@pytest.mark.parametrize("word", registry.known("task"))
def test_a_task_of_ours_is_kept_by_its_word(word: str) -> None:
    assert registry.name_of("task", type(iterant.task(word))) == word


@pytest.mark.parametrize("word", registry.known("net"))
def test_a_network_of_ours_too(word: str) -> None:
    assert registry.name_of("net", registry.find("net", word)) == word


def test_a_class_of_ones_own_is_kept_by_module_and_name() -> None:
    made = type("Mine", (LocalRule,), {"__module__": "my_nets"})
    assert registry.name_of("net", made) == "my_nets:Mine"


def test_a_class_of_a_script_is_kept_by_the_script_s_file(monkeypatch: pytest.MonkeyPatch) -> None:
    made = type("Mine", (LocalRule,), {"__module__": "__main__"})
    script = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert registry.name_of("net", made) == "__main__:Mine"  # a notebook has no file
    script.__file__ = "/home/somebody/my_script.py"
    assert registry.name_of("net", made) == "my_script:Mine"


def test_one_is_not_several() -> None:
    told = [counted(count, "bit") for count in (0, 1, 2, 1000)]
    assert told == ["0 bits", "1 bit", "2 bits", "1,000 bits"]
    assert [counted(n, "axis", "axes") for n in (1, 2)] == ["1 axis", "2 axes"]
