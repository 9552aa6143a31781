"""What docs/security.md promises: nothing that is loaded runs, and the server serves its folder."""

from __future__ import annotations

import ast
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iterant.web import page_server, server

PACKAGE = Path(__file__).resolve().parents[1] / "iterant"
SOURCES = sorted(PACKAGE.rglob("*.py"))

FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "yaml", "joblib", "code"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


def offences(source: str) -> list[str]:
    """What a module does that could run what it reads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
                found.append(f"from {node.module}")
        elif isinstance(node, ast.Call):
            found += _calls(node)
    return found


def _calls(node: ast.Call) -> list[str]:
    name = ast.unparse(node.func)
    given = {word.arg: ast.unparse(word.value) for word in node.keywords}
    if name in FORBIDDEN_CALLS:
        return [name]
    if name.endswith("torch.load") and given.get("weights_only") != "True":
        return ["torch.load without weights_only=True"]
    loads = name in ("np.load", "numpy.load") or name.endswith("read_array")
    if loads and given.get("allow_pickle") != "False":
        return [f"{name} without allow_pickle=False"]
    if name.endswith((".extractall", ".extract", "unpack_archive")):
        return [f"{name}: members are read by name instead"]
    if given.get("shell") == "True" or name in ("os.system", "os.popen"):
        return [f"{name} through a shell"]
    return []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_that_is_read_can_run(path: Path) -> None:
    assert offences(path.read_text()) == []


PAGE = b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"


def serve(folder: Path) -> Iterator[int]:
    """Serve a folder in a thread; yields the port."""
    with page_server(folder, port=0) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield running.server_address[1]
        running.shutdown()
        thread.join()


def ask(port: int, request: bytes) -> bytes:
    """The whole answer to a request; what came of it, if the server closes the connection."""
    parts = []
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=10) as line,
    ):
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        while part := line.recv(65536):
            parts.append(part)
    return b"".join(parts)


class TestServer:
    @pytest.fixture
    def port(self, tmp_path: Path) -> Iterator[int]:
        """A server of one folder; a file beside it must not be served."""
        (tmp_path / "secret.txt").write_text("a secret")
        (tmp_path / "page" / "js").mkdir(parents=True)
        (tmp_path / "page" / "index.html").write_text("the page")
        (tmp_path / "page" / "js" / "main.js").write_text("a script")
        (tmp_path / "page" / "link.txt").symlink_to(tmp_path / "secret.txt")
        yield from serve(tmp_path / "page")

    def test_it_listens_to_this_machine_only(self, tmp_path: Path) -> None:
        with page_server(tmp_path, port=0) as server:
            assert server.server_address[0] == "127.0.0.1"

    def test_hostile_requests_leave_and_change_nothing(self, port: int, tmp_path: Path) -> None:
        paths = [
            b"/link.txt", b"/../secret.txt", b"/%2e%2e/secret.txt", b"/..%2fsecret.txt",
            b"//../../secret.txt", b"/..\\secret.txt", b"/%252e%252e/secret.txt",
            b"/\x00/../secret.txt", b"/%00", b"/" + b"a" * 5000, b"/\xff\xfe",
            b"/" + b"../" * 2000 + b"etc/passwd", b"/?" + b"x" * 500,
        ]  # fmt: skip
        requests = [PAGE.replace(b"/", path, 1) for path in paths]
        requests += [
            b"POST / HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\n",
            b"PUT /x HTTP/1.1\r\n\r\nabc", b"DELETE /index.html HTTP/1.0\r\n\r\n",
            b"\x16\x03\x01\x00\xa5", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.0\r\n" + b"a: b\r\n" * 500 + b"\r\n",
            b"GET / HTTP/1.0\r\n" + b"x" * 70_000,
        ]  # fmt: skip
        for request in requests:
            answer = ask(port, request)
            assert b"a secret" not in answer, request[:80]
            assert b"root:" not in answer
            assert b"the page" in ask(port, PAGE), f"it did not survive {request[:80]!r}"
        files = sorted(path.name for path in (tmp_path / "page").iterdir())
        assert files == ["index.html", "js", "link.txt"]

    def status(self, port: int, path: str, host: str = "localhost") -> int:
        answer = ask(port, f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        return int(answer.split()[1])

    def test_folders_are_not_listed(self, port: int) -> None:
        codes = [self.status(port, path) for path in ("/js/main.js", "/js/", "/js", "/none")]
        assert codes == [200, 404, 404, 404]

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example",
         "192.168.1.2", "localhost:8000@evil.example", "", ":8000", "[::2]:1", "[::1]evil"],
    )  # fmt: skip
    def test_other_hosts_are_refused(self, port: int, host: str) -> None:
        """A site whose name is pointed to 127.0.0.1 cannot read the page (DNS rebinding)."""
        assert self.status(port, "/", host) == 421
        assert b"the page" not in ask(port, b"GET / HTTP/1.0\r\n\r\n")

    @pytest.mark.parametrize("host", ["localhost", "LocalHost", "127.0.0.1", "[::1]"])
    def test_names_of_this_machine_are_accepted(self, port: int, host: str) -> None:
        assert self.status(port, "/", host) == 200
        assert self.status(port, "/", f"{host}:{port}") == 200

    def test_a_server_for_other_machines_accepts_addresses_and_its_name(
        self, tmp_path: Path
    ) -> None:
        with page_server(tmp_path, port=0, host="0.0.0.0") as public:  # noqa: S104
            names = ["192.168.1.2", "192.168.1.2:8000", "[fe80::1]:8000", socket.gethostname()]
            assert all(map(public.is_own_name, names))  # type: ignore[attr-defined]
            assert not public.is_own_name("evil.example:8000")  # type: ignore[attr-defined]

    @pytest.mark.parametrize("path", ["/", "/js/main.js", "/none", "/js/"])
    def test_headers(self, port: int, path: str) -> None:
        answer = ask(port, f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        headers = dict(
            line.split(": ", 1) for line in answer.decode().split("\r\n")[1:] if ": " in line
        )
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert policy.endswith("; frame-ancestors 'none'")
        assert "unsafe-inline" not in policy
        assert "'unsafe-eval'" not in policy

    def test_the_page_has_the_same_policy_on_other_servers(self) -> None:
        page = (PACKAGE / "web" / "static" / "index.html").read_text()
        assert f'<meta http-equiv="Content-Security-Policy" content="{server.POLICY}">' in page
        assert '<meta name="referrer" content="no-referrer">' in page


class TestSlowClients:
    """Clients that send nothing, or little at a time, with limits made short."""

    @pytest.fixture
    def port(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
        monkeypatch.setattr(server, "REQUEST_SECONDS", 1.0)
        monkeypatch.setattr(server, "MOST_CONNECTIONS", 8)
        (tmp_path / "index.html").write_text("the page")
        yield from serve(tmp_path)

    def closed_after(self, port: int, sent: bytes, every: float | None = None) -> float:
        """Seconds until the server closes a connection on which that is sent again and again."""
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=every or 30) as line:
            while time.monotonic() - begin < 30:
                try:
                    line.sendall(sent)
                    if line.recv(65536) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
        return time.monotonic() - begin

    @pytest.mark.parametrize(("sent", "every"), [(b"", None), (b"G", 0.1)])
    def test_a_client_that_sends_too_little_is_dropped(
        self, port: int, sent: bytes, every: float | None
    ) -> None:
        assert 0.5 < self.closed_after(port, sent, every) < 6

    def test_a_client_that_does_not_read_is_dropped(
        self, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "RESPONSE_SECONDS", 1.0)
        (tmp_path / "large").write_bytes(bytes(50 << 20))
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(b"GET /large HTTP/1.0\r\nHost: localhost\r\n\r\n")
            time.sleep(3)
            size = 0
            with contextlib.suppress(OSError):
                while part := line.recv(1 << 20):
                    size += len(part)
        assert size < 50 << 20

    def test_many_idle_connections_block_others_no_longer_than_the_limit(self, port: int) -> None:
        with contextlib.ExitStack() as lines:
            for _ in range(50):
                lines.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            time.sleep(0.3)
            threads = sum("process_request_thread" in one.name for one in threading.enumerate())
            assert threads == 8
            begin = time.monotonic()
            while b"the page" not in ask(port, PAGE):
                assert time.monotonic() - begin < 6
                time.sleep(0.1)
