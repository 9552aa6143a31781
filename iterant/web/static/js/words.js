// What is happening, in words: seen by everyone, and read out by screen readers (aria-live).

export class Words {
  constructor(element) {
    this.element = element;
  }

  // The same sentence twice is said twice: a screen reader hears only changes.
  say(sentence) {
    this.element.textContent = this.element.textContent === sentence ? `${sentence}\u00a0` : sentence;
  }
}

export const count = (number, one, many = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const capital = (sentence) => sentence[0].toUpperCase() + sentence.slice(1);
