"""Results that pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PLACEHOLDER = "results/NAME.json"
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "RESULTS.md", "CHANGELOG.md")),
    *sorted((REPOSITORY / "docs").glob("*.md")),
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
