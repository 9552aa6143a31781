"""What a notebook shows without being asked: progress, and a film of a solution."""

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
task = iterant.task("prefix-sums")
run = iterant.train(task, epochs=1, count=130, width=4, head=(4,), monitor_every=0, out="run")
---
net = iterant.load("prefix-sums")
curve = iterant.evaluate(net, task, size=16, count=5, max_steps=20)
---
report = iterant.analyze("prefix-sums", what="zeros", size=16, count=3, max_steps=20)
---
from iterant.solving import solutions
from iterant.tasks.protocol import sample_problems
[solution] = solutions(net, task, sample_problems(task, size=16))
solution
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


def test_progress_is_shown(outputs: list[Any]) -> None:
    title, line = outputs[0]
    assert title["text"].rstrip().endswith("seed 0, kept in run")
    assert line["data"]["text/plain"].startswith("epoch 1 of 1, step 1 of 1, loss ")
    assert '<progress value="1.000">' in line["data"]["text/html"]
    for cell in outputs[1:3]:  # the line is removed at the end
        assert [one["data"]["text/plain"] for one in cell] == [""]


def test_a_solution_plays_its_film(outputs: list[Any]) -> None:
    html = outputs[3][0]["data"]["text/html"]
    assert "settled after" in html
    image = html.partition("data:image/gif;base64,")[2].partition('"')[0]
    with Image.open(io.BytesIO(base64.b64decode(image))) as film:
        assert film.n_frames > 3  # type: ignore[attr-defined]
