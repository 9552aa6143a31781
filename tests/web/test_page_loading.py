"""Networks are loaded on demand with a progress bar; one that fails does not affect the others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Route

import iterant
from web.browsing import LIMIT, Visit

pytestmark = pytest.mark.system


def requested(visit: Visit, name: str) -> list[str]:
    return [url for url in visit.requests if f"networks/{name}/" in url]


def test_a_network_is_fetched_when_its_panel_is_opened(
    open_page: Callable[..., Visit], listed: list[dict[str, Any]]
) -> None:
    index = [{**each, "bytes": 12_900_000} for each in listed]
    visit = open_page(replies={"**/index.json": {"json": index}})
    visit.show("mazes")
    assert requested(visit, "chess") == []
    routes: list[Route] = []

    visit.page.route("**/networks/chess/step.onnx", lambda route: routes.append(route))
    visit.page.click("#tab-chess")
    visit.page.wait_for_selector("#loading", state="visible")
    assert "Loading the network chess (12.9 MB)" in visit.words
    visit.wait("document.getElementById('loading').value > 0")
    assert visit.page.inner_text("[data-bench=state]") == "idle"
    for _ in range(LIMIT // 50):
        if routes:  # The bar moves with the network's first file, before this one is asked for.
            break
        visit.page.wait_for_timeout(50)
    routes[0].continue_()
    visit.wait("window.iterant.panels.chess?.ready")
    assert not visit.page.is_visible("#loading")
    assert len([url for url in requested(visit, "chess") if url.endswith("step.onnx")]) == 1


def test_a_network_that_cannot_be_loaded_can_be_tried_again(
    open_page: Callable[..., Visit],
) -> None:
    visit = open_page()
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


def test_a_second_network_that_cannot_be_loaded_keeps_the_first(
    open_page: Callable[..., Visit],
) -> None:
    visit = open_page(replies={"**/networks/mazes-messages/*": {"status": 404, "body": ""}})
    visit.show("mazes")
    # The message may be replaced at once, when the first network settles: record all of them.
    visit.page.evaluate(
        "() => { window.messages = []; const words = document.getElementById('words');"
        " new MutationObserver(() => messages.push(words.textContent))"
        ".observe(words, {childList: true, characterData: true, subtree: true}); }"
    )
    visit.page.select_option("#networks", "mazes-messages")
    visit.wait("messages.some((text) => text.includes('mazes continues'))")
    assert visit.page.input_value("#networks") == "mazes"
    assert visit.panel("mazes", "panel.network") == "mazes"


def test_a_name_with_characters_of_addresses(
    open_page: Callable[..., Visit],
    served: Callable[[Path], str],
    page_folder: Path,
    listed: list[dict[str, Any]],
    tmp_path: Path,
) -> None:
    name = "run #1 50%20?"
    page = tmp_path / "page"
    shutil.copytree(page_folder, page, ignore=shutil.ignore_patterns("chess", "mazes-*"))
    shutil.copytree(page_folder / "js", page / "js", dirs_exist_ok=True)
    (page / "networks" / "mazes").rename(page / "networks" / name)
    index = [{**each, "name": name} for each in listed if each["name"] == "mazes"]
    (page / "networks" / "index.json").write_text(json.dumps(index))
    visit = open_page(at=served(page)).ready()
    assert visit.page.input_value("#networks") == name


def test_a_task_without_networks_is_hidden(
    open_page: Callable[..., Visit], address: str, listed: list[dict[str, Any]]
) -> None:
    others = [each for each in listed if each["task"] != "chess"]
    visit = open_page(at=f"{address}#chess", replies={"**/index.json": {"json": others}}).ready()
    assert visit.page.is_visible("#tab-mazes")
    assert not visit.page.is_visible("#tab-chess")
    assert not visit.page.is_visible("#panel-chess")


@pytest.mark.parametrize("task", ["mazes", "prefix-sums", "chess"])
def test_shipped_networks_give_the_answers_of_the_package(visit: Visit, task: str) -> None:
    visit.show(task)
    # Slow enough for every iteration to be decoded: it is settled when the package says so.
    visit.set_range("[data-bench=speed]", 79)
    visit.panel(task, "await panel.generate(7)")
    visit.settle(task)
    visit.same_as_package(task)
    assert visit.panel(task, "panel.verdict().right") or task == "chess"
    data, dims = visit.panel(task, "[[...thinker.inputs.data], [...thinker.inputs.dims]]")
    inputs = torch.tensor(data, dtype=torch.float32).view(dims)
    answer = iterant.solve(iterant.load(task), inputs, max_steps=2000)
    assert bool(answer.settled[0])
    # The last bits of its arithmetic are others, which matters where the state settles slowly.
    assert visit.panel(task, "thinker.step") == pytest.approx(int(answer.steps[0]), abs=2)
