// Fetch files of the page, with progress.
//
//     const bytes = await fetchedBytes("networks/chess/step.onnx", (done) => bar.value = done);

import { Trouble } from "./runtime.js";

async function fetched(path) {
  let response;
  try {
    response = await fetch(path);
  } catch {
    throw new Trouble(`The file ${path} could not be fetched; is the server still there?`);
  }
  if (!response.ok) {
    throw new Trouble(`The file ${path} is missing (${response.status}); build the page again.`);
  }
  return response;
}

export async function fetchedJson(path) {
  return (await fetched(path)).json();
}

export async function fetchedBytes(path, progress) {
  const response = await fetched(path);
  if (!response.body) return new Uint8Array(await response.arrayBuffer());
  const parts = [];
  let done = 0;
  try {
    for (const reader = response.body.getReader(); ; ) {
      const { value, done: ended } = await reader.read();
      if (ended) break;
      parts.push(value);
      progress((done += value.length));
    }
  } catch {
    throw new Trouble(`The file ${path} broke off after ${done.toLocaleString("en")} bytes.`);
  }
  const whole = new Uint8Array(done);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
