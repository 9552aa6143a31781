// Controls and displays of every task: play and pause, speed, counter, interventions, curve, channels.
//
//     const bench = new Bench(document, words);
//     bench.attach(panel);                    // the panel in front; the one before it pauses

import { Channels } from "./channels.js";
import { Curve } from "./curve.js";
import { capital, count } from "./words.js";

const SOONER = 1e6; // iterations per second: more than there is time for
const EVENTS = ["begun", "thought", "phase", "settled", "disturbed", "failed"];
const SLOW = 1_000; // milliseconds per iteration above which a message says so
const LOOKS = [100, 300, 1_000, 3_000, 10_000, 30_000]; // iterations after which a message reports the progress

export class Bench {
  constructor(root, words) {
    const find = (name) => root.querySelector(`[data-bench=${name}]`);
    this.words = words;
    this.play = find("play");
    this.counter = find("counter");
    this.state = find("state");
    this.speed = find("speed");
    this.speedSaid = find("speed-said");
    this.curve = new Curve(find("curve"));
    this.channels = new Channels(find("channels"), find("channels-caption"));
    this.play.addEventListener("click", () => this.toggle());
    find("once").addEventListener("click", () => this.thinker?.once());
    find("restart").addEventListener("click", () => this.restart());
    find("noise").addEventListener("click", () => this.thinker?.noise());
    find("wipe").addEventListener("click", () => this.thinker?.wipe());
    this.speed.addEventListener("input", () => {
      if (this.panel) this.panel.speed = this.speed.value; // each panel keeps its own
      this.#setSpeed();
    });
    document.addEventListener("keydown", (event) => this.#key(event));
    window.addEventListener("resize", () => this.draw());
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.draw();
      this.panel?.draw();
    });
    this.#setSpeed();
  }

  // A hidden panel pauses and continues when it is shown again.
  rest() {
    if (!this.thinker) return;
    this.panel.resumes = this.thinker.phase === "thinking";
    this.thinker.pause();
    this.#listening.abort();
    this.panel = this.thinker = null;
    this.#show("idle", 0); // until the next one is there
  }

  attach(panel) {
    if (panel === this.panel) return;
    this.rest();
    this.#listening = new AbortController();
    this.panel = panel;
    this.thinker = panel.thinker;
    this.#followSpeed();
    for (const event of EVENTS) {
      this.thinker.addEventListener(event, () => this.#on(event), { signal: this.#listening.signal });
    }
    if (panel.resumes) this.thinker.play();
    if (this.thinker.answered) this.words.say(this.#standing());
    this.draw();
  }

  #listening = null;

  get iterationsASecond() {
    const value = Number(this.speed.value);
    return value >= 100 ? SOONER : Math.round(10 ** (value * 0.03));
  }

  #followSpeed() {
    this.speed.value = this.panel.speed;
    this.#setSpeed();
  }

  #setSpeed() {
    const speed = this.iterationsASecond;
    const words = speed === SOONER ? "as fast as it can" : `${count(speed, "iteration")} per second`;
    this.speedSaid.textContent = words;
    this.speed.setAttribute("aria-valuetext", words);
    if (this.thinker) this.thinker.speed = speed;
  }

  toggle() {
    if (!this.thinker) return;
    if (this.thinker.phase === "thinking") {
      this.thinker.pause();
    } else {
      this.thinker.play();
    }
    this.words.say(this.#standing());
  }

  restart() {
    if (!this.thinker?.inputs) return;
    this.words.say(`Again from iteration 0${this.thinker.waits}.`);
    this.thinker.begin(this.thinker.inputs);
  }

  #on(event) {
    const { thinker } = this;
    if (event === "settled") {
      this.words.say(this.#settled());
    } else if (event === "disturbed") {
      this.words.say(`${capital(thinker.disturbed)} at iteration ${thinker.step}; it continues${thinker.waits}.`);
    } else if (event === "failed") {
      this.words.say(`It stopped, because computing failed: ${thinker.error.message}. Start again, or load the page anew.`);
    }
    if (event === "begun" || event === "disturbed") this.panel.told = 0;
    if (event === "begun") {
      this.panel.toldPace = false;
      this.#followSpeed(); // the default may depend on the problem
    }
    if (event === "thought") this.#meanwhile();
    this.draw();
  }

  // Messages report only what was measured: some networks do not recover.
  #meanwhile() {
    const { thinker, panel } = this;
    if (thinker.pace >= SLOW && thinker.since > 0 && !panel.toldPace && thinker.phase === "thinking") {
      panel.toldPace = true;
      const seconds = count(Math.round(thinker.pace / 1000), "second");
      this.words.say(`An iteration takes ${seconds} here; a smaller problem or a smaller network is quicker.`);
      return;
    }
    const due = LOOKS.findLast((look) => look <= thinker.since) ?? 0;
    if (thinker.phase !== "thinking" || due <= (panel.told ?? 0)) return;
    panel.told = due;
    const { right } = panel.verdict();
    const since = count(thinker.since, "iteration");
    const when = thinker.disturbed ? `${since} after ${thinker.disturbed}` : `after ${since}`;
    const each = thinker.speed === SOONER ? `, ${Math.max(1, Math.round(thinker.pace))} ms each` : "";
    const not = right === false ? "recovered" : "settled";
    const unsolved = thinker.disturbed ? `It has not ${not} ${when}; still working.` : `${since} so far${each}; still working.`;
    this.words.say(right ? `Its answer is right ${when}; it is not settled yet.` : unsolved);
  }

  // The current message, when a panel is shown again.
  #standing() {
    const { phase, step } = this.thinker;
    if (phase === "settled") return this.#settled();
    return phase === "thinking" ? `Continuing from iteration ${step}.` : `Paused at iteration ${step}.`;
  }

  #settled() {
    const { thinker } = this;
    const { right, words } = this.panel.verdict();
    const reached = `reached after ${thinker.roughly ? "about " : ""}${thinker.found.toLocaleString("en")}`;
    if (!thinker.disturbed) {
      return `Settled after ${count(thinker.step, "iteration")}: its answer, ${reached}, no longer changes. ${words}`;
    }
    const when = `settled ${count(thinker.since, "iteration")} after ${thinker.disturbed}, with an answer ${reached}.`;
    if (right === false) return `It did not recover: ${when} ${words} "Start again" begins at iteration 0.`;
    return `${right ? `It recovered: ${when}` : capital(when)} ${words}`;
  }

  draw() {
    const { thinker } = this;
    if (!thinker?.answered) return;
    this.#show(thinker.phase, thinker.step);
    this.curve.draw(thinker);
    this.channels.draw(thinker);
  }

  #show(phase, step) {
    this.play.textContent = phase === "thinking" ? "Pause" : "Play";
    this.counter.textContent = step.toLocaleString("en");
    this.state.textContent = this.state.dataset.phase = phase;
  }

  #key(event) {
    const writing = event.target.closest?.("input[type=text], textarea, select");
    if (writing || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      p: () => this.toggle(),
      ".": () => this.thinker?.once(),
      r: () => this.restart(),
      n: () => this.thinker?.noise(),
      w: () => this.thinker?.wipe(),
    };
    actions[event.key.toLowerCase()]?.();
  }
}
