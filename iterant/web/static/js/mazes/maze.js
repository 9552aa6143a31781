// A maze: squares that are wall, free, start or end, in the benchmark's conventions.
//
//     const maze = Maze.carved(21, seeded(7));
//     maze.image();               // { data, dims: [1, 3, 48, 48] }, what the network reads
//     maze.way();                 // squares from start to end, or [] where there is no way; the target
//     maze.text();                // "#" walls, "." free, S and E: what iterant solve reads
//     Maze.linked(maze.link);     // as a part of the page's address

export const [WALL, FREE, START, END] = [0, 1, 2, 3];

const BORDER = 3; // pixels of wall around; a square is two by two pixels
const COLOURS = [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]];
const SIGNS = "#.SE";

const decoded = (text) => {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
  } catch {
    return null; // base64 of no whole number of bytes
  }
};

export class Maze {
  constructor(height, width, squares) {
    Object.assign(this, { height, width, squares });
  }

  // Depth first from the start: step to a random unseen neighbour two squares on, and break
  // through the wall between; go back where there is none. Exactly one way joins any two squares.
  // With loops, one in ten of the walls that are left between two squares is then opened.
  static carved(size, random, loops = false) {
    const side = (size + 1) / 2;
    const squares = new Uint8Array(size * size);
    const place = (cell) => 2 * Math.floor(cell / side) * size + 2 * (cell % side);
    const start = random.below(side * side);
    const end = (start + 1 + random.below(side * side - 1)) % (side * side);
    const trail = [start];
    squares[place(start)] = FREE;
    while (trail.length) {
      const cell = trail.at(-1);
      const [row, column] = [Math.floor(cell / side), cell % side];
      const unseen = [[-1, 0], [0, 1], [1, 0], [0, -1]].filter(([down, right]) => {
        const [r, c] = [row + down, column + right];
        return r >= 0 && c >= 0 && r < side && c < side && !squares[place(r * side + c)];
      });
      if (!unseen.length) {
        trail.pop();
        continue;
      }
      const [down, right] = unseen[random.below(unseen.length)];
      const next = cell + down * side + right;
      squares[place(cell) + down * size + right] = FREE;
      squares[place(next)] = FREE;
      trail.push(next);
    }
    squares.forEach((_, at) => {
      const between = (Math.floor(at / size) + (at % size)) % 2 === 1;
      if (loops && between && random.below(10) === 0) squares[at] = FREE;
    });
    squares[place(start)] = START;
    squares[place(end)] = END;
    return new Maze(size, size, squares);
  }

  static read(text) {
    const lines = text.trim().split("\n");
    const squares = Uint8Array.from(lines.join(""), (sign) => SIGNS.indexOf(sign));
    return new Maze(lines.length, lines[0].length, squares);
  }

  // SIZE/WALLS/START/END: a bit a square in base64, with the two signs that addresses allow.
  get link() {
    const bytes = new Uint8Array(Math.ceil(this.squares.length / 8));
    this.squares.forEach((code, square) => {
      if (code === WALL) bytes[square >> 3] |= 1 << (square & 7);
    });
    const walls = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    return [this.width, walls, this.start, this.end].join("/");
  }

  static linked(text) {
    const [, side, walls, ...ends] = /^(\d+)\/([\w-]+)\/(\d+)\/(\d+)$/.exec(text) ?? [];
    const [size, start, end] = [side, ...ends].map(Number);
    const count = size ** 2;
    const bytes = walls && decoded(walls);
    const odd = size % 2 === 1 && size >= 3 && size <= 101; // what the page makes itself
    if (!odd || bytes?.length !== Math.ceil(count / 8) || start === end || Math.max(start, end) >= count) {
      throw new Error("The address holds no maze that this page can show; perhaps a part of it is missing.");
    }
    const squares = Uint8Array.from({ length: count }, (_, at) => ((bytes[at >> 3] >> (at & 7)) & 1 ? WALL : FREE));
    [squares[start], squares[end]] = [START, END];
    return new Maze(size, size, squares);
  }

  text() {
    const signs = Array.from(this.squares, (code) => SIGNS[code]).join("");
    return signs.match(new RegExp(`.{${this.width}}`, "g")).join("\n");
  }

  at = (row, column) => this.squares[row * this.width + column];
  get start() {
    return this.squares.indexOf(START);
  }
  get end() {
    return this.squares.indexOf(END);
  }

  // Toggle a wall; start and end stay.
  set(square, code) {
    if (this.squares[square] === START || this.squares[square] === END) return false;
    if (this.squares[square] === code) return false;
    this.squares[square] = code;
    return true;
  }

  // The start or the end moved to a free square, leaving a free one behind.
  move(code, square) {
    if (this.squares[square] !== FREE) return false;
    this.squares[this.squares.indexOf(code)] = FREE;
    this.squares[square] = code;
    return true;
  }

  // Down, left, right, up: in this order ties are broken.
  neighbours(square) {
    const [row, column] = [Math.floor(square / this.width), square % this.width];
    const found = [];
    if (row < this.height - 1) found.push(square + this.width);
    if (column > 0) found.push(square - 1);
    if (column < this.width - 1) found.push(square + 1);
    if (row > 0) found.push(square - this.width);
    return found;
  }

  // A shortest way from start to end, both included. Of several it is the target of the package: at
  // every square the first of down, left, right, up that leads nearer to the end.
  way(open = (square) => this.squares[square] !== WALL) {
    const { start, end } = this;
    const distance = new Map([[end, 0]]);
    for (const [square, steps] of distance) {
      for (const next of this.neighbours(square)) {
        if (!distance.has(next) && open(next)) distance.set(next, steps + 1);
      }
    }
    if (!distance.has(start)) return [];
    const squares = [start];
    for (let steps = distance.get(start) - 1; steps >= 0; steps -= 1) {
      squares.push(this.neighbours(squares.at(-1)).find((next) => distance.get(next) === steps));
    }
    return squares;
  }

  // The squares beside one that are no walls.
  exits = (square) => this.neighbours(square).filter((next) => this.squares[next] !== WALL);

  // Whether some square can be reached from the start by two ways: there are more doors between the
  // squares that can be reached than a tree has.
  get loops() {
    const reached = new Set([this.start]);
    let doors = 0;
    for (const square of reached) {
      for (const next of this.exits(square)) {
        doors += 0.5; // each is seen from both sides
        reached.add(next);
      }
    }
    return doors > reached.size - 1;
  }

  get pixels() {
    return [2 * this.height + 2 * BORDER, 2 * this.width + 2 * BORDER];
  }

  // The four pixels of a square, as places in an image of one channel.
  pixelsOf(square) {
    const wide = this.pixels[1];
    const row = 2 * Math.floor(square / this.width) + BORDER;
    const first = row * wide + 2 * (square % this.width) + BORDER;
    return [first, first + 1, first + wide, first + wide + 1];
  }

  image() {
    const [high, wide] = this.pixels;
    const data = new Float32Array(3 * high * wide);
    this.squares.forEach((code, square) => {
      for (const pixel of this.pixelsOf(square)) {
        COLOURS[code].forEach((value, channel) => {
          data[channel * high * wide + pixel] = value;
        });
      }
    });
    return { data, dims: [1, 3, high, wide] };
  }

  // One value a square from one a pixel: the smallest of its four.
  perSquare(values) {
    const smallest = new Float32Array(this.squares.length);
    for (let square = 0; square < smallest.length; square += 1) {
      const [one, two, three, four] = this.pixelsOf(square);
      smallest[square] = Math.min(values[one], values[two], values[three], values[four]);
    }
    return smallest;
  }
}
