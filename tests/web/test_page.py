"""The page as a folder: what it is put together from, and what is said when it cannot be."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iterant.cli.main import run
from iterant.errors import DataError, IterantError, MissingExtra, UsageError
from iterant.export.hub import Source, open_source
from iterant.web import build_page, find_page, page, page_server
from iterant.web import page as runtime
from iterant.zoo import loading
from web.written import untrained_chess, written_mazes, written_sums

STATIC = page.STATIC
SCRIPTS = sorted((STATIC / "js").rglob("*.js"))


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building without npm and without exporting: only what page.py itself does."""

    def exported(source: Source, out: Path) -> None:
        out.mkdir(parents=True)
        (out / "network.json").write_text(json.dumps({"task": source.task}))

    monkeypatch.setattr(page, "export_onnx", exported)
    monkeypatch.setattr(page, "need_extra", lambda: None)
    monkeypatch.setattr(page, "fetch_runtime", lambda folder: folder / "archive")
    monkeypatch.setattr(page, "unpack_runtime", lambda archive, out: out.mkdir(parents=True))


@pytest.fixture
def nothing_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No page in the package, and an empty cache."""
    monkeypatch.setattr(page, "BUILT", tmp_path / "built")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.usefixtures("light")
def test_a_page_holds_our_files_and_a_network_a_task(tmp_path: Path) -> None:
    nets = [untrained_chess(tmp_path / "c"), written_mazes(tmp_path / "m")]
    made = build_page(tmp_path / "page", networks=[*nets, written_sums(tmp_path / "s")])
    assert made.networks == ("s", "m", "c")
    assert (made.folder / "index.html").read_bytes() == (STATIC / "index.html").read_bytes()
    listed = json.loads((made.folder / "networks" / "index.json").read_text())
    assert [each["task"] for each in listed] == ["prefix-sums", "mazes", "chess"]
    assert (made.folder / "networks" / "c" / "network.json").is_file()
    with pytest.raises(UsageError, match="is there already"):
        build_page(tmp_path / "page", networks=nets)


def test_a_page_that_cannot_be_built_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "foreign.tgz").write_bytes(b"no archive")
    with pytest.raises(IterantError):
        build_page(tmp_path / "page", runtime=tmp_path / "foreign.tgz")
    assert not (tmp_path / "page").exists()


@pytest.mark.usefixtures("light")
def test_a_network_for_chess_is_on_the_page_as_soon_as_it_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SHIPPED", tmp_path / "weights")
    written_mazes(tmp_path / "weights" / "mazes")
    assert build_page(tmp_path / "before").networks == ("mazes",)
    untrained_chess(tmp_path / "weights" / "chess")
    made = build_page(tmp_path / "after")
    assert made.networks == ("mazes", "chess")
    listed = json.loads((made.folder / "networks" / "index.json").read_text())
    assert [each["task"] for each in listed] == ["mazes", "chess"]
    assert all(each["bytes"] > 0 for each in listed)


@pytest.mark.usefixtures("light")
def test_what_a_network_was_trained_on_is_listed(tmp_path: Path) -> None:
    known = open_source(written_mazes(tmp_path / "m"))
    card = {"card": {"trained_on": "mazes of 9×9"}}
    both = [replace(known, about=card), replace(known, name="other")]
    made = build_page(tmp_path / "page", networks=both)
    listed = json.loads((made.folder / "networks" / "index.json").read_text())
    assert [each["trained_on"] for each in listed] == ["mazes of 9×9", None]


@pytest.mark.usefixtures("light")
def test_several_networks_of_a_task_have_names_of_their_own(tmp_path: Path) -> None:
    nets = [written_mazes(tmp_path / name) for name in ("a/best", "b/best", "mazes")]
    assert build_page(tmp_path / "page", networks=nets).networks == ("mazes", "best", "best-2")


@pytest.mark.usefixtures("light")
def test_the_command_builds_keeps_and_copies(
    nothing_built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, other = written_mazes(nothing_built / "m"), written_sums(nothing_built / "s")

    def command(*words: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as leaving:
            run(["demo", *words])
        return (leaving.value.code, *capsys.readouterr())

    code, output, errors = command("--out", str(nothing_built / "early"))
    assert (code, output) == (2, "")
    assert "iterant demo --build" in errors
    both = ("--net", str(net), str(other))
    code, output, errors = command(*both, "--out", str(nothing_built / "out"))
    assert (code, errors) == (0, "")
    assert "any web server" in output
    assert "exporting m (2 of 2)" in output
    assert find_fails()
    page.build_page(page.cached_page(), networks=[net])
    assert find_page().networks == ("m",)
    code, output, errors = command("--out", str(nothing_built / "copy"))
    assert (code, errors) == (0, "")
    assert (nothing_built / "copy" / "index.html").is_file()
    code, output, errors = command("--port", "99999", "--no-browser")
    assert code == 2
    assert "choose another --port" in errors


@pytest.mark.usefixtures("light")
def test_a_page_of_older_scripts_says_so(
    nothing_built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    net = written_mazes(nothing_built / "m")
    page.build_page(page.cached_page(), networks=[net])
    assert not find_page().stale
    scripts = shutil.copytree(STATIC, nothing_built / "static")
    (scripts / "js" / "main.js").write_text("// another\n")
    monkeypatch.setattr(page, "STATIC", scripts)
    assert find_page().stale
    with pytest.raises(SystemExit):
        run(["demo", "--out", str(nothing_built / "copy")])
    assert "built from older files" in capsys.readouterr().out


def test_what_building_needs_is_asked_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setattr(page, "fetch_runtime", lambda folder: pytest.fail("fetched"))
    with pytest.raises(MissingExtra, match="onnxscript"):
        build_page(tmp_path / "page", networks=[written_mazes(tmp_path / "m")])
    assert not (tmp_path / "page").exists()


def find_fails() -> bool:
    try:
        find_page()
    except UsageError as error:
        return "--build" in str(error)
    return False


@pytest.mark.usefixtures("light")
def test_a_network_of_no_known_task_is_refused(tmp_path: Path) -> None:
    known = open_source(written_mazes(tmp_path / "m"))
    with pytest.raises(UsageError, match="a task that it does not name"):
        build_page(tmp_path / "p", networks=[replace(known, task=None)])
    with pytest.raises(UsageError, match="trained for sudoku"):
        build_page(tmp_path / "p", networks=[replace(known, task="sudoku")])


def test_the_runtime_must_be_the_one_that_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "a.tgz"
    with pytest.raises(DataError, match="cannot be read"):
        runtime.unpack_runtime(archive, tmp_path / "out")
    archive.write_bytes(b"something else")
    with pytest.raises(DataError, match="checksum differs"):
        runtime.unpack_runtime(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="npm is not installed"):
        runtime.fetch_runtime(tmp_path)


def test_the_server_tells_the_types_that_browsers_need(
    tmp_path: Path, served: Callable[[Path], str]
) -> None:
    for name in ("a.mjs", "a.wasm", "a.onnx", "index.html"):
        (tmp_path / name).write_bytes(b"x")
    address = served(tmp_path)
    wanted = {
        "a.mjs": "text/javascript",
        "a.wasm": "application/wasm",
        "a.onnx": "application/octet-stream",
        "": "text/html",
    }
    for name, kind in wanted.items():
        connection = HTTPConnection(address.removeprefix("http://").rstrip("/"))
        connection.request("GET", f"/{name}")
        headers = connection.getresponse().headers
        connection.close()
        assert headers["Content-Type"].startswith(kind)
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    with page_server(tmp_path, 0) as server, pytest.raises(UsageError, match="--port"):
        page_server(tmp_path, int(server.server_address[1]))
    with pytest.raises(UsageError, match="--host is empty"):  # it would be every address
        page_server(tmp_path, 0, "").server_close()


def test_an_archive_without_end_is_read_in_part(tmp_path: Path) -> None:
    class Endless(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert 0 < size <= 1 << 27
            return bytes(8)

    endless: Any = SimpleNamespace(open=lambda mode: Endless())
    with pytest.raises(DataError, match="its checksum differs"):
        runtime.unpack_runtime(endless, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_page_names_no_other_server() -> None:
    for path in [*SCRIPTS, STATIC / "index.html", STATIC / "style.css"]:
        urls = re.findall(r"https?://[^\s\"'`]+", path.read_text())
        assert [url for url in urls if not url.startswith("http://localhost")] == [], path.name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(STATIC)))
def test_scripts_are_small_and_their_imports_are_there(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("//"), "a script says at its top what it is for"
    assert len(text.splitlines()) <= 250
    for name in re.findall(r'^import .* from "(.+)";', text, re.MULTILINE):
        assert (path.parent / name).is_file(), name
