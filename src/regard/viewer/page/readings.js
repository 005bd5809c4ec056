/** For longer texts: the tokens that one token reads most, and those that read it most, with their numbers. */

import { grouped, make, shown, spoken, weightText } from "./dom.js";
import { largest } from "./weights.js";

const LINES = 8;

export class Readings {
  /** @param {HTMLElement} element @param {any} context @param {any} queries @param {any} keys @param {any} view */
  constructor(element, context, queries, keys, view) {
    this.context = context;
    this.view = view;
    this.axes = { query: queries, key: keys };
    this.reads = this.list("reads most", "key");
    this.read = this.list("is read most by", "query");
    element.append(this.reads.element, this.read.element);
  }

  /** @param {string} title @param {"query" | "key"} side */
  list(title, side) {
    const rows = Array.from({ length: LINES }, () => {
      const parts = { at: -1, name: make("span", { class: "token" }), bar: make("span", { class: "reading-bar" }), number: make("span", { class: "num" }), place: make("span", { class: "num faint" }) };
      const glance = (/** @type {boolean} */ here) => this.view.glance(side, here && parts.at >= 0 ? parts.at : null);
      const element = make("button", { class: "reading", onpointerenter: () => glance(true), onpointerleave: () => glance(false), onclick: () => parts.at >= 0 && this.view.choose(side, parts.at) }, parts.number, parts.name, parts.place, parts.bar);
      return { ...parts, element, parts };
    });
    const name = make("h2", { class: "label", text: title });
    const element = make("div", { class: `readings ${side === "key" ? "reads" : "read"}` }, name, ...rows.map(({ element }) => element));
    return { rows, element, side, name };
  }

  /** @param {number | null} query @param {number | null} key @param {ArrayLike<number> | null} reads @param {ArrayLike<number> | null} read */
  paint(query, key, reads, read) {
    this.fill(this.reads, reads, this.axes.key);
    this.fill(this.read, read, this.axes.query);
    const waits = key !== null && !read && this.context.state.get("sense") !== "reads";
    this.read.name.textContent = waits ? "is read most by …" : "is read most by";
  }

  /** @param {any} list @param {ArrayLike<number> | null} weights @param {any} axis */
  fill(list, weights, axis) {
    const { data, state } = this.context;
    const places = weights ? largest(weights, LINES) : [];
    const top = weights?.[places[0]] || 1;
    let unnamed = false;
    for (const [line, row] of list.rows.entries()) {
      const at = places[line] ?? -1;
      const weight = at < 0 ? 0 : /** @type {ArrayLike<number>} */ (weights)[at];
      const label = at < 0 ? "" : data.label(axis.name, at);
      unnamed ||= label === null;
      row.parts.at = at;
      row.element.style.visibility = at < 0 || weight === 0 ? "hidden" : "";
      row.name.textContent = label === null ? "…" : spoken(label);
      row.name.classList.toggle("special", axis.special.has(at));
      row.number.textContent = weight < 0.0005 ? shown(weight, 2) : weightText(weight);
      row.place.textContent = at < 0 ? "" : grouped(at);
      row.bar.style.setProperty("--part", (weight / top).toFixed(4));
      row.element.setAttribute("aria-pressed", String(list.side === "key" && at === state.get("key") && !state.get("hover")));
    }
    if (unnamed) this.name(places, axis);
  }

  /** Names that have not come yet. @param {number[]} places @param {any} axis */
  async name(places, axis) {
    await Promise.all(places.map((at) => this.context.data.labels(axis.name, at, at + 1)));
    this.view.paint();
  }
}
