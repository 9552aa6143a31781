// From logits to an answer: the readouts of the package, by the same names.
//
//     predict("argmax-open", logits, inputs)      // Uint8Array, one class a position

// Class 1 where it is strictly likelier: of equal scores, the earlier class wins.
function argmax({ data }, positions) {
  const chosen = new Uint8Array(positions);
  for (let at = 0; at < positions; at += 1) chosen[at] = data[positions + at] > data[at];
  return chosen;
}

function argmaxOpen(logits, positions, inputs) {
  const chosen = argmax(logits, positions);
  const channels = inputs.dims[1];
  for (let at = 0; at < positions; at += 1) {
    let open = false;
    for (let channel = 0; channel < channels; channel += 1) {
      open ||= inputs.data[channel * positions + at] > 0;
    }
    if (!open) chosen[at] = 0;
  }
  return chosen;
}

// The two positions with the highest score of class 1, the earlier of equals first.
export function twoBest(logits, positions) {
  const score = (at) => logits.data[positions + at];
  const order = Array.from({ length: positions }, (_, at) => at);
  return order.sort((one, other) => score(other) - score(one) || one - other).slice(0, 2);
}

function markTwoBest(logits, positions) {
  const chosen = new Uint8Array(positions);
  for (const at of twoBest(logits, positions)) chosen[at] = 1;
  return chosen;
}

const READOUTS = { argmax, "argmax-open": argmaxOpen, "two-best": markTwoBest };

export const positionsOf = ({ dims }) => dims.slice(2).reduce((all, side) => all * side, 1);

export function predict(word, logits, inputs) {
  const readout = READOUTS[word];
  if (!readout) throw new Error(`unknown readout ${word}; the page is older than its networks`);
  return readout(logits, positionsOf(logits), inputs);
}

// How likely class 1 is at each position, of two classes.
export function likelihood(logits) {
  const positions = positionsOf(logits);
  const { data } = logits;
  const likely = new Float32Array(positions);
  for (let at = 0; at < positions; at += 1) {
    likely[at] = 1 / (1 + Math.exp(data[at] - data[positions + at]));
  }
  return likely;
}
