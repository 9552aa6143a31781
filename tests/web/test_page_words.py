"""What the page says about recovering is what was seen, whatever the network does."""

from __future__ import annotations

import pytest

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
