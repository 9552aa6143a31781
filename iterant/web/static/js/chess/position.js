// A chess position: read from a FEN, as the twelve planes that the network reads, and in words.
//
//     const position = Position.read("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1");
//     position.planes();              // the mover's K Q B N R P, then the other side's
//     position.move([3, 59]);         // what two places of the planes are as a move, in words
//     position.moved(59, 51).fen;     // with a piece on another square, by the rules or not
//
// Row 7 of the planes is the mover's own back rank, for either colour; columns are files a to h.

import { hasMove, inCheck, isOf, legal } from "./rules.js";

const ORDER = "KQBNRP";
const PIECES = { k: "king", q: "queen", b: "bishop", n: "knight", r: "rook", p: "pawn" };
const EXAMPLE = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1";

export class Position {
  // board: 64 signs, a8 first, "" for empty; castling: some of KQkq; passing: a place or null.
  constructor(board, black, castling = "", passing = null) {
    Object.assign(this, { board, black, castling, passing });
  }

  static read(fen) {
    const [placement, side, ...rest] = fen.trim().split(/\s+/);
    if (!placement) throw new Error(`Paste a position as a FEN, such as ${EXAMPLE}`);
    if (rest.length > 4) throw new Error(`A FEN has at most 6 fields, this one has ${rest.length + 2}.`);
    const board = readBoard(placement);
    if (side !== "w" && side !== "b") {
      throw new Error(`After the board comes the side to move, w or b; here ${side ? `it is "${side}"` : "it is missing"}.`);
    }
    const [castling = "-", passing = "-"] = rest;
    const position = new Position(board, side === "b", rights(castling, board), passed(passing, side));
    const { mover, other } = position;
    if (inCheck(board, !position.black)) {
      throw new Error(`${other} is in check although ${mover} is to move, which cannot occur.`);
    }
    if (!hasMove(position)) {
      const end = inCheck(board, position.black) ? "checkmated" : "stalemated";
      throw new Error(`${mover} is ${end}: there is no move to find.`);
    }
    return position;
  }

  get fen() {
    const ranks = [];
    for (let at = 0; at < 64; at += 8) {
      const signs = this.board.slice(at, at + 8).map((sign) => sign || " ").join("");
      ranks.push(signs.replace(/ +/g, (empty) => empty.length));
    }
    const passing = this.passing === null ? "-" : squareName(this.passing);
    return `${ranks.join("/")} ${this.black ? "b" : "w"} ${this.castling || "-"} ${passing}`;
  }

  // The same side to move, with a piece on another square; what stood there is taken away.
  moved(from, to) {
    const board = [...this.board];
    [board[to], board[from]] = [board[from], ""];
    const castling = [...this.castling].filter((right) => mayCastle(right, board)).join("");
    return Position.read(new Position(board, this.black, castling).fen); // it may be impossible
  }

  // "the white rook on d1", from a place of the board.
  piece(place) {
    const sign = this.board[place];
    const colour = isOf(sign, true) ? "black" : "white";
    return `the ${colour} ${PIECES[sign.toLowerCase()]} on ${squareName(place)}`;
  }

  get mover() {
    return this.black ? "Black" : "White";
  }

  get other() {
    return this.black ? "White" : "Black";
  }

  // From a place of the planes to one of the board, and back: the same both ways.
  place(at) {
    return this.black ? 56 - 8 * Math.floor(at / 8) + (at % 8) : at;
  }

  // The square as people call it, from a place in the planes.
  name(at) {
    return squareName(this.place(at));
  }

  planes() {
    const data = new Float32Array(12 * 64);
    for (let at = 0; at < 64; at += 1) {
      const sign = this.board[this.place(at)];
      if (!sign) continue;
      const mine = isOf(sign, this.black);
      data[(ORDER.indexOf(sign.toUpperCase()) + (mine ? 0 : 6)) * 64 + at] = 1;
    }
    return { data, dims: [1, 12, 8, 8] };
  }

  // Two places of the planes as a move: { words, legal }; words are null where they are none.
  move(two) {
    const places = two.map((at) => this.place(at));
    const own = places.filter((place) => isOf(this.board[place], this.black));
    if (own.length !== 1) return { words: null, legal: false };
    const [from] = own;
    const to = places.find((place) => place !== from);
    return { words: this.words(from, to), legal: legal(this, from, to) };
  }

  // "queen h5 takes pawn h7": places of the board.
  words(from, to) {
    const piece = (place) => PIECES[this.board[place].toLowerCase()];
    const [start, end] = [from, to].map(squareName);
    const home = from === 4 || from === 60;
    if (piece(from) === "king" && home && Math.abs(to - from) === 2) return `king ${start} castles to ${end}`;
    if (piece(from) === "pawn" && to === this.passing && (to - from) % 8) {
      return `pawn ${start} takes pawn ${end[0]}${start[1]} en passant`;
    }
    const doing = this.board[to] ? `takes ${piece(to)} ${end}` : `to ${end}`;
    const reached = piece(from) === "pawn" && (to < 8 || to >= 56) ? " and is promoted" : "";
    return `${piece(from)} ${start} ${doing}${reached}`;
  }
}

// A place of the board by its name: e4.
export const placeOf = (name) => (8 - Number(name[1])) * 8 + "abcdefgh".indexOf(name[0]);

const HOMES = { K: [60, 63], Q: [60, 56], k: [4, 7], q: [4, 0] }; // of king and rook

function mayCastle(right, board) {
  const [king, rook] = right === right.toUpperCase() ? "KR" : "kr";
  const [at, corner] = HOMES[right];
  return board[at] === king && board[corner] === rook;
}

function rights(text, board) {
  if (text === "-") return "";
  if (!/^[KQkq]{1,4}$/.test(text)) throw new Error(`Castling is - or some of KQkq, not "${text}".`);
  for (const right of text) {
    if (mayCastle(right, board)) continue;
    throw new Error(`Castling ${right} needs a king and a rook that have not moved; write - instead.`);
  }
  return text;
}

function passed(text, side) {
  if (text === "-") return null;
  const rank = side === "b" ? "3" : "6";
  if (/^[a-h]$/.test(text[0]) && text.slice(1) === rank) return placeOf(text);
  throw new Error(`The fourth field is - or a square on rank ${rank} that a pawn passed, not "${text}".`);
}

export const squareName = (place) => "abcdefgh"[place % 8] + (8 - Math.floor(place / 8));

function readBoard(placement) {
  const ranks = placement.split("/");
  if (ranks.length !== 8) throw new Error(`A board has 8 ranks separated by /, got ${ranks.length}.`);
  const board = ranks.flatMap((rank, index) => {
    const squares = [...rank].flatMap((sign) => {
      if (/[1-8]/.test(sign)) return Array(Number(sign)).fill("");
      if (/[KQBNRPkqbnrp]/.test(sign)) return [sign];
      throw new Error(`Rank ${8 - index} holds "${sign}"; pieces are KQBNRP and kqbnrp.`);
    });
    if (squares.length !== 8) throw new Error(`Rank ${8 - index} has ${squares.length} squares, not 8.`);
    return squares;
  });
  for (const [king, side] of [["K", "White"], ["k", "Black"]]) {
    const kings = board.filter((sign) => sign === king).length;
    if (kings !== 1) throw new Error(`Each side has one king; ${side} has ${kings || "none"}.`);
  }
  const ends = [...board.slice(0, 8), ...board.slice(56)];
  if (ends.some((sign) => sign.toLowerCase() === "p")) throw new Error("No pawn can stand on rank 1 or 8.");
  return board;
}
