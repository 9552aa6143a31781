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
from iterant.nets import Net
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


def network(task: str, net: str) -> Net:
    return build_network(recipe("quick", task, net).described(), iterant.task(task).spec, 0)[0]


@pytest.mark.usefixtures("eight_threads")
@pytest.mark.parametrize(
    ("net", "load", "environment", "threads"),
    [
        ("dt-recall", 0.5, {}, 8),
        ("dt-recall", 30.0, {}, 8),  # the same weights as when idle
        ("local-rule", 0.5, {}, 1),
        ("local-rule", 0.5, {"MKL_NUM_THREADS": "8"}, 8),
    ],
)
def test_threads_of_a_new_run(
    monkeypatch: pytest.MonkeyPatch, net: str, load: float, environment: Any, threads: int
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert threads_for(network("mazes", net)) == threads  # the local rule has message passing


@pytest.mark.usefixtures("eight_threads")
@pytest.mark.parametrize(("width", "threads"), [(32, 1), (64, 8)])
def test_a_small_network_trains_on_one_thread(width: int, threads: int) -> None:
    task, small = iterant.task("prefix-sums"), recipe("quick", "prefix-sums")
    net = build_network(small.changed(width=width).described(), task.spec, 0)[0]
    assert threads_for(net) == threads
