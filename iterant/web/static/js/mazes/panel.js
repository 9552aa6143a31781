// Mazes: the problem, its board and its controls.

import { freshSeed, seeded } from "../random.js";
import { count } from "../words.js";
import { Board } from "./board.js";
import { verdict } from "./judge.js";
import { Maze, START, WALL } from "./maze.js";

export class MazePanel {
  constructor(element, thinker, words) {
    Object.assign(this, { element, thinker, words });
    const find = (name) => element.querySelector(`[data-is=${name}]`);
    this.size = find("size");
    this.truth = find("truth");
    this.board = new Board(find("board"), {
      paint: (squares, code) => this.paint(squares, code),
      drag: (code, square) => this.drag(code, square),
      tell: (sentence) => words.say(sentence),
    });
    const said = find("size-said");
    const tellSize = () => (said.textContent = `${this.size.value} × ${this.size.value}`);
    this.size.addEventListener("input", tellSize);
    this.size.addEventListener("change", () => this.generate());
    tellSize();
    find("generate").addEventListener("click", () => this.generate());
    find("swap").addEventListener("click", () => this.swap());
    this.truth.addEventListener("change", () => {
      this.draw();
      const way = this.maze.way();
      if (this.truth.checked) {
        words.say(way.length ? `The true way has ${count(way.length - 1, "step")}; it is dotted.` : "There is no way.");
      }
    });
    thinker.addEventListener("thought", () => this.draw());
  }

  // Always an odd number from 3 to 101.
  get wantedSize() {
    return Math.min(101, Math.max(3, 2 * Math.floor(Number(this.size.value) / 2) + 1));
  }

  generate(seed = freshSeed()) {
    return this.begin(Maze.carved(this.wantedSize, seeded(seed)));
  }

  begin(maze) {
    this.maze = maze;
    this.board.cursor = null;
    this.words.say(`A new maze of ${maze.height} by ${maze.width} squares. It begins from the start${this.thinker.waits}.`);
    return this.thinker.begin(maze.image());
  }

  // Another maze of the same size under the features of this one.
  swap(seed = freshSeed()) {
    this.maze = Maze.carved(this.wantedSize, seeded(seed));
    return this.thinker.change(this.maze.image(), "the maze was swapped for another");
  }

  paint(squares, code) {
    const changed = squares.map((square) => this.maze.set(square, code)).some(Boolean);
    const words = code === WALL ? "a wall was drawn" : "a wall was taken away";
    return changed ? this.thinker.change(this.maze.image(), words) : null;
  }

  drag(code, square) {
    if (!this.maze.move(code, square)) return null;
    const words = code === START ? "the start was moved" : "the end was moved";
    return this.thinker.change(this.maze.image(), words);
  }

  // Whether each square is marked; a square counts when all its pixels do.
  get said() {
    return this.maze.perSquare(this.thinker.prediction);
  }

  draw() {
    const { maze, thinker } = this;
    // A new maze has no features yet.
    const fits = maze && String(thinker.inputs?.dims.slice(2)) === String(maze.pixels);
    if (!fits) return;
    const likely = maze.perSquare(thinker.likelihood);
    this.board.show(maze, likely, this.said, this.truth.checked ? maze.way() : null);
  }

  verdict() {
    return verdict(this.maze, this.said);
  }
}
