"""A problem is part of the page's address, so that it can be shared as a link."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from web.browsing import Visit

pytestmark = pytest.mark.system

NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
"""As in a page without https."""

CHANGES = {
    "mazes": ("panel.paint([panel.maze.way()[2]], 0)", "panel.maze.text()"),
    "prefix-sums": ("panel.flip(3)", "panel.bits.join()"),
    "chess": ("panel.movePiece(24, 26)", "panel.position.fen"),
}
"""An edit of the problem of each task, and what it then is."""
FEN = "7k/8/8/R7/8/8/8/K7 w - - 0 1"


@pytest.mark.parametrize("task", CHANGES)
def test_the_address_opens_the_same_problem(
    open_page: Callable[..., Visit], address: str, task: str
) -> None:
    visit = open_page(at=f"{address}#{task}")
    visit.wait(f"window.iterant?.panels['{task}']?.ready")
    if task == "chess":
        visit.panel(task, f"panel.set('{FEN}')")
    edit, problem = CHANGES[task]
    visit.panel(task, f"await {edit}")
    expected = visit.panel(task, problem)
    visit.page.click("#share")
    other = open_page(at=visit.page.url)
    other.wait(f"window.iterant?.panels['{task}']?.ready")
    assert other.panel(task, problem) == expected
    other.set_range("[data-bench=speed]", 100)
    other.settle(task)
    other.page.wait_for_timeout(400)  # when it would write an address of its own
    assert other.page.url == visit.page.url


def test_the_address_follows_the_problem_and_a_link_changes_it(visit: Visit) -> None:
    visit.show("mazes")
    visit.wait("location.hash.startsWith('#mazes/21/')")
    first, text = visit.page.url, visit.panel("mazes", "panel.maze.text()")
    visit.set_range("#panel-mazes [data-is=size]", 9)
    visit.wait("location.hash.startsWith('#mazes/9/')")
    visit.show("prefix-sums")
    visit.wait("location.hash.startsWith('#prefix-sums/')")
    visit.page.evaluate("(url) => { location.href = url; }", first)
    visit.wait("iterant.panels.mazes.maze.width === 21")
    assert visit.panel("mazes", "panel.maze.text()") == text
    assert visit.page.is_visible("#panel-mazes")
    assert visit.page.inner_text("[data-is=size-said]") == "21 × 21"


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("mazes/21/AAAA/1/2", "holds no maze"),  # cut off
        ("mazes/3/AAA/0/9", "holds no maze"),  # an end beside the maze
        ("mazes/3/AAA/1/1", "holds no maze"),
        ("mazes/4/AAA/0/1", "holds no maze"),
        ("mazes/999999999/AAAA/1/2", "holds no maze"),
        ("mazes/%E0%A4%A/<b>", "holds no maze"),
        ("prefix-sums/0120", "8 to 512"),
        ("chess/8/8/8/8/8/8/8/8_w", "one king"),
    ],
)
def test_a_link_that_cannot_be_read_is_reported(
    open_page: Callable[..., Visit], address: str, link: str, message: str
) -> None:
    visit = open_page(at=f"{address}#{link}")
    task = link.split("/")[0]
    visit.wait(f"window.iterant?.panels['{task}']?.ready")
    assert message in visit.words
    assert visit.panel(task, "thinker.phase") == "paused"
    visit.page.click("[data-bench=play]")
    visit.wait(f"iterant.panels['{task}'].thinker.step > 0")
    assert visit.troubles == []


def test_the_link_is_copied(open_page: Callable[..., Visit]) -> None:
    visit = open_page(permissions=["clipboard-read", "clipboard-write"]).ready()
    visit.settle("mazes")
    visit.page.click("#share")
    visit.wait("document.getElementById('words').textContent.startsWith('Copied')")
    assert visit.page.evaluate("() => navigator.clipboard.readText()") == visit.page.url
    without = open_page(script=NO_CLIPBOARD).ready()
    without.settle("mazes")
    without.page.click("#share")
    assert "Copy the address" in without.words
