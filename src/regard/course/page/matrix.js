/**
 * The weights of each head over a sentence: the text, the matrix, and what a word reads.
 *
 * Pointing shows a word's row at once; a click, a tap or an arrow key chooses it.
 */

import { Bars, readsText } from "./bars.js";
import { Cells } from "./cells.js";
import { colour } from "./colour.js";
import { make, spoken, weightText } from "./dom.js";
import { arrowed } from "./drag.js";

/** Units of a cell, for so many. @param {number} count */
export const cellFor = (count) => Math.round(Math.max(11, Math.min(32, 380 / count)));

export class MatrixView {
  /** @param {HTMLElement} root @param {import("./held.js").Held} held @param {(text: string) => void} say */
  constructor(root, held, say) {
    Object.assign(this, { root, held, say, pointed: null, key: null });
    const { given } = held, { tokens } = given;
    this.heads = given.heads.map((/** @type {string} */ name) => make("button", { type: "button", class: "quiet head-name", role: "radio", text: name, onclick: () => held.move({ head: name }) }));
    const heads = make("div", { class: "head-names", role: "radiogroup", "aria-label": "The head", onkeydown: (/** @type {any} */ event) => this.pressedHead(event) }, ...this.heads);
    this.tokens = tokens.map((/** @type {string} */ text, /** @type {number} */ at) => make("span", { class: "token", "data-at": at, text: spoken(text) }));
    this.text = make("p", { class: "hand-text", tabindex: 0, role: "listbox", "aria-label": "The sentence: arrow keys choose the word that reads", onkeydown: (/** @type {any} */ event) => this.pressed(event) });
    this.tokens.forEach((/** @type {any} */ token, /** @type {number} */ at) => {
      token.setAttribute("role", "option");
      this.text.append(...(at ? [" "] : []), token);
    });
    this.text.addEventListener("pointermove", (/** @type {any} */ event) => event.pointerType !== "touch" && this.pointText(event));
    this.text.addEventListener("pointerleave", () => this.point(null, null));
    this.text.addEventListener("click", (/** @type {any} */ event) => this.placeOf(event) !== null && this.choose(this.placeOf(event)));
    this.cells = new Cells({ queries: tokens, keys: tokens, cell: cellFor(tokens.length), label: "The weights: a row for each word that reads, a column for each that is read" },
      { point: (query, key) => this.point(query, key), choose: (query) => this.choose(query) });
    this.bars = new Bars(tokens, "reads");
    root.append(make("div", { class: "matrix" }, given.heads.length > 1 ? make("div", { class: "matrix-top" }, make("span", { class: "label", text: "head" }), heads) : null, this.text,
      make("div", { class: "matrix-body" }, this.cells.svg, this.bars.element)));
    this.draw();
  }

  get query() {
    return this.pointed ?? this.held.at.query;
  }

  /** @param {any} event */
  placeOf(event) {
    const token = event.target.closest("[data-at]");
    return token ? Number(token.dataset.at) : null;
  }

  /** @param {any} event */
  pointText(event) {
    const at = this.placeOf(event);
    if (at !== null) this.point(at, null);
  }

  /** @param {number | null} query @param {number | null} key */
  point(query, key) {
    if (query === this.pointed && key === this.key) return;
    Object.assign(this, { pointed: query, key: query === null ? null : key });
    this.draw();
  }

  /** @param {number | null} query */
  choose(query) {
    this.pointed = null;
    this.held.move({ query });
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    const query = arrowed(event, this.held.at.query, this.tokens.length);
    if (query !== null) this.choose(query);
  }

  /** @param {KeyboardEvent} event */
  pressedHead(event) {
    const { heads } = this.held.given, to = arrowed(event, heads.indexOf(this.held.at.head), heads.length);
    if (to === null) return;
    this.held.move({ head: heads[to] });
    this.heads[to].focus();
  }

  draw() {
    const { given, at } = this.held, { query, key } = this, theme = /** @type {any} */ (this.root.dataset.theme ?? "light");
    const weights = given.weights[at.head], row = weights[query];
    this.heads.forEach((/** @type {any} */ head, /** @type {number} */ one) => {
      const chosen = given.heads[one] === at.head;
      head.setAttribute("aria-checked", String(chosen));
      head.tabIndex = chosen ? 0 : -1;
    });
    if (this.painted !== `${theme} ${at.head}`) this.cells.paint(weights, theme);
    this.painted = `${theme} ${at.head}`;
    this.cells.mark(query, key);
    this.bars.paint(row);
    this.bars.title.textContent = `${spoken(given.tokens[query])} reads`;
    this.tokens.forEach((/** @type {any} */ token, /** @type {number} */ one) => this.paintToken(token, one, row[one], query, theme));
    this.say(key === null ? readsText(spoken(given.tokens[query]), given.tokens, row) : `${spoken(given.tokens[query])} reads ${spoken(given.tokens[key])}: ${weightText(row[key])}`);
  }

  /** @param {any} token @param {number} at @param {number} weight @param {number} query @param {any} theme */
  paintToken(token, at, weight, query, theme) {
    const part = colour.part(weight, "root");
    token.style.backgroundColor = part > 0.02 ? colour.css(theme, part) : "";
    token.style.color = part > 0.02 ? colour.ink(theme, part) : "";
    token.classList.toggle("is-query", at === query);
    token.setAttribute("aria-selected", String(at === this.held.at.query));
  }
}
