// Chess: a position, and how the scores of the move's two squares grow.

import { positionsOf, twoBest } from "../readout.js";
import { Position } from "./position.js";
import { POSITIONS } from "./positions.js";

const PIECES = { k: "♚", q: "♛", b: "♝", n: "♞", r: "♜", p: "♟" };

export class ChessPanel {
  constructor(element, thinker, words) {
    Object.assign(this, { element, thinker, words });
    const find = (name) => element.querySelector(`[data-is=${name}]`);
    this.board = find("board");
    this.scores = find("scores");
    this.fen = find("fen");
    this.choice = find("choice");
    this.truth = find("truth");
    this.choice.append(
      ...POSITIONS.map(({ rating }, at) => new Option(`Puzzle ${at + 1}, rated ${rating}`, at)),
    );
    this.choice.addEventListener("change", () => this.generate(Number(this.choice.value)));
    this.truth.addEventListener("change", () => this.draw());
    find("swap").addEventListener("click", () => this.swap());
    find("set").addEventListener("submit", (event) => {
      event.preventDefault();
      this.set(this.fen.value);
    });
    this.squares = Array.from({ length: 64 }, () => document.createElement("span"));
    this.board.replaceChildren(...this.squares);
    thinker.addEventListener("thought", () => this.draw());
  }

  generate(at = Number(this.choice.value)) {
    this.move = POSITIONS[at].move;
    return this.begin(POSITIONS[at].fen);
  }

  set(fen) {
    try {
      Position.read(fen);
    } catch (error) {
      this.words.say(error.message);
      return null;
    }
    this.move = null;
    return this.begin(fen);
  }

  begin(fen) {
    this.position = Position.read(fen);
    this.fen.value = fen;
    this.words.say(`A new position, ${this.mover} to move. It begins from the start${this.thinker.waits}.`);
    return this.thinker.begin(this.position.planes());
  }

  swap() {
    const at = (Number(this.choice.value) + 1) % POSITIONS.length;
    this.choice.value = at;
    this.move = POSITIONS[at].move;
    this.position = Position.read(POSITIONS[at].fen);
    this.fen.value = POSITIONS[at].fen;
    return this.thinker.change(this.position.planes(), "the position was swapped for another");
  }

  get mover() {
    return this.position.black ? "Black" : "White";
  }

  get best() {
    return twoBest(this.thinker.logits, positionsOf(this.thinker.logits));
  }

  draw() {
    const { position, thinker } = this;
    if (!position || thinker.inputs?.dims[1] !== 12) return;
    const [likely, best] = [thinker.likelihood, this.best];
    const wanted = this.truth.checked && this.move ? [this.move.slice(0, 2), this.move.slice(2, 4)] : [];
    this.squares.forEach((square, at) => {
      const [row, column] = [Math.floor(at / 8), at % 8];
      const sign = position.board[position.place(row, column)];
      square.textContent = PIECES[sign.toLowerCase()] ?? "";
      square.className = `square ${(row + column) % 2 ? "dark" : "light"}`;
      square.classList.toggle("black", sign !== "" && sign === sign.toLowerCase());
      square.classList.toggle("best", best.includes(at));
      square.classList.toggle("wanted", wanted.includes(position.name(at)));
      square.style.setProperty("--score", likely[at].toFixed(3));
    });
    this.#bars(best, likely);
  }

  #bars(best, likely) {
    const rows = best.map((at) => {
      const row = document.createElement("div");
      row.className = "score";
      const [name, bar, number] = ["span", "meter", "span"].map((tag) => document.createElement(tag));
      name.textContent = this.position.name(at);
      bar.value = likely[at];
      number.textContent = likely[at].toFixed(3);
      row.append(name, bar, number);
      return row;
    });
    this.scores.replaceChildren(...rows);
    const squares = best.map((at) => this.position.name(at)).join(" and ");
    this.board.setAttribute("aria-label", `Chess board, ${this.mover} to move; best squares ${squares}`);
  }

  verdict() {
    const squares = this.best.map((at) => this.position.name(at));
    const said = `Its two squares are ${squares.join(" and ")}.`;
    if (!this.move) return { right: null, words: said };
    const right = [this.move.slice(0, 2), this.move.slice(2, 4)].every((name) => squares.includes(name));
    return { right, words: `${said} ${right ? "That is the puzzle's move." : "The puzzle's move is another."}` };
  }
}
