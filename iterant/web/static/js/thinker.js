// The loop over iterations: plays, pauses, and takes what is done to it in between.
//
//     const thinker = new Thinker(network);
//     thinker.addEventListener("thought", () => draw(thinker));
//     thinker.begin(inputs);              // from the start
//     thinker.change(inputs, "the end moved");    // another problem, the features stay
//     thinker.noise(); thinker.wipe();
//
// It is settled when its answer has stayed the same for 30 iterations and its features are at rest
// too: a wave that has not yet arrived changes no answer. Features that never rest settle when the
// answer has stood for 300 iterations. It then waits until something is done to it.
// Events: begun, thought, phase, settled, disturbed, failed.

import { likelihood, predict } from "./readout.js";
import { freshSeed, seeded } from "./random.js";

const PATIENCE = 30;
const MORE_PATIENCE = 300;
const REST = 1e-5; // of the features' norm: one square of the largest maze moves far more
const FRAME_BUDGET = 14; // milliseconds of thinking a frame, so that the page stays quick
const HURRY = 240; // iterations a second from which only the last of a frame is decoded
const HURRIED_BUDGET = 40; // milliseconds of thinking a frame then: fewer frames, more iterations
const KEPT = 4000; // points of the curve

// ‖next − before‖ / ‖next‖, in one pass: mazes have a hundred thousand numbers an iteration.
function relativeChange(before, next) {
  let [moved, whole] = [0, 0];
  for (let at = 0; at < next.length; at += 1) {
    moved += (next[at] - before[at]) ** 2;
    whole += next[at] ** 2;
  }
  return whole ? Math.sqrt(moved / whole) : Math.sqrt(moved);
}

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
  #tail = Promise.resolve();
  #unchanged = 0; // iterations for which the answer has stayed the same
  #unseen = 0; // iterations since it was decoded
  #closely = 0; // iterations in a row that were each looked at, and left the answer the same
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
      [this.#unchanged, this.#unseen, this.#blur] = [0, 0, 0];
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
      [this.#unchanged, this.#unseen, this.#blur] = [0, 0, 0];
      await this.#decode();
      this.#wake();
      this.#tell("disturbed");
      this.#tell("thought");
    });
  }

  play() {
    if (!this.answered) return;
    if (this.phase === "settled") this.#unchanged = 0; // asked to go on, it goes on
    this.#enter("thinking");
  }

  pause() {
    if (this.phase === "thinking") this.#enter("paused");
  }

  async once() {
    this.pause();
    if (this.phase === "settled") this.#enter("paused");
    await this.#serial(() => this.#iterate());
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
      // Before restless features are believed to have an answer, each iteration is looked at: one
      // that comes and goes with every other iteration looks steady from frame to frame.
      const hurried = this.speed > HURRY && this.#unchanged < MORE_PATIENCE;
      const until = performance.now() + (hurried ? HURRIED_BUDGET : FRAME_BUDGET);
      let pending = 0;
      while (credit >= 1 && this.phase === "thinking" && performance.now() < until) {
        await this.#serial(() => this.#iterate(!hurried));
        credit -= 1;
        pending += 1;
      }
      if (hurried && pending) await this.#serial(() => this.#look());
      // What could not be done in time is not owed: the page would stop to catch up.
      credit = Math.min(credit, 1);
      if (pending) this.#tell("thought");
    }
    this.#looping = false;
  }

  async #iterate(look = true) {
    if (!this.answered) return;
    const next = await this.network.step(this.features, this.memory);
    const change = relativeChange(this.features.data, next.data);
    this.features = next;
    this.step += 1;
    this.since += 1;
    this.#unseen += 1;
    this.history.push({ step: this.step, change });
    if (this.history.length > KEPT) this.history.shift();
    if (look) await this.#look();
  }

  // Decode the answer, and settle if it has stood still for long enough.
  async #look() {
    const previous = this.prediction;
    await this.#decode();
    const same = previous.every((value, at) => value === this.prediction[at]);
    if (!same) this.#blur = this.#unseen;
    this.#unchanged = same ? this.#unchanged + this.#unseen : 0;
    this.#closely = same && this.#unseen === 1 ? this.#closely + 1 : 0;
    this.#unseen = 0;
    const resting = this.history.at(-1)?.change < REST;
    const stood = this.#unchanged >= MORE_PATIENCE && this.#closely >= PATIENCE;
    if ((resting ? this.#unchanged >= PATIENCE : stood) && this.phase === "thinking") {
      this.found = this.since - this.#unchanged;
      this.roughly = this.#blur > 1;
      this.#enter("settled");
      this.#tell("settled");
    }
  }

  async #decode() {
    this.logits = await this.network.answer(this.features);
    this.prediction = predict(this.network.about.readout, this.logits, this.inputs);
  }

  get likelihood() {
    return likelihood(this.logits);
  }

  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}
