// Messages, also read by screen readers (aria-live).

export class Words {
  constructor(element) {
    this.element = element;
  }

  // Screen readers read only changes: a repeated message gets another space.
  say(sentence) {
    this.element.textContent = this.element.textContent === sentence ? `${sentence}\u00a0` : sentence;
  }
}

export const count = (number, one, many = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const capital = (sentence) => sentence[0].toUpperCase() + sentence.slice(1);
