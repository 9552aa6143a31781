"""Compare results of public functions and commands with files in ``expected/``.

``pytest tests/golden --regenerate-golden`` writes those files anew, for changes made on purpose.
Nothing here imports an internal module, so that the tests outlive any renaming.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXPECTED = Path(__file__).with_name("expected")

Golden = Callable[..., None]
Command = Callable[..., str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate-golden", action="store_true", help="write tests/golden/expected")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden("name", value)``: the JSON value equals ``expected/name.json``.

    Floats may differ by ``rel`` of their size plus ``abs``, since processors round differently.
    """
    regenerate = request.config.getoption("--regenerate-golden", default=False)

    def compare(name: str, value: Any, *, rel: float = 1e-4, abs: float = 1e-6) -> None:  # noqa: A002
        path = EXPECTED / f"{name}.json"
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        text = re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\n *", " ", found[0]), text)
        if regenerate:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        wanted = json.loads(path.read_text(encoding="utf-8"))
        differences = list(_differences(json.loads(text), wanted, rel, abs))
        shown = "\n".join(differences[:20])
        assert not differences, f"{len(differences)} differences from {path.name}:\n{shown}"

    return compare


def _differences(ours: Any, wanted: Any, rel: float, near: float, at: str = "") -> Any:
    """Lines that say where two JSON values differ."""
    if isinstance(ours, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in ours if key not in wanted)]:
            if key not in ours or key not in wanted:
                yield f"{at}/{key}: {'missing' if key in wanted else 'new'}"
            else:
                yield from _differences(ours[key], wanted[key], rel, near, f"{at}/{key}")
    elif isinstance(ours, list) and isinstance(wanted, list) and len(ours) == len(wanted):
        for index, (one, other) in enumerate(zip(ours, wanted, strict=True)):
            yield from _differences(one, other, rel, near, f"{at}/{index}")
    elif isinstance(ours, float) and isinstance(wanted, float):
        if ours != pytest.approx(wanted, rel=rel, abs=near):
            yield f"{at}: {ours!r}, expected {wanted!r}"
    elif type(ours) is not type(wanted) or ours != wanted:
        yield f"{at}: {ours!r}, expected {wanted!r}"


@pytest.fixture
def iterant_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """``iterant_command("info")``: run ``python -m iterant info`` in tmp_path; its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["iterant", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            runpy.run_module("iterant", run_name="__main__")
        output, errors = capsys.readouterr()
        assert leaving.value.code in (0, None), errors
        return output

    return call
