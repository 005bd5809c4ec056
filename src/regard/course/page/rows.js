/**
 * One query against all keys, number by number.
 *
 *     q_i     over   k_j → q_i ∘ k_j → score → weight → v_j     over   y_i
 *
 * Pointing at a query shows it; a click, a tap or an arrow key chooses it.
 */

import { readsText } from "./bars.js";
import { make, mathNode, shown, spoken, weightText } from "./dom.js";
import { arrowed } from "./drag.js";
import { VectorCells, sizeWithin } from "./signed.js";

const EACH = /** @type {Record<string, string>} */ ({ product: "q ∘ k", difference: "(q − k)²" });

/** @param {number} score two places, so that a column of them lines up */
const scoreText = (score) => (Math.abs(score ?? NaN) < 1000 ? score.toFixed(2).replace("-", "−") : shown(score, 3));

export class RowsView {
  /** @param {HTMLElement} root @param {import("./held.js").Held} held @param {(text: string) => void} say */
  constructor(root, held, say) {
    Object.assign(this, { root, held, say, pointed: null, key: null });
    const { given } = held;
    this.tops = Object.fromEntries(["q", "k", "v", "y", "products"].map((name) => [name, sizeWithin(given[name])]));
    this.tops.q = this.tops.k = Math.max(this.tops.q, this.tops.k);
    this.tops.v = this.tops.y = Math.max(this.tops.v, this.tops.y);
    this.chips = given.queries.map((/** @type {string} */ label, /** @type {number} */ at) =>
      make("button", { type: "button", class: "chip-token", role: "radio", "data-row": at, text: spoken(label) }));
    const strip = make("div", { class: "chips-tokens", role: "radiogroup", "aria-label": "The query", onkeydown: (/** @type {any} */ event) => this.pressed(event) }, ...this.chips);
    strip.addEventListener("pointerover", (/** @type {any} */ event) => event.pointerType !== "touch" && this.point(event));
    strip.addEventListener("pointerleave", () => this.point(null));
    strip.addEventListener("click", (/** @type {any} */ event) => this.choose(event));
    root.append(make("div", { class: "rows" }, make("div", { class: "rows-top" }, make("span", { class: "label", text: "query" }), strip), this.table(), make("div", { class: "hand-formula" }, mathNode(given.formula))));
    this.draw();
  }

  table() {
    const { given } = this.held, width = given.q[0].length;
    const size = width > 8 || given.v[0].length > 8 ? "tiny" : width > 4 || given.v[0].length > 4 ? "small" : "large";
    const wide = (/** @type {string} */ name) => given[name][0].length;
    this.q = new VectorCells(wide("q"), "cells-q");
    this.y = new VectorCells(wide("v"), "cells-y");
    this.name = make("th", { scope: "row" });
    this.keys = given.labels.map((/** @type {string} */ label, /** @type {number} */ at) => this.keyRow(label, at));
    const heads = ["", "k", EACH[given.each] ?? "", "score", "weight", "v"];
    const cell = (/** @type {any[]} */ ...inside) => make("td", {}, ...inside);
    const sign = (/** @type {string} */ text) => make("td", { class: "sign", text });
    return make("table", { class: `rows-table rows-${size}${EACH[given.each] ? "" : " without-products"}` },
      make("thead", {}, make("tr", { class: "row-q" }, this.name, cell(this.q.element), make("td", { class: "products" }), sign(""), cell(), cell()),
        make("tr", { class: "row-heads" }, ...heads.map((text, at) => make("th", { scope: "col", class: at === 2 ? "products" : at === 3 ? "score" : "", text })))),
      make("tbody", {}, ...this.keys.map((/** @type {any} */ { element }) => element)),
      make("tfoot", {}, make("tr", { class: "row-y" }, make("th", { scope: "row", text: "" }), cell(), make("td", { class: "products" }), cell(), make("td", { class: "row-y-name" }, make("i", { text: "y" }), " = Σ w v"), cell(this.y.element))));
  }

