"""The tutorial runs from top to bottom, on the small settings that its cells name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOK = REPOSITORY / "docs" / "tutorial.ipynb"


def test_the_tutorial_runs() -> None:
    pytest.importorskip("nbclient", reason="needs the extra docs")
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "scripts" / "tutorial"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_it_is_kept_with_its_pictures_and_without_errors() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) >= 4
