"""HTML pages: escaped, with and without tables and pictures."""

from __future__ import annotations

import pytest

from iterant.draw.html import Picture, Section, page

WILD = '<script>alert("x")</script> & "so"'


@pytest.mark.parametrize(
    "text",
    [
        page(WILD, []),
        page("t", [], note=WILD),
        page("t", [Section(WILD)]),
        page("t", [Section("s", WILD)]),
        page("t", [Section("s", "", [[WILD], [WILD]])]),
        page("t", [Section("s", pictures=[Picture("p", b"png", WILD)])]),
    ],
    ids=["title", "note", "heading", "text", "table", "picture"],
)
def test_text_is_escaped(text: str) -> None:
    assert "<script" not in text
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &quot;so&quot;" in text


def test_tables() -> None:
    text = page("t", [Section("s", table=[["a", "b"], ["1 %", "c"]])])
    assert "<tr><th>a</th><th>b</th></tr>\n<tr><td>1 %</td><td>c</td></tr>" in text
    empty = page("t", [Section("s")])
    assert ("<table" in empty, "<img" in empty) == (False, False)
