// Graphs in a worker: the page stays quick however long an iteration takes.
//
//     const far = new Far();
//     const threads = await far.begin(true);          // as many as there may be, or false: one
//     const graphs = await far.open({ read, step, answer });      // used as those of graphs.js
//
// Many iterations are one message: on a busy computer every message waits for its turn.

export class Far {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #waiting = new Map(); // by number: what to do with the reply
  #number = 0;

  constructor() {
    this.#worker.addEventListener("message", ({ data: { number, made, trouble } }) => {
      const { resolve, reject } = this.#waiting.get(number);
      this.#waiting.delete(number);
      if (trouble === undefined) resolve(made);
      else reject(new Error(trouble));
    });
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      const error = new Error(`the worker stopped (${event.message ?? "it could not be loaded"})`);
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    });
  }

  ask(method, ...given) {
    const number = (this.#number += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#worker.postMessage({ number, method, given });
    });
  }

  begin(threads) {
    return this.ask("begin", threads);
  }

  async open(bytes) {
    return new FarGraphs(this, await this.ask("open", bytes));
  }

  end() {
    this.#worker.terminate();
  }
}

class FarGraphs {
  #far;
  #at;
  #known = {}; // what the worker holds: the features and the memory that came from it last

  constructor(far, at) {
    [this.#far, this.#at] = [far, at];
  }

  // What of this the worker does not hold already.
  #news(given) {
    return Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== this.#known[name]));
  }

  async read(inputs) {
    const { features, memory } = await this.#far.ask("read", this.#at, inputs);
    this.#known = { features, memory };
    return { features, memory };
  }

  async advance(features, memory, most, milliseconds) {
    const given = this.#news({ features, memory });
    this.#known = {}; // nobody knows, should this fail
    const thought = await this.#far.ask("advance", this.#at, given, most, milliseconds);
    this.#known = { features: thought.features, memory };
    return thought;
  }

  async answer(features) {
    const given = this.#news({ features });
    this.#known.features = features;
    return this.#far.ask("answer", this.#at, given);
  }
}
