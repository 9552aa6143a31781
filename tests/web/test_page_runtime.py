"""Fetching the browser runtime with npm, and unpacking what the page uses of it."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from iterant.errors import DataError
from iterant.web import page
from web.known_networks import exact_mazes

ARCHIVE = f"{page.PACKAGE}-{page.VERSION}.tgz"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npm that writes its arguments where the archive would be; returns its script."""
    script = tmp_path / "bin" / "npm"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\necho "$@" > "$4/{ARCHIVE}"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return script


def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive like npm's with the files of the page and two others, and its checksum."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name in (*(f"dist/{file}" for file in page.FILES), "dist/ort.all.js", "package.json"):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    content = data.getvalue()
    checksum = base64.b64encode(hashlib.sha512(content).digest()).decode()
    monkeypatch.setattr(page, "INTEGRITY", checksum)
    path = tmp_path / ARCHIVE
    path.write_bytes(content)
    return path


@pytest.mark.usefixtures("npm")
def test_npm_fetches_the_pinned_version_into_the_folder(tmp_path: Path) -> None:
    archive = page.fetch_runtime(tmp_path)
    assert archive == tmp_path / ARCHIVE
    words = archive.read_text().split()
    assert words[0] == "pack"
    assert words[-1] == f"{page.PACKAGE}@{page.VERSION}"


def test_the_reason_of_npm_is_reported(tmp_path: Path, npm: Path) -> None:
    npm.write_text("#!/bin/sh\nprintf 'no\\nnetwork' >&2\nexit 3\n")
    with pytest.raises(DataError, match=r"\(no network\); check the connection"):
        page.fetch_runtime(tmp_path)
    npm.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(DataError, match=r"exit status 3.*check the connection"):
        page.fetch_runtime(tmp_path)


def test_only_the_files_of_the_page_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.unpack_runtime(packed(tmp_path, monkeypatch), tmp_path / "page" / "runtime")
    unpacked = {path.name: path.read_text() for path in (tmp_path / "page/runtime").iterdir()}
    assert unpacked == {name: f"dist/{name}" for name in page.FILES}


@pytest.mark.parametrize("given", [True, False])
def test_a_page_is_built_from_the_archive_that_is_given_or_fetched(
    given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, npm: Path
) -> None:
    monkeypatch.setattr(page, "need_extra", lambda: None)
    monkeypatch.setattr(page, "export_onnx", lambda source, out: out.mkdir(parents=True))
    (tmp_path / "elsewhere").mkdir()
    archive, lines = packed(tmp_path / "elsewhere", monkeypatch), list[str]()
    npm.write_text("#!/bin/sh\nexit 3\n" if given else f'#!/bin/sh\ncp "{archive}" "$4"\n')
    built = page.build_page(
        tmp_path / "page",
        networks=[exact_mazes(tmp_path / "m")],
        runtime=archive if given else None,
        log=lines.append,
    )
    assert {path.name for path in (built.folder / "runtime").iterdir()} == set(page.FILES)
    assert lines == [
        f"reading {archive}" if given else f"fetching {page.PACKAGE} {page.VERSION} by npm",
        "exporting m (1 of 1) and checking it against PyTorch",
    ]
    assert not built.stale
