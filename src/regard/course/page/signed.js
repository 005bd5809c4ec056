/** Numbers on two sides of 0 as colours: slate below, the accent above, and print that is readable on both. */

import { colour } from "./colour.js";
import { make, shown } from "./dom.js";

/** @param {any} theme @param {number} part −1 … 1 @returns {string} */
export function signedCss(theme, part) {
  if (!(Math.abs(part) > 0.004)) return "transparent"; // none is the paper itself
  const table = colour.difference(theme), at = 4 * Math.round(127.5 * (1 + Math.max(-1, Math.min(1, part))));
  return `rgb(${table[at]} ${table[at + 1]} ${table[at + 2]})`;
}

/** @param {any} theme @param {number} part */
export const signedInk = (theme, part) => (Math.abs(part) > (theme === "light" ? 0.72 : 0.62) ? (theme === "light" ? "#fff" : "#000") : "var(--ink)");

/** The largest size of many numbers, never 0. @param {any} values nested as they like */
export function sizeWithin(values) {
  return values.flat(Infinity).reduce((/** @type {number} */ most, /** @type {number} */ one) => Math.max(most, Math.abs(one ?? 0)), 0) || 1;
}

/** A number that fits a small cell. @param {number} value */
export const fitted = (value) => {
  const size = Math.abs(value ?? NaN);
  const text = !(size >= 0) ? "–" : size >= 99.5 ? shown(value, 2) : size >= 9.95 ? value.toFixed(0) : value.toFixed(1);
  return text.replace("-", "−").replace(/^−0\.0$/, "0.0");
};

/** A vector as a line of cells. */
export class VectorCells {
  /** @param {number} width @param {string} [kind] */
  constructor(width, kind = "") {
    this.cells = Array.from({ length: width }, () => make("span", { class: "cell num" }));
    this.element = make("span", { class: `cells ${kind}` }, ...this.cells);
  }

  /** @param {number[]} values @param {number} top @param {any} theme */
  paint(values, top, theme) {
    this.cells.forEach((cell, at) => {
      const part = Math.sign(values[at]) * Math.sqrt(Math.abs(values[at] ?? 0) / top) * 0.92;
      cell.textContent = fitted(values[at]);
      cell.title = shown(values[at], 4);
      cell.style.backgroundColor = signedCss(theme, part);
      cell.style.color = signedInk(theme, part);
    });
  }
}
