"""Settings and fixtures of all tests: one thread, no global randomness, no allowed user code."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from rich.console import Console, ConsoleDimensions

from iterant import registry

# Derandomised, so that a failure seen once is seen by everyone; no deadline, because machines
# differ and no test asserts a time.
settings.register_profile("iterant", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("iterant")

torch.set_num_threads(1)

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of data that no registry can give, beside the repository."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the folder shared/data beside the repository, which is not here")
    return folder


def global_random_state() -> tuple[object, ...]:
    """Every global generator's state, as something that compares by value."""
    numpy = np.random.get_state(legacy=False)
    return (
        random.getstate(),
        (numpy["state"]["key"].tobytes(), numpy["state"]["pos"], numpy["gauss"]),
        torch.random.get_rng_state().numpy().tobytes(),
    )


@pytest.fixture(autouse=True)
def no_global_randomness() -> Iterator[None]:
    """Fail a test that changed a global random state, whatever it tested."""
    before = global_random_state()
    yield
    after = global_random_state()
    names = ("random", "numpy.random", "torch.random")
    changed = [name for name, old, new in zip(names, before, after, strict=True) if old != new]
    if changed:
        pytest.fail(f"the global state of {', '.join(changed)} was changed; pass a seed instead")


@pytest.fixture(autouse=True)
def no_code_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test begins like a new process, in which no user-defined code has been named yet."""
    monkeypatch.setattr(registry, "_allowed", set())


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Begun in the background of a shell, a process ignores what tests of interruption send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 columns, whatever console a command has made before: nothing is folded."""
    monkeypatch.setattr(Console, "size", property(lambda _: ConsoleDimensions(200, 50)))
