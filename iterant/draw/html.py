"""Reports as one HTML file with text, tables and pictures, without external resources.

    >>> page("Interventions", [Section("noise", table=rows, pictures=[Picture("noise", png)])])

All text is escaped: names of runs come from users.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; }}
body {{ max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.2rem; margin-top: 2.2rem; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; font-size: 0.9rem; }}
th, td {{ text-align: left; padding: 0.25rem 0.7rem; border-bottom: 1px solid #8886; }}
figure {{ margin: 1rem 0; }} img {{ max-width: 100%; background: white; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{note}</p>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Picture:
    """A PNG picture and its alternative text."""

    name: str
    png: bytes
    text: str


@dataclass(frozen=True)
class Section:
    """A heading and its content."""

    title: str
    text: str = ""
    table: Sequence[Sequence[str]] = ()
    """Rows of cells, the head first"""
    pictures: Sequence[Picture] = ()


def page(title: str, sections: Sequence[Section], *, note: str = "") -> str:
    """A complete page; the note is below the title."""
    return _PAGE.format(title=escape(title), note=escape(note), body=fragment(sections))


def fragment(sections: Sequence[Section]) -> str:
    """The sections without the page around them, for a notebook."""
    return "\n".join(map(_section, sections))


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    if section.table:
        parts.append("<table>")
        for number, cells in enumerate(section.table):
            tag = "td" if number else "th"
            row = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
            parts.append(f"<tr>{row}</tr>")
        parts.append("</table>")
    for picture in section.pictures:
        data, text = base64.b64encode(picture.png).decode("ascii"), escape(picture.text)
        parts.append(
            f'<figure><img alt="{text}" src="data:image/png;base64,{data}">'
            f"<figcaption>{text}</figcaption></figure>"
        )
    return "<section>\n" + "\n".join(parts) + "\n</section>"
