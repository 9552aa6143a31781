// onnxruntime-web, from our own folder: with WebGPU where the browser has one, else WebAssembly.
//
//     const runtimes = new Runtimes("auto");
//     const runtime = await runtimes.best("page");    // { provider, place, threads, open }
//     await runtimes.plain("worker");                 // WebAssembly, even if there is WebGPU
//     const graphs = await runtime.open({ read, step, answer });
//
// A network is computed in one of three places: the "page", for work that is shorter than a message
// to another thread; a "worker", so that the page never waits; and a worker with "threads". Each is
// opened on first use. Without workers everything is computed in the page.

import { WorkerClient } from "./worker_client.js";
import { Graphs } from "./graphs.js";

const FOLDER = new URL("../runtime/", import.meta.url).href;
const MOST_THREADS = 4;
const FILES = { webgpu: "ort.webgpu.min.mjs", wasm: "ort.wasm.min.mjs" };

export class Trouble extends Error {}

async function adapter() {
  try {
    return (await navigator.gpu?.requestAdapter()) ?? null;
  } catch {
    return null; // some browsers have the interface and refuse to use it
  }
}

export class Runtimes {
  failed = null; // why WebGPU was given up, once it was: { words, reason }
  #opened = {};
  #wanted;
  #adapter = null; // a promise, asked for once
  #workers = true; // until one could not be opened

  // `wanted` is "auto", "webgpu" or "wasm".
  constructor(wanted = "auto") {
    this.#wanted = wanted;
    if (typeof WebAssembly !== "object") {
      throw new Trouble(
        "This browser has no WebAssembly, so no network can run in it. " +
          "Any current Firefox, Chrome, Edge or Safari has; so does the terminal: iterant solve.",
      );
    }
  }

  async best(place) {
    if (this.#wanted !== "wasm" && !this.failed && (await (this.#adapter ??= adapter()))) {
      try {
        return await this.#once("webgpu", () => local("webgpu"));
      } catch (error) {
        this.giveUp("it could not be loaded", error);
      }
    }
    return this.plain(place);
  }

  async plain(place) {
    if (place !== "page" && this.#workers) {
      try {
        return await this.#once(place, () => distant(place));
      } catch {
        this.#workers = false;
      }
    }
    return this.#once("page", () => local("wasm"));
  }

  // After one failure WebGPU is not tried again.
  giveUp(words, reason) {
    this.failed ??= { words, reason: String(reason?.message ?? reason) };
  }

  #once(name, open) {
    this.#opened[name] ??= open().catch((error) => {
      delete this.#opened[name]; // the next one may try again
      throw error;
    });
    return this.#opened[name];
  }
}

// In this thread, and in others if `several`.
export async function local(provider, several = false) {
  const file = FILES[provider];
  let ort;
  try {
    ort = await import(`${FOLDER}${file}`);
  } catch (error) {
    throw new Trouble(
      `The runtime ${file} could not be loaded (${error.message}). ` +
        "The page is not whole: build it again with scripts/build-page.",
    );
  }
  ort.env.wasm.wasmPaths = FOLDER;
  // Threads need two headers that many servers do not send; one thread needs none.
  const cores = navigator.hardwareConcurrency || 1;
  const threads = several && self.crossOriginIsolated ? Math.min(MOST_THREADS, cores) : 1;
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  return { provider, place: "page", threads, open: (bytes) => Graphs.open(ort, provider, bytes) };
}

async function distant(place) {
  const client = new WorkerClient();
  try {
    const threads = await client.begin(place === "threads");
    return { provider: "wasm", place, threads, open: (bytes) => client.open(bytes) };
  } catch (error) {
    client.end();
    throw error;
  }
}
