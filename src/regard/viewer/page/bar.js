/** The line above the middle: which view, which head, how weights become colour. */

import { make } from "./dom.js";

const CHOICES = {
  over: [["head", "this head"], ["mean", "mean"], ["max", "max"]],
  scale: [["root", "√"], ["log", "log"], ["linear", "linear"]],
  sense: [["both", "both"], ["reads", "reads"], ["read", "is read by"]],
};
const SAID = { over: "Over heads", scale: "From weight to colour", sense: "Which way" };
const TICKS = [0.001, 0.01, 0.1, 0.5, 1];

class Bar {
  /** @param {HTMLElement} element @param {any} context @param {string[]} views */
  constructor(element, context, views) {
    this.context = context;
    this.tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "View" },
      ...views.map((view) => make("button", { class: "quiet tab", role: "tab", "data-view": view, text: view, onclick: () => context.state.set({ view }) })));
    this.where = make("h1", { class: "where" });
    this.name = make("p", { class: "where-name" });
    this.groups = Object.entries(CHOICES).map(([name, choices]) => this.group(name, choices));
    this.ramp = make("canvas", { width: 256, height: 1, class: "scale-ramp" });
    this.ticks = make("div", { class: "scale-ticks num" });
    this.scale = make("div", { class: "scale", role: "img", "aria-label": "colours of weights from 0 to 1" }, this.ramp, this.ticks);
    element.append(this.where, this.name, this.tabs, make("div", { class: "choices" }, ...this.groups, this.scale));
    this.update(new Set(["view", "layer", "scale", "over", "sense"]));
  }

  /** @param {string} name @param {string[][]} choices */
  group(name, choices) {
    const said = /** @type {any} */ (SAID)[name];
    return make("div", { class: "bar-choice", role: "group", "aria-label": said, title: said, "data-name": name },
      ...choices.map(([value, text]) => make("button", { class: "quiet", "data-value": value, text, onclick: () => this.context.state.set({ [name]: value }) })));
  }

  /** @param {Set<string>} changed */
  update(changed) {
    const { values } = this.context.state;
    for (const tab of this.tabs.children) tab.setAttribute("aria-selected", String(tab.dataset.view === values.view));
    for (const group of this.groups) {
      for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === values[group.dataset.name]));
      group.hidden = group.dataset.name === "sense" && values.view === "map";
    }
    this.scale.hidden = values.view !== "text";
    if (changed.has("layer") || changed.has("head") || changed.has("over")) this.named();
    if (changed.has("scale") || changed.has("theme")) this.scaled();
  }

  named() {
    const { layer, head, over } = this.context.state.values;
    const one = this.context.data.layer(layer);
    const heads = over === "head" ? `head ${one.heads[head]}` : over === "mean" ? `mean of ${one.heads.length} heads` : `maximum of ${one.heads.length} heads`;
    this.where.replaceChildren(`Layer ${layer}`, make("span", { class: "faint", text: ", " }), heads);
    this.name.textContent = one.name;
  }

  /** The scale itself, with the weights along it. */
  scaled() {
    const { colour, theme, state } = this.context;
    this.ramp.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(colour.ramp(theme)), 256, 1), 0, 0);
    this.ticks.replaceChildren(...TICKS.map((weight) => {
      const tick = make("span", { text: String(weight).replace(/^0/, "") });
      const part = colour.part(weight, state.get("scale"));
      tick.style.setProperty("--at", `${100 * part}%`);
      tick.hidden = weight < 1 && (part < 0.06 || part > 0.9);
      return tick;
    }));
  }
}

/** @param {HTMLElement} element @param {any} context @param {string[]} views */
export function viewBar(element, context, views) {
  return new Bar(element, context, views);
}
