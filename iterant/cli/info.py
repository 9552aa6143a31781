"""``iterant info``: versions, devices and networks.

iterant info
"""

from __future__ import annotations

import os
import platform
from importlib import metadata

from iterant.cli.options import console
from iterant.formatting import byte_size, counted

PACKAGES = ("torch", "numpy", "safetensors", "matplotlib", "rich", "cyclopts")
OPTIONAL = ("chess", "zstandard", "tensorboard")


def info() -> None:
    """Show versions, devices, and the networks with their parameter counts."""
    from rich.table import Table

    from iterant.nets.factory import catalogue
    from iterant.zoo import card, shipped

    screen = console()
    paper = [(name, f"{count:,}") for name, count in catalogue()]
    sections = {
        "versions": versions(),
        "devices": devices(),
        "networks that ship (parameters)": [
            (name, f"{card(name).parameters:,}") for name in shipped()
        ],
        "networks of the paper (parameters)": paper,
    }
    for title, rows in sections.items():
        screen.print(title, style="bold")
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        if title.startswith("networks"):
            table.add_column()
            table.add_column(justify="right")
        for name, value in rows:
            table.add_row(f"  {name}", value)
        screen.print(table)


def versions() -> list[tuple[str, str]]:
    """Of iterant, Python and the packages that iterant uses."""
    from iterant.io import code_version

    commit, changed = code_version()
    source = f" (commit {commit[:12]}{', changed' if changed else ''})" if commit else ""
    rows = [
        ("iterant", metadata.version("iterant") + source),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]
    for package in (*PACKAGES, *OPTIONAL):
        try:
            rows.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            rows.append((package, "not installed"))
    return rows


def devices() -> list[tuple[str, str]]:
    """The devices that torch finds."""
    import torch

    cores = counted(os.cpu_count() or 1, "core")
    threads = counted(torch.get_num_threads(), "thread")
    rows = [("cpu", f"{cores}, {threads}")]
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        rows.append((f"cuda:{index}", f"{card.name}, {byte_size(card.total_memory)}"))
    if torch.backends.mps.is_available():
        rows.append(("mps", "Apple GPU"))
    return rows
