"""The page on other servers, browsers and screens, with WebGPU, and without a server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from iterant.web.page import cached_page
from web.browsing import Visit

pytestmark = pytest.mark.system

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}
MISSING = {"status": 404, "body": ""}
NO_DEVICE = "GPUAdapter.prototype.requestDevice = async () => { throw new Error('taken'); };"
KEEP_DEVICE = """
const real = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (...words) {
  return (window.device = await real.apply(this, words));
};"""
"""Stores the device so that a test can destroy it."""


def test_a_folder_of_another_server(open_page: Callable[..., Visit], page_folder: Path) -> None:
    """Python's own server, which sends no headers of ours."""
    serve = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(
        serve, cwd=page_folder.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            port = re.search(r"port (\d+)", server.stdout.readline())
            assert port is not None
            address = f"http://127.0.0.1:{port[1]}/{page_folder.name}/"
            visit = open_page(at=address).ready()
            assert visit.page.evaluate("() => self.crossOriginIsolated") is False
            assert "WebAssembly, one thread" in visit.computed
            for task in ("mazes", "prefix-sums", "chess"):
                visit.show(task)
                visit.settle(task)
                assert visit.panel(task, "panel.verdict().right"), task
            outside = [url for url in visit.requests if not url.startswith((address, "blob:"))]
            assert outside == []
            assert visit.troubles == []
            # The policy holds without headers, too.
            visit.page.evaluate("() => fetch('https://example.org/').catch(() => {})")
            visit.page.wait_for_timeout(200)
            assert visit.violations
            visit.violations.clear()
        finally:
            server.terminate()


def test_every_panel_obeys_the_content_security_policy(visit: Visit) -> None:
    """Also with a worker, threads and WebAssembly; `visit` fails on any violation."""
    policy = visit.page.request.get(visit.page.url).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    for task in ("mazes", "prefix-sums", "chess"):
        visit.show(task)
        visit.settle(task)
    assert visit.page.workers
    assert visit.violations == []
    # A violation is noticed, and blocked.
    add_script = "document.body.append(document.createElement('script'))"
    for script in (
        "() => { document.body.setAttribute('style', 'color: red'); }",
        f"() => {{ {add_script}; document.body.lastChild.text = 'window.ran = 1'; }}",
        "() => fetch('https://example.org/').catch(() => {})",
    ):
        before = len(visit.violations)
        visit.page.evaluate(script)
        visit.page.wait_for_timeout(200)
        assert len(visit.violations) > before, script
    assert not visit.page.evaluate("() => window.ran")
    visit.troubles.clear()


def test_opened_from_the_file_system(open_page: Callable[..., Visit], page_folder: Path) -> None:
    visit = open_page(at=(page_folder / "index.html").as_uri())
    assert "opened from the file system" in visit.trouble
    assert "iterant demo" in visit.trouble
    assert not visit.page.is_visible("#page")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"script": "delete globalThis.WebAssembly"}, "no WebAssembly"),
        ({"replies": {"**/networks/index.json": MISSING}}, "holds no networks"),
        ({"replies": {"**/runtime/ort.wasm.min.mjs": MISSING}}, "build it again"),
    ],
)
def test_errors_that_replace_the_page(
    open_page: Callable[..., Visit], options: dict[str, Any], message: str
) -> None:
    assert message in open_page(**options).trouble


def test_a_network_with_wrong_results_is_not_shown(
    open_page: Callable[..., Visit], page_folder: Path
) -> None:
    about = json.loads((page_folder / "networks" / "mazes" / "network.json").read_text())
    about["example"]["logits"][0] += 1
    visit = open_page(replies={"**/mazes/network.json": {"json": about}})
    assert "worked example wrongly" in visit.trouble


