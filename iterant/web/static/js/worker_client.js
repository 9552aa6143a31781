// Graphs in a worker, so that the page stays responsive during slow iterations.
//
//     const client = new WorkerClient();
//     const threads = await client.begin(true);          // true: as many as possible, false: one
//     const graphs = await client.open({ read, step, answer });      // used as those of graphs.js
//
// Many iterations are one message, because every message takes time on a busy machine.

export class WorkerClient {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #waiting = new Map(); // callbacks of pending replies, by number
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
    return new WorkerGraphs(this, await this.ask("open", bytes));
  }

  end() {
    this.#worker.terminate();
  }
}

class WorkerGraphs {
  #client;
  #at;
  #known = {}; // the features and the memory that the worker sent last, and still has

  constructor(client, at) {
    [this.#client, this.#at] = [client, at];
  }

  // The tensors that the worker does not have yet.
  #unknown(given) {
    return Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== this.#known[name]));
  }

  async read(inputs) {
    const { features, memory } = await this.#client.ask("read", this.#at, inputs);
    this.#known = { features, memory };
    return { features, memory };
  }

  async advance(features, memory, most, milliseconds) {
    const given = this.#unknown({ features, memory });
    this.#known = {}; // in case this fails
    const thought = await this.#client.ask("advance", this.#at, given, most, milliseconds);
    this.#known = { features: thought.features, memory };
    return thought;
  }

  async answer(features) {
    const given = this.#unknown({ features });
    this.#known.features = features;
    return this.#client.ask("answer", this.#at, given);
  }
}
