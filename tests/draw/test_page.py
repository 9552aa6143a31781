"""A page: what is not ours to write is shown, never obeyed."""

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
def test_everything_is_escaped(made: str) -> None:
    assert "<script" not in made
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &quot;so&quot;" in made


def test_the_head_of_a_table_is_its_first_row() -> None:
    made = page("t", [Section("s", table=[["a"], ["b"]])])
    assert "<tr><th>a</th></tr>\n<tr><td>b</td></tr>" in made


def test_an_empty_section_has_no_table_and_no_picture() -> None:
    made = page("t", [Section("s")])
    assert ("<table" in made, "<img" in made) == (False, False)


def test_a_page_is_written_whole_in_utf_8(tmp_path: Path) -> None:
    path = write_page(tmp_path / "index.html", "‖Δφ‖", [])
    assert "‖Δφ‖" in path.read_bytes().decode("utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["index.html"]


def test_figures_are_not_broken_and_sentences_may_be() -> None:
    text = page("t", [Section("s", table=[["a", "b"], ["1 %", "because " * 9]])])
    assert "<td>1 %</td>" in text
    assert '<td class="text">because' in text
