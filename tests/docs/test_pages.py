"""The documentation builds, its tutorial runs, and the results that it names are there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PLACEHOLDER = "results/NAME.json"
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "RESULTS.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted((REPOSITORY / "iterant" / "zoo" / "weights").glob("*/CARD.md")),
]


def run_python(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    for needed in ("sphinx", "myst_nb", "furo", "sphinx_copybutton"):
        pytest.importorskip(needed, reason="needs the extra docs")
    run_python("-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--builder", "html",
               "-d", str(tmp_path / "trees"), str(REPOSITORY / "docs"),
               str(tmp_path / "pages"))  # fmt: skip
    assert "what-they-learned" in (tmp_path / "pages" / "index.html").read_text()
    assert "iterant.solve" in (tmp_path / "pages" / "api" / "index.html").read_text()
    # RESULTS.md is a page, and the result files that pages name are links.
    for page in ("results", "mazes"):
        text = (tmp_path / "pages" / f"{page}.html").read_text()
        assert re.search(r'href="_downloads/\w+/[\w.-]+\.jsonl?"', text), page
    commands = (tmp_path / "pages" / "commands.html").read_text()
    assert all(f'id="iterant-{name}"' in commands for name in ("solve", "sweep-status"))


def test_the_tutorial_runs() -> None:
    pytest.importorskip("nbclient", reason="needs the extra docs")
    run_python(str(REPOSITORY / "scripts" / "tutorial"), "--check")


def test_the_tutorial_is_kept_with_its_pictures_and_without_errors() -> None:
    cells = json.loads((REPOSITORY / "docs" / "tutorial.ipynb").read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) >= 4


def test_every_result_that_a_page_names_is_there() -> None:
    cited = {
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"results/[\w./-]+\.jsonl?\b", page.read_text(encoding="utf-8"))
        if name != PLACEHOLDER
    }
    assert len(cited) > 100
    assert [one for one in sorted(cited) if not (REPOSITORY / one[1]).exists()] == []


def test_every_result_is_cited_or_archived() -> None:
    pages = [*PAGES, REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").rglob("*.md")]
    pages += (REPOSITORY / "iterant").rglob("*.py")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    globs = set(re.findall(r"results/[\w./-]*\*[\w./*-]*", text))
    results = [file for folder in ("paper", "recipes", "speed")
               for file in (REPOSITORY / "results" / folder).glob("*.json*")]  # fmt: skip
    assert len(results) > 50
    uncited = [
        file.name
        for file in results
        if re.search(rf"(?<![\w-]){re.escape(file.stem)}(?![\w-])", text) is None
        and not any(fnmatch(str(file.relative_to(REPOSITORY)), glob) for glob in globs)
    ]
    assert uncited == [], "cite it in docs/, or move it to results/archive"
