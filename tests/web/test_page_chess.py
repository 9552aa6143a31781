"""Chess on the page: positions as the package reads them, the same two squares."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import iterant
from web.browsing import Visit

pytestmark = pytest.mark.system

CHESS = "chess"
FENS = (
    "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1",
    "r1bqkb1r/pp3ppp/2n5/3p4/8/5N2/PP3PPP/R2QKB1R b KQkq -",
)


@pytest.mark.parametrize("fen", FENS, ids=["white", "black"])
def test_a_pasted_position_is_answered_as_by_the_package(
    visit: Visit, networks: dict[str, Path], fen: str
) -> None:
    visit.show(CHESS)
    visit.page.fill("[data-is=fen]", fen)
    visit.page.press("[data-is=fen]", "Enter")
    visit.settle(CHESS)
    batch = iterant.task(CHESS).encode(fen)
    planes = torch.tensor(visit.panel(CHESS, "[...thinker.inputs.data]"))
    assert torch.equal(planes.view(batch.inputs.shape), batch.inputs)
    steps = visit.panel(CHESS, "thinker.step")
    with torch.no_grad():
        net = iterant.load(networks[CHESS])
        own = iterant.last(iterant.think(net, batch.inputs, steps=steps)).prediction
    said = visit.panel(CHESS, "[...thinker.prediction]")
    assert torch.equal(torch.tensor(said).view(1, 8, 8), own)
    assert "Its two squares are" in visit.words
    assert visit.page.locator(".score").count() == 2


BAD = (
    ("8/8/8 w", "8 ranks"),
    ("9/8/8/8/8/8/8/8 w", "Rank 8"),
    ("8/8/8/8/8/8/8/8 w", "one king"),
    ("6k1/8/8/8/8/8/8/K7", "who moves"),
)


def test_a_bad_position_is_said_and_changes_nothing(visit: Visit) -> None:
    visit.show(CHESS)
    before = visit.panel(CHESS, "panel.position.board.join()")
    for fen, said in BAD:
        visit.page.fill("[data-is=fen]", fen)
        visit.page.click("[data-is=set] button")
        assert said in visit.words
        assert visit.panel(CHESS, "panel.position.board.join()") == before


def test_the_shipped_positions_can_occur(visit: Visit) -> None:
    visit.show(CHESS)
    positions = visit.page.evaluate(
        "async () => (await import('./js/chess/positions.js')).POSITIONS"
    )
    assert len(positions) >= 10
    for position in positions:
        iterant.task(CHESS).encode(position["fen"])
    assert visit.page.locator("[data-is=choice] option").count() == len(positions)
