// The maze on its canvas: drawn, painted with a pointer, edited by keyboard.
//
//     new Board(canvas, { paint(square, code), drag(code, square), tell(sentence) })

import { fit, ink, paint, ramp, rgb } from "../canvas.js";
import { END, FREE, START, WALL } from "./maze.js";

const NAMES = ["wall", "free", "the start", "the end"];
const DISC = 6; // pixels of radius
const SMALL = 9; // CSS pixels a square, below which letters cannot be read
const REACH = 12; // CSS pixels within which a pointer catches the start or the end
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Board {
  cursor = null; // the square that the keyboard is at
  #held = null; // what a pointer does: { drag: code } or { paint: code }
  #last = null;

  constructor(canvas, actions) {
    this.canvas = canvas;
    this.actions = actions;
    this.cells = document.createElement("canvas");
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#moved(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => (this.#held = null));
    }
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("focus", () => this.draw());
    canvas.addEventListener("blur", () => this.draw());
  }

  // `trained`: squares a side of the mazes that the network was trained on, if known.
  show(maze, likely, said, truth, trained) {
    Object.assign(this, { maze, likely, said, truth, trained });
    this.draw();
  }

  draw() {
    const { maze } = this;
    if (!maze) return;
    const { context, width, height } = fit(this.canvas);
    this.#paintCells();
    context.imageSmoothingEnabled = false;
    context.clearRect(0, 0, width, height);
    context.drawImage(this.cells, 0, 0, width, height);
    const side = width / maze.width;
    if (this.truth) this.#dots(context, side);
    this.#ends(context, side);
    if (this.trained <= maze.width) this.#outline(context, side * this.trained);
    if (document.activeElement === this.canvas && this.cursor !== null) {
      const [row, column] = this.#place(this.cursor);
      context.strokeStyle = ink("--focus");
      context.lineWidth = 3;
      context.strokeRect(column * side, row * side, side, side);
    }
  }

  #place = (square) => [Math.floor(square / this.maze.width), square % this.maze.width];

  #paintCells() {
    const { maze, likely, said } = this;
    const plain = ["--wall", "--free", "--start", "--end", "--path"].map((name) => ramp(rgb(name), rgb(name))[0]);
    const guess = ramp(rgb("--free"), rgb("--guess"));
    paint(this.cells, maze.width, maze.height, (square) => {
      const code = maze.squares[square];
      if (code !== FREE || !said) return plain[code];
      return said[square] ? plain[4] : guess[Math.min(255, Math.round(510 * likely[square]))];
    });
  }

  // A dashed square in the corner; dark at both sides of the dashes, to be seen on free squares too.
  #outline(context, side) {
    context.setLineDash([9, 6]);
    for (const [colour, width] of [["--on-trained", 6], ["--trained", 3]]) {
      context.strokeStyle = ink(colour);
      context.lineWidth = width;
      context.strokeRect(3, 3, side - 3, side - 3);
    }
    context.setLineDash([]);
  }

  #ends(context, side) {
    context.font = `bold ${Math.round(side * 0.7)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const ends = [["S", this.maze.start, "--start"], ["E", this.maze.end, "--end"]];
    for (const [sign, square, colour] of ends) {
      const [row, column] = this.#place(square);
      const [x, y] = [(column + 0.5) * side, (row + 0.5) * side];
      if (side < SMALL) {
        // Too small for letters: draw discs, not clipped at the edges.
        const inside = (at, squares) => Math.min(Math.max(at, DISC + 1), squares * side - DISC - 1);
        context.beginPath();
        context.arc(inside(x, this.maze.width), inside(y, this.maze.height), DISC, 0, 7);
        context.fillStyle = ink(colour);
        context.fill();
        context.strokeStyle = ink("--on-end");
        context.lineWidth = 1.5;
        context.stroke();
      } else {
        context.fillStyle = ink("--on-end");
        context.fillText(sign, x, y + side * 0.05);
      }
    }
  }

  #dots(context, side) {
    context.fillStyle = ink("--truth");
    for (const square of this.truth) {
      const [row, column] = this.#place(square);
      context.beginPath();
      context.arc((column + 0.5) * side, (row + 0.5) * side, Math.max(1, side * 0.16), 0, 7);
      context.fill();
    }
  }

  #squareAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.maze.width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.maze.height);
    const inside = row >= 0 && column >= 0 && row < this.maze.height && column < this.maze.width;
    return inside ? row * this.maze.width + column : null;
  }

  // The start or the end, if it is under the pointer, or small and near it.
  #caught(square) {
    const reach = REACH / (this.canvas.clientWidth / this.maze.width);
    const [row, column] = this.#place(square);
    const away = (end) => {
      const [r, c] = this.#place(end);
      return Math.hypot(r - row, c - column);
    };
    const near = [[START, away(this.maze.start)], [END, away(this.maze.end)]]
      .filter(([, distance]) => distance === 0 || distance <= reach)
      .sort(([, one], [, other]) => one - other);
    return near[0]?.[0];
  }

  #down(event) {
    const square = this.#squareAt(event);
    if (square === null || event.button > 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const end = this.#caught(square);
    this.#held = end ? { drag: end } : { paint: this.maze.squares[square] === WALL ? FREE : WALL };
    this.#last = square;
    this.cursor = square;
    if ("paint" in this.#held) this.actions.paint([square], this.#held.paint);
  }

  #moved(event) {
    const square = this.#held && this.#squareAt(event);
    if (square === null || square === undefined || square === this.#last) return;
    if ("drag" in this.#held) this.actions.drag(this.#held.drag, square);
    else this.actions.paint(this.#between(this.#last, square), this.#held.paint);
    this.#last = square;
  }

  // The squares on the line between two, so that fast movements leave no gaps.
  #between(from, to) {
    const [[r0, c0], [r1, c1]] = [this.#place(from), this.#place(to)];
    const count = Math.max(Math.abs(r1 - r0), Math.abs(c1 - c0));
    return Array.from({ length: count }, (_, step) => {
      const share = (step + 1) / count;
      const row = Math.round(r0 + (r1 - r0) * share);
      return row * this.maze.width + Math.round(c0 + (c1 - c0) * share);
    });
  }

  #key(event) {
    const { maze } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    this.cursor ??= maze.start;
    const arrow = ARROWS[event.key];
    const key = event.key.toLowerCase();
    if (arrow) {
      const [row, column] = this.#place(this.cursor);
      const [down, right] = [row + arrow[0], column + arrow[1]];
      if (down >= 0 && right >= 0 && down < maze.height && right < maze.width) {
        this.cursor = down * maze.width + right;
      }
      const [r, c] = this.#place(this.cursor);
      this.actions.tell(`Row ${r + 1}, column ${c + 1}: ${NAMES[maze.squares[this.cursor]]}.`);
    } else if (key === " " || key === "enter") {
      this.actions.paint([this.cursor], maze.squares[this.cursor] === WALL ? FREE : WALL);
    } else if (key === "s" || key === "e") {
      this.actions.drag(key === "s" ? START : END, this.cursor);
    } else return;
    event.preventDefault();
    this.draw();
  }
}
