"""The loop over iterations on the page: messages, pausing, workers and slow networks."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from web.browsing import Visit
from web.test_page_mazes import solved_as_by_package

pytestmark = pytest.mark.system

MAZES = "mazes"
THINKER = "iterant.panels.mazes.thinker"
LARGE = 49
"""The side of a maze that is computed in a worker."""


@pytest.fixture
def maze(visit: Visit) -> Visit:
    """A solved maze of 9×9."""
    visit.show(MAZES)
    visit.set_range("#panel-mazes [data-is=size]", 9)
    visit.wait("iterant.panels.mazes.maze.width === 9")
    visit.wait(f"{THINKER}.step > 0 && {THINKER}.phase === 'settled'")
    assert "Settled after" in visit.words
    return visit


def replace_step(step: str) -> str:
    """JavaScript that replaces the step of the maze network; four iterations at high speed."""
    return f"""thinker.network.advance = async (features, memory, most) => {{
        const steps = Math.min(most, 4);
        let now = features.data;
        for (let taken = 0; taken < steps; taken += 1) now = ({step})(now);
        const next = {{ data: now, dims: features.dims }};
        const moved = now === features.data ? 0 : 1;
        const changes = Array(steps).fill({{ relative: moved, largest: moved, scale: 1 }});
        return {{ features: next, changes, logits: await thinker.network.answer(next) }};
    }}"""


def test_a_network_without_changes_did_not_recover(maze: Visit) -> None:
    maze.panel(MAZES, replace_step("data => data"))
    maze.page.click("[data-bench=wipe]")
    maze.wait(f"{THINKER}.disturbed !== null")
    maze.settle(MAZES)
    assert maze.words.startswith("It did not recover: settled ")
    assert "after the features were wiped, with an answer reached after 0." in maze.words
    assert "Start again" in maze.words


def test_a_network_that_oscillates_has_not_recovered_yet(maze: Visit) -> None:
    """Its features alternate between two states with different answers."""
    maze.panel(MAZES, replace_step("data => data.map((value) => (value > 0 ? -1 : 1))"))
    maze.page.click("[data-bench=wipe]")
    maze.wait("document.getElementById('words').textContent.startsWith('It has not recovered')")
    assert "iterations after the features were wiped; still working" in maze.words
    assert maze.panel(MAZES, "thinker.since") >= 100
    assert maze.panel(MAZES, "thinker.phase") == "thinking"


def test_a_long_search_is_reported_with_its_speed(maze: Visit) -> None:
    maze.panel(MAZES, replace_step("data => data.map((value) => (value > 0 ? -1 : 1))"))
    maze.page.click("[data-bench=restart]")
    maze.wait(f"{THINKER}.since >= 100")
    assert re.fullmatch(r"[\d,]+ iterations so far, \d+ ms each; still working\.", maze.words)


def test_an_error_while_computing_is_shown_and_can_be_restarted(maze: Visit) -> None:
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
    assert "Settled after" in maze.words


def test_keys_work_from_a_slider_and_not_in_a_text_field(maze: Visit) -> None:
    maze.page.locator("[data-bench=speed]").focus()
    maze.page.keyboard.press("w")
    maze.wait(f"{THINKER}.disturbed === 'the features were wiped'")
    maze.show("chess")
    maze.page.locator("[data-is=fen]").focus()
    maze.page.keyboard.type("wn")
    assert maze.panel("chess", "thinker.disturbed") is None


def show_maze(visit: Visit, size: int) -> None:
    """Show a maze of a size."""
    visit.show(MAZES)
    visit.set_range("#panel-mazes [data-is=size]", size)
    visit.wait(f"iterant.panels.mazes.thinker.inputs.dims[2] === {2 * size + 6}")


def place(visit: Visit) -> str:
    """Where the network is computed: page or worker."""
    return str(visit.panel(MAZES, "thinker.network.runtime.place"))


def test_a_large_maze_is_computed_in_a_worker(visit: Visit) -> None:
    """Paused, wiped and restarted there, it gives the answer of the package."""
    show_maze(visit, LARGE)
    assert place(visit) == "worker"
    assert visit.page.workers
    visit.wait("iterant.panels.mazes.thinker.step > 3")
    visit.page.click("[data-bench=play]")
    assert visit.panel(MAZES, "thinker.phase") == "paused"
    visit.panel(MAZES, "await thinker.wipe()")
    stopped = visit.panel(MAZES, "thinker.step")
    visit.panel(MAZES, "await thinker.once()")
    assert visit.panel(MAZES, "thinker.step") == stopped + 1
    assert visit.panel(MAZES, "Math.max(...thinker.features.data)") > 0
    visit.page.click("[data-bench=restart]")
    visit.page.click("[data-bench=play]")
    visit.settle(MAZES)
    solved_as_by_package(visit)
    visit.set_range("#panel-mazes [data-is=size]", 9)
    visit.wait("iterant.panels.mazes.thinker.inputs.dims[2] === 24")
    assert place(visit) == "page"
    visit.settle(MAZES)
    solved_as_by_package(visit)


def test_without_workers_the_page_computes_itself(open_page: Callable[..., Visit]) -> None:
    visit = open_page(script="delete globalThis.Worker")
    show_maze(visit, LARGE)
    assert place(visit) == "page"
    visit.wait("iterant.panels.mazes.thinker.step > 3")
    visit.show("chess")
    assert "WebAssembly, one thread" in visit.computed
    visit.wait("iterant.panels.chess.thinker.step > 0")
    assert visit.troubles == []
