"""Prefix sums on the page: changes move one bit per iteration."""

from __future__ import annotations

import pytest
import torch

import iterant
from web.browsing import Visit

pytestmark = pytest.mark.system

SUMS = "prefix-sums"


def bits_of(visit: Visit) -> str:
    return "".join(map(str, visit.panel(SUMS, "panel.bits")))


def test_a_flipped_bit_changes_all_sums_after_it(visit: Visit) -> None:
    visit.show(SUMS)
    visit.panel(SUMS, "await panel.generate(3)")
    visit.settle(SUMS)
    assert "All 64 sums are right" in visit.words
    visit.page.click("[data-at='9']")
    visit.wait(f"iterant.panels['{SUMS}'].thinker.disturbed?.startsWith('bit 10')")
    visit.settle(SUMS)
    # The tenth sum and the 54 to its right flip, one per iteration; at high speed the page decodes
    # the answer once per frame, so it may notice later.
    assert visit.panel(SUMS, "thinker.found") >= 55
    assert "It recovered" in visit.words
    batch = iterant.task(SUMS).encode(bits_of(visit))
    answer = torch.tensor([visit.panel(SUMS, "[...thinker.prediction]")])
    assert torch.equal(answer, batch.targets)
    expected = iterant.solve(iterant.load(SUMS), batch.inputs, max_steps=200)
    assert torch.equal(answer, expected.prediction)


def test_single_steps_move_one_bit(visit: Visit) -> None:
    visit.show(SUMS)
    visit.set_range("#panel-prefix-sums [data-is=length]", 16)
    visit.wait(f"iterant.panels['{SUMS}'].bits.length === 16")
    visit.settle(SUMS)
    before = visit.panel(SUMS, "[...thinker.prediction]")
    visit.panel(SUMS, "thinker.phase = 'paused'")
    visit.panel(SUMS, "await panel.flip(4)")
    for known in range(5, 9):
        visit.panel(SUMS, "await thinker.once()")
        now = visit.panel(SUMS, "[...thinker.prediction]")
        turned = [at for at in range(16) if now[at] != before[at]]
        assert set(turned) <= set(range(4, known)), "at most one position per iteration"
        # What is wrong is marked without being asked for.
        assert visit.page.locator(".sum.wrong").count() == 12 - len(turned)


def test_bits_by_arrow_keys_and_their_labels(visit: Visit) -> None:
    visit.show(SUMS)
    visit.page.locator("[data-at='0']").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        visit.page.keyboard.press(key)
    before = bits_of(visit)
    visit.page.keyboard.press("Space")
    visit.wait(f"iterant.panels['{SUMS}'].thinker.disturbed?.startsWith('bit 2 ')")
    after = bits_of(visit)
    assert [at for at in range(64) if before[at] != after[at]] == [1]
    label = visit.page.locator("[data-at='1']").get_attribute("aria-label")
    assert label == f"bit 2: {after[1]}"
