// Mazes: the problem, its board and its controls.

import { freshSeed, seeded } from "../random.js";
import { count } from "../words.js";
import { Board } from "./board.js";
import { verdict } from "./judge.js";
import { Maze, START, WALL } from "./maze.js";
import { showPublished } from "./published.js";

const LARGE = 41; // squares per side above which the default is to iterate as fast as possible

export class MazePanel {
  #speed = null; // of the slider, once it was moved

  constructor(element, thinker, words) {
    Object.assign(this, { element, thinker, words });
    const find = (name) => element.querySelector(`[data-is=${name}]`);
    this.size = find("size");
    this.truth = find("truth");
    this.loops = find("loops");
    this.notice = find("notice");
    this.board = new Board(find("board"), {
      paint: (squares, code) => this.paint(squares, code),
      drag: (code, square) => this.drag(code, square),
      tell: (sentence) => words.say(sentence),
    });
    this.sizeSaid = find("size-said");
    this.size.addEventListener("input", () => this.#tellSize());
    this.size.addEventListener("change", () => this.generate());
    this.#tellSize();
    find("generate").addEventListener("click", () => this.generate());
    this.loops.addEventListener("change", () => this.generate());
    find("swap").addEventListener("click", () => this.swap());
    this.truth.addEventListener("change", () => {
      this.draw();
      const way = this.maze.way();
      if (this.truth.checked) {
        words.say(way.length ? `The true path has ${count(way.length, "square")}; it is dotted.` : "There is no path.");
      }
    });
    showPublished(find("published"));
    thinker.addEventListener("thought", () => this.draw());
    for (const event of ["begun", "disturbed"]) thinker.addEventListener(event, () => this.#warn());
  }

  // What the network was trained on, as words about it.
  static trainedOn({ size, problems }) {
    const kind = /(^|,)walls=/.test(problems) ? "grids" : "mazes";
    return { problems: `${kind} of ${size} × ${size}`, shown: " (the dashed square)" };
  }

  static harder = (kind) => (kind === "max-plus" ? "mazes of any size" : "larger mazes");

  get speed() {
    return this.#speed ?? (this.maze?.width > LARGE ? 100 : 59);
  }

  set speed(value) {
    this.#speed = value;
  }

  #tellSize() {
    this.sizeSaid.textContent = `${this.size.value} × ${this.size.value}`;
  }

  // Always an odd number from 3 to 101.
  get wantedSize() {
    return Math.min(101, Math.max(3, 2 * Math.floor(Number(this.size.value) / 2) + 1));
  }

  #carved(seed) {
    return Maze.carved(this.wantedSize, seeded(seed), this.loops.checked);
  }

  // Without a seed, the maze of four with the longest way: start and end may be neighbours.
  generate(seed = null) {
    const seeds = seed === null ? Array.from({ length: 4 }, freshSeed) : [seed];
    const mazes = seeds.map((each) => this.#carved(each));
    return this.begin(mazes.reduce((best, maze) => (maze.way().length > best.way().length ? maze : best)));
  }

  // The problem as a part of the page's address, and back.
  get problem() {
    return this.maze.link;
  }

  open(problem) {
    const maze = Maze.linked(problem);
    this.size.value = maze.width;
    this.#tellSize();
    return this.begin(maze);
  }

  begin(maze) {
    this.maze = maze;
    this.board.cursor = null;
    this.words.say(`A new maze of ${maze.height} by ${maze.width} squares. The network begins at iteration 0${this.thinker.waits}.`);
    return this.thinker.begin(maze.image());
  }

  // Another maze of the same size under the features of this one.
  swap(seed = freshSeed()) {
    this.maze = this.#carved(seed);
    return this.thinker.change(this.maze.image(), "the maze was swapped for another");
  }

  paint(squares, code) {
    const changed = squares.map((square) => this.maze.set(square, code)).some(Boolean);
    const words = code === WALL ? "a wall was drawn" : "a wall was taken away";
    return changed ? this.thinker.change(this.maze.image(), words) : null;
  }

  drag(code, square) {
    const end = code === START ? "the start" : "the end";
    if (!this.maze.move(code, square)) {
      const there = this.maze.squares[square];
      if (there === WALL) this.words.say(`There is a wall; ${end} needs a free square. Remove the wall first, or choose another square.`);
      else if (there !== code) this.words.say("The start and the end need two different squares.");
      return null;
    }
    return this.thinker.change(this.maze.image(), `${end} was moved`);
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
    this.board.show(maze, likely, this.said, this.truth.checked ? maze.way() : null, this.training?.size);
  }

  // Say where the maze is unlike those that the network was trained on, before it starts.
  #warn() {
    const { maze, training } = this;
    const kind = training?.problems.split(",") ?? null; // of --problems; null: not known
    const hasLoops = kind?.some((each) => /^(p|walls)=/.test(each));
    const anyStart = kind?.includes("start=any");
    const warnings = [
      !maze.way().length && "Walls cut the end off from the start: there is no path to find.",
      kind && !hasLoops && maze.loops &&
        "This maze has a loop or an open room, and this network was trained on mazes without: it will probably mark all paths round a loop, not only a shortest one.",
      kind && !anyStart && maze.exits(maze.start).length !== 1 &&
        "The start is not a dead end; in all mazes that this network was trained on it is: the answer may be wrong.",
    ].filter(Boolean);
    const words = warnings.join(" ");
    if (this.notice.textContent !== words) this.notice.textContent = words;
    this.notice.hidden = !words;
  }

  verdict() {
    return verdict(this.maze, this.said);
  }
}
