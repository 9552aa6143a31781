// The loop over iterations: play, pause, and interventions between iterations.
//
//     const thinker = new Thinker(network);
//     thinker.addEventListener("thought", () => draw(thinker));
//     thinker.begin(inputs);              // from the start
//     thinker.change(inputs, "the end moved");    // another problem, the features stay
//     thinker.noise(); thinker.wipe();
//
// It is settled when its features are at rest, or in a cycle with one answer (settling.js); a constant
// answer is not enough. It then waits for the next intervention.
// Events: begun, thought, phase, settled, disturbed, failed.

import { likelihood, predict } from "./readout.js";
import { freshSeed, seeded } from "./random.js";
import { Settling } from "./settling.js";

const FRAME_BUDGET = 14; // milliseconds of computing per frame, so that the page stays responsive
const HURRY = 240; // iterations per second above which only the last one of a frame is decoded
const HURRIED_BUDGET = { page: 40, worker: 100, threads: 100 }; // milliseconds of computing per frame above that speed
const KEPT = 4000; // points of the curve

export class Thinker extends EventTarget {
  phase = "idle"; // idle, thinking, paused, settled
  speed = 60; // iterations per second
  step = 0; // iterations since the start
  since = 0; // iterations since the last intervention
  disturbed = null; // the last intervention, in words
  found = 0; // when settled: iterations from the last intervention to the last change of the answer
  roughly = false; // whether that number is uncertain by some iterations, at high speed
  error = null; // why computing failed
  history = []; // { step, change }: how much each iteration changed the features
  marks = []; // { step, words }: the interventions
  pace = 0; // milliseconds of the last iteration
  #tail = Promise.resolve();
  #unchanged = 0; // iterations for which the answer has stayed the same
  #unseen = 0; // iterations since it was decoded
  #settling = new Settling();
  #blur = 0; // iterations not decoded before the last change of the answer
  #looping = false;

  constructor(network) {
    super();
    this.network = network;
  }

  get answered() {
    return this.logits !== undefined;
  }

  // The end of a message: what happens next.
  get waits() {
    return this.phase === "paused" ? " when you press Play" : "";
  }

