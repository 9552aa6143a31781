// A chess position: read from a FEN, and as the twelve planes that the network reads.
//
//     const position = Position.read("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1");
//     position.planes();              // the mover's K Q B N R P, then the other side's
//
// Row 7 of the planes is the mover's own back rank, for either colour; columns are files a to h.

const ORDER = "KQBNRP";

export class Position {
  constructor(board, black) {
    Object.assign(this, { board, black }); // board: 64 signs, a8 first, "" for empty
  }

  static read(fen) {
    const [placement = "", side] = fen.trim().split(/\s+/);
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
    for (const king of "Kk") {
      const kings = board.filter((sign) => sign === king).length;
      if (kings !== 1) throw new Error(`Each side has one king; ${king} is there ${kings} times.`);
    }
    if (side !== "w" && side !== "b") throw new Error("After the board comes who moves: w or b.");
    return new Position(board, side === "b");
  }

  // The place in `board` behind a row and column of the planes.
  place(row, column) {
    return (this.black ? 7 - row : row) * 8 + column;
  }

  // The square as people call it, from a place in the planes.
  name(at) {
    const place = this.place(Math.floor(at / 8), at % 8);
    return "abcdefgh"[place % 8] + (8 - Math.floor(place / 8));
  }

  planes() {
    const data = new Float32Array(12 * 64);
    for (let at = 0; at < 64; at += 1) {
      const sign = this.board[this.place(Math.floor(at / 8), at % 8)];
      if (!sign) continue;
      const mine = (sign === sign.toLowerCase()) === this.black;
      data[(ORDER.indexOf(sign.toUpperCase()) + (mine ? 0 : 6)) * 64 + at] = 1;
    }
    return { data, dims: [1, 12, 8, 8] };
  }
}
