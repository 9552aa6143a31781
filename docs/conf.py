"""How scripts/docs builds these pages."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring

_REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(_REPOSITORY))  # a copy that was never installed will do

project = "iterant"
author = "The iterant authors"
copyright = "2026, the iterant authors"  # noqa: A001  sphinx asks for this name
html_title = "iterant"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_show_sphinx = False
smartquotes_action = "qe"  # quotes and ellipses, not dashes: flags have two hyphens

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["built"]
# A copy button leaves out prompts, and the output of blocks that have prompts.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# The notebook keeps the pictures of the last time that scripts/tutorial ran it.
nb_execution_mode = "off"

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
python_use_unqualified_type_names = True

_LISTED = re.compile(r"\s*[\w/]+(\.py|/) {2,}\S")
"""A line of the table of contents that a package's docstring ends with."""

_RESULT = re.compile(r"(?<!\[)`(results/[\w./-]+\.jsonl?)`")
"""A result file in a page, which is no link yet."""

_STAR = re.compile(r"(?<![\w*`])\*(?=\w)")
"""The star before axes of space, which would begin an emphasis."""


def _readable(app: object, what: str, name: str, thing: Any, how: object, lines: list[str]) -> None:
    """Show shapes such as (B, C, *S) and a package's list of modules as they are written."""
    if name == "iterant.training.Recipe":
        texts = {field.name: field.metadata["help"] for field in dataclasses.fields(thing)}
        lines += [f"- `{field}`: {text}" for field, text in texts.items()]
    if what in ("function", "method"):  # napoleon itself would take words before a colon for types
        lines[:] = GoogleDocstring(lines, Config()).lines()
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


def _link_results(app: Any, page: str, source: list[str]) -> None:
    """Make every result file that a page names a link; the page of results is RESULTS.md."""
    text = source[0]
    if page == "results":
        results = _REPOSITORY / "RESULTS.md"
        app.env.note_dependency(str(results))
        text = results.read_text(encoding="utf-8").replace("](docs/", "](")
        text = text.replace("](results/", "](../results/")
        text = re.sub(r"arXiv (\d{4}\.\d{5})", r"[\g<0>](https://arxiv.org/abs/\1)", text)
    up = "../" * (page.count("/") + 1)

    def link(match: re.Match[str]) -> str:
        return f"[{match[0]}]({up}{match[1]})" if (_REPOSITORY / match[1]).is_file() else match[0]

    lines = text.splitlines()
    # A title with a link has no place in the table of contents.
    lines = [line if line.startswith("#") else _RESULT.sub(link, line) for line in lines]
    source[0] = "\n".join(lines)


def _without_bare_fields(app: Any, domain: str, kind: str, content: nodes.Element) -> None:
    """Leave out the parameters of a class that have no words; its attributes follow."""
    if kind == "class":
        for fields in [node for node in content.children if isinstance(node, nodes.field_list)]:
            if not any(field[1].astext() for field in fields if field[0].astext()[:5] == "param"):
                content.remove(fields)


def _with_colons(app: object, doctree: nodes.document) -> None:
    """Write a colon after a parameter, where Sphinx has two hyphens for smart quotes to join."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(": "))


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
    text = re.sub(r"\*(\[default: .*\])\*", r"\1", text)  # as in our own words
    source[0] += "\n" + text


def setup(app: Any) -> None:
    """Hook into autodoc, and into the reading of pages."""
    app.connect("autodoc-process-docstring", _readable)
    app.connect("object-description-transform", _without_bare_fields, priority=900)
    app.connect("doctree-read", _with_colons)
    app.connect("source-read", _link_results)
    app.connect("source-read", _add_commands)
    # The program may have changed although the page has not.
    app.connect("env-get-outdated", lambda *_: ["commands"])
