"""The demo page as a folder that any web server can serve.

    >>> page = build_page("demo-page")
    >>> page.networks
    ('mazes', 'prefix-sums')

    index.html, style.css, js/     our files
    networks/index.json            the networks and their tasks
    networks/NAME/                 read, step and answer graphs, with network.json
    runtime/                       onnxruntime-web
    page.json                      what it was built from; written last

The page uses no other server. onnxruntime-web runs the networks in the browser. It is not in the
repository (41 MB); npm fetches it when the page is built, and its checksum is verified.
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
from collections.abc import Callable, Iterable
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
"""The files of the package that the page uses."""

_TIME_LIMIT = 600
_LARGEST = 64 << 20
"""The most bytes that are read; the archive has half as many."""


def fetch_runtime(folder: Path) -> Path:
    """Fetch the archive of the package with npm into a folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise UsageError(
            f"building the page needs npm to fetch {PACKAGE} {VERSION}, and npm is not installed; "
            f"install Node.js, or fetch the archive elsewhere (npm pack {PACKAGE}@{VERSION}) and "
            f"give it with --runtime {PACKAGE}-{VERSION}.tgz"
        )
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", "--silent", "--pack-destination", str(folder), f"{PACKAGE}@{VERSION}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"npm took more than {_TIME_LIMIT} s to fetch {PACKAGE}; try again"
        ) from None
    archive = folder / f"{PACKAGE}-{VERSION}.tgz"
    if done.returncode or not archive.is_file():
        reason = " ".join(done.stderr.split())[-200:] or f"code {done.returncode}"
        raise DataError(f"npm could not fetch {PACKAGE} {VERSION} ({reason}); check the connection")
    return archive


def unpack_runtime(archive: Path, out: Path) -> None:
    """Verify the archive and extract the files that the page uses."""
    try:
        with archive.open("rb") as file:
            data = file.read(_LARGEST)
    except OSError as error:
        raise DataError(
            f"{archive} cannot be read ({error.strerror}); wanted the file that "
            f"npm pack {PACKAGE}@{VERSION} writes"
        ) from error
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != INTEGRITY:
        raise DataError(
            f"{archive} is not {PACKAGE} {VERSION}: its checksum differs; fetch it again with "
            f"npm pack {PACKAGE}@{VERSION}"
        )
    out.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as packed:  # the bytes that were verified
        for name in FILES:
            member = packed.extractfile(f"package/dist/{name}")
            if member is None:
                raise DataError(f"{archive} holds no dist/{name}")
            (out / name).write_bytes(member.read())


STATIC = Path(__file__).parent / "static"
BUILT = Path(__file__).parent / "built"
"""The folder of scripts/build-page, before a wheel is built."""

_MARK = "page.json"


@dataclass(frozen=True)
class Page:
    """A built page."""

    folder: Path
    networks: tuple[str, ...]
    """The names of its networks"""
    stale: bool = False
    """Whether it was built from other versions of our files"""


def cached_page() -> Path:
    """The folder of ``iterant demo --build``, one per version."""
    return cache_folder() / f"page-{_version()}"


def find_page() -> Page:
    """The page in the package, or the one that the user has built.

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
    """The page in a folder."""
    built: dict[str, Any] = read_json(folder / _MARK)
    return Page(folder, tuple(built["networks"]), stale=built.get("scripts") != _static_hash())


def build_page(
    out: str | os.PathLike[str],
    *,
    networks: Iterable[str | os.PathLike[str] | Source] | None = None,
    runtime: Path | None = None,
    tell: Callable[[str], object] = lambda words: None,
) -> Page:
    """Build the page in a new or empty folder; this takes about a minute.

        >>> build_page("page", networks=["runs/m0"], tell=print)

    ``networks`` are names, runs or weights folders (None: all that ship). The page opens with the
    first of a task, or the one that has the name of the task. ``runtime`` is the archive that npm
    would fetch, for machines without npm. ``tell`` is called with messages on progress.
    """
    need_extra()
    folder = check_new_folder(out)
    sources = _by_name(shipped() if networks is None else networks)
    if not sources:
        raise UsageError("no network ships with this version; name one with --net RUN")
    make_folder(folder)
    try:
        with tempfile.TemporaryDirectory() as temporary:
            tell(
                f"fetching {PACKAGE} {VERSION} by npm" if runtime is None else f"reading {runtime}"
            )
            archive = fetch_runtime(Path(temporary)) if runtime is None else runtime
            unpack_runtime(archive, folder / "runtime")
        shutil.copytree(STATIC, folder, dirs_exist_ok=True)
        index = []
        for number, (name, source) in enumerate(sources.items(), start=1):
            tell(f"exporting {name} ({number} of {len(sources)}) and checking it against PyTorch")
            graphs = folder / "networks" / name
            export_onnx(source, graphs)
            card = source.about.get("card")
            index.append(
                {
                    "task": source.task,
                    "name": name,
                    "parameters": source.parameters,
                    "bytes": sum(file.stat().st_size for file in graphs.iterdir()),
                    "trained_on": card.get("trained_on") if isinstance(card, dict) else None,
                }
            )
        write_json(folder / "networks" / "index.json", index)
        write_json(
            folder / _MARK,
            {
                "iterant": _version(),
                "runtime": {"package": PACKAGE, "version": VERSION},
                "networks": list(sources),
                "scripts": _static_hash(),
            },
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # it was new or empty
        raise
    return open_page(folder)


def _by_name(networks: Iterable[str | os.PathLike[str] | Source]) -> dict[str, Source]:
    """The networks by unique names, sorted by task."""
    sources = [net if isinstance(net, Source) else open_source(net) for net in networks]
    tasks = registry.known("task")
    for source in sources:
        if source.task not in tasks:
            raise UsageError(
                f"{source.name!r} was trained for {source.task or 'a task that it does not name'}; "
                f"the page shows {', '.join(tasks)}"
            )
    sources.sort(key=lambda source: (tasks.index(str(source.task)), source.name != source.task))
    by_name: dict[str, Source] = {}
    for source in sources:
        name, number = source.name, 1
        while name in by_name:
            number += 1
            name = f"{source.name}-{number}"
        by_name[name] = source
    return by_name


def _static_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in STATIC.rglob("*") if path.is_file()):
        digest.update(path.relative_to(STATIC).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _version() -> str:
    try:
        return version("iterant")
    except PackageNotFoundError:  # source code that is not installed
        return "source"
