// Whether a state is settled: iterant.halting.Resting, for one problem.
//
//     const settling = new Settling();
//     settling.see(step, changes, features.data, prediction);     // true: more iterations change nothing
//
// At rest: the largest changes of the last 16 iterations add up to at most 1e-4 of the largest feature
// (or of 1). In a cycle: for 32 iterations the state returns every p iterations, p at most 16, and the
// answers of the last 16 are equal. An answer alone, however long it stays the same, says nothing.

const WINDOW = 16;
const TOLERANCE = 1e-4;

// { relative: ‖next − before‖ / ‖next‖, largest: the largest change of a number, scale: the largest
// number, at least 1 }, in one pass: mazes have a hundred thousand numbers an iteration.
export function changeOf(before, next) {
  let [moved, whole, largest, scale] = [0, 0, 0, 1];
  for (let at = 0; at < next.length; at += 1) {
    const apart = Math.abs(next[at] - before[at]);
    const value = Math.abs(next[at]);
    moved += apart * apart;
    whole += value * value;
    if (apart > largest) largest = apart;
    if (value > scale) scale = value;
  }
  // Comparisons pass over NaN; sums do not.
  if (!Number.isFinite(moved) || !Number.isFinite(whole)) largest = NaN;
  return { relative: whole ? Math.sqrt(moved / whole) : Math.sqrt(moved), largest, scale };
}

const within = ({ largest, scale }) => largest <= TOLERANCE * scale;

export class Settling {
  #path = []; // the largest changes of the last iterations
  #first; // iterations done before it began to look
  #next; // from this iteration on, a state is kept to be compared with
  #anchor = null; // that state
  #began = 0;
  #period = 0; // iterations until the first return; 0: none yet, -1: not a cycle
  #prediction = null;

  // The first iteration that it will see is step + 1.
  constructor(step = 0) {
    [this.#first, this.#next] = [step, step + WINDOW];
  }

  // Whether iterations have to be shown one by one.
  get closely() {
    return this.#anchor !== null;
  }

  see(step, changes, features, prediction) {
    const cycle = this.#cycle(step, features, prediction);
    // As in the package, the first change is not counted: it is the way from the initial state.
    const counted = step - changes.length === this.#first ? changes.slice(1) : changes;
    this.#path = [...this.#path, ...counted.map(({ largest }) => largest)].slice(-WINDOW);
    const largest = this.#path.reduce((sum, change) => sum + change, 0);
    const rest = this.#path.length === WINDOW && within({ largest, scale: changes.at(-1).scale });
    return rest || cycle;
  }

  #cycle(step, features, prediction) {
    if (this.#anchor === null) {
      if (step >= this.#next) {
        [this.#anchor, this.#began] = [features.slice(), step];
        [this.#period, this.#prediction] = [0, null];
      }
      return false;
    }
    const age = step - this.#began;
    const near = within(changeOf(this.#anchor, features));
    if (this.#period === 0 && near && age <= WINDOW) this.#period = age;
    if (this.#period > 0 && age % this.#period === 0 && !near) this.#period = -1;
    if (age < WINDOW) return false;
    this.#prediction ??= prediction;
    if (!this.#prediction.every((value, at) => value === prediction[at])) this.#period = -1;
    if (age === WINDOW ? this.#period > 0 : age < 2 * WINDOW) return false;
    [this.#anchor, this.#next] = [null, step + Math.max(1, Math.floor((step - this.#first) / 4))];
    return this.#period > 0;
  }
}
