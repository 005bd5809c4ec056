/**
 * A matrix as cells, its texts at both sides: queries down, keys across.
 *
 *     paint(values, { signed, top })     mark(query, key)
 */

import { colour } from "./colour.js";
import { makeSvg } from "./dom.js";
import { nameText, put } from "./field.js";
import { fitted, signedCss, signedInk } from "./signed.js";

const SLANT_OF_KEYS = 52; // degrees of the texts on top
const READABLE = 27; // units of a cell that holds a number

/** @param {string[]} texts @param {number} letter */
const widest = (texts, letter) => letter * Math.max(1, ...texts.map((text) => nameText(text).length));

export class Cells {
  /**
   * @param {{ queries: string[], keys: string[], cell: number, label: string, sums?: boolean, rows?: boolean }} given
   * @param {{ point?: (query: number | null, key: number | null) => void, choose?: (query: number, key: number) => void }} [acts]
   */
  constructor({ queries, keys, cell, label, sums = false, rows = true }, acts = {}) {
    Object.assign(this, { queries, keys, cell });
    this.left = rows ? widest(queries, 8.3) + 10 : 2;
    this.top = widest(keys, 7.2) * Math.sin((SLANT_OF_KEYS * Math.PI) / 180) + 14;
    this.right = Math.max(sums ? 46 : 2, widest(keys.slice(-1), 7.2) * Math.cos((SLANT_OF_KEYS * Math.PI) / 180) - cell / 2 + 8);
    const [wide, high] = [cell * keys.length, cell * queries.length];
    this.width = this.left + wide + this.right;
    this.svg = makeSvg("svg", { class: "matrix-cells", viewBox: `0 0 ${this.width} ${this.top + high + 3}`, role: "img", "aria-label": label });
    this.svg.style.maxWidth = `${this.width}px`;
    this.svg.append(makeSvg("rect", { class: "cells-paper", x: this.left - 0.5, y: this.top - 0.5, width: wide + 1, height: high + 1 }));
    this.rects = queries.map((_, row) => keys.map((_, column) => this.rect(row, column)));
    this.numbers = cell >= READABLE ? queries.map((_, row) => keys.map((_, column) => this.number(row, column))) : null;
    this.sums = sums ? queries.map((_, row) => this.text("cells-sum num", this.left + wide + 8, row, "")) : [];
    this.names = { query: rows ? queries.map((name, row) => this.text("cells-query", this.left - 8, row, nameText(name))) : [], key: keys.map((name, column) => this.keyName(name, column)) };
    this.row = makeSvg("rect", { class: "cells-row", x: this.left - 1.5, width: wide + 3, height: cell + 1, rx: 2, visibility: "hidden" });
    this.spot = makeSvg("rect", { class: "cells-spot", width: cell + 1, height: cell + 1, rx: 2, visibility: "hidden" });
    this.svg.append(...this.rects.flat(), ...(this.numbers?.flat() ?? []), ...this.sums, ...this.names.query, ...this.names.key, this.row, this.spot);
    this.listen(acts);
  }

  /** @param {any} acts */
  listen({ point, choose }) {
    this.svg.addEventListener("pointermove", (/** @type {any} */ event) => event.pointerType !== "touch" && point?.(...this.under(event)));
    this.svg.addEventListener("pointerleave", () => point?.(null, null));
    this.svg.addEventListener("click", (/** @type {any} */ event) => {
      const [query, key] = this.under(event);
      if (query !== null) choose?.(query, key);
    });
  }

  /** @param {number} row @param {number} column */
  rect(row, column) {
    return makeSvg("rect", { x: this.left + column * this.cell + 0.5, y: this.top + row * this.cell + 0.5, width: this.cell - 1, height: this.cell - 1, rx: 1.5 });
  }

  /** @param {number} row @param {number} column */
  number(row, column) {
    return makeSvg("text", { class: "cells-number num", x: this.left + (column + 0.5) * this.cell, y: this.top + (row + 0.5) * this.cell + 3.5, "text-anchor": "middle" });
  }

  /** @param {string} kind @param {number} x @param {number} row @param {string} text */
  text(kind, x, row, text) {
    return makeSvg("text", { class: kind, x, y: this.top + (row + 0.5) * this.cell + 4.5, "text-anchor": kind === "cells-query" ? "end" : "start", text });
  }

  /** @param {string} name @param {number} column */
  keyName(name, column) {
    const place = `translate(${this.left + (column + 0.5) * this.cell + 3} ${this.top - 7}) rotate(${-SLANT_OF_KEYS})`;
    return makeSvg("text", { class: "cells-key", transform: place, text: nameText(name) });
  }

  /** The cell under the pointer; a query alone beside the cells. @param {any} event @returns {[number | null, number | null]} */
  under(event) {
    const box = this.svg.getBoundingClientRect(), scale = this.width / box.width;
    const row = Math.floor(((event.clientY - box.top) * scale - this.top) / this.cell), column = Math.floor(((event.clientX - box.left) * scale - this.left) / this.cell);
    return [row >= 0 && row < this.queries.length ? row : null, row >= 0 && column >= 0 && column < this.keys.length ? column : null];
  }

  /** @param {number[][]} values @param {any} theme @param {{ signed?: boolean, top?: number, sums?: number[] }} [how] */
  paint(values, theme, { signed = false, top = 1, sums } = {}) {
    values.forEach((line, row) => line.forEach((value, column) => this.paintCell(row, column, value ?? 0, theme, signed, top)));
    sums?.forEach((sum, row) => {
      this.sums[row].textContent = Math.abs(sum) < 1e4 ? sum.toFixed(2).replace("-", "−") : "large";
      this.sums[row].classList.toggle("is-off", Math.abs(sum - 1) > 1e-6);
    });
  }

  /** @param {number} row @param {number} column @param {number} value @param {any} theme @param {boolean} signed @param {number} top */
  paintCell(row, column, value, theme, signed, top) {
    const share = Math.max(-1, Math.min(1, value / top)), less = signed || value < 0;
    const part = less ? Math.sign(share) * Math.sqrt(Math.abs(share)) * 0.95 : colour.part(share, "root");
    this.rects[row][column].style.fill = less ? signedCss(theme, part) : colour.css(theme, part);
    if (!this.numbers) return;
    const text = this.numbers[row][column];
    text.textContent = Math.abs(value) < 5e-3 ? "" : (signed && value > 0 ? "+" : "") + cellText(value);
    text.style.fill = less ? signedInk(theme, part) : colour.ink(theme, part);
  }

  /** @param {number | null} query @param {number | null} [key] */
  mark(query, key = null) {
    const pair = query !== null && key !== null;
    put(this.row, { visibility: query === null ? "hidden" : "visible", y: this.top + (query ?? 0) * this.cell - 0.5 });
    put(this.spot, { visibility: pair ? "visible" : "hidden", x: this.left + (key ?? 0) * this.cell - 0.5, y: this.top + (query ?? 0) * this.cell - 0.5 });
    this.names.query.forEach((name, at) => name.classList.toggle("is-on", at === query));
    this.names.key.forEach((name, at) => name.classList.toggle("is-on", pair && at === key));
  }
}

/** A weight in two figures, so that it fits its cell. @param {number} value */
const cellText = (value) => (Math.abs(value) >= 1.05 ? fitted(value) : Math.abs(value) > 0.995 ? value.toFixed(0) : value.toFixed(2).replace("0.", ".")).replace("-", "−");
