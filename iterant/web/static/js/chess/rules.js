// The rules of chess as far as one move needs them.
//
//     legal(position, from, to)          // places in position.board, a8 first
//     inCheck(board, black); hasMove(position)

const STRAIGHT = [[1, 0], [-1, 0], [0, 1], [0, -1]];
const DIAGONAL = [[1, 1], [1, -1], [-1, 1], [-1, -1]];
const JUMPS = [[1, 2], [2, 1], [-1, 2], [-2, 1], [1, -2], [2, -1], [-1, -2], [-2, -1]];
const RAYS = { b: DIAGONAL, r: STRAIGHT, q: [...STRAIGHT, ...DIAGONAL] };
const STEPS = { k: [...STRAIGHT, ...DIAGONAL], n: JUMPS };

const isBlack = (sign) => sign !== "" && sign === sign.toLowerCase();
export const isOf = (sign, black) => sign !== "" && isBlack(sign) === black;

// The squares from one in a direction, up to the edge.
function* walk(place, [down, right]) {
  let [row, column] = [Math.floor(place / 8) + down, (place % 8) + right];
  for (; row >= 0 && row < 8 && column >= 0 && column < 8; row += down, column += right) {
    yield row * 8 + column;
  }
}

const forward = (sign) => (isBlack(sign) ? 1 : -1); // rank 8 comes first in the board

// The squares that a piece attacks, occupied or not.
function* reach(board, from) {
  const kind = board[from].toLowerCase();
  const ahead = forward(board[from]);
  const steps = kind === "p" ? [[ahead, -1], [ahead, 1]] : (STEPS[kind] ?? []);
  for (const step of steps) {
    const { value, done } = walk(from, step).next();
    if (!done) yield value;
  }
  for (const ray of RAYS[kind] ?? []) {
    for (const place of walk(from, ray)) {
      yield place;
      if (board[place]) break;
    }
  }
}

const attacked = (board, place, byBlack) =>
  board.some((sign, from) => isOf(sign, byBlack) && [...reach(board, from)].includes(place));

export function inCheck(board, black) {
  return attacked(board, board.indexOf(black ? "k" : "K"), !black);
}

// Pseudo-legal moves of a piece: the king may be left in check.
function* ways(board, from) {
  const black = isBlack(board[from]);
  const pawn = board[from].toLowerCase() === "p";
  for (const to of reach(board, from)) {
    if (isOf(board[to], !black) || (board[to] === "" && !pawn)) yield to;
  }
  if (!pawn) return;
  const home = Math.floor(from / 8) === (black ? 1 : 6);
  let left = home ? 2 : 1;
  for (const to of walk(from, [forward(board[from]), 0])) {
    if (board[to] || !left) return;
    yield to;
    left -= 1;
  }
}

// The king two squares aside and the rook beside it, where the position still allows it.
function castles({ board, black, castling }, from, to) {
  const home = black ? 4 : 60;
  const far = to < from;
  const right = far ? "Q" : "K";
  if (from !== home || Math.abs(to - from) !== 2) return false;
  if (!castling.includes(black ? right.toLowerCase() : right)) return false;
  const between = far ? [home - 1, home - 2, home - 3] : [home + 1, home + 2];
  const crossed = [home, (home + to) / 2, to];
  return between.every((place) => !board[place]) && !crossed.some((place) => attacked(board, place, !black));
}

export function legal(position, from, to) {
  const { board, black, passing } = position;
  if (!isOf(board[from], black)) return false;
  const after = [...board];
  if (board[from].toLowerCase() === "p" && to === passing && [...reach(board, from)].includes(to)) {
    after[to - 8 * forward(board[from])] = ""; // en passant: the pawn that passed is taken
  } else if (castles(position, from, to)) {
    return true;
  } else if (![...ways(board, from)].includes(to)) {
    return false;
  }
  [after[to], after[from]] = [after[from], ""];
  return !inCheck(after, black);
}

// Castling is never the only move: a king that may castle may also step aside.
export function hasMove(position) {
  const { board, black, passing } = position;
  return board.some((sign, from) => {
    if (!isOf(sign, black)) return false;
    return [...ways(board, from), passing].some((to) => to !== null && legal(position, from, to));
  });
}
