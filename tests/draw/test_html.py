"""HTML pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from iterant.draw.html import Picture, Section, page, write_page

WILD = '<script>alert("x")</script> & "so"'


@pytest.mark.parametrize(
    "made",
    [
        page(WILD, []),
        page("t", [], notes=[WILD]),
        page("t", [Section(WILD)]),
        page("t", [Section("s", WILD)]),
        page("t", [Section("s", "", [[WILD], [WILD]])]),
        page("t", [Section("s", pictures=[Picture("p", b"png", WILD)])]),
    ],
    ids=["title", "note", "heading", "text", "table", "picture"],
)
def test_text_is_escaped(made: str) -> None:
    assert "<script" not in made
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &quot;so&quot;" in made


def test_table_head() -> None:
    made = page("t", [Section("s", table=[["a"], ["b"]])])
    assert "<tr><th>a</th></tr>\n<tr><td>b</td></tr>" in made


def test_empty_section() -> None:
    made = page("t", [Section("s")])
    assert ("<table" in made, "<img" in made) == (False, False)


def test_write_page(tmp_path: Path) -> None:
    path = write_page(tmp_path / "index.html", "‖Δφ‖", [])
    assert "‖Δφ‖" in path.read_bytes().decode("utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["index.html"]


def test_long_cells_wrap() -> None:
    text = page("t", [Section("s", table=[["a", "b"], ["1 %", "because " * 9]])])
    assert "<td>1 %</td>" in text
    assert '<td class="text">because' in text
