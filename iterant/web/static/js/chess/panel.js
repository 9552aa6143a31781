// Chess: a position, the move that the network sees in it, and how sure of it it becomes.

import { capital } from "../words.js";
import { positionsOf, twoBest } from "../readout.js";
import { Growth } from "./growth.js";
import { Pieces } from "./pieces.js";
import { placeOf, Position, squareName } from "./position.js";
import { FIRST, POSITIONS } from "./positions.js";

const SIGNS = { k: "♚", q: "♛", b: "♝", n: "♞", r: "♜", p: "♟" };
const AS_TEXT = "\ufe0e"; // or some phones draw a pawn as a coloured picture
const KEYS = "Arrow keys move over its squares; Space takes a piece and puts it down.";
const CURVES = 6; // squares whose probabilities are drawn
const INKS = ["--accent", "--end"]; // of the best square and the second

export class ChessPanel {
  answers = [];
  speed = 30; // of the slider, to begin with: its answers change within the first ten iterations

  constructor(element, thinker, words) {
    Object.assign(this, { element, thinker, words });
    const find = (name) => element.querySelector(`[data-is=${name}]`);
    this.board = find("board");
    this.scores = find("scores");
    this.said = find("move");
    this.fen = find("fen");
    this.choice = find("choice");
    this.truth = find("truth");
    this.growth = new Growth(find("growth"));
    this.choice.append(
      ...POSITIONS.map(({ fen, rating }, at) => new Option(`Puzzle ${at + 1}, rated ${rating}, ${Position.read(fen).mover} to move`, at)),
    );
    this.own = new Option(""); // a position that is none of the puzzles
    this.own.hidden = true;
    this.choice.append(this.own);
    this.choice.value = FIRST;
    this.choice.addEventListener("change", () => this.generate(Number(this.choice.value)));
    this.truth.addEventListener("change", () => this.#tellTruth());
    find("swap").addEventListener("click", () => this.swap());
    find("set").addEventListener("submit", (event) => {
      event.preventDefault();
      this.set(this.fen.value);
    });
    this.fen.addEventListener("input", () => this.fen.removeAttribute("aria-invalid"));
    this.squares = Array.from({ length: 64 }, () => {
      const square = document.createElement("span");
      square.append(document.createElement("span")); // the piece
      return square;
    });
    this.board.replaceChildren(...this.squares);
    this.pieces = new Pieces(this.board, this.squares, {
      isPiece: (shown) => this.position?.board[this.#place(shown)],
      move: (from, to) => this.movePiece(this.#place(from), this.#place(to)),
      look: (shown) => words.say(this.#onSquare(this.#place(shown))),
    });
    thinker.addEventListener("begun", () => {
      this.growth.clear();
      this.answers = [];
    });
    thinker.addEventListener("thought", () => {
      this.growth.take(thinker.step, thinker.likelihood);
      // The squares of the latest answers, the current ones last.
      if (thinker.step) this.answers = [...this.answers.filter((at) => !this.best.includes(at)), ...this.best].slice(-CURVES);
      this.draw();
    });
  }

  // What the network was trained on, as words about it.
  static trainedOn(training, card) {
    return { problems: /^.*?(\)|(?=, )|$)/.exec(card ?? "")[0], shown: "" }; // the first clause
  }

  static harder = () => "many harder puzzles";

  // The problem as a part of the page's address, and back.
  get problem() {
    return this.fen.value.replaceAll(" ", "_");
  }

  open(problem) {
    const fen = problem.replaceAll("_", " ");
    const at = POSITIONS.findIndex((each) => each.fen === fen);
    return at < 0 ? this.#begin(fen) : this.generate(at);
  }

  // The mover sits at the bottom: for Black the board is turned, files and ranks.
  #place(shown) {
    return this.position.black ? 63 - shown : shown;
  }

  #onSquare(place) {
    if (!this.position.board[place]) return `${squareName(place)}: empty.`;
    return `${capital(this.position.piece(place))}.`;
  }

  // A piece to another square, by the rules or not; the features stay.
  movePiece(from, to) {
    const piece = this.position.piece(from);
    let position;
    try {
      position = this.position.moved(from, to);
    } catch (error) {
      this.words.say(`With ${piece} on ${squareName(to)} instead: ${error.message}`);
      return null;
    }
    const [before] = this.choice.selectedOptions[0].text.split(",");
    this.#chooseOwn(`${before}, a piece moved, ${position.mover} to move`);
    this.#show(position, position.fen, null);
    return this.thinker.change(position.planes(), `${piece} was moved to ${squareName(to)}`);
  }

  generate(at = Number(this.choice.value) || 0) {
    this.choice.value = at;
    return this.begin(Position.read(POSITIONS[at].fen), POSITIONS[at]);
  }

  // A position of the reader's own, or null where it is none.
  set(fen) {
    try {
      return this.#begin(fen.trim());
    } catch (error) {
      this.fen.setAttribute("aria-invalid", "true");
      this.words.say(error.message);
      return null;
    }
  }

  #begin(fen) {
    const position = Position.read(fen);
    this.#chooseOwn(`Your own position, ${position.mover} to move`);
    return this.begin(position, { fen });
  }

