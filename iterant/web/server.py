"""The server of ``iterant demo``: the files of the page, by default for this machine only.

>>> with page_server(page.folder, port=8000) as server:
...     server.serve_forever()
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from iterant.errors import UsageError

REQUEST_SECONDS = 10.0
"""Within this time a client must have sent its request."""
RESPONSE_SECONDS = 300.0
"""Within this time it must have received the response; the largest file has 27 MB."""
MOST_CONNECTIONS = 64
"""At a time; further ones are closed. A browser opens six."""

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
    "worker-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""The content security policy of the page; index.html has it too, for other servers."""

_HEADERS = {
    # The first two allow threads in WebAssembly.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # the page may be rebuilt
}


class _Files(SimpleHTTPRequestHandler):
    """Serve the files of a folder; log only errors."""

    server: _Server
    timeout = REQUEST_SECONDS  # without any progress, also while a response is sent
    # Types that browsers require and some systems do not know.
    extensions_map = {  # noqa: RUF012 (an attribute of instances for type checkers)
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".onnx": "application/octet-stream",
    }

    def send_head(self) -> BytesIO | BinaryIO | None:
        self.server.extend(self.connection)
        if not self.server.is_own_name(self.headers.get("Host", "")):
            # A page of another site whose name was pointed to this machine (DNS rebinding).
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        folder = Path(self.directory).resolve()
        try:
            path = Path(self.translate_path(self.path)).resolve()
            served = (folder / "index.html" if path == folder else path).is_file()
        except (OSError, ValueError):  # a name that is too long; a null byte
            served = False
        # No lists of files, and no links that lead out of the folder.
        if not served or not path.is_relative_to(folder):
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


class _Server(ThreadingHTTPServer):
    """A thread per connection, with limits on their number and on the time of each."""

    request_queue_size = MOST_CONNECTIONS

    def __init__(self, host: str, port: int, folder: Path) -> None:
        self.deadlines: dict[socket.socket, float] = {}
        """When each open connection is closed"""
        self.names = {"localhost", "127.0.0.1", "[::1]", host.lower()}
        address = _address(host)
        self.is_local = host == "localhost" or (address is not None and address.is_loopback)
        if not self.is_local:
            self.names.add(socket.gethostname().lower())
        super().__init__((host, port), partial(_Files, directory=str(folder)))

    def is_own_name(self, host: str) -> bool:
        """Whether a Host header names this server.

        The port is not compared: it differs through an SSH tunnel. A server for other machines
        also accepts IP addresses, since it does not know all of its own; only a name can be
        pointed elsewhere.
        """
        name = re.sub(r":[0-9]+$", "", host.lower())
        return name in self.names or (not self.is_local and _address(name.strip("[]")) is not None)

    def extend(self, connection: socket.socket) -> None:
        """The request of this connection is complete: give it the time for the response."""
        self.deadlines[connection] = monotonic() + RESPONSE_SECONDS

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self.deadlines) >= MOST_CONNECTIONS:
            self.shutdown_request(request)
            return
        self.deadlines[request] = monotonic() + REQUEST_SECONDS
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.deadlines.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        # Called twice a second. A timeout of the socket alone would not end a connection that
        # sends a byte now and then.
        for connection, deadline in list(self.deadlines.items()):
            if monotonic() > deadline:
                with contextlib.suppress(OSError):  # it was closed in the meantime
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Browsers close connections that they no longer need.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _address(word: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(word)
    except ValueError:
        return None


def page_server(folder: Path, port: int = 8000, host: str = "127.0.0.1") -> ThreadingHTTPServer:
    """A bound server; port 0 takes a free one."""
    if not host:  # the system would take it for all addresses
        raise UsageError("--host is empty; 127.0.0.1 is this machine only, 0.0.0.0 the network too")
    try:
        return _Server(host, port, folder)
    except (OSError, OverflowError, UnicodeError) as error:
        raise UsageError(
            f"the page cannot be served at {host}:{port} ({error}); choose another --port, 0: any"
        ) from error
