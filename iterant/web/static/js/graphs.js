// A network's three graphs, opened by onnxruntime-web in this thread, be it the page's or a worker's.
//
//     const graphs = await Graphs.open(ort, "wasm", { read, step, answer });     // bytes of each
//     const { features, memory } = await graphs.read(inputs);
//     const thought = await graphs.advance(features, memory, 100, 40);    // iterations, milliseconds
//     thought.features; thought.changes; thought.logits;
//
// Everything that goes in and comes out is { data: Float32Array, dims: number[] }.

import { changeOf } from "./settling.js";

export const PARTS = ["read", "step", "answer"];

export class Graphs {
  constructor(ort, sessions) {
    Object.assign(this, { ort, sessions });
  }

  static async open(ort, provider, bytes) {
    const sessions = {};
    for (const part of PARTS) {
      sessions[part] = await ort.InferenceSession.create(bytes[part].slice(), {
        executionProviders: [provider],
        logSeverityLevel: 3, // errors; that shapes are computed elsewhere is none
      });
    }
    return new Graphs(ort, sessions);
  }

  async read(inputs) {
    const { features, memory } = await this.#run("read", { inputs });
    return { features, memory };
  }

  async answer(features) {
    return (await this.#run("answer", { features })).logits;
  }

  // As many iterations as are wanted, or as there is time for, and at least one; then the answer.
  async advance(features, memory, most, milliseconds) {
    const changes = [];
    const until = performance.now() + milliseconds;
    let now = features;
    do {
      const { next } = await this.#run("step", memory ? { features: now, memory } : { features: now });
      changes.push(changeOf(now.data, next.data));
      now = next;
    } while (changes.length < most && performance.now() < until);
    return { features: now, changes, logits: await this.answer(now) };
  }

  async #run(part, given) {
    const feeds = {};
    for (const [name, { data, dims }] of Object.entries(given)) {
      feeds[name] = new this.ort.Tensor("float32", data, dims);
    }
    const results = await this.sessions[part].run(feeds);
    const made = {};
    for (const [name, tensor] of Object.entries(results)) {
      made[name] = { data: await tensor.getData(), dims: [...tensor.dims] };
    }
    return made;
  }
}
