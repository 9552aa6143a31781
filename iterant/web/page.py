"""The page as a folder that any web server can serve.

    >>> page = build_page("demo-page")
    >>> page.networks
    ('mazes', 'prefix-sums')

    index.html, style.css, js/     our files
    networks/index.json            which networks there are, for which task
    networks/NAME/                 one as read, step and answer graphs, with its network.json
    runtime/                       onnxruntime-web
    page.json                      what it was built from; written last

The page asks nothing of any other server.

onnxruntime-web: what runs networks in a browser, fetched through npm and checked.

It is not in the repository (its WebAssembly files have 41 MB) and the page never fetches it from
anywhere but its own server: it is copied beside the page when the page is built.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from iterant import registry
from iterant.errors import DataError, UsageError
from iterant.export.hub import Source, open_source
from iterant.export.onnx import export_onnx, need_extra
from iterant.io import read_json, write_json
from iterant.io.files import check_new_folder, make_folder
from iterant.tasks.chess.task import cache_folder
from iterant.zoo import shipped

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = (
    "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
)
"""SHA-512 of the archive in base64, as npm publishes it."""

FILES = (
    # WebAssembly alone
    "ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm",
    # with WebGPU
    "ort.webgpu.min.mjs",
    "ort-wasm-simd-threaded.asyncify.mjs",
    "ort-wasm-simd-threaded.asyncify.wasm",
)
"""What of the package the page uses."""

_TIME_LIMIT = 600
_LARGEST = 64 << 20
"""Bytes of an archive that are looked at: the right one has half as many."""


def fetch_runtime(folder: Path) -> Path:
    """Have npm put the package's archive into a folder, and return the archive's path."""
    npm = shutil.which("npm")
    if npm is None:
        raise UsageError(
            f"building the page needs npm to fetch {PACKAGE} {VERSION}, and npm is not installed; "
            f"install Node.js, or fetch the archive elsewhere (npm pack {PACKAGE}@{VERSION}) and "
            f"give it with --runtime {PACKAGE}-{VERSION}.tgz"
        )
    folder.mkdir(parents=True, exist_ok=True)
    words = [npm, "pack", "--silent", "--pack-destination", str(folder), f"{PACKAGE}@{VERSION}"]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"npm took more than {_TIME_LIMIT} s to fetch {PACKAGE}; try again"
        ) from None
    archive = folder / f"{PACKAGE}-{VERSION}.tgz"
    if done.returncode or not archive.is_file():
        said = " ".join(done.stderr.split())[-200:] or f"code {done.returncode}"
        raise DataError(f"npm could not fetch {PACKAGE} {VERSION} ({said}); check the connection")
    return archive


def unpack_runtime(archive: Path, out: Path) -> None:
    """Copy the files that the page uses out of the archive, once it proved to be the right one."""
    try:
        with archive.open("rb") as file:
            data = file.read(_LARGEST)
    except OSError as error:
        raise DataError(
            f"{archive} cannot be read ({error.strerror}); wanted the file that "
            f"npm pack {PACKAGE}@{VERSION} writes"
        ) from error
    found = base64.b64encode(hashlib.sha512(data).digest()).decode()
    if found != INTEGRITY:
        raise DataError(
            f"{archive} is not {PACKAGE} {VERSION}: its checksum differs; fetch it again with "
            f"npm pack {PACKAGE}@{VERSION}"
        )
    out.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as packed:  # the very bytes that were checked
        for name in FILES:
            member = packed.extractfile(f"package/dist/{name}")
            if member is None:
                raise DataError(f"{archive} holds no dist/{name}")
            (out / name).write_bytes(member.read())


STATIC = Path(__file__).parent / "static"
BUILT = Path(__file__).parent / "built"
"""Where scripts/build-page puts the page before a wheel is made."""

_MARK = "page.json"


@dataclass(frozen=True)
class Page:
    """A built page."""

    folder: Path
    networks: tuple[str, ...]
    """The names of the networks that it holds"""
    stale: bool = False
    """Whether it was built from other scripts than those that are here now"""


def cached_page() -> Path:
    """Where ``iterant demo --build`` keeps the page: a folder a version."""
    return cache_folder() / f"page-{_version()}"


def find_page() -> Page:
    """The page that was built: the one in the package, else the user's own.

    >>> find_page().networks
    """
    for folder in (BUILT, cached_page()):
        if (folder / _MARK).is_file():
            return open_page(folder)
    raise UsageError(
        "the page is not built here (its runtime and networks do not come with the source); build "
        "it once with: iterant demo --build (needs npm, a connection and iterant[export])"
    )


def open_page(folder: Path) -> Page:
    """The page in a folder that was built before."""
    known: dict[str, Any] = read_json(folder / _MARK)
    return Page(folder, tuple(known["networks"]), stale=known.get("scripts") != _scripts())


def build_page(
    out: str | os.PathLike[str],
    *,
    networks: Iterable[str | os.PathLike[str] | Source] | None = None,
    runtime: Path | None = None,
    tell: Callable[[str], object] = lambda words: None,
) -> Page:
    """Put the page together in a new or empty folder.

        >>> build_page("page", networks=["runs/m0"], tell=print)

    ``networks`` are names, runs or folders of weights; None takes all that ship. Of several for a
    task the page shows the first at first, and the one that is called like the task before it.
    ``runtime`` is the archive that npm would fetch, for machines without npm. It takes a minute or
    so; ``tell`` hears what is being done.
    """
    need_extra()
    folder = check_new_folder(out)
    sources = _by_name(shipped() if networks is None else networks)
    if not sources:
        raise UsageError("no network ships with this version; name one with --net RUN")
    make_folder(folder)
    try:
        return _built(folder, sources, runtime, tell)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # it was new or empty: all in it is ours
        raise


def _built(
    folder: Path,
    sources: Mapping[str, Source],
    runtime: Path | None,
    tell: Callable[[str], object],
) -> Page:
    """The page in that folder: run-time, scripts, and a graph of every network."""
    with tempfile.TemporaryDirectory() as scratch:
        tell(f"fetching {PACKAGE} {VERSION} by npm" if runtime is None else f"reading {runtime}")
        archive = fetch_runtime(Path(scratch)) if runtime is None else runtime
        unpack_runtime(archive, folder / "runtime")
    shutil.copytree(STATIC, folder, dirs_exist_ok=True)
    listed = []
    for number, (name, source) in enumerate(sources.items(), start=1):
        tell(f"exporting {name} ({number} of {len(sources)}) and checking it against PyTorch")
        export_onnx(source, folder / "networks" / name)
        listed.append(_listed(name, source, folder / "networks" / name))
    write_json(folder / "networks" / "index.json", listed)
    write_json(
        folder / _MARK,
        {
            "iterant": _version(),
            "runtime": {"package": PACKAGE, "version": VERSION},
            "networks": list(sources),
            "scripts": _scripts(),
        },
    )
    return open_page(folder)


def _listed(name: str, source: Source, folder: Path) -> dict[str, Any]:
    """What the page knows of a network before it is fetched, which may be megabytes."""
    card = source.about.get("card")
    return {
        "task": source.task,
        "name": name,
        "parameters": source.parameters,
        "bytes": sum(file.stat().st_size for file in folder.iterdir()),
        "trained_on": card.get("trained_on") if isinstance(card, dict) else None,
    }


def _by_name(wanted: Iterable[str | os.PathLike[str] | Source]) -> dict[str, Source]:
    """The networks by names of their own, those of a task together."""
    sources = [given if isinstance(given, Source) else open_source(given) for given in wanted]
    tasks = registry.known("task")
    for source in sources:
        if source.task not in tasks:
            raise UsageError(
                f"{source.name!r} was trained for {source.task or 'a task that it does not name'}; "
                f"the page shows {', '.join(tasks)}"
            )
    sources.sort(key=lambda source: (tasks.index(str(source.task)), source.name != source.task))
    found: dict[str, Source] = {}
    for source in sources:
        name, number = source.name, 1
        while name in found:
            number += 1
            name = f"{source.name}-{number}"
        found[name] = source
    return found


def _scripts() -> str:
    """What tells our files from those of another day: a version may last for months."""
    digest = hashlib.sha256()
    for path in sorted(path for path in STATIC.rglob("*") if path.is_file()):
        digest.update(path.relative_to(STATIC).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _version() -> str:
    try:
        return version("iterant")
    except PackageNotFoundError:  # a copy of the source that was never installed
        return "source"
