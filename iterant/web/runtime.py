"""onnxruntime-web: what runs networks in a browser, fetched through npm and checked.

    >>> unpack_runtime(fetch_runtime(folder), out)

It is not in the repository (its WebAssembly files have 41 MB) and the page never fetches it from
anywhere but its own server: it is copied beside the page when the page is built.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
from pathlib import Path

from iterant.errors import DataError, UsageError

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
