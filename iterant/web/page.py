"""The demo page as a folder that any web server can serve.

    >>> page = build_page("demo-page")
    >>> page.networks
    ('mazes', 'prefix-sums')

    index.html, style.css, js/     our files
    networks/index.json            the networks and their tasks
    networks/NAME/                 read, step and answer graphs, with network.json
    published.json                 published numbers on mazes, and ours
    runtime/                       onnxruntime-web
    page.json                      what it was built from; written last

The page uses no other server. onnxruntime-web runs the networks in the browser. It is not in the
repository (41 MB); npm fetches it when the page is built, and its checksum is verified.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, cast

from iterant import __version__, registry
from iterant.errors import DataError, UsageError
from iterant.experiments.records import read_records, shipped_results
from iterant.experiments.shifts import MAZE_EXPERIMENTS
from iterant.export.onnx import export_onnx, need_extra
from iterant.formatting import counted
from iterant.io import read_json, read_weights, write_json
from iterant.io.files import PathLike, cache_folder, check_new_folder, make_folder, read_bytes
from iterant.tasks.protocol import task
from iterant.zoo import load, shipped
from iterant.zoo.loading import folder_of

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

_LARGEST = 64 << 20
"""The most bytes that are read; the archive has half as many."""
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


def fetch_runtime(folder: Path) -> Path:
    """Fetch the archive of onnxruntime-web with npm into a folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise UsageError(
            f"building the page needs npm, which is not installed; install Node.js, or run "
            f"npm pack {PACKAGE}@{VERSION} elsewhere and give the file with --runtime"
        )
    command = [npm, "pack", "--silent", "--pack-destination", str(folder), f"{PACKAGE}@{VERSION}"]
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    except subprocess.SubprocessError as error:
        reason = " ".join(str(getattr(error, "stderr", None) or error).split())[-200:]
        raise DataError(
            f"npm could not fetch {PACKAGE} {VERSION} ({reason}); check the connection"
        ) from error
    return folder / f"{PACKAGE}-{VERSION}.tgz"


def unpack_runtime(archive: Path, out: Path) -> None:
    """Verify the archive and extract the files that the page uses."""
    data = read_bytes(archive, _LARGEST)
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != INTEGRITY:
        raise DataError(
            f"{archive} is not {PACKAGE} {VERSION}: its checksum differs; "
            f"give the file that npm pack {PACKAGE}@{VERSION} writes"
        )
    out.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as packed:  # the bytes that were verified
        for name in FILES:
            with cast("IO[bytes]", packed.extractfile(f"package/dist/{name}")) as member:
                (out / name).write_bytes(member.read())


def cached_page() -> Path:
    """The folder of ``iterant demo --build``, one per version."""
    return cache_folder() / f"page-{__version__}"


def find_page() -> Page:
    """The page that the user has built, or the one in the package.

    >>> find_page().networks
    """
    for folder in (cached_page(), BUILT):
        if (folder / _MARK).is_file():
            return Page(folder, tuple(read_json(folder / _MARK)["networks"]))
    raise UsageError(
        "the page is not built here (its runtime and networks do not come with the source); build "
        "it once with: iterant demo --build (needs npm, a connection and iterant[export])"
    )


