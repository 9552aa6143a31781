// Probability of the squares of the move by iteration, one curve per square.
//
//     const growth = new Growth(canvas);
//     growth.clear(); growth.take(step, likely);
//     growth.draw(marks, [{ at, name, ink: "--accent" }, …]);

import { fit, ink } from "../canvas.js";
import { line } from "../curve.js";

const KEPT = 4000; // looks
const [FEWEST, MOST] = [40, 300]; // iterations shown
const [LEFT, RIGHT, TOP, BOTTOM] = [26, 24, 8, 16];
const LINE = 12; // pixels between two names, so that both can be read

export class Growth {
  #looks = []; // { step, likely }: every square at every look

  constructor(canvas) {
    this.canvas = canvas;
  }

  clear() {
    this.#looks = [];
  }

  take(step, likely) {
    if (this.#looks.at(-1)?.step === step) this.#looks.pop(); // something was done to it since
    this.#looks.push({ step, likely });
    if (this.#looks.length > KEPT) this.#looks.shift();
  }

  // What is known of a square: [{ step, value }].
  of(at) {
    return this.#looks.map(({ step, likely }) => ({ step, value: likely[at] }));
  }

  // The names at the ends of their curves, one below the other where the ends are near.
  #name(context, drawn, height, most) {
    const ends = drawn.map(({ name, ink: colour, points }) => ({ name, colour, end: points.at(-1) }));
    ends.sort((one, other) => one.end[1] - other.end[1]);
    let above = 0;
    for (const each of ends) above = each.y = Math.max(each.end[1] + 4, above + LINE);
    const over = Math.max(0, above - height + 3);
    context.textAlign = "left";
    for (const { name, colour, end, y } of ends) {
      context.fillStyle = ink(colour);
      context.fillText(name, Math.min(end[0], most) + 4, y - over);
    }
  }

  draw(marks, squares) {
    const { context, width, height } = fit(this.canvas);
    const last = this.#looks.at(-1)?.step ?? 0;
    const span = Math.min(MOST, Math.max(FEWEST, last));
    const first = Math.max(0, last - span);
    const across = (step) => LEFT + ((step - first) / span) * (width - LEFT - RIGHT);
    const up = (value) => TOP + (1 - value) * (height - TOP - BOTTOM);
    this.#scale(context, width, height, up, first, span);
    context.strokeStyle = ink("--mark");
    context.setLineDash([3, 3]);
    for (const mark of marks.filter(({ step }) => step >= first)) {
      line(context, [[across(mark.step), TOP], [across(mark.step), height - BOTTOM]]);
    }
    const drawn = squares.map((square) => {
      const points = this.of(square.at).filter(({ step }) => step >= first);
      return { ...square, points: points.map(({ step, value }) => [across(step), up(value)]) };
    });
    for (const { points, ink: colour, dashed } of drawn) {
      context.setLineDash(dashed ? [2, 3] : []);
      context.strokeStyle = ink(colour);
      context.lineWidth = 2;
      line(context, points);
    }
    this.#name(context, drawn.filter(({ points }) => points.length), height, width - RIGHT);
    context.setLineDash([]);
  }

  #scale(context, width, height, up, first, span) {
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    context.fillStyle = ink("--quiet");
    context.strokeStyle = ink("--line");
    context.textAlign = "right";
    for (const value of [0, 0.5, 1]) {
      line(context, [[LEFT, up(value)], [width - RIGHT, up(value)]]);
      context.fillText(value, LEFT - 4, up(value) + 4);
    }
    context.fillText(first + span, width - RIGHT, height - 3);
    context.textAlign = "left";
    context.fillText(`iteration ${first}`, LEFT, height - 3);
  }
}
