// The worker of worker_client.js: a thread that computes networks.
//
// It keeps its last features and memory, so that messages need not carry them.

import { local } from "./runtime.js";

let runtime = null;
const opened = []; // { graphs, kept: { features, memory } }
let tail = Promise.resolve();

const ANSWERS = {
  async begin(threads) {
    runtime = await local("wasm", threads);
    return runtime.threads;
  },

  async open(bytes) {
    opened.push({ graphs: await runtime.open(bytes), kept: {} });
    return opened.length - 1;
  },

  async read(at, inputs) {
    return Object.assign(opened[at].kept, await opened[at].graphs.read(inputs));
  },

  async advance(at, given, most, milliseconds) {
    const { graphs, kept } = opened[at];
    const { features, memory } = Object.assign(kept, given);
    const thought = await graphs.advance(features, memory, most, milliseconds);
    kept.features = thought.features;
    return thought;
  },

  answer(at, given) {
    const { graphs, kept } = opened[at];
    return graphs.answer(Object.assign(kept, given).features);
  },
};

async function reply({ number, method, given }) {
  try {
    self.postMessage({ number, made: await ANSWERS[method](...given) });
  } catch (error) {
    self.postMessage({ number, trouble: String(error?.message ?? error) });
  }
}

self.addEventListener("message", ({ data }) => {
  tail = tail.then(() => reply(data)); // one message at a time, in order
});
