"""Results that pages name are there."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PLACEHOLDER = "results/NAME.json"
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "RESULTS.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *sorted((REPOSITORY / "iterant" / "zoo" / "weights").glob("*/CARD.md")),
]


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
               for file in (REPOSITORY / "results" / folder).glob("*.json")]  # fmt: skip
    assert len(results) > 50
    uncited = [
        file.name
        for file in results
        if re.search(rf"(?<![\w-]){re.escape(file.stem)}(?![\w-])", text) is None
        and not any(fnmatch(str(file.relative_to(REPOSITORY)), glob) for glob in globs)
    ]
    assert uncited == [], "cite it in docs/, or move it to results/archive"
