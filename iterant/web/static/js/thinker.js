// The loop over iterations: plays, pauses, and takes what is done to it in between.
//
//     const thinker = new Thinker(network);
//     thinker.addEventListener("thought", () => draw(thinker));
//     thinker.begin(inputs);              // from the start
//     thinker.change(inputs, "the end moved");    // another problem, the features stay
//     thinker.noise(); thinker.wipe();
//
// It is settled when its features are at rest, or in a cycle that keeps its answer (settling.js): a wave
// that has not yet arrived changes no answer. It then waits until something is done to it.
// Events: begun, thought, phase, settled, disturbed, failed.

import { likelihood, predict } from "./readout.js";
import { freshSeed, seeded } from "./random.js";
import { Settling } from "./settling.js";

const FRAME_BUDGET = 14; // milliseconds of thinking a frame, so that the page stays quick
const HURRY = 240; // iterations a second from which only the last of a frame is decoded
const HURRIED_BUDGET = { page: 40, worker: 100, threads: 100 }; // milliseconds of thinking a frame then
const KEPT = 4000; // points of the curve

export class Thinker extends EventTarget {
  phase = "idle"; // idle, thinking, paused, settled
  speed = 60; // iterations a second
  step = 0; // iterations since the start
  since = 0; // iterations since something was done to it
  disturbed = null; // what was done last, in words
  found = 0; // when settled: after how many iterations since then the answer stood still
  roughly = false; // whether that is known only to a few iterations, at high speed
  error = null; // why it stopped, where computing failed
  history = []; // { step, change }: how much each iteration changed the features
  marks = []; // { step, words }: when something was done
  pace = 0; // milliseconds that an iteration took, the last time
  #tail = Promise.resolve();
  #unchanged = 0; // iterations for which the answer has stayed the same
  #unseen = 0; // iterations since it was decoded
  #settling = new Settling();
  #blur = 0; // iterations that passed unseen before the answer was last seen to change
  #looping = false;

  constructor(network) {
    super();
    this.network = network;
  }

  get answered() {
    return this.logits !== undefined;
  }

  // What to add to a sentence about what happens next.
  get waits() {
    return this.phase === "paused" ? " when you press Play" : "";
  }

  // One thing at a time: an iteration, or something done between two iterations.
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
      // Features of another size belong to another problem: begin anew then.
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

  // Between two iterations: do it, remember when, and think on.
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

  // What was seen of another state counts no more.
  #forget() {
    [this.#unchanged, this.#unseen, this.#blur] = [0, 0, 0];
    this.#settling = new Settling(this.step);
  }

  play() {
    if (!this.answered) return;
    if (this.phase === "settled") this.#settling = new Settling(this.step); // asked to go on, it goes on
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
        // In search of a cycle each iteration is looked at: an answer that comes and goes with every
        // other iteration looks steady from frame to frame.
        const most = hurried && !this.#settling.closely ? Math.floor(credit) : 1;
        const taken = await this.#serial(() => this.#advance(most, until - performance.now()));
        credit -= taken ?? 1;
        pending += 1;
      }
      // What could not be done in time is not owed: the page would stop to catch up.
      credit = Math.min(credit, 1);
      if (pending) this.#tell("thought");
    }
    this.#looping = false;
  }

  // Some iterations, and a look at the answer after the last of them.
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
