// The live curve: how much each iteration changes the features, on a logarithmic scale.

import { fit, ink } from "./canvas.js";

const SHOWN = 300; // iterations
const [TOP, BOTTOM] = [1, -8]; // powers of ten
const LEFT = 34;

export class Curve {
  constructor(canvas) {
    this.canvas = canvas;
  }

  draw({ history, marks, step }) {
    const { context, width, height } = fit(this.canvas);
    const first = Math.max(0, step - SHOWN);
    const across = (at) => LEFT + ((at - first) / SHOWN) * (width - LEFT - 4);
    const up = (change) => {
      const power = Math.log10(Math.max(change, 10 ** BOTTOM));
      return 6 + ((TOP - power) / (TOP - BOTTOM)) * (height - 22);
    };
    this.#scale(context, width, height, up);
    context.strokeStyle = ink("--mark");
    context.setLineDash([3, 3]);
    for (const mark of marks.filter((each) => each.step >= first)) {
      line(context, [[across(mark.step), 4], [across(mark.step), height - 16]]);
    }
    context.setLineDash([]);
    context.strokeStyle = ink("--accent");
    context.lineWidth = 1.75;
    const shown = history.filter((each) => each.step > first);
    line(context, shown.map(({ step: at, change }) => [across(at), up(change)]));
    context.fillStyle = ink("--quiet");
    context.textAlign = "left";
    context.fillText(`iteration ${first}`, LEFT, height - 3);
    context.textAlign = "right";
    context.fillText(String(first + SHOWN), width - 4, height - 3);
  }

  #scale(context, width, height, up) {
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    context.textAlign = "right";
    for (let power = TOP - 1; power >= BOTTOM; power -= 2) {
      const at = up(10 ** power);
      context.strokeStyle = ink("--line");
      line(context, [[LEFT, at], [width - 4, at]]);
      context.fillStyle = ink("--quiet");
      context.fillText(power === 0 ? "1" : `1e${power}`, LEFT - 4, at + 4);
    }
  }
}

export function line(context, points) {
  context.beginPath();
  points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}
