"""The page as a folder: its files and networks, errors while building it, and its server."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from iterant.cli.main import run
from iterant.errors import DataError, IterantError, MissingExtra, UsageError
from iterant.experiments.records import ANY, keep_record
from iterant.experiments.shifts import PUBLISHED
from iterant.export import Exported
from iterant.io import save_weights
from iterant.nets import LocalRuleConfig, build
from iterant.web import build_page, find_page, page, page_server
from iterant.zoo import card, loading

STATIC = page.STATIC


def exported(network: Path | str, out: Path, *, trust: bool) -> Exported:
    out.mkdir(parents=True)
    (out / "network.json").write_text("{}")
    return Exported(out, parameters=1, worst=0.0, spaces=())


def weights(folder: Path, task: str | None = "mazes", **about: Any) -> Path:
    """A folder of weights that says this of itself."""
    config = LocalRuleConfig(dims=2, channels=3)
    net: Any = build(config.kind, config.described())
    about |= {"kind": config.kind, "config": config.described(), "task": task}
    return save_weights(folder, about, net.state_dict())


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build without npm and without exporting networks."""

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
def test_a_page_holds_our_files_and_the_networks_by_task(tmp_path: Path) -> None:
    nets = [
        weights(tmp_path / "c", "chess"),
        weights(tmp_path / "m", card={"trained_on": "mazes of 9×9"}),
        weights(tmp_path / "s", "prefix-sums"),
        weights(tmp_path / "other" / "m"),
        weights(tmp_path / "mazes"),
    ]
    built = build_page(tmp_path / "page", networks=nets)
    assert built.networks == ("s", "mazes", "m", "m-2", "c")
    assert (built.folder / "index.html").read_bytes() == (STATIC / "index.html").read_bytes()
    index = json.loads((built.folder / "networks/index.json").read_text())
    assert [each["task"] for each in index] == ["prefix-sums", *["mazes"] * 3, "chess"]
    assert [each["trained_on"] for each in index] == [None, None, "mazes of 9×9", None, None]
    paper = {"size": 9, "problems": ""}
    assert [each["training"] for each in index] == [None, None, paper, None, None]
    assert all(each["bytes"] > 0 for each in index)
    assert (built.folder / "networks" / "c" / "network.json").is_file()
    with pytest.raises(UsageError, match="is there already"):
        build_page(tmp_path / "page", networks=nets)


@pytest.mark.usefixtures("light")
def test_the_networks_that_ship_are_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SHIPPED", tmp_path / "weights")
    weights(tmp_path / "weights" / "mazes")
    weights(tmp_path / "weights" / "chess", "chess")
    assert build_page(tmp_path / "page").networks == ("mazes", "chess")


def test_published_numbers_stand_beside_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "shipped_results", lambda: tmp_path)
    published = page.maze_table()
    assert len(published) == sum(map(len, PUBLISHED.values()))
    assert published[0]["address"] == "https://arxiv.org/abs/2506.21734"
    test = {"problems": 10, "solved": {"1000": 9}, ANY: {"1000": 10}, "answers changed": 0}
    figures = {
        "model": "mazes", "seed": 0, "finished": True, "reduced": {}, "parameters": 124,
        "tests": {"30 maze-hard-test:10:1000": test}, "studies": {},
    }  # fmt: skip
    keep_record(tmp_path / "recipes" / "maze-shifts.jsonl", "mazes-s0", figures, 0)
    ours, *others = page.maze_table()
    assert others == published
    assert (ours["network"], ours["parameters"], ours["exact"]) == ("mazes", "124", "90.00 %")
    assert ours["source"] == "ours, 1 seed"
    assert ours["mazes"] == others[0]["mazes"], "under one heading"
    assert all(row["address"] for row in published), "a source for each"


@pytest.mark.usefixtures("light")
def test_what_networks_were_trained_on(tmp_path: Path) -> None:
    """From the recipe of a run or the card of a shipped network: the page warns of others."""
    kind = {"size": 13, "problems": "start=any,p=0.1"}
    loops = weights(tmp_path / "1" / "m", recipe=kind)
    default = weights(tmp_path / "2" / "m", recipe={"size": None})
    files = weights(tmp_path / "3" / "m", recipe=kind, data="hard")  # of any kind
    names = ["mazes", "mazes-messages", "mazes-paper", "prefix-sums"]
    built = build_page(tmp_path / "page", networks=[loops, default, files, *names])
    index = json.loads((built.folder / "networks/index.json").read_text())
    training = {each["name"]: each["training"] for each in index}
    assert training == {
        "m": {"size": 13, "problems": "start=any,p=0.1"},
        "m-2": {"size": 9, "problems": ""},
        "m-3": None,
        "mazes": {"size": 12, "problems": "start=any,walls=0.15,path=12-22"},
        "mazes-messages": {"size": 9, "problems": "start=any"},
        "mazes-paper": {"size": 9, "problems": ""},
        "prefix-sums": {"size": 32, "problems": ""},
    }
    for name in names:  # as their cards say
        assert str(training[name]["size"]) in card(name)["trained_on"]
        assert training[name]["problems"] in card(name)["trained_on"]


