"""Names to objects and back: tasks, networks, devices."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

import iterant
from iterant import registry
from iterant.errors import UnknownName, UsageError
from iterant.halting import StableAnswer
from iterant.nets import LocalRule


@pytest.mark.parametrize("kind", ["task", "net"])
def test_a_class_has_the_name_that_finds_it(kind: str) -> None:
    for word in registry.known(kind):
        assert registry.name_of(kind, registry.find(kind, word)) == word


def test_the_name_of_a_user_defined_class(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(module: str) -> str:
        return registry.name_of("net", type("Mine", (LocalRule,), {"__module__": module}))

    script = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert name("my_nets") == "my_nets:Mine"
    assert name("__main__") == "__main__:Mine"  # a notebook has no file
    script.__file__ = "/home/user/my_script.py"
    assert name("__main__") == "my_script:Mine", "other processes import the script's file"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("maze", "did you mean 'mazes'?"),
        ("sudoku", "choose one of: prefix-sums, mazes, chess"),
        ("m" * 5000, "choose one of: prefix-sums, mazes, chess"),
        ("./my/tasks.py:Mine", "wanted my.tasks:Mine"),
        ("no_such_module:Mine", "installed or in this folder"),
        ("iterant.tasks.prefix_sums:PrefixSum", "holds no 'PrefixSum'"),
    ],
)
def test_unknown_names_have_a_remedy(word: str, hint: str) -> None:
    with pytest.raises(UnknownName) as error:
        iterant.task(word)
    assert hint in str(error.value)


def test_arguments_of_rules() -> None:
    assert registry.rule("stable", patience=3, tolerance=None) == StableAnswer(3)
    with pytest.raises(UsageError, match=r"with \(patience=3, tolerance=0.1\): .* unexpected"):
        registry.rule("stable", patience=3, tolerance=0.1)


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert registry.device() == registry.device("cuda") == torch.device("cuda:1")
    assert registry.device("cpu") == torch.device("cpu")
    assert registry.device("cuda:7", present=False) == torch.device("cuda:7")
    for missing in ("cuda:2", "mps"):
        with pytest.raises(UsageError, match=f"'{missing}' is not available; use device='cpu'"):
            registry.device(missing)
    for unknown in ("meta", "gpu", "cuda:x", "cuda:", ""):
        with pytest.raises(UsageError, match="unknown device"):
            registry.device(unknown, present=False)
