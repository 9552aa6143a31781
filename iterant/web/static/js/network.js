// A network: read a problem, iterate, answer.
//
//     const network = await Network.open("networks/mazes/", runtimes, (done, all) => …);
//     let { features, memory } = await network.read(inputs);
//     ({ features } = await network.advance(features, memory, 100, 40));  // iterations, milliseconds
//     const logits = await network.answer(features);
//
// Everything that goes in and comes out is { data: Float32Array, dims: number[] }. If
// WebGPU gives wrong results, fails or is lost later, WebAssembly continues (event "fellback"). Large
// problems are computed in a worker, small ones in the page (event "moved" when that changes).

import { fetchedBytes, fetchedJson } from "./fetching.js";
import { PARTS } from "./graphs.js";
import { positionsOf } from "./readout.js";
import { Trouble } from "./runtime.js";

const TOLERANCE = 1e-2;
const HEAVY = 100_000; // parameters above which a worker with threads is faster for any problem
const MUCH = 3e7; // multiplications per iteration, roughly, above which a worker is faster for any network

export class Network extends EventTarget {
  #bytes;
  #runtimes;
  #changing = null;
  #wrong = null; // why WebGPU is not used for this network, although others may use it: { words, reason }
  #graphs = new Map(); // by runtime: each is opened once
  #place; // where the current problem is computed

  constructor(about, bytes, runtimes) {
    super();
    this.about = about;
    this.#bytes = bytes;
    this.#runtimes = runtimes;
    this.#place = this.heavy ? "threads" : "page";
  }

  // `progress(done, all)` is called with numbers of bytes.
  static async open(folder, runtimes, progress = () => {}) {
    const about = await fetchedJson(`${folder}network.json`);
    const all = PARTS.reduce((sum, part) => sum + about.graphs[part].bytes, 0);
    const fetched = {};
    let before = 0;
    for (const part of PARTS) {
      const { file, bytes } = about.graphs[part];
      fetched[part] = await fetchedBytes(`${folder}${file}`, (done) => progress(before + done, all));
      before += bytes;
    }
    const network = new Network(about, fetched, runtimes);
    const runtime = await runtimes.best(network.#place);
    try {
      await network.#use(runtime);
    } catch (error) {
      if (runtime.provider === "wasm") throw network.#unable(error);
      if (error instanceof Trouble) network.#wrong = { words: "it computed wrongly", reason: error.message };
      else runtimes.giveUp("it could not be opened", error);
      await network.#fallBack();
    }
    return network;
  }

  // Why WebGPU is not used although it is there, or null.
  get fellBack() {
    return this.runtime.provider === "wasm" ? (this.#wrong ?? this.#runtimes.failed) : null;
  }

  get heavy() {
    return this.about.parameters >= HEAVY;
  }

  #unable(error) {
    return new Trouble(`The network ${this.about.name} cannot run in this browser (${error.message}).`);
  }

  // Use the graphs of a runtime after checking them.
  async #use(runtime) {
    if (!this.#graphs.has(runtime)) {
      const graphs = await runtime.open(this.#bytes);
      await this.#prove(graphs, runtime);
      this.#graphs.set(runtime, graphs);
    }
    this.runtime = runtime;
    if (this.heavy && runtime.provider === "wasm") this.#bytes = null; // nothing comes after it
  }

  // Use WebAssembly from now on; concurrent calls do it once.
  #fallBack() {
    this.#changing ??= (async () => {
      try {
        await this.#use(await this.#runtimes.plain(this.#place));
      } catch (error) {
        throw this.#unable(error);
      }
      this.dispatchEvent(new Event("fellback"));
    })();
    return this.#changing;
  }

  // Check the result of the example that was exported with the graphs.
  async #prove(graphs, { provider }) {
    const { shape, inputs, steps, logits } = this.about.example;
    const { features, memory } = await graphs.read({ data: Float32Array.from(inputs), dims: shape });
    const found = (await graphs.advance(features, memory, steps, Infinity)).logits.data;
    const scale = Math.max(1, ...logits.map(Math.abs));
    const apart = Math.max(...logits.map((wanted, index) => Math.abs(wanted - found[index])));
    if (!(apart <= TOLERANCE * scale)) {
      throw new Trouble(`${provider} computes its worked example wrongly by ${apart}`);
    }
  }

  // Move to the page or the worker, whichever suits the problem; features move along.
  async #move(inputs) {
    const work = (this.about.graphs.step.bytes / 4) * positionsOf(inputs);
    if (!this.heavy) this.#place = work >= MUCH ? "worker" : "page";
    if (this.runtime.provider !== "wasm" || this.runtime.place === this.#place) return;
    const before = this.runtime;
    try {
      await this.#use(await this.#runtimes.plain(this.#place));
    } catch {
      return; // stay in the page, which is slower
    }
    if (this.runtime !== before) this.dispatchEvent(new Event("moved"));
  }

  async read(inputs) {
    await this.#move(inputs);
    return this.#ask("read", inputs);
  }

  // Iterate at least once, until the number or the time is reached, then answer:
  // { features, changes, logits }, with how much each iteration changed the features.
  advance(features, memory, most, milliseconds) {
    return this.#ask("advance", features, memory, most, milliseconds);
  }

  answer(features) {
    return this.#ask("answer", features);
  }

  async #ask(what, ...given) {
    try {
      return await this.#graphs.get(this.runtime)[what](...given);
    } catch (error) {
      if (this.runtime.provider === "wasm") throw error;
      this.#runtimes.giveUp("it stopped computing", error); // a GPU can be lost at any time
      await this.#fallBack();
      return this.#graphs.get(this.runtime)[what](...given);
    }
  }
}
