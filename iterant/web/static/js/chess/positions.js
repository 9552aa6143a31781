// Puzzles of Lichess (CC0), from the sample that comes with the package, by rating: some that a
// network answers at once, some that take it several iterations or that it gets wrong.

export const POSITIONS = [
  { fen: "3r2k1/1b5p/2p3p1/2P1Pp2/2P5/R1Q5/5PPP/6K1 b - -", move: "d8d1", rating: 400 },
  { fen: "3r1rk1/ppq2ppp/2p1p3/7Q/5n2/P2B4/1PP2PPP/3RR1K1 w - -", move: "h5h7", rating: 777 },
  { fen: "2r2k2/6pp/5p2/p1q4P/3Q2P1/5P2/PP6/1K1R4 b - -", move: "c5c2", rating: 1096 },
  { fen: "2kr1b1r/ppp1q1pp/1nn1R3/8/3N4/2P5/PPQ2PPP/RNB3K1 b - -", move: "c6d4", rating: 1119 },
  { fen: "8/p7/R7/1p4P1/r1k3K1/8/8/8 w - -", move: "a6a4", rating: 1354 },
  { fen: "8/8/8/7p/6p1/2Q4k/r3NKb1/8 b - -", move: "g2f3", rating: 1562 },
  { fen: "2k5/1pp5/3p3p/3Pn3/P1PK3R/1P6/4r2N/8 b - -", move: "e2h2", rating: 1587 },
  { fen: "1kr3r1/5p1p/p1R1b3/5q2/8/2Q1P3/PP3PPP/5RK1 w - -", move: "c3b4", rating: 1673 },
  { fen: "8/7p/3P1kpP/8/5rq1/2QK4/2P1pb2/3R1R2 b - -", move: "f4d4", rating: 1706 },
  { fen: "8/8/6p1/8/2pKP3/5kP1/8/8 b - -", move: "c4c3", rating: 1759 },
  { fen: "8/8/3R4/pp2rk1p/7P/1P3K2/P7/8 w - -", move: "d6h6", rating: 1810 },
  { fen: "r2q1r1k/p4ppb/1p5p/2pR1Pb1/5N2/2P1B2P/PPQ3P1/5RK1 b - -", move: "g5f4", rating: 1866 },
  { fen: "B1b1k3/p4nB1/1p2pp2/2p4R/2K2Pn1/1PN3q1/P1PQ4/R7 b - -", move: "c8a6", rating: 2152 },
  { fen: "r2q2b1/pp2R1bk/2pB1npp/8/3P1Q2/2P5/PP3PPP/6K1 w - -", move: "f4f6", rating: 2155 },
  { fen: "1rb2r2/p1kpP1p1/8/1B1Q3p/7N/6Pq/PPP4P/4R2K b - -", move: "c8b7", rating: 2182 },
  { fen: "4Q3/2b5/4pkp1/3p4/3P4/4PK2/1rn4P/8 w - -", move: "e8f8", rating: 2233 },
  { fen: "8/4b3/p1p5/2P3PK/PPk5/7P/8/8 b - -", move: "c4b4", rating: 2315 },
  { fen: "r5k1/1Q4p1/3N3p/p2P4/P7/3q3P/N1r1nPP1/5R1K w - -", move: "b7a8", rating: 2582 },
];

// The one to begin with. The shipped network changes its answer to it twice: rook e7 takes g7, no move,
// and from iteration 8 on the right one.
export const FIRST = 13;
