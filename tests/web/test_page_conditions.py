"""The page where things are not as it would like: other servers, other browsers, no server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from web.browsing import Visit

pytestmark = pytest.mark.system

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}


class _Quiet(SimpleHTTPRequestHandler):
    """Python's own server, with no header of ours."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def test_any_server_will_do(browser: Browser, page_folder: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=page_folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        visit = Visit(browser, f"http://127.0.0.1:{server.server_address[1]}/")
        visit.wait("window.iterant?.panels.mazes?.ready")
        assert visit.page.evaluate("() => self.crossOriginIsolated") is False
        assert "WebAssembly, one thread" in visit.page.inner_text("#computed")
        visit.settle("mazes")
        assert "Its answer is right" in visit.words
        visit.close()
        server.shutdown()


def test_from_the_file_system_it_says_what_to_do(browser: Browser, page_folder: Path) -> None:
    visit = Visit(browser, (page_folder / "index.html").as_uri())
    visit.page.wait_for_selector("#trouble", state="visible")
    said = visit.page.inner_text("#trouble")
    assert "opened from the file system" in said
    assert "iterant demo" in said
    assert not visit.page.is_visible("#page")
    visit.close()


def test_without_webassembly_it_says_so(browser: Browser, address: str) -> None:
    context = browser.new_context()
    context.add_init_script("delete globalThis.WebAssembly")
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#trouble", state="visible")
    assert "no WebAssembly" in page.inner_text("#trouble")
    context.close()


@pytest.mark.parametrize(
    ("missing", "said"),
    [("networks/index.json", "holds no networks"), ("runtime/ort.wasm.min.mjs", "build it again")],
)
def test_a_page_that_is_not_whole_says_so(
    browser: Browser, address: str, missing: str, said: str
) -> None:
    context = browser.new_context()
    context.route(f"**/{missing}", lambda route: route.fulfill(status=404, body=""))
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#trouble", state="visible")
    assert said in page.inner_text("#trouble")
    context.close()


def test_a_network_that_computes_wrongly_is_not_shown(
    browser: Browser, page_folder: Path, address: str
) -> None:
    about = json.loads((page_folder / "networks" / "mazes" / "network.json").read_text())
    about["example"]["logits"][0] += 1
    context = browser.new_context()
    context.route("**/mazes/network.json", lambda route: route.fulfill(body=json.dumps(about)))
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#trouble", state="visible")
    assert "worked example wrongly" in page.inner_text("#trouble")
    context.close()


def test_webgpu_as_far_as_a_software_adapter_goes(browser: Browser, address: str) -> None:
    """Chromium's own Vulkan in software; no graphics card was ever tried."""
    words = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
    found = shutil.which("chromium")
    with browser.browser_type.launch(executable_path=found, args=words) as other:
        visit = Visit(other, address)
        if not visit.page.evaluate("async () => Boolean(await navigator.gpu?.requestAdapter())"):
            pytest.skip("this chromium offers no WebGPU adapter, not even in software")
        visit.wait("window.iterant?.panels.mazes?.ready")
        assert "by WebGPU." in visit.page.inner_text("#computed")
        visit.set_range("[data-bench=speed]", 100)
        visit.set_range("#panel-mazes [data-is=size]", 9)
        visit.wait("iterant.panels.mazes.maze.width === 9")
        visit.settle("mazes")
        assert "Its answer is right" in visit.words


def use_the_shipped(visit: Visit, task: str) -> None:
    """What people see is the network that ships, where one does."""
    name = f"{task}-2"
    if visit.page.locator(f"#networks option[value={name}]").count():
        visit.page.select_option("#networks", name)
        visit.wait(f"iterant.panels['{task}'].network === '{name}'")
    if task == "chess":
        # A puzzle that takes a trained network more than a glance.
        visit.page.select_option("[data-is=choice]", "13")
    visit.wait(f"iterant.panels['{task}'].thinker.step > 0")


def test_it_fits_a_laptop_and_a_phone(browser: Browser, address: str, tmp_path: Path) -> None:
    """Nothing sticks out; ITERANT_PICTURES=1 keeps the pictures in docs/."""
    keep = PICTURES if os.environ.get("ITERANT_PICTURES") else tmp_path
    for name, options in (
        ("laptop", {"viewport": LAPTOP}),
        (
            "phone",
            {"viewport": PHONE, "is_mobile": True, "has_touch": True, "color_scheme": "dark"},
        ),
    ):
        visit = Visit(browser, address, **options)
        visit.wait("window.iterant?.panels.mazes?.ready")
        for task in ("mazes", "prefix-sums", "chess"):
            visit.show(task)
            use_the_shipped(visit, task)
            visit.settle(task)
            wide, room = visit.page.evaluate(
                "() => [document.documentElement.scrollWidth, innerWidth]"
            )
            assert wide <= room, f"{task} on a {name}"
            visit.page.screenshot(path=keep / f"page-{task}-{name}.png", full_page=name == "phone")
        nameless = visit.page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, canvas, [role=img]")]
              .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim()
                                  || each.closest("label")?.textContent.trim()))
              .map((each) => each.outerHTML)"""
        )
        assert nameless == []
        visit.close()


def test_the_command_serves_it(browser: Browser, page_folder: Path, tmp_path: Path) -> None:
    """``iterant demo`` as a process of its own, on the page that was built before."""
    from iterant.web.page import cached_page

    home = tmp_path / "cache" / "iterant"
    home.mkdir(parents=True)
    (home / cached_page().name).symlink_to(page_folder)
    words = [sys.executable, "-m", "iterant", "demo", "--port", "0", "--no-browser"]
    setting = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=setting) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0]
            visit = Visit(browser, address)
            visit.wait("window.iterant?.panels.mazes?.ready")
            assert visit.page.evaluate("() => self.crossOriginIsolated") is True
            visit.close()
        finally:
            process.terminate()
