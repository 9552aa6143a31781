// A network as three graphs: read the problem, take a step, answer.
//
//     const network = await Network.open("networks/mazes/", runtimes, (done, all) => …);
//     let { features, memory } = await network.read(inputs);
//     features = await network.step(features, memory);
//     const logits = await network.answer(features);
//
// Everything that goes in and comes out is { data: Float32Array, dims: number[] }. Where WebGPU
// computes wrongly, not at all, or stops computing later on, WebAssembly takes over in the midst of
// it; the event "fellback" says so.

import { fetchedBytes, fetchedJson } from "./fetching.js";
import { Trouble } from "./runtime.js";

const PARTS = ["read", "step", "answer"];
const TOLERANCE = 1e-2;
const HEAVY = 100_000; // parameters from which a worker and threads pay

export class Network extends EventTarget {
  #graphs;
  #runtimes;
  #changing = null;

  constructor(about, graphs, runtimes) {
    super();
    this.about = about;
    this.#graphs = graphs;
    this.#runtimes = runtimes;
  }

  // `progress` is told how many bytes are there, of how many.
  static async open(folder, runtimes, progress = () => {}) {
    const about = await fetchedJson(`${folder}network.json`);
    const all = PARTS.reduce((sum, part) => sum + about.graphs[part].bytes, 0);
    const graphs = {};
    let before = 0;
    for (const part of PARTS) {
      const { file, bytes } = about.graphs[part];
      graphs[part] = await fetchedBytes(`${folder}${file}`, (done) => progress(before + done, all));
      before += bytes;
    }
    const network = new Network(about, graphs, runtimes);
    const runtime = await runtimes.best(network.heavy);
    try {
      await network.#use(runtime);
    } catch (error) {
      if (runtime.provider === "wasm") throw network.#unable(error);
      const words = error instanceof Trouble ? "it computed wrongly" : "it could not be opened";
      await network.#fallBack(words, error);
    }
    return network;
  }

  // Why WebGPU is not used although it is there, or null.
  get fellBack() {
    return this.runtime.provider === "wasm" ? this.#runtimes.failed : null;
  }

  get heavy() {
    return this.about.parameters >= HEAVY;
  }

  #unable(error) {
    return new Trouble(`The network ${this.about.name} cannot run in this browser (${error.message}).`);
  }

  // Take over the sessions of a runtime, once they proved to compute rightly.
  async #use(runtime) {
    const sessions = {};
    for (const part of PARTS) {
      sessions[part] = await runtime.ort.InferenceSession.create(this.#graphs[part].slice(), {
        executionProviders: [runtime.provider],
        logSeverityLevel: 3, // errors; that shapes are computed elsewhere is none
      });
    }
    await this.#prove(sessions, runtime);
    Object.assign(this, { sessions, runtime });
    if (runtime.provider === "wasm") this.#graphs = null; // nothing comes after it
  }

  // WebAssembly from here on; asked twice at once, it is done once.
  #fallBack(words, reason) {
    this.#changing ??= (async () => {
      this.#runtimes.giveUp(words, reason);
      try {
        await this.#use(await this.#runtimes.plain(this.heavy));
      } catch (error) {
        throw this.#unable(error);
      }
      this.dispatchEvent(new Event("fellback"));
    })();
    return this.#changing;
  }

  // The worked example that was written beside the graphs must come out the same here.
  async #prove(sessions, runtime) {
    const { shape, inputs, steps, logits } = this.about.example;
    const given = { inputs: { data: Float32Array.from(inputs), dims: shape } };
    let { features, memory } = await compute(runtime, sessions.read, given);
    for (let step = 0; step < steps; step += 1) {
      features = (await compute(runtime, sessions.step, withMemory(features, memory))).next;
    }
    const found = (await compute(runtime, sessions.answer, { features })).logits.data;
    const scale = Math.max(1, ...logits.map(Math.abs));
    const apart = Math.max(...logits.map((wanted, index) => Math.abs(wanted - found[index])));
    if (!(apart <= TOLERANCE * scale)) {
      throw new Trouble(`${runtime.provider} computes its worked example wrongly by ${apart}`);
    }
  }

  async read(inputs) {
    const { features, memory } = await this.#run("read", { inputs });
    return { features, memory };
  }

  async step(features, memory) {
    return (await this.#run("step", withMemory(features, memory))).next;
  }

  async answer(features) {
    return (await this.#run("answer", { features })).logits;
  }

  async #run(part, given) {
    try {
      return await compute(this.runtime, this.sessions[part], given);
    } catch (error) {
      if (this.runtime.provider === "wasm") throw error;
      await this.#fallBack("it stopped computing", error); // a graphics card can be taken away at any time
      return compute(this.runtime, this.sessions[part], given);
    }
  }
}

const withMemory = (features, memory) => (memory ? { features, memory } : { features });

async function compute({ ort, worker }, session, given) {
  const feeds = {};
  for (const [name, { data, dims }] of Object.entries(given)) {
    // A worker takes what it is given away.
    feeds[name] = new ort.Tensor("float32", worker ? data.slice() : data, dims);
  }
  const results = await session.run(feeds);
  const made = {};
  for (const [name, tensor] of Object.entries(results)) {
    made[name] = { data: await tensor.getData(), dims: [...tensor.dims] };
  }
  return made;
}
