"""A page that anyone can open: text, tables and pictures in one HTML file, nothing fetched.

    >>> write_page("report.html", "Interventions", [Section("noise", table=rows, pictures=[drawn])])

Everything that is not ours to write is escaped: run names are people's own.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from iterant.io.files import PathLike, write_atomic

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: right; padding: 0.25rem 0.7rem; border-bottom: 1px solid #8886; }
th:first-child, td:first-child, td.text { text-align: left; }
td:not(.text) { white-space: nowrap; }
td.text { min-width: 16rem; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: white; }
figcaption { font-size: 0.9rem; opacity: 0.8; }
"""

_SENTENCE = 40
"""Cells with more signs are sentences, which may be broken; figures are not."""


@dataclass(frozen=True)
class Picture:
    """A picture and what it shows, for those who cannot see it."""

    name: str
    png: bytes
    text: str


@dataclass(frozen=True)
class Section:
    """One heading of a page and what is under it."""

    title: str
    text: str = ""
    table: Sequence[Sequence[str]] = ()
    """Rows of cells, the head first"""
    pictures: Sequence[Picture] = ()


def page(title: str, sections: Sequence[Section], *, notes: Sequence[str] = ()) -> str:
    """The page as text; notes stand below the title."""
    body = "\n".join([*(f"<p>{escape(note)}</p>" for note in notes), *map(_section, sections)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def fragment(sections: Sequence[Section]) -> str:
    """The sections alone, for a page that somebody else writes, such as a notebook."""
    return "\n".join(map(_section, sections))


def write_page(
    path: PathLike, title: str, sections: Sequence[Section], *, notes: Sequence[str] = ()
) -> Path:
    """Write the page, whole or not at all, and give its path back."""
    target = Path(path)
    write_atomic(target, page(title, sections, notes=notes).encode("utf-8"))
    return target


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    if section.table:
        parts.append(_table(section.table))
    parts += [_figure(picture) for picture in section.pictures]
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        opened = [f'{tag} class="text"' if len(cell) > _SENTENCE else tag for cell in cells]
        made = zip(opened, cells, strict=True)
        return (
            "<tr>" + "".join(f"<{begin}>{escape(cell)}</{tag}>" for begin, cell in made) + "</tr>"
        )

    lines = [row(rows[0], "th"), *(row(cells, "td") for cells in rows[1:])]
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.png).decode("ascii")
    return (
        f'<figure><img alt="{escape(picture.text)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(picture.text)}</figcaption></figure>"
    )
