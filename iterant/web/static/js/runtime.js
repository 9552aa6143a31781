// onnxruntime-web, from our own folder: with WebGPU where the browser has one, else WebAssembly.
//
//     const runtimes = new Runtimes("auto");
//     const runtime = await runtimes.best(heavy);     // { ort, provider, threads, worker }
//     await runtimes.plain(heavy);                    // WebAssembly, whatever there is beside it
//
// Light networks are computed in the page's own thread, where a message to another would take
// longer than the work; heavy ones in a worker and several threads, so that the page never waits.
// Each kind is opened when it is first asked for.

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

  async best(heavy) {
    if (this.#wanted !== "wasm" && !this.failed && (await (this.#adapter ??= adapter()))) {
      try {
        return await this.#open("webgpu", false);
      } catch (error) {
        this.giveUp("it could not be loaded", error);
      }
    }
    return this.plain(heavy);
  }

  plain(heavy) {
    return this.#open("wasm", heavy);
  }

  // WebGPU failed once: nothing asks for it again.
  giveUp(words, reason) {
    this.failed ??= { words, reason: String(reason?.message ?? reason) };
  }

  #open(provider, worker) {
    // A module of its own for each kind, because a module has one setting for all its networks.
    const file = FILES[provider] + (worker ? "?worker" : "");
    this.#opened[file] ??= opened(file, provider, worker).catch((error) => {
      delete this.#opened[file]; // the next one may try again
      throw error;
    });
    return this.#opened[file];
  }
}

async function opened(file, provider, worker) {
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
  ort.env.wasm.proxy = worker;
  // Threads need two headers that many servers do not send; one thread needs none.
  const cores = navigator.hardwareConcurrency || 1;
  const threads = worker && self.crossOriginIsolated ? Math.min(MOST_THREADS, cores) : 1;
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  return { ort, provider, threads, worker };
}
