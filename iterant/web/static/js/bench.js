// What every task has in common: play and pause, speed, counter, disturbances, curve, channels.
//
//     const bench = new Bench(document, words);
//     bench.attach(panel);                    // the panel in front; the one before it pauses

import { Channels } from "./channels.js";
import { Curve } from "./curve.js";
import { capital, count } from "./words.js";

const SOONER = 1e6; // iterations a second: more than there is time for
const EVENTS = ["begun", "thought", "phase", "settled", "disturbed"];

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
    this.speed.addEventListener("input", () => this.#setSpeed());
    document.addEventListener("keydown", (event) => this.#key(event));
    window.addEventListener("resize", () => this.draw());
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.draw();
      this.panel?.draw();
    });
    this.#setSpeed();
  }

  attach(panel) {
    if (panel === this.panel) return;
    // What leaves the front rests, and goes on when it comes back.
    if (this.thinker) {
      this.panel.resumes = this.thinker.phase === "thinking";
      this.thinker.pause();
    }
    this.#listening?.abort();
    this.#listening = new AbortController();
    this.panel = panel;
    this.thinker = panel.thinker;
    this.thinker.speed = this.iterationsASecond;
    for (const event of EVENTS) {
      this.thinker.addEventListener(event, () => this.#on(event), { signal: this.#listening.signal });
    }
    if (panel.resumes) this.thinker.play();
    this.draw();
  }

  #listening = null;

  get iterationsASecond() {
    const value = Number(this.speed.value);
    return value >= 100 ? SOONER : Math.round(10 ** (value * 0.03));
  }

  #setSpeed() {
    const speed = this.iterationsASecond;
    const words = speed === SOONER ? "as fast as it can" : `${count(speed, "iteration")} a second`;
    this.speedSaid.textContent = words;
    this.speed.setAttribute("aria-valuetext", words);
    if (this.thinker) this.thinker.speed = speed;
  }

  toggle() {
    if (!this.thinker) return;
    if (this.thinker.phase === "thinking") {
      this.thinker.pause();
      this.words.say(`Paused at iteration ${this.thinker.step}.`);
    } else {
      this.thinker.play();
      this.words.say(`Thinking on from iteration ${this.thinker.step}.`);
    }
  }

  restart() {
    if (!this.thinker?.inputs) return;
    this.words.say(`From the start again${this.thinker.waits}.`);
    this.thinker.begin(this.thinker.inputs);
  }

  #on(event) {
    const { thinker } = this;
    if (event === "settled") {
      this.words.say(this.#settled());
    } else if (event === "disturbed") {
      this.words.say(`${capital(thinker.disturbed)} at iteration ${thinker.step}; it thinks on${thinker.waits}.`);
    }
    this.draw();
  }

  #settled() {
    const { thinker } = this;
    const { right, words } = this.panel.verdict();
    const found = count(Math.max(0, thinker.found), "iteration");
    if (!thinker.disturbed) return `It settled: its answer came to rest after ${found}. ${words}`;
    const when = `its answer came to rest ${found} after ${thinker.disturbed}.`;
    if (right === false) return `It did not recover: ${when} ${words} Start again, and it begins anew.`;
    return `${right ? "It recovered" : "It settled"}: ${when} ${words}`;
  }

  draw() {
    const { thinker } = this;
    if (!thinker?.answered) return;
    const thinking = thinker.phase === "thinking";
    this.play.textContent = thinking ? "Pause" : "Play";
    this.play.setAttribute("aria-pressed", String(thinking));
    this.counter.textContent = thinker.step.toLocaleString("en");
    this.state.textContent = thinker.phase;
    this.state.dataset.phase = thinker.phase;
    this.curve.draw(thinker);
    this.channels.draw(thinker);
  }

  #key(event) {
    const writing = event.target.closest?.("input:not([type=checkbox]), textarea, select");
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