def build_page(
    out: PathLike | None = None,
    *,
    networks: Iterable[PathLike] | None = None,
    runtime: Path | None = None,
    trust: bool = False,
    log: Callable[[str], object] = lambda line: None,
) -> Page:
    """Build the page in a new or empty folder; this takes about a minute.

        >>> build_page("page", networks=["runs/m0"], log=print)

    ``out=None`` replaces the page that `find_page` finds, once the new one is complete.
    ``networks`` are names, runs or weights folders (None: all that ship). The page opens with the
    first of a task, or the one that has the name of the task. ``runtime`` is the archive that npm
    would fetch, for machines without npm. ``trust``: import the user-defined networks that the
    folders name. ``log`` is called with messages on progress.
    """
    need_extra()
    folder = cached_page() if out is None else check_new_folder(out)
    sources = _by_name(shipped() if networks is None else networks, trust=trust)
    with tempfile.TemporaryDirectory() as temporary:
        page = Path(shutil.copytree(STATIC, Path(temporary) / "page"))
        log(f"fetching {PACKAGE} {VERSION} by npm" if runtime is None else f"reading {runtime}")
        archive = fetch_runtime(Path(temporary)) if runtime is None else runtime
        unpack_runtime(archive, page / "runtime")
        index = []
        for number, (name, (network, saved)) in enumerate(sources.items(), start=1):
            log(f"exporting {name} ({number} of {len(sources)}) and checking it against PyTorch")
            graphs = page / "networks" / name
            exported = export_onnx(network, graphs, trust=trust)
            index.append(
                {
                    "task": saved["task"],
                    "name": name,
                    "parameters": exported.parameters,
                    "bytes": sum(file.stat().st_size for file in graphs.iterdir()),
                    "trained_on": saved.get("card", {}).get("trained_on"),
                    "training": _training(saved),
                }
            )
        write_json(page / "networks" / "index.json", index)
        write_json(page / "published.json", maze_table())
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(page, make_folder(folder), dirs_exist_ok=True)
    runtime_used = {"package": PACKAGE, "version": VERSION}
    about = {"iterant": __version__, "runtime": runtime_used, "networks": list(sources)}
    write_json(folder / _MARK, about)
    return Page(folder, tuple(sources))


def maze_table() -> list[dict[str, str]]:
    """Published numbers on Maze-Hard and Maze-Unique; ours before them, where they are recorded.

    "address" is where a source is to be read; "" where it is not known.
    """
    files = sorted((shipped_results() / "recipes").glob("maze-shifts*.jsonl"))
    rows = MAZE_EXPERIMENTS["maze-hard"].make_table(read_records(*files))
    return [
        {
            **row,
            "source": row["source"] or f"ours, {counted(int(row['seeds']), 'seed')}",
            "address": _address(row["source"]),
        }
        for row in rows
    ]


def _address(source: str) -> str:
    if source.startswith("arXiv "):
        return f"https://arxiv.org/abs/{source.removeprefix('arXiv ')}"
    return f"https://{source.split(',')[0]}" if source.startswith("github.com/") else ""


def _training(saved: dict[str, Any]) -> dict[str, Any] | None:
    """Size and kind of the problems that a network was trained on; None: not known.

    The page says where a problem differs from them. The kind is that of ``--problems``, "" for the
    paper's.
    """
    about = saved.get("recipe") or saved.get("card")
    if about is None or saved.get("data") is not None:  # problems from files may be of any kind
        return None
    # A card names the size where it is not the task's.
    size = about.get("size") or task(saved["task"]).spec.train_size
    return {"size": size, "problems": about.get("problems", "")}


def _by_name(
    networks: Iterable[PathLike], *, trust: bool
) -> dict[str, tuple[PathLike, dict[str, Any]]]:
    """The networks and what their folders say of them, by unique names, sorted by task."""
    tasks, sources = registry.known("task"), []
    for network in networks:
        saved, _ = read_weights(folder_of(network))
        load(network, trust=trust)  # whether it can be loaded, before anything is fetched
        name, trained_for = Path(network).resolve().name, saved.get("task")
        if trained_for not in tasks:
            raise UsageError(
                f"{name!r} was trained for {trained_for or 'a task that it does not name'}; "
                f"the page shows {', '.join(tasks)}"
            )
        order = (tasks.index(trained_for), name != trained_for)
        sources.append((order, name, network, saved))
    by_name: dict[str, tuple[PathLike, dict[str, Any]]] = {}
    for _, stem, network, saved in sorted(sources, key=itemgetter(0)):
        name, number = stem, 1
        while name in by_name:
            number += 1
            name = f"{stem}-{number}"
        by_name[name] = network, saved
    return by_name
