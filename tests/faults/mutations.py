"""Inputs that nobody would write: good ones, cut up, doubled, and mixed with what hurts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

NASTY = [
    b"", b"\x00", b"\xff", b"\n", b"\r\n", b" ", b"\t", b"0", b"-1", b"9" * 40, b"1e999", b"nan",
    b"inf", b"null", b"[", b"]" * 9, b"{", b"}", b'"', b"'", b"\\", b"/", b"../" * 5, b"%s", b"#",
    b",", b"=", b":", b";", b"--", b"$(touch EXPLODED)", b"`id`", b"\xf0\x9f\x98\x80",
    "٣".encode(), "½".encode(), "\u202e".encode(), "\ufeff".encode(), b"\xed\xa0\x80", b"A" * 3000,
]  # fmt: skip


def mutated(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """So many inputs, each a good one with one to six harms done to it."""
    chance = np.random.default_rng(seed)
    for number in range(count):
        content = seeds[number % len(seeds)]
        for _ in range(int(chance.integers(1, 7))):
            content = _harmed(content, seeds, chance)
        yield content


def _harmed(content: bytes, seeds: Sequence[bytes], chance: np.random.Generator) -> bytes:
    first, last = sorted(int(chance.integers(0, len(content) + 1)) for _ in range(2))
    kind = int(chance.integers(7))
    if kind == 0:  # cut out
        return content[:first] + content[last:]
    if kind == 1:  # doubled
        return content[:last] + content[first:last] * 2 + content[last:]
    if kind == 2:  # something nasty put in
        return content[:first] + NASTY[int(chance.integers(len(NASTY)))] + content[first:]
    if kind == 3 and content:  # a bit flipped
        place = min(first, len(content) - 1)
        flipped = content[place] ^ (1 << int(chance.integers(8)))
        return content[:place] + bytes([flipped]) + content[place + 1 :]
    if kind == 4:  # cut off
        return content[:last]
    if kind == 5:  # random bytes
        return content[:first] + chance.bytes(int(chance.integers(1, 9))) + content[last:]
    other = seeds[int(chance.integers(len(seeds)))]  # spliced with another
    return content[:first] + other[min(first, len(other)) :]


def command_lines(
    commands: Sequence[tuple[str, ...]], flags: Sequence[str], count: int, seed: int
) -> Iterator[list[str]]:
    """Command lines of words that mean something in the wrong place, and of words that do not."""
    chance = np.random.default_rng(seed)
    values = [word.decode(errors="replace") for word in NASTY]
    values += ["mazes", "chess", "prefix-sums", "13", "0-7", "quick", "cpu", "9m", "a.toml",
               "x.png", "true", "none", "512", "0:100", "--", "-", "--help", "-h"]  # fmt: skip
    for number in range(count):
        words = list(commands[number % len(commands)])
        for _ in range(int(chance.integers(0, 8))):
            choice = chance.random()
            if choice < 0.5:
                flag = flags[int(chance.integers(len(flags)))]
                words.append(flag if chance.random() < 0.8 else f"{flag}={_one(values, chance)}")
            else:
                words.append(_one(values, chance))
        if chance.random() < 0.1:
            chance.shuffle(words)
        yield words


def _one(values: Sequence[str], chance: np.random.Generator) -> str:
    return values[int(chance.integers(len(values)))]
