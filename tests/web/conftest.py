"""A real browser and a built page."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from iterant.web import page_server
from iterant.web.page import fetch_runtime
from web.browsing import Visit


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium; without a GPU the page uses WebAssembly."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium: scripts/install-browser")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of onnxruntime-web, fetched once."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm: scripts/install-browser")
    return fetch_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="session")
def page_folder(tmp_path_factory: pytest.TempPathFactory, runtime: Path) -> Path:
    """The page with all networks that ship, by ``iterant demo --build --out``."""
    folder = tmp_path_factory.mktemp("pages") / "page"
    command = ["demo", "--build", "--out", str(folder), "--runtime", str(runtime)]
    subprocess.run([sys.executable, "-m", "iterant", *command], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def served() -> Iterator[Callable[[Path], str]]:
    """Serve a folder as ``iterant demo`` does, and give its address."""
    servers = []

    def serve(folder: Path) -> str:
        server = page_server(folder, port=0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def address(page_folder: Path, served: Callable[[Path], str]) -> str:
    """The address of the page."""
    return served(page_folder)


@pytest.fixture(scope="session")
def listed(page_folder: Path) -> list[dict[str, Any]]:
    """The networks of the page, as its index lists them."""
    index: list[dict[str, Any]] = json.loads((page_folder / "networks/index.json").read_text())
    return index


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Visit]]:
    """Open the page under other conditions: options of `Visit`, and another browser or address."""
    visits: list[Visit] = []

    def opened(with_browser: Browser = browser, at: str = address, **options: Any) -> Visit:
        visits.append(Visit(with_browser, at, **options))
        return visits[-1]

    yield opened
    for visit in visits:
        visit.close()
    assert [visit.violations for visit in visits] == [[]] * len(visits)


@pytest.fixture(scope="session")
def software_browser(browser: Browser) -> Iterator[Browser]:
    """A browser with WebGPU in software."""
    words = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
    with browser.browser_type.launch(
        executable_path=shutil.which("chromium"), args=words
    ) as opened:
        yield opened


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """The page on a laptop; errors and requests to other servers fail the test."""
    opened = Visit(browser, address, viewport={"width": 1366, "height": 768})
    yield opened
    opened.close()
    assert opened.troubles == []
    assert [url for url in opened.requests if not url.startswith((address, "blob:"))] == []
