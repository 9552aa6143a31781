"""How scripts/docs builds these pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a copy that was never installed will do

project = "iterant"
author = "The iterant authors"
copyright = "2026, the iterant authors"  # noqa: A001  sphinx asks for this name
html_title = "iterant"
html_theme = "furo"
html_static_path: list[str] = []
html_show_sphinx = False
smartquotes_action = "qe"  # quotes and ellipses, not dashes: flags have two hyphens

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["built"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# The notebook keeps the pictures of the last time that scripts/tutorial ran it.
nb_execution_mode = "off"

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

_LISTED = re.compile(r"\s*[\w/]+(\.py|/) {2,}\S")
"""A line of the table of contents that a room's docstring ends with."""

_STAR = re.compile(r"(?<![\w*`])\*(?=\w)")
"""The star before axes of space, which would begin an emphasis."""


def _readable(
    app: object, what: str, name: str, thing: object, how: object, lines: list[str]
) -> None:
    """Show shapes such as (B, C, *S) and a room's list of modules as they are written."""
    made: list[str] = []
    within = False
    for line in lines:
        listed = what == "module" and bool(_LISTED.match(line))
        if listed and not within:
            made += ["", "::", ""]
        elif within and not listed:
            made.append("")
        within = listed
        text = line if line.lstrip().startswith((">>>", "...")) else _STAR.sub(r"\\*", line)
        made.append(f"    {line.strip()}" if listed else text)
    lines[:] = made


def _add_commands(app: object, page: str, source: list[str]) -> None:
    """Append the reference of all commands to the page of commands."""
    if page != "commands":
        return
    from iterant.cli.main import app as commands

    text = commands.generate_docs()
    text = text[text.index("\n**") :]  # without its title and contents: the sidebar has them
    # Our usage lines begin with the command, and cyclopts writes it before them again.
    text = re.sub(r"^(iterant (\S+)) \2\b", r"\1", text, flags=re.MULTILINE)
    # Examples are the lines of a paragraph without a fence.
    text = re.sub(r"\n\n((?:(?:iterant|echo) .*\n)+)\n", r"\n\n```console\n\1```\n\n", text)
    source[0] += text


def setup(app: object) -> None:
    """Hook into autodoc, and into the page of commands."""
    app.connect("autodoc-process-docstring", _readable)  # type: ignore[attr-defined]
    app.connect("source-read", _add_commands)  # type: ignore[attr-defined]
    # The program may have changed although the page has not.
    app.connect("env-get-outdated", lambda *_: ["commands"])  # type: ignore[attr-defined]
