// Prefix sums: a strip of bits to click, and whether the ones so far are odd in number.

import { freshSeed, seeded } from "../random.js";
import { count } from "../words.js";

export class SumsPanel {
  speed = 59; // of the slider, to begin with

  constructor(element, thinker, words) {
    Object.assign(this, { element, thinker, words });
    const find = (name) => element.querySelector(`[data-is=${name}]`);
    this.strip = find("strip");
    this.length = find("length");
    this.truth = find("truth");
    this.lengthSaid = find("length-said");
    this.length.addEventListener("input", () => this.#tellLength(this.length.value));
    this.length.addEventListener("change", () => this.generate());
    find("generate").addEventListener("click", () => this.generate());
    find("swap").addEventListener("click", () => this.swap());
    this.truth.addEventListener("change", () => this.draw());
    this.strip.addEventListener("click", (event) => {
      const bit = event.target.closest("button");
      if (bit) this.flip(Number(bit.dataset.at));
    });
    this.strip.addEventListener("keydown", (event) => this.#key(event));
    thinker.addEventListener("thought", () => this.draw());
  }

  // What the network was trained on, as words about it.
  static trainedOn({ size }) {
    return { problems: `strings of ${size} bits`, shown: "" };
  }

  static harder = () => "longer strings";

  #tellLength(bits) {
    this.lengthSaid.textContent = `${bits} bits`;
  }

  // The problem as a part of the page's address, and back.
  get problem() {
    return this.bits.join("");
  }

  open(problem) {
    if (!/^[01]{8,512}$/.test(problem)) {
      throw new Error("The address holds no bits that this page can show: it takes 8 to 512, each 0 or 1.");
    }
    this.length.value = problem.length;
    return this.begin([...problem].map(Number));
  }

  generate(seed = freshSeed()) {
    const random = seeded(seed);
    return this.begin(Array.from({ length: Number(this.length.value) }, () => random.below(2)));
  }

  begin(bits) {
    this.bits = bits;
    this.#tellLength(bits.length);
    this.#build();
    this.words.say(`${count(bits.length, "new bit")}. The network begins at iteration 0${this.thinker.waits}.`);
    return this.thinker.begin(this.inputs);
  }

  swap(seed = freshSeed()) {
    const random = seeded(seed);
    this.bits = this.bits.map(() => random.below(2));
    this.#mark();
    return this.thinker.change(this.inputs, "the bits were swapped for others");
  }

  flip(at) {
    this.bits[at] = 1 - this.bits[at];
    this.#mark();
    return this.thinker.change(this.inputs, `bit ${at + 1} was flipped to ${this.bits[at]}`);
  }

  get inputs() {
    return { data: Float32Array.from(this.bits, (bit) => bit - 0.5), dims: [1, 1, this.bits.length] };
  }

  get answer() {
    let odd = 0;
    return this.bits.map((bit) => (odd ^= bit));
  }

  #build() {
    const cells = this.bits.map((_, at) => {
      const cell = document.createElement("div");
      cell.className = "bit";
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.at = at;
      button.tabIndex = at ? -1 : 0; // one stop for Tab; arrows go from bit to bit
      const sum = document.createElement("span");
      sum.className = "sum";
      cell.append(button, sum);
      return cell;
    });
    this.strip.replaceChildren(...cells);
    this.cells = cells.map((cell) => [...cell.children]);
    this.#mark();
  }

  #mark() {
    this.cells.forEach(([button], at) => {
      button.textContent = this.bits[at];
      button.setAttribute("aria-label", `bit ${at + 1}: ${this.bits[at]}`);
      button.setAttribute("aria-pressed", String(this.bits[at] === 1));
    });
  }

  #key(event) {
    const at = Number(event.target.dataset?.at);
    const places = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.bits.length - 1 };
    const next = this.cells[places[event.key]]?.[0];
    if (!next) return;
    this.cells[at][0].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  }

  draw() {
    const { thinker, bits } = this;
    if (!bits || thinker.inputs?.dims[2] !== bits.length) return;
    const [likely, wanted] = [thinker.likelihood, this.answer];
    this.cells.forEach(([, sum], at) => {
      const said = thinker.prediction[at];
      sum.textContent = said;
      sum.style.setProperty("--odd", likely[at].toFixed(3));
      sum.classList.toggle("odd", said === 1);
      sum.classList.toggle("wrong", this.truth.checked && said !== wanted[at]);
    });
  }

  verdict() {
    const wrong = this.answer.filter((bit, at) => bit !== this.thinker.prediction[at]).length;
    const words = wrong
      ? `${count(wrong, "sum is", "sums are")} wrong.`
      : `All ${this.bits.length} sums are right.`;
    return { right: wrong === 0, words };
  }
}