def test_a_page_that_cannot_be_built_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "foreign.tgz").write_bytes(b"no archive")
    with pytest.raises(IterantError):
        build_page(tmp_path / "page", runtime=tmp_path / "foreign.tgz")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setattr(page, "fetch_runtime", lambda folder: pytest.fail("fetched"))
    with pytest.raises(MissingExtra, match="onnxscript"):
        build_page(tmp_path / "page", networks=[weights(tmp_path / "m")])
    assert not (tmp_path / "page").exists()


@pytest.mark.usefixtures("light")
def test_demo_command(nothing_built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, other = weights(nothing_built / "m"), weights(nothing_built / "s", "prefix-sums")

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
    assert "exporting m (2 of 2)" in output
    with pytest.raises(UsageError, match="--build"):
        find_page()
    shutil.copytree(nothing_built / "out", nothing_built / "built")  # the page in the package
    for networks in (both[1:], both[1:2]):  # the second replaces the first
        build_page(networks=networks)
        assert len(find_page().networks) == len(networks)
        assert not (find_page().folder / "networks" / "s").exists() or len(networks) == 2
    code, output, errors = command("--out", str(nothing_built / "copy"))
    assert (code, errors) == (0, "")
    assert (nothing_built / "copy" / "index.html").is_file()
    code, output, errors = command("--port", "99999", "--no-browser")
    assert code == 2
    assert "from 0 to 65,535" in errors


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize("task", [None, "sudoku"])
def test_a_network_of_no_known_task_is_refused(task: str | None, tmp_path: Path) -> None:
    net = weights(tmp_path / "m", task=task)
    with pytest.raises(UsageError, match=task or "a task that it does not name"):
        build_page(tmp_path / "p", networks=[net])


def test_errors_of_the_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "a.tgz"
    with pytest.raises(DataError, match="cannot read"):
        page.unpack_runtime(archive, tmp_path / "out")
    archive.write_bytes(b"something else")
    with pytest.raises(DataError, match="checksum differs"):
        page.unpack_runtime(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs npm"):
        page.fetch_runtime(tmp_path)
    npm(tmp_path, "printf 'no\\nnetwork' >&2; exit 3")
    with pytest.raises(DataError, match=r"\(no network\); check the connection"):
        page.fetch_runtime(tmp_path)


def npm(folder: Path, script: str) -> None:
    """A program of that name."""
    (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "npm").chmod(0o755)


@pytest.mark.parametrize("given", [True, False])
def test_a_page_is_built_from_the_archive_that_is_given_or_fetched(
    given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "need_extra", lambda: None)
    monkeypatch.setattr(page, "export_onnx", exported)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as packed:
        for name in (*(f"dist/{file}" for file in page.FILES), "dist/ort.all.js", "package.json"):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(name)
            packed.addfile(member, io.BytesIO(name.encode()))
    checksum = base64.b64encode(hashlib.sha512(data.getvalue()).digest()).decode()
    monkeypatch.setattr(page, "INTEGRITY", checksum)
    archive, lines = tmp_path / f"{page.PACKAGE}-{page.VERSION}.tgz", list[str]()
    archive.write_bytes(data.getvalue())
    npm(tmp_path, f'[ "$5" = "{page.PACKAGE}@{page.VERSION}" ] && cp "{archive}" "$4"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    nets, runtime = [weights(tmp_path / "m")], archive if given else None
    built = build_page(tmp_path / "page", networks=nets, runtime=runtime, log=lines.append)
    unpacked = {path.name: path.read_text() for path in (built.folder / "runtime").iterdir()}
    assert unpacked == {name: f"dist/{name}" for name in page.FILES}, "and no other files"
    assert lines == [
        f"reading {archive}" if given else f"fetching {page.PACKAGE} {page.VERSION} by npm",
        "exporting m (1 of 1) and checking it against PyTorch",
    ]


def test_headers_of_the_server(tmp_path: Path, served: Callable[[Path], str]) -> None:
    for name in ("a.mjs", "a.wasm", "a.onnx", "index.html"):
        (tmp_path / name).write_bytes(b"x")
    address = served(tmp_path)
    types = {
        "a.mjs": "text/javascript",
        "a.wasm": "application/wasm",
        "a.onnx": "application/octet-stream",
        "": "text/html",
    }
    for name, kind in types.items():
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


def test_the_page_links_to_the_paper_and_to_no_other_server() -> None:
    for path in [*STATIC.rglob("*.js"), STATIC / "index.html", STATIC / "style.css"]:
        urls = re.findall(r"https?://[^\s\"'`]+", path.read_text())
        others = [url for url in urls if not url.startswith("http://localhost")]
        assert others == (["https://arxiv.org/abs/2202.05826"] if path.name == "index.html" else [])
