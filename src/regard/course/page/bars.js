/** Weights as a list: a name, a bar, a number. A bar is as long as the weight, whole for 1. */

import { make, spoken, weightText } from "./dom.js";
import { largest } from "./weights.js";

export class Bars {
  /** @param {string[]} labels @param {string} title */
  constructor(labels, title) {
    this.labels = labels;
    this.lines = labels.map((label) => {
      const bar = make("span", { class: "bar-line" }), number = make("span", { class: "num" });
      return { bar, number, element: make("li", { class: "bar-row" }, make("span", { class: "bar-name", text: spoken(label) }), bar, number) };
    });
    const list = make("ol", { class: "bar-rows" }, ...this.lines.map(({ element }) => element));
    this.title = make("h2", { class: "bar-title", text: title });
    this.element = make("section", { class: "bar-list" }, this.title, list);
  }

  /** @param {number[]} weights */
  paint(weights) {
    const top = Math.max(1, ...weights.map((one) => Math.abs(one ?? 0)));
    this.lines.forEach(({ bar, number, element }, at) => {
      bar.style.setProperty("--part", String(Math.abs(weights[at] ?? 0) / top));
      element.classList.toggle("is-less", weights[at] < 0);
      element.classList.toggle("is-none", !weights[at]);
      number.textContent = weightText(weights[at] ?? NaN);
    });
  }
}

/** What is read most, in words. @param {string} who @param {string[]} labels @param {number[]} weights */
export function readsText(who, labels, weights) {
  const read = largest(weights, 3).filter((at) => weights[at] > 0.005).map((at) => `${spoken(labels[at])} ${weightText(weights[at])}`);
  return read.length ? `${who} reads ${read.join(", ")}` : `${who} reads nothing`;
}
