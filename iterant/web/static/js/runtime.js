// onnxruntime-web, from our own folder: with WebGPU where the browser has one, else WebAssembly.
//
//     const runtime = await openRuntime({ wanted: "auto", heavy: false });
//     runtime.provider;                       // "webgpu" or "wasm"

const FOLDER = new URL("../runtime/", import.meta.url).href;
const MOST_THREADS = 4;

export class Trouble extends Error {}

async function adapter() {
  try {
    return (await navigator.gpu?.requestAdapter()) ?? null;
  } catch {
    return null; // some browsers have the interface and refuse to use it
  }
}

// `wanted` is "auto", "webgpu" or "wasm"; `heavy` says that threads are worth their cost.
export async function openRuntime({ wanted = "auto", heavy = false } = {}) {
  if (typeof WebAssembly !== "object") {
    throw new Trouble(
      "This browser has no WebAssembly, so no network can run in it. " +
        "Any current Firefox, Chrome, Edge or Safari has; so does the terminal: iterant solve.",
    );
  }
  const gpu = wanted === "wasm" ? null : await adapter();
  const provider = gpu ? "webgpu" : "wasm";
  const file = gpu ? "ort.webgpu.min.mjs" : "ort.wasm.min.mjs";
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
  ort.env.wasm.numThreads = heavy && self.crossOriginIsolated ? Math.min(MOST_THREADS, cores) : 1;
  ort.env.logLevel = "error";
  return { ort, provider, threads: ort.env.wasm.numThreads };
}
