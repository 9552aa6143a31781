// Move pieces on the board: by dragging, by clicking a piece and then a square, or by keyboard.
//
//     new Pieces(board, squares, { isPiece(shown), move(from, to), look(shown) })
//
// Squares are counted as they are shown, from the top left.

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Pieces {
  held = null; // the square of the piece that is being moved
  cursor = null; // the square that the keyboard is at
  #pressed = null; // where a pointer went down: { x, y, drags, again }, on the piece held, or already held

  constructor(board, squares, actions) {
    Object.assign(this, { board, squares, actions });
    board.addEventListener("pointerdown", (event) => this.#down(event));
    board.addEventListener("pointermove", (event) => this.#drag(event));
    board.addEventListener("pointerup", (event) => this.#up(event));
    board.addEventListener("pointercancel", () => this.#letGo());
    board.addEventListener("keydown", (event) => this.#key(event));
  }

  #hold(shown) {
    this.held = shown;
    this.squares.forEach((square, at) => square.classList.toggle("held", at === shown));
  }

  #letGo() {
    const piece = this.squares[this.held]?.firstChild;
    for (const name of ["--x", "--y"]) piece?.style.removeProperty(name);
    this.#pressed = null;
    this.#hold(null);
  }

  // Put the piece that is held on a square.
  #put(shown) {
    const from = this.held;
    this.#letGo();
    if (from !== shown) this.actions.move(from, shown);
  }

  #squareAt({ clientX, clientY }) {
    return this.squares.indexOf(document.elementFromPoint(clientX, clientY)?.closest(".square"));
  }

  #down(event) {
    const shown = this.#squareAt(event);
    if (shown < 0 || event.button > 0) return;
    this.cursor = shown;
    const again = shown === this.held;
    if (this.held === null && this.actions.isPiece(shown)) this.#hold(shown);
    if (this.held === null) return;
    this.#pressed = { x: event.clientX, y: event.clientY, drags: shown === this.held, again };
    this.board.setPointerCapture(event.pointerId);
  }

  #drag(event) {
    if (!this.#pressed?.drags) return;
    const { style } = this.squares[this.held].firstChild;
    style.setProperty("--x", `${event.clientX - this.#pressed.x}px`);
    style.setProperty("--y", `${event.clientY - this.#pressed.y}px`);
  }

  #up(event) {
    if (!this.#pressed) return;
    const { again } = this.#pressed;
    const shown = this.#squareAt(event);
    if (shown < 0) return this.#letGo(); // beside the board
    if (shown !== this.held || again) return this.#put(shown);
    const { held } = this;
    this.#letGo();
    this.#hold(held); // clicked: the next click says where to
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    this.cursor ??= 63 - 7; // bottom left, a1 for White
    const arrow = ARROWS[event.key];
    if (arrow) {
      const [row, column] = [Math.floor(this.cursor / 8) + arrow[0], (this.cursor % 8) + arrow[1]];
      if (row >= 0 && row < 8 && column >= 0 && column < 8) this.cursor = row * 8 + column;
      this.squares.forEach((square, at) => square.classList.toggle("at", at === this.cursor));
      this.actions.look(this.cursor);
    } else if (event.key === " " || event.key === "Enter") {
      if (this.held !== null) this.#put(this.cursor);
      else if (this.actions.isPiece(this.cursor)) this.#hold(this.cursor);
    } else if (event.key === "Escape") this.#letGo();
    else return;
    event.preventDefault();
  }
}
