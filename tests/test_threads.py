"""How threads wait, by the load of the machine at the start, and how many there are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import iterant
from iterant.nets.from_recipe import build_network
from iterant.training.recipe import recipe
from iterant.training.run import threads_for

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT",
             "KMP_BLOCKTIME")  # fmt: skip
CORES = os.cpu_count() or 1


@pytest.mark.parametrize(
    ("load", "environment", "first", "policy"),
    [
        (CORES, {}, "", "PASSIVE"),
        (0.1, {}, "", None),
        (CORES, {"OMP_WAIT_POLICY": "ACTIVE"}, "", "ACTIVE"),
        (CORES, {"GOMP_SPINCOUNT": "0"}, "", None),
        (CORES, {}, "import sys; sys.modules['torch'] = None", None),  # too late
    ],
)
def test_the_load_decides_how_threads_wait(
    load: float, environment: dict[str, str], first: str, policy: str | None
) -> None:
    code = f"import os; os.getloadavg = lambda: ({load}, 0, 0); {first or 'pass'}; import iterant; "
    code += "print(os.environ.get('OMP_WAIT_POLICY'))"
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    seen = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **environment}, capture_output=True, text=True
    )
    assert (seen.stdout.strip(), seen.stderr) == (str(policy), "")


@pytest.fixture
def eight_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("eight_threads")
@pytest.mark.parametrize(
    ("net", "width", "load", "environment", "threads"),
    [
        ("dt-recall", 64, 0.5, {}, 8),
        ("dt-recall", 64, 30.0, {}, 8),  # the same weights as when idle
        ("dt-recall", 16, 0.5, {}, 1),  # a small network
        ("local-rule", 24, 0.5, {}, 1),  # message passing
        ("local-rule", 24, 0.5, {"MKL_NUM_THREADS": "8"}, 8),
    ],
)
def test_threads_of_a_new_run(
    monkeypatch: pytest.MonkeyPatch, net: str, width: int, load: float, environment: Any,
    threads: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = recipe("quick", "mazes", net).changed(width=width).described()
    network, _ = build_network(settings, iterant.task("mazes").spec, 0)
    assert threads_for(network) == threads
