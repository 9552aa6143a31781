"""Networks come when they are asked for, say how far they are, and may fail without harm."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

from web.browsing import Visit

pytestmark = pytest.mark.system


def asked_for(visit: Visit, name: str) -> list[str]:
    return [url for url in visit.requests if f"networks/{name}/" in url]


def test_a_network_is_fetched_when_its_panel_is_opened(visit: Visit, page_folder: Path) -> None:
    listed = json.loads((page_folder / "networks" / "index.json").read_text())
    for each in listed:
        each["bytes"] = 12_900_000
    visit.page.route("**/index.json", lambda route: route.fulfill(json=listed))
    held = threading.Event()
    visit.page.reload()
    visit.show("mazes")
    assert asked_for(visit, "chess") == []
    routes: list[Route] = []

    def hold(route: Route) -> None:
        routes.append(route)
        held.set()

    visit.page.route("**/networks/chess/step.onnx", hold)
    visit.page.click("#tab-chess")
    visit.page.wait_for_selector("#loading", state="visible")
    assert "Loading the network chess (12.9 MB)" in visit.words
    visit.wait("document.getElementById('loading').value > 0")
    assert visit.page.inner_text("[data-bench=state]") == "idle"
    assert held.is_set()
    routes[0].continue_()
    visit.wait("window.iterant.panels.chess?.ready")
    assert not visit.page.is_visible("#loading")
    assert len([url for url in asked_for(visit, "chess") if url.endswith("step.onnx")]) == 1


def test_a_network_that_does_not_come_leaves_the_others_alone(
    browser: Browser, address: str
) -> None:
    visit = Visit(browser, address)
    visit.show("mazes")
    visit.page.route("**/networks/chess/step.onnx", lambda route: route.abort())
    visit.page.click("#tab-chess")
    visit.wait("document.getElementById('words').textContent.includes('try again')")
    assert "could not be fetched" in visit.words
    assert not visit.page.is_visible("#trouble")
    visit.show("mazes")
    visit.settle("mazes")
    assert "Its answer is right" in visit.words
    visit.page.unroute("**/networks/chess/step.onnx")
    visit.show("chess")
    visit.settle("chess")
    visit.close()


def test_another_network_that_does_not_come_leaves_the_first_at_work(
    browser: Browser, address: str
) -> None:
    visit = Visit(browser, address)
    visit.show("mazes")
    visit.page.route("**/networks/mazes-2/*", lambda route: route.fulfill(status=404, body=""))
    # The message may be replaced at once, when the first network settles: record all of them.
    visit.page.evaluate(
        "() => { window.messages = []; const words = document.getElementById('words');"
        " new MutationObserver(() => messages.push(words.textContent))"
        ".observe(words, {childList: true, characterData: true, subtree: true}); }"
    )
    visit.page.select_option("#networks", "mazes-2")
    visit.wait("messages.some((text) => text.includes('mazes thinks on'))")
    assert visit.page.input_value("#networks") == "mazes"
    assert visit.panel("mazes", "panel.network") == "mazes"
    visit.close()


def test_a_page_without_a_network_for_chess_has_no_chess(
    browser: Browser, address: str, page_folder: Path
) -> None:
    listed = json.loads((page_folder / "networks" / "index.json").read_text())
    others = [each for each in listed if each["task"] != "chess"]
    context = browser.new_context()
    context.route("**/index.json", lambda route: route.fulfill(json=others))
    page = context.new_page()
    page.goto(f"{address}#chess")
    page.wait_for_function("() => window.iterant?.panels.mazes?.ready")
    assert page.is_visible("#tab-mazes")
    assert not page.is_visible("#tab-chess")
    assert not page.is_visible("#panel-chess")
    context.close()


def test_heavy_networks_think_in_a_worker_and_light_ones_do_not(visit: Visit) -> None:
    visit.show("mazes")
    assert visit.page.workers == []
    assert "WebAssembly, one thread" in visit.page.inner_text("#computed")
    visit.show("chess")
    assert visit.page.workers
    assert "WebAssembly, " in visit.page.inner_text("#computed")


@pytest.mark.parametrize(
    ("trained_on", "said"), [("mazes of 9×9", "trained on mazes of 9×9."), (None, "parameters.")]
)
def test_what_a_network_was_trained_on_is_said_where_it_is_known(
    browser: Browser, address: str, page_folder: Path, trained_on: Any, said: str
) -> None:
    listed = json.loads((page_folder / "networks" / "index.json").read_text())
    for each in listed:
        each["trained_on"] = trained_on
    context = browser.new_context()
    context.route("**/index.json", lambda route: route.fulfill(json=listed))
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("() => window.iterant?.panels.mazes?.ready")
    assert said in page.inner_text("#computed")
    context.close()