  #chooseOwn(text) {
    this.own.text = text;
    this.own.selected = true;
  }

  begin(position, { fen, move = null }) {
    this.#show(position, fen, move);
    const { mover } = position;
    this.words.say(`A new position, ${mover} to move. The network begins at iteration 0${this.thinker.waits}.`);
    return this.thinker.begin(position.planes());
  }

  swap() {
    const at = (Math.max(0, this.choice.selectedIndex) + 1) % POSITIONS.length;
    this.choice.value = at;
    this.#show(Position.read(POSITIONS[at].fen), POSITIONS[at].fen, POSITIONS[at].move);
    return this.thinker.change(this.position.planes(), "the position was swapped for another");
  }

  #show(position, fen, move) {
    Object.assign(this, { position, move });
    this.fen.value = fen;
    this.fen.removeAttribute("aria-invalid");
  }

  get best() {
    return twoBest(this.thinker.logits, positionsOf(this.thinker.logits));
  }

  // The places of the puzzle's move in the planes, where there is one.
  get wanted() {
    if (!this.move) return [];
    return [this.move.slice(0, 2), this.move.slice(2, 4)].map((name) => this.position.place(placeOf(name)));
  }

  #tellTruth() {
    this.draw();
    if (!this.truth.checked) return;
    if (!this.move) return this.words.say("The best move is known for the puzzles only, not for a position of your own.");
    const [from, to] = this.wanted.map((at) => this.position.place(at));
    this.words.say(`The puzzle's move is ${this.position.words(from, to)}; its squares are dotted.`);
  }

  draw() {
    const { position, thinker } = this;
    if (!position || thinker.inputs?.dims[1] !== 12) return;
    const [likely, best] = [thinker.likelihood, this.best];
    const wanted = this.truth.checked ? this.wanted : [];
    this.squares.forEach((square, shown) => {
      const place = this.#place(shown);
      const [at, sign] = [position.place(place), position.board[place]];
      const name = position.name(at);
      square.firstChild.textContent = sign ? SIGNS[sign.toLowerCase()] + AS_TEXT : "";
      square.className = `square ${(Math.floor(place / 8) + place) % 2 ? "dark" : "light"}`;
      square.classList.toggle("piece", sign !== "");
      square.classList.toggle("held", shown === this.pieces.held);
      square.classList.toggle("at", shown === this.pieces.cursor);
      square.classList.toggle("black", sign !== "" && sign === sign.toLowerCase());
      square.classList.toggle("first", best[0] === at);
      square.classList.toggle("second", best[1] === at);
      square.classList.toggle("wanted", wanted.includes(at));
      square.style.setProperty("--score", likely[at].toFixed(3));
      square.dataset.file = shown >= 56 ? name[0] : "";
      square.dataset.rank = shown % 8 === 0 ? name[1] : "";
    });
    this.#tell(best, likely);
    const before = this.answers.filter((at) => !best.includes(at) && !wanted.includes(at));
    this.growth.draw(thinker.marks, [
      ...before.map((at) => ({ at, name: position.name(at), ink: "--quiet" })),
      ...wanted.map((at) => ({ at, name: position.name(at), ink: "--truth", dashed: true })),
      ...best.map((at, index) => ({ at, name: position.name(at), ink: INKS[index] })),
    ]);
  }

  #tell(best, likely) {
    const rows = best.map((at, index) => {
      const row = document.createElement("div");
      row.className = "score";
      row.style.setProperty("--ink", `var(${INKS[index]})`);
      row.style.setProperty("--share", likely[at].toFixed(4));
      const [name, bar, number] = ["span", "i", "span"].map((tag) => document.createElement(tag));
      name.textContent = this.position.name(at);
      number.textContent = `${(100 * likely[at]).toFixed(1)} %`;
      row.append(name, bar, number);
      return row;
    });
    this.scores.replaceChildren(...rows);
    this.said.textContent = this.#sentence();
    this.board.setAttribute("aria-label", `Chess board, ${this.position.mover} to move. ${this.#sentence()} ${KEYS}`);
  }

  // The two squares as a move, in words.
  #sentence() {
    const { words, legal } = this.position.move(this.best);
    if (words) return `${capital(words)}${legal ? ", a legal move" : ", which the rules do not allow"}.`;
    const names = this.best.map((at) => this.position.name(at)).join(" and ");
    return `Its two squares are ${names}, which is no move.`;
  }

  verdict() {
    const said = this.#sentence();
    if (!this.move) return { right: null, words: said };
    const right = this.wanted.every((at) => this.best.includes(at));
    return { right, words: `${said} ${right ? "That is the puzzle's move." : "The puzzle's move is a different one."}` };
  }
}
