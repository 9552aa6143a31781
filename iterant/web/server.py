"""The small server behind ``iterant demo``: the page's files, to this machine only unless asked.

>>> with page_server(page.folder, port=8000) as server:
...     server.serve_forever()
"""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from pathlib import Path

from iterant.errors import UsageError

_TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".wasm": "application/wasm",
    ".onnx": "application/octet-stream",
}
"""What some systems do not know, and browsers insist on."""


class _Files(SimpleHTTPRequestHandler):
    """Files of one folder; only what goes wrong is printed."""

    def guess_type(self, path: str | PathLike[str]) -> str:
        """The type that the browser is told."""
        return _TYPES.get(Path(path).suffix) or super().guess_type(path)

    def end_headers(self) -> None:
        """Let WebAssembly use threads, and a rebuilt page show itself."""
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def page_server(folder: Path, port: int = 8000, host: str = "127.0.0.1") -> ThreadingHTTPServer:
    """A server that is bound and ready; port 0 takes any that is free."""
    if not host:  # to the system no address is every address
        raise UsageError("--host is empty; 127.0.0.1 is this machine only, 0.0.0.0 the network too")
    try:
        return ThreadingHTTPServer((host, port), partial(_Files, directory=str(folder)))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"the page cannot be served at {host}:{port} ({reason}); choose another --port, "
            "or --port 0 for any that is free"
        ) from error
