"""What the page says about recovering is what was seen, whatever the network does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from web.browsing import Visit

pytestmark = pytest.mark.system

MAZES = "mazes"
THINKER = "iterant.panels.mazes.thinker"


@pytest.fixture
def maze(visit: Visit) -> Visit:
    """A maze of 9 by 9 that was solved."""
    visit.show(MAZES)
    visit.set_range("#panel-mazes [data-is=size]", 9)
    visit.wait("iterant.panels.mazes.maze.width === 9")
    visit.wait(f"{THINKER}.step > 0 && {THINKER}.phase === 'settled'")
    assert "It settled" in visit.words
    return visit


def stepped(step: str) -> str:
    """JavaScript that gives the maze network another step; in a hurry it takes an even number."""
    return f"""thinker.network.advance = async (features, memory, most) => {{
        const steps = Math.min(most, 4);
        let now = features.data;
        for (let taken = 0; taken < steps; taken += 1) now = ({step})(now);
        const next = {{ data: now, dims: features.dims }};
        const moved = now === features.data ? 0 : 1;
        const changes = Array(steps).fill({{ relative: moved, largest: moved, scale: 1 }});
        return {{ features: next, changes, logits: await thinker.network.answer(next) }};
    }}"""


def test_a_network_that_stands_still_did_not_recover(maze: Visit) -> None:
    maze.panel(MAZES, stepped("data => data"))
    maze.page.click("[data-bench=wipe]")
    maze.wait(f"{THINKER}.disturbed !== null")
    maze.settle(MAZES)
    assert maze.words.startswith("It did not recover: its answer came to rest 0 iterations after")
    assert "Start again" in maze.words


def test_a_network_that_never_rests_has_not_recovered_yet(maze: Visit) -> None:
    """Wiped, it hands back one thing and its opposite in turn: neither right nor at rest."""
    maze.panel(MAZES, stepped("data => data.map((value) => (value > 0 ? -1 : 1))"))
    maze.page.click("[data-bench=wipe]")
    maze.wait("document.getElementById('words').textContent.startsWith('It has not recovered')")
    assert "iterations after the features were wiped; it thinks on" in maze.words
    assert maze.panel(MAZES, "thinker.since") >= 100
    assert maze.panel(MAZES, "thinker.phase") == "thinking"


def test_computing_that_fails_is_said_and_can_be_begun_anew(maze: Visit) -> None:
    maze.panel(
        MAZES,
        "thinker.network.advance = async () => { throw new Error('out of memory'); }",
    )
    maze.page.click("[data-bench=noise]")
    maze.wait(f"{THINKER}.phase === 'paused'")
    assert "computing failed: out of memory" in maze.words
    maze.panel(MAZES, "delete thinker.network.advance")
    maze.page.click("[data-bench=restart]")
    maze.page.click("[data-bench=play]")
    maze.settle(MAZES)
    assert "It settled" in maze.words


def test_coming_back_says_how_things_stand(maze: Visit) -> None:
    before = maze.words
    maze.show("prefix-sums")
    assert maze.words != before
    maze.page.click("#tab-mazes")
    maze.wait(f"document.getElementById('words').textContent.startsWith('{before[:20]}')")
    maze.page.click("[data-bench=restart]")
    maze.page.click("[data-bench=once]")
    maze.wait(f"{THINKER}.phase === 'paused'")
    maze.show("prefix-sums")
    maze.page.click("#tab-mazes")
    maze.wait("document.getElementById('words').textContent.startsWith('Paused at iteration')")


def test_keys_work_from_a_slider_and_not_while_writing(maze: Visit) -> None:
    maze.page.locator("[data-bench=speed]").focus()
    maze.page.keyboard.press("w")
    maze.wait(f"{THINKER}.disturbed === 'the features were wiped'")
    maze.show("chess")
    maze.page.locator("[data-is=fen]").focus()
    maze.page.keyboard.type("wn")
    assert maze.panel("chess", "thinker.disturbed") is None


SOFTWARE = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
NO_DEVICE = "GPUAdapter.prototype.requestDevice = async () => { throw new Error('taken'); };"
CAUGHT = """
const real = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (...words) {
  return (window.device = await real.apply(this, words));
};"""
"""Keeps the device, so that a test can take it away."""


@pytest.fixture
def with_adapter(browser: Browser, address: str) -> Iterator[Callable[[str], Visit]]:
    """The page in a browser with WebGPU in software, after a script of ours."""
    from shutil import which

    with browser.browser_type.launch(executable_path=which("chromium"), args=SOFTWARE) as other:

        def opened(script: str) -> Visit:
            visit = Visit(other, "about:blank")
            visit.context.add_init_script(script)
            visit.page.goto(address)
            if not visit.page.evaluate(
                "async () => Boolean(await navigator.gpu?.requestAdapter())"
            ):
                pytest.skip("this chromium offers no WebGPU adapter, not even in software")
            visit.wait("window.iterant?.panels.mazes?.ready")
            return visit

        yield opened


def test_webgpu_that_cannot_be_opened_gives_way(with_adapter: Callable[[str], Visit]) -> None:
    visit = with_adapter(NO_DEVICE)
    said = visit.page.inner_text("#computed")
    assert "by WebAssembly, one thread (WebGPU is there, but it could not be opened)." in said
    visit.set_range("[data-bench=speed]", 100)
    visit.settle(MAZES)
    assert "Its answer is right" in visit.words


def test_webgpu_that_is_taken_away_gives_way_in_the_midst_of_it(
    with_adapter: Callable[[str], Visit],
) -> None:
    visit = with_adapter(CAUGHT)
    visit.set_range("#panel-mazes [data-is=size]", 9)
    assert "by WebGPU." in visit.page.inner_text("#computed")
    visit.wait(f"{THINKER}.step > 3")
    visit.page.evaluate("() => device.destroy()")
    visit.settle(MAZES)
    said = visit.page.inner_text("#computed")
    assert "WebAssembly, one thread (WebGPU is there, but it stopped computing)." in said
    assert "Its answer is right" in visit.words


def test_a_runtime_for_webgpu_that_is_missing_gives_way(
    browser: Browser, address: str, page_folder: Path
) -> None:
    assert (page_folder / "runtime" / "ort.webgpu.min.mjs").is_file()
    context = browser.new_context()
    context.add_init_script("navigator.gpu.requestAdapter = async () => ({});")
    context.route("**/ort.webgpu.min.mjs", lambda route: route.fulfill(status=404, body=""))
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("() => window.iterant?.panels.mazes?.ready")
    assert "WebGPU is there, but it could not be loaded" in page.inner_text("#computed")
    context.close()
