// The features, a small picture per channel: blue below zero, orange above, nothing at zero.
// Channels that have been zero since the page or the network was loaded are left out.

import { fit, ink, paint, ramp, rgb } from "./canvas.js";
import { count } from "./words.js";

const MOST = 24;
const GAP = 4;

export class Channels {
  constructor(canvas, caption) {
    this.canvas = canvas;
    this.caption = caption;
    this.pixels = document.createElement("canvas");
    this.network = null;
    this.used = new Set(); // indices of its channels that have been other than zero
  }

  draw({ features, network }) {
    const [, width, ...space] = features.dims;
    const [high, wide] = space.length === 1 ? [1, space[0]] : space;
    const valuesOf = (channel) => features.data.subarray(channel * high * wide, (channel + 1) * high * wide);
    if (this.network !== network) [this.network, this.used] = [network, new Set()];
    for (let channel = 0; channel < width; channel += 1) {
      if (!this.used.has(channel) && greatest(valuesOf(channel))) this.used.add(channel);
    }
    const channels = [...this.used].sort((one, other) => one - other).slice(0, MOST);
    const shown = Math.max(1, channels.length);
    const strip = space.length === 1;
    const columns = strip ? 1 : Math.min(8, width);
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
    for (const [position, channel] of channels.entries()) {
      const values = valuesOf(channel);
      // Distances of this kind are small beside the -1 of cells not reached.
      const above = network.about.kind === "max-plus" ? greatest(values.map((value) => Math.max(value, 0))) || 1 : 0;
      const largest = Math.max(floor, greatest(values));
      this.#paint(values, wide, high, ramps, [largest, above || largest]);
      const [x, y] = [(position % columns) * (side + GAP), Math.floor(position / columns) * (tall + GAP)];
      context.drawImage(this.pixels, x, y, side, tall);
      context.strokeStyle = ink("--line");
      context.strokeRect(x + 0.5, y + 0.5, side - 1, tall - 1);
    }
    const others = this.used.size > MOST ? "" : "; the others are zero";
    const part = channels.length < width ? `${channels.length} of ` : "";
    this.caption.textContent = `Features: ${part}${count(width, "channel")}${part && others}`;
  }

  // Ramps and largest values below and above zero.
  #paint(values, wide, high, ramps, largest) {
    paint(this.pixels, wide, high, (at) => {
      const value = values[at];
      const side = value < 0 ? 0 : 1;
      return ramps[side][Math.min(255, Math.round((Math.abs(value) / largest[side]) * 255)) || 0];
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
