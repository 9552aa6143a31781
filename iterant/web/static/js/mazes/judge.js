// Whether an answer to a maze is right, as a message.

import { END, START, WALL } from "./maze.js";
import { count } from "../words.js";

// "right", "other" (another shortest path than the target: right as well), "way" (a path to the end, but not
// a shortest one), "wrong" or "none" (no path).
export function judge(maze, said) {
  const truth = maze.way();
  if (!truth.length) return "none";
  const marked = said.reduce((sum, value) => sum + value, 0);
  const inside = new Set(truth);
  const same = marked === truth.length && truth.every((square) => said[square]);
  if (same && inside.size === marked) return "right";
  const through = maze.way((square) => said[square] && maze.squares[square] !== WALL);
  const ends = said[maze.squares.indexOf(START)] && said[maze.squares.indexOf(END)];
  if (ends && through.length && through.length === marked) {
    return through.length === truth.length ? "other" : "way";
  }
  return "wrong";
}

// Whether the answer is right (if the maze has a solution), and the message about it.
export function verdict(maze, said) {
  const squares = maze.way().length;
  const found = judge(maze, said);
  const words = {
    right: `Its answer is right: ${maze.loops ? "a shortest" : "the"} path from start to end has ${count(squares, "square")}.`,
    other: `Its answer is right: any shortest path counts, and has ${count(squares, "square")}. The target in training takes the first of down, left, right, up.`,
    way: `Its answer is a path to the end, but not a shortest one, which has ${count(squares, "square")}.`,
    wrong: "Its answer is not right.",
    none: "Walls cut the end off from the start: there is no path, whatever it draws.",
  }[found];
  return { right: found === "none" ? null : ["right", "other"].includes(found), words };
}
