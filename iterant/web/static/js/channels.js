// The features, a small picture a channel: blue below zero, orange above, nothing at zero.

import { fit, ink, paint, ramp, rgb } from "./canvas.js";
import { count } from "./words.js";

const MOST = 24;
const GAP = 4;

export class Channels {
  constructor(canvas, caption) {
    this.canvas = canvas;
    this.caption = caption;
    this.pixels = document.createElement("canvas");
  }

  draw({ features }) {
    const [, width, ...space] = features.dims;
    const [high, wide] = space.length === 1 ? [1, space[0]] : space;
    const shown = Math.min(width, MOST);
    const strip = space.length === 1;
    const columns = strip ? 1 : Math.min(8, shown);
    const rows = Math.ceil(shown / columns);
    const room = this.canvas.parentElement.clientWidth;
    const side = (room - GAP * (columns - 1)) / columns;
    const tall = strip ? 10 : (side * high) / wide;
    this.canvas.style.height = `${rows * (tall + GAP) - GAP}px`;
    const { context, width: all, height } = fit(this.canvas);
    context.clearRect(0, 0, all, height);
    context.imageSmoothingEnabled = false;
    // Features within ±1 use a fixed scale; larger ones are scaled by their maximum.
    const floor = Math.min(1, greatest(features.data)) || 1;
    const ramps = ["--below", "--above"].map((name) => ramp(rgb("--paper"), rgb(name)));
    for (let channel = 0; channel < shown; channel += 1) {
      const values = features.data.subarray(channel * high * wide, (channel + 1) * high * wide);
      this.#paint(values, wide, high, ramps, Math.max(floor, greatest(values)));
      const [x, y] = [(channel % columns) * (side + GAP), Math.floor(channel / columns) * (tall + GAP)];
      context.drawImage(this.pixels, x, y, side, tall);
      context.strokeStyle = ink("--line");
      context.strokeRect(x + 0.5, y + 0.5, side - 1, tall - 1);
    }
    const part = shown < width ? `the first ${shown} of ` : "";
    this.caption.textContent = `Features: ${part}${count(width, "channel")}`;
  }

  #paint(values, wide, high, [below, above], largest) {
    paint(this.pixels, wide, high, (at) => {
      const value = values[at];
      const shade = Math.min(255, Math.round((Math.abs(value) / largest) * 255)) || 0;
      return (value < 0 ? below : above)[shade];
    });
  }
}

// By index, because an iterator takes six times as long, and mazes have many numbers.
function greatest(values) {
  let largest = 0;
  for (let at = 0; at < values.length; at += 1) {
    const size = Math.abs(values[at]);
    if (size > largest) largest = size;
  }
  return largest;
}
