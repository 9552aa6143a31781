"""``iterant info`` and ``iterant runs``: what is installed, and the runs in a folder."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from iterant.cli.output import echo, print_table
from iterant.formatting import byte_size, counted, duration, percent

PACKAGES = ("torch", "numpy", "safetensors", "matplotlib", "rich", "cyclopts", "chess",
            "zstandard", "tensorboard")  # fmt: skip


def info() -> None:
    """Show versions, devices, and the networks with their parameter counts.

    iterant info
    """
    import torch

    from iterant import __version__
    from iterant.io import code_version
    from iterant.nets import catalogue
    from iterant.zoo import card, shipped

    commit, changed = code_version()
    source = f" (commit {commit[:12]}{', changed' if changed else ''})" if commit else ""
    versions = {
        "iterant": __version__ + source,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    cores, threads = os.cpu_count() or 1, torch.get_num_threads()
    devices = {"cpu": f"{counted(cores, 'core')}, {counted(threads, 'thread')}"}
    for index in range(torch.cuda.device_count()):
        gpu = torch.cuda.get_device_properties(index)
        devices[f"cuda:{index}"] = f"{gpu.name}, {byte_size(gpu.total_memory)}"
    if torch.backends.mps.is_available():
        devices["mps"] = "Apple GPU"
    networks = [(name, card(name)["parameters"]) for name in shipped()]
    for title, rows in (
        ("versions", versions.items()),
        ("devices", devices.items()),
        ("shipped networks (parameters)", [(name, f"{count:,}") for name, count in networks]),
        ("networks of the paper (parameters)", [(name, f"{n:,}") for name, n in catalogue()]),
    ):
        echo(title, style="bold")
        print_table(None, *([f"  {name}", text] for name, text in rows), right="(" in title)


def runs(folder: Path = Path("runs"), /) -> None:
    """List training runs with their state and best validation.

    iterant runs
    iterant runs runs/widths

    Args:
        folder: a run, or a folder above runs
    """
    from iterant.io import list_runs

    summaries = list_runs(folder)
    if not summaries:
        echo(f"no runs under {folder}")
        return
    rows = []
    for run in summaries:
        status, config = run.status, run.config
        best = ", ".join(
            f"{name} {percent(value)}" if isinstance(value, float) else f"{name} {value}"
            for name, value in status.best.items()
        )
        recipe = (config.get("recipe") or {}).get("name")
        step = f"{status.step:,}" + (f" of {status.steps:,}" if status.steps else "")
        age = "" if run.age_seconds is None else f"{duration(run.age_seconds)} ago"
        settings = (config.get("task"), recipe, config.get("seed"))
        known = ["" if value is None else str(value) for value in settings]
        rows.append([str(run.path), *known, run.state, step, best, age])
    print_table(("run", "task", "recipe", "seed", "state", "step", "best", "updated"), *rows)
    for run in summaries:
        if run.reason:
            echo(f"{run.path}: {run.reason}")
