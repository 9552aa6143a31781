// Progress of loading a network, as a message and a bar.
//
//     await loading.during("chess", 14_800_000, (progress) => Network.open(…, progress));

const MEGABYTE = 1e6;

export class Loading {
  #words;
  #bar;

  constructor(bar, words) {
    this.#bar = bar;
    this.#words = words;
  }

  async during(name, bytes, work) {
    const size = bytes >= MEGABYTE ? ` (${(bytes / MEGABYTE).toFixed(1)} MB)` : "";
    this.#words.say(`Loading the network ${name}${size}, and what computes it…`);
    this.#bar.removeAttribute("value"); // indeterminate
    this.#bar.hidden = false;
    try {
      return await work((done, all) => {
        // The bar ends below its maximum, because opening the network takes time, too.
        this.#bar.max = all * 1.05;
        this.#bar.value = done;
      });
    } finally {
      this.end();
    }
  }

  end() {
    this.#bar.hidden = true;
  }
}