  /** @param {string} label @param {number} at */
  keyRow(label, at) {
    const { given } = this.held;
    const [k, products, v] = [new VectorCells(given.k[0].length), new VectorCells(given.q[0].length, "cells-products"), new VectorCells(given.v[0].length)];
    const [score, bar, weight] = [make("td", { class: "score num" }), make("span", { class: "bar-line" }), make("span", { class: "num weight" })];
    const element = make("tr", { class: "row-key" }, make("th", { scope: "row", text: spoken(label) }), make("td", {}, k.element), make("td", { class: "products" }, products.element), score, make("td", { class: "weighed" }, make("span", { class: "weighed-line" }, bar, weight)), make("td", {}, v.element));
    element.addEventListener("pointerenter", () => this.tellPair(at));
    element.addEventListener("pointerleave", () => this.tellPair(null));
    return { element, k, products, v, score, bar, weight };
  }

  get row() {
    return this.pointed ?? this.held.at.row;
  }

  /** @param {any} event */
  rowOf(event) {
    const chip = event?.target?.closest?.("[data-row]");
    return chip ? Number(chip.dataset.row) : null;
  }

  /** @param {any} event */
  point(event) {
    const row = this.rowOf(event);
    if (row === this.pointed || (event && row === null)) return;
    this.pointed = row;
    this.draw();
  }

  /** @param {any} event */
  choose(event) {
    const row = this.rowOf(event);
    if (row === null) return;
    this.pointed = null;
    this.held.move({ row });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const row = arrowed(event, this.held.at.row, this.chips.length);
    if (row === null) return;
    this.pointed = null;
    this.held.move({ row });
    this.chips[row].focus();
  }

  /** The sum behind one score, in full. @param {number | null} key */
  tellPair(key) {
    this.key = key;
    this.draw();
  }

  draw() {
    const { given } = this.held, { row, tops } = this, theme = this.root.dataset.theme ?? "light";
    this.chips.forEach((/** @type {any} */ chip, /** @type {number} */ at) => {
      chip.setAttribute("aria-checked", String(at === this.held.at.row));
      chip.classList.toggle("is-shown", at === row);
      chip.tabIndex = at === this.held.at.row ? 0 : -1;
    });
    this.name.replaceChildren(make("i", { text: "q" }), ` ${spoken(given.queries[row])}`);
    this.q.paint(given.q[row], tops.q, theme);
    this.y.paint(given.y[row], tops.y, theme);
    this.keys.forEach((/** @type {any} */ line, /** @type {number} */ at) => this.drawKey(line, row, at, theme));
    this.say(this.told(row));
  }

  /** @param {any} line @param {number} row @param {number} at @param {any} theme */
  drawKey(line, row, at, theme) {
    const { given } = this.held, { tops } = this, weight = given.weights[row][at];
    line.k.paint(given.k[at], tops.k, theme);
    line.v.paint(given.v[at], tops.v, theme);
    line.products.paint(given.products[row][at], tops.products, theme);
    line.score.textContent = given.admitted[row][at] ? scoreText(given.scores[row][at]) : "masked";
    line.weight.textContent = weightText(weight);
    line.bar.style.setProperty("--part", String(Math.min(1, Math.abs(weight))));
    line.element.classList.toggle("is-hidden", !given.admitted[row][at]);
    line.element.style.setProperty("--strength", (0.35 + 0.65 * Math.sqrt(Math.min(1, Math.abs(weight)))).toFixed(2));
  }

  /** @param {number} row */
  told(row) {
    const { given } = this.held, who = spoken(given.queries[row]), { key } = this;
    if (key === null || !EACH[given.each]) return readsText(who, given.labels, given.weights[row]);
    const terms = given.products[row][key].map((/** @type {number} */ one) => shown(one, 2)).join(" + ").replaceAll("+ −", "− ");
    return `${who}, ${spoken(given.labels[key])}: ${terms} → score ${shown(given.scores[row][key])} → weight ${weightText(given.weights[row][key])}`;
  }
}
