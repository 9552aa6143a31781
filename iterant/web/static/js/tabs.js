// Tabs by the usual rules: one stop for Tab, arrows between them, Home and End.

export class Tabs {
  constructor(list, onShow) {
    this.list = list;
    this.onShow = onShow;
    list.addEventListener("click", (event) => this.show(event.target.closest("[role=tab]")));
    list.addEventListener("keydown", (event) => this.#key(event));
  }

  get tabs() {
    return [...this.list.querySelectorAll("[role=tab]:not([hidden])")];
  }

  show(tab) {
    if (!tab) return;
    for (const each of this.list.querySelectorAll("[role=tab]")) {
      const chosen = each === tab;
      each.setAttribute("aria-selected", String(chosen));
      each.tabIndex = chosen ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !chosen;
    }
    this.onShow(tab.dataset.task);
  }

  #key(event) {
    const { tabs } = this;
    const at = tabs.indexOf(document.activeElement);
    const last = tabs.length - 1;
    const next = { ArrowLeft: at ? at - 1 : last, ArrowRight: at === last ? 0 : at + 1, Home: 0, End: last }[event.key];
    if (at < 0 || next === undefined) return;
    tabs[next].focus();
    this.show(tabs[next]);
    event.preventDefault();
  }
}
