"""The documentation builds without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    for needed in ("sphinx", "myst_nb", "furo"):
        pytest.importorskip(needed, reason="needs the extra docs")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"),
            *("--builder", "html", "-d", str(tmp_path / "trees")),
            *(str(REPOSITORY / "docs"), str(tmp_path / "pages")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    front = (tmp_path / "pages" / "index.html").read_text()
    assert "what-they-learned" in front
    assert "iterant.solve" in (tmp_path / "pages" / "api" / "index.html").read_text()