WRONG_ON_WEBGPU = """async () => {
  const { Network } = await import("./js/network.js");
  const { Runtimes } = await import("./js/runtime.js");
  const runtimes = new Runtimes("wasm");
  const right = await runtimes.plain("page");
  const open = async (bytes) => {
    const graphs = await right.open(bytes);
    const advance = graphs.advance.bind(graphs);
    graphs.advance = async (...given) => {
      const thought = await advance(...given);
      thought.logits.data = thought.logits.data.map((value) => value + 100);
      return thought;
    };
    return graphs;
  };
  runtimes.best = async () => ({ provider: "webgpu", place: "page", threads: 1, open });
  const network = await Network.open("networks/mazes/", runtimes);
  return [network.runtime.provider, network.fellBack.words, runtimes.failed];
}"""


def test_wrong_results_on_webgpu_concern_one_network(visit: Visit) -> None:
    """The other networks are still tried on WebGPU, which checks each of them."""
    visit.ready()
    assert visit.page.evaluate(WRONG_ON_WEBGPU) == ["wasm", "it computed wrongly", None]


@pytest.mark.parametrize(
    ("script", "lost", "computed"),
    [
        ("", False, "by WebGPU."),
        (NO_DEVICE, False, "one thread (WebGPU is there, but it could not be opened)."),
        (KEEP_DEVICE, True, "one thread (WebGPU is there, but it stopped computing)."),
    ],
    ids=["there", "taken", "lost"],
)
def test_webgpu_in_software(
    software_browser: Browser, open_page: Callable[..., Visit], script: str, lost: bool,
    computed: str,
) -> None:  # fmt: skip
    """If WebGPU cannot be opened, or is lost while computing, WebAssembly is used."""
    visit = open_page(software_browser, script=script)
    if not visit.page.evaluate("async () => Boolean(await navigator.gpu?.requestAdapter())"):
        pytest.skip("this chromium offers no WebGPU adapter, not even in software")
    visit.ready()
    visit.set_range("#panel-mazes [data-is=size]", 9)
    visit.wait("iterant.panels.mazes.maze.width === 9")
    if lost:
        visit.wait("iterant.panels.mazes.thinker.step > 3")
        visit.page.evaluate("() => device.destroy()")
    visit.set_range("[data-bench=speed]", 100)
    visit.settle("mazes")
    assert computed in visit.computed
    assert "Its answer is right" in visit.words


def test_layout_on_a_laptop_and_a_phone(open_page: Callable[..., Visit], tmp_path: Path) -> None:
    """Nothing is wider than the screen; ITERANT_PICTURES=1 writes screenshots to docs/pictures."""
    keep = PICTURES if os.environ.get("ITERANT_PICTURES") else tmp_path
    for name, options in (
        ("laptop", {"viewport": LAPTOP}),
        (
            "phone",
            {"viewport": PHONE, "is_mobile": True, "has_touch": True, "color_scheme": "dark"},
        ),
    ):
        visit = open_page(**options).ready()
        for task in ("mazes", "prefix-sums", "chess"):
            visit.show(task)
            assert visit.page.input_value("#networks") == task
            if task == "mazes":
                visit.page.check("[data-is=loops]")
            visit.set_range("[data-bench=speed]", 79)  # every iteration is decoded and drawn
            visit.page.click("[data-bench=restart]")
            visit.wait(f"iterant.panels['{task}'].thinker.step > 0")
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


def test_demo_command_serves_the_page(
    open_page: Callable[..., Visit], page_folder: Path, tmp_path: Path
) -> None:
    """``iterant demo`` as a separate process, on a page built before."""
    home = tmp_path / "cache" / "iterant"
    home.mkdir(parents=True)
    (home / cached_page().name).symlink_to(page_folder)
    words = [sys.executable, "-m", "iterant", "demo", "--port", "0", "--no-browser"]
    setting = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=setting) as process:
        try:
            assert process.stdout is not None
            visit = open_page(at=process.stdout.readline().split()[0]).ready()
            assert visit.page.evaluate("() => self.crossOriginIsolated") is True
        finally:
            process.terminate()
