"""The server of ``iterant demo``: the files of the page, by default for this machine only.

>>> with page_server(page.folder, port=8000) as server:
...     server.serve_forever()
"""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from iterant.errors import UsageError


class _Files(SimpleHTTPRequestHandler):
    """Serve a folder; log only errors."""

    # Types that browsers require and some systems do not know.
    extensions_map = {  # noqa: RUF012 (an attribute of instances for type checkers)
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".onnx": "application/octet-stream",
    }

    def end_headers(self) -> None:
        # Allow threads in WebAssembly, and disable caching for rebuilt pages.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def page_server(folder: Path, port: int = 8000, host: str = "127.0.0.1") -> ThreadingHTTPServer:
    """A bound server; port 0 takes a free one."""
    if not host:  # the system would take it for all addresses
        raise UsageError("--host is empty; 127.0.0.1 is this machine only, 0.0.0.0 the network too")
    try:
        return ThreadingHTTPServer((host, port), partial(_Files, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"the page cannot be served at {host}:{port} ({error}); choose another --port, 0: any"
        ) from error
