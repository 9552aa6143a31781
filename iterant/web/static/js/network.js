// A network as three graphs: read the problem, take a step, answer.
//
//     const network = await Network.open("networks/mazes/", runtime);
//     let { features, memory } = await network.read(inputs);
//     features = await network.step(features, memory);
//     const logits = await network.answer(features);
//
// Everything that goes in and comes out is { data: Float32Array, dims: number[] }.

import { Trouble } from "./runtime.js";

const PARTS = ["read", "step", "answer"];
const TOLERANCE = 1e-2;

export class Network {
  constructor(about, sessions, runtime) {
    Object.assign(this, { about, sessions, runtime });
  }

  // Opened with the runtime's provider; where that computes wrongly or not at all, WebAssembly.
  static async open(folder, runtime) {
    const about = await (await fetched(`${folder}network.json`)).json();
    const graphs = {};
    for (const part of PARTS) {
      const file = `${folder}${about.graphs[part].file}`;
      graphs[part] = new Uint8Array(await (await fetched(file)).arrayBuffer());
    }
    const providers = [...new Set([runtime.provider, "wasm"])];
    let reason;
    for (const provider of providers) {
      try {
        const network = await Network.#with(about, graphs, { ...runtime, provider });
        network.fellBack = provider !== runtime.provider ? String(reason) : null;
        return network;
      } catch (error) {
        reason = error;
      }
    }
    throw new Trouble(`The network ${about.name} cannot run in this browser (${reason.message}).`);
  }

  static async #with(about, graphs, runtime) {
    const sessions = {};
    for (const part of PARTS) {
      sessions[part] = await runtime.ort.InferenceSession.create(graphs[part], {
        executionProviders: [runtime.provider],
        logSeverityLevel: 3, // errors; that shapes are computed elsewhere is none
      });
    }
    const network = new Network(about, sessions, runtime);
    await network.#prove();
    return network;
  }

  // The worked example that was written beside the graphs must come out the same here.
  async #prove() {
    const { shape, inputs, steps, logits } = this.about.example;
    let { features, memory } = await this.read({ data: Float32Array.from(inputs), dims: shape });
    for (let step = 0; step < steps; step += 1) features = await this.step(features, memory);
    const found = (await this.answer(features)).data;
    const scale = Math.max(1, ...logits.map(Math.abs));
    const apart = Math.max(...logits.map((wanted, index) => Math.abs(wanted - found[index])));
    if (!(apart <= TOLERANCE * scale)) {
      throw new Trouble(`${this.runtime.provider} computes its worked example wrongly by ${apart}`);
    }
  }

  async read(inputs) {
    const { features, memory } = await this.#run("read", { inputs });
    return { features, memory };
  }

  async step(features, memory) {
    return (await this.#run("step", memory ? { features, memory } : { features })).next;
  }

  async answer(features) {
    return (await this.#run("answer", { features })).logits;
  }

  async #run(part, given) {
    const { Tensor } = this.runtime.ort;
    const feeds = {};
    for (const [name, { data, dims }] of Object.entries(given)) {
      feeds[name] = new Tensor("float32", data, dims);
    }
    const results = await this.sessions[part].run(feeds);
    const made = {};
    for (const [name, tensor] of Object.entries(results)) {
      made[name] = { data: await tensor.getData(), dims: [...tensor.dims] };
    }
    return made;
  }
}

async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) {
    throw new Trouble(`The file ${path} is missing (${response.status}); build the page again.`);
  }
  return response;
}
