"""What a notebook shows: a film of a solution; drawings, once."""

from __future__ import annotations

import base64
import importlib
import io
from pathlib import Path
from typing import Any

import nbclient
import pytest
from PIL import Image

CELLS = """
import iterant
task, net = iterant.task("prefix-sums"), iterant.load("prefix-sums")
---
from iterant.solving import solutions
from iterant.tasks.protocol import sample_problems
[solution] = solutions(net, task, sample_problems(task, size=16))
solution
---
from iterant import draw
axes = draw.show(task.describe(task.sample(1, size=8, seed=1)))
---
axes = draw.show(task.describe(task.sample(1, size=8, seed=1)), ax=axes)
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Of every cell, by a real kernel."""
    folder: Path = tmp_path_factory.mktemp("notebook")
    new: Any = importlib.import_module("nbformat.v4")
    cells = [new.new_code_cell(text.strip()) for text in CELLS.split("---")]
    notebook = new.new_notebook(cells=cells)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_solution_plays_its_film(outputs: list[Any]) -> None:
    html = outputs[1][0]["data"]["text/html"]
    assert "settled after" in html
    image = html.partition("data:image/gif;base64,")[2].partition('"')[0]
    with Image.open(io.BytesIO(base64.b64decode(image))) as film:
        assert film.n_frames > 3  # type: ignore[attr-defined]


def test_a_drawing_is_shown_once_unless_axes_are_given(outputs: list[Any]) -> None:
    (shown,) = outputs[2]
    assert base64.b64decode(shown["data"]["image/png"]).startswith(b"\x89PNG")
    assert outputs[3] == []