  // Run one job at a time: an iteration or an intervention.
  #serial(work) {
    this.#tail = this.#tail.then(work).catch((error) => this.#fail(error));
    return this.#tail;
  }

  #fail(error) {
    this.error = error;
    this.#enter("paused");
    this.#tell("failed");
  }

  begin(inputs) {
    return this.#serial(async () => {
      const { features, memory } = await this.network.read(inputs);
      Object.assign(this, { inputs, features, memory, step: 0, since: 0, disturbed: null });
      Object.assign(this, { history: [], marks: [], error: null });
      this.#forget();
      await this.#decode();
      this.#wake();
      this.#tell("begun");
      this.#tell("thought");
    });
  }

  // Another network for the same problem, from the start.
  use(network) {
    this.#serial(() => {
      this.network = network;
    });
    return this.begin(this.inputs);
  }

  change(inputs, words) {
    return this.#between(words, async () => {
      const { features, memory } = await this.network.read(inputs);
      // Features of another size belong to another problem: start again.
      if (String(features.dims) !== String(this.features.dims)) this.features = features;
      Object.assign(this, { inputs, memory });
    });
  }

  noise(scale = 1) {
    return this.#between("noise was added to the features", () => {
      const random = seeded(freshSeed());
      const data = this.features.data.map((value) => value + scale * random.gaussian());
      this.features = { data, dims: this.features.dims };
    });
  }

  wipe() {
    return this.#between("the features were wiped", () => {
      const { data, dims } = this.features;
      this.features = { data: new Float32Array(data.length), dims };
    });
  }

  // Intervene between two iterations, record it, and continue.
  #between(words, work) {
    return this.#serial(async () => {
      if (!this.answered) return;
      await work();
      const last = this.marks.at(-1);
      if (last?.step === this.step) last.words = words;
      else this.marks.push({ step: this.step, words });
      this.since = 0;
      this.disturbed = words;
      this.#forget();
      await this.#decode();
      this.#wake();
      this.#tell("disturbed");
      this.#tell("thought");
    });
  }

  // Forget what was measured on the earlier state.
  #forget() {
    [this.#unchanged, this.#unseen, this.#blur] = [0, 0, 0];
    this.#settling = new Settling(this.step);
  }

  play() {
    if (!this.answered) return;
    if (this.phase === "settled") this.#settling = new Settling(this.step); // continue on request
    this.#enter("thinking");
  }

  pause() {
    if (this.phase === "thinking") this.#enter("paused");
  }

  async once() {
    this.pause();
    if (this.phase === "settled") this.#enter("paused");
    await this.#serial(() => this.#advance(1, 0));
    this.#tell("thought");
  }

  #wake() {
    if (this.phase !== "paused") this.#enter("thinking");
  }

  #enter(phase) {
    const changed = phase !== this.phase;
    this.phase = phase;
    if (changed) this.#tell("phase");
    if (phase === "thinking" && !this.#looping) this.#loop();
  }

  async #loop() {
    this.#looping = true;
    let [before, credit] = [performance.now(), 0];
    while (this.phase === "thinking") {
      const now = await new Promise(requestAnimationFrame);
      credit = Math.min(credit + ((now - before) / 1000) * this.speed, this.speed);
      before = now;
      const hurried = this.speed > HURRY;
      const until = performance.now() + (hurried ? HURRIED_BUDGET[this.network.runtime.place] : FRAME_BUDGET);
      let pending = 0;
      while (credit >= 1 && this.phase === "thinking" && performance.now() < until) {
        // While looking for a cycle, decode every iteration: an answer that alternates would look
        // constant from frame to frame.
        const most = hurried && !this.#settling.closely ? Math.floor(credit) : 1;
        const taken = await this.#serial(() => this.#advance(most, until - performance.now()));
        credit -= taken ?? 1;
        pending += 1;
      }
      // Do not catch up on missed iterations: the page would freeze.
      credit = Math.min(credit, 1);
      if (pending) this.#tell("thought");
    }
    this.#looping = false;
  }

  // Some iterations; the answer is decoded after the last one.
  async #advance(most, milliseconds) {
    if (!this.answered) return 0;
    const { network, features, memory } = this;
    const began = performance.now();
    const thought = await network.advance(features, memory, most, milliseconds);
    this.pace = (performance.now() - began) / thought.changes.length;
    this.features = thought.features;
    for (const change of thought.changes) {
      this.step += 1;
      this.history.push({ step: this.step, change: change.relative });
    }
    this.history.splice(0, this.history.length - KEPT);
    this.since += thought.changes.length;
    this.#unseen += thought.changes.length;
    this.#look(thought);
    return thought.changes.length;
  }

  // Read the answer, and settle if more iterations would not change it.
  #look({ features, changes, logits }) {
    const previous = this.prediction;
    this.#read(logits);
    const same = previous.every((value, at) => value === this.prediction[at]);
    if (!same) this.#blur = this.#unseen;
    this.#unchanged = same ? this.#unchanged + this.#unseen : 0;
    this.#unseen = 0;
    const settled = this.#settling.see(this.step, changes, features.data, this.prediction);
    if (settled && this.phase === "thinking") {
      this.found = this.since - this.#unchanged;
      this.roughly = this.#blur > 1;
      this.#enter("settled");
      this.#tell("settled");
    }
  }

  async #decode() {
    this.#read(await this.network.answer(this.features));
  }

  #read(logits) {
    this.logits = logits;
    this.prediction = predict(this.network.about.readout, this.logits, this.inputs);
  }

  get likelihood() {
    return likelihood(this.logits);
  }

  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}
