// Random numbers from a seed: the same seed gives the same maze on every machine.
//
//     const random = seeded(7);
//     random.below(6); random.gaussian();

export function seeded(seed) {
  let state = seed >>> 0;

  // mulberry32: one 32-bit word of state, good enough for pictures.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };

  return {
    next,
    below: (count) => Math.floor(next() * count),
    // Box–Muller transform; 1 - next() is never 0, so the logarithm is finite.
    gaussian: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  };
}

export const freshSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];
