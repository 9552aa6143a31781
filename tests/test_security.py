"""What docs/security.md promises: nothing that is loaded runs, and the server serves its folder."""

from __future__ import annotations

import ast
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from iterant.web.server import page_server

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


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from yaml import load", "eval('1')", "torch.load(f)", "np.load(f)",
     "torch.load(f, weights_only=False)", "tar.extractall(out)", "run(w, shell=True)",
     "os.system('ls')"],
)  # fmt: skip
def test_an_offence_is_seen(source: str) -> None:
    assert len(offences(source)) == 1


class TestServer:
    @pytest.fixture
    def port(self, tmp_path: Path) -> Iterator[int]:
        """A server of one folder, beside which something lies that is nobody's business."""
        (tmp_path / "secret.txt").write_text("a secret")
        (tmp_path / "page").mkdir()
        (tmp_path / "page" / "index.html").write_text("the page")
        with page_server(tmp_path / "page", port=0) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield server.server_address[1]
            server.shutdown()
            thread.join()

    def said(self, port: int, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(request)
            line.shutdown(socket.SHUT_WR)
            parts = []
            while part := line.recv(65536):
                parts.append(part)
        return b"".join(parts)

    def test_it_listens_to_this_machine_only(self, tmp_path: Path) -> None:
        with page_server(tmp_path, port=0) as server:
            assert server.server_address[0] == "127.0.0.1"

    @pytest.mark.parametrize(
        "path",
        [b"/../secret.txt", b"/%2e%2e/secret.txt", b"/..%2fsecret.txt", b"//../../secret.txt",
         b"/..\\secret.txt", b"/%252e%252e/secret.txt", b"/\x00/../secret.txt", b"/%00",
         b"/" + b"a" * 5000, b"/" + b"../" * 2000 + b"etc/passwd", b"/\xff\xfe",
         b"/?" + b"x" * 500],
    )  # fmt: skip
    def test_hostile_paths_leave_nothing(self, port: int, path: bytes) -> None:
        answer = self.said(port, b"GET " + path + b" HTTP/1.0\r\n\r\n")
        assert b"a secret" not in answer
        assert b"root:" not in answer
        assert b"the page" in self.said(port, b"GET / HTTP/1.0\r\n\r\n"), "it survives"

    @pytest.mark.parametrize(
        "request_",
        [b"POST / HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\n", b"PUT /x HTTP/1.1\r\n\r\nabc",
         b"DELETE /index.html HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x00\xa5", b"GET\r\n\r\n",
         b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.0\r\n" + b"a: b\r\n" * 500 + b"\r\n",
         b"GET / HTTP/1.0\r\n" + b"x" * 70_000],
    )  # fmt: skip
    def test_hostile_bodies_change_nothing(
        self, port: int, request_: bytes, tmp_path: Path
    ) -> None:
        self.said(port, request_)
        assert b"the page" in self.said(port, b"GET / HTTP/1.0\r\n\r\n"), "it survives"
        assert [path.name for path in (tmp_path / "page").iterdir()] == ["index.html"]
