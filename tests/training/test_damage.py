"""What each kind of damage leaves of a state."""

from __future__ import annotations

import math

import pytest
import torch

from iterant import registry
from iterant.errors import RecipeError
from iterant.training.recipe import Recipe
from iterant.training.replay_pool import JITTER, Corruption, another, disc, jitter, noise, zeros


def corruption(*sides: int, count: int = 400) -> Corruption:
    generator = torch.Generator().manual_seed(5)
    features, strange, held = (
        torch.rand(count, 3, *sides, generator=generator) + shift for shift in (1, 2, 3)
    )
    other = torch.randint(count, (count,), generator=generator)
    return Corruption(features, held, strange, other, generator)


def test_each_kind_leaves_what_it_says() -> None:
    hit = corruption(7)
    assert not zeros(hit).any()
    assert torch.equal(noise(hit), hit.noise)
    assert torch.equal(another(hit), torch.stack([hit.held[i] for i in hit.other.tolist()]))
    torch.testing.assert_close(jitter(hit) - hit.features, JITTER * hit.noise)


def test_a_disc_is_empty_and_all_else_as_it_was() -> None:
    hit = corruption(13, 13)
    left = disc(hit)
    gone = left == 0
    assert torch.equal(left[~gone], hit.features[~gone])
    assert torch.equal(gone.all(dim=1), gone.any(dim=1))  # all features of a place or none
    radii = []
    for hole in gone[:, 0]:
        rows, columns = hole.nonzero(as_tuple=True)
        if len(rows) == 0:
            continue
        inside = [rows.min() > 0, rows.max() < 12, columns.min() > 0, columns.max() < 12]
        if all(map(bool, inside)):
            # A round hole about its middle: no place of it is farther off than one that stayed
            # is near, but for the places that a circle of that centre cuts.
            middle = torch.stack([rows.float().mean(), columns.float().mean()])
            radii.append(math.sqrt(len(rows) / math.pi))
            far = (torch.stack([rows, columns]) - middle[:, None]).norm(dim=0).max()
            assert far < radii[-1] + 1
    assert 0.5 < min(radii) < 1.5
    assert 3.5 < max(radii) < 5.7


def test_a_disc_in_one_dimension_is_an_interval() -> None:
    for hole in (disc(corruption(32)) == 0)[:, 0]:
        places = hole.nonzero().flatten()
        assert len(places) <= 2 * 0.4 * 32 + 1
        if len(places):
            assert places.max() - places.min() == len(places) - 1


def test_small_sides_have_discs_of_radius_one() -> None:
    assert int((disc(corruption(2)) == 0)[:, 0].sum(dim=1).max()) <= 2


@pytest.mark.parametrize("kinds", [(), ("zero",), "zeros"])
def test_unknown_kinds_are_refused(kinds: object) -> None:
    with pytest.raises(RecipeError, match="zeros"):
        Recipe(pool_damage_kinds=kinds)  # type: ignore[arg-type]


def test_every_kind_has_a_word() -> None:
    found = {registry.find("damage", word) for word in registry.known("damage")}
    assert found == {zeros, noise, another, jitter, disc}
