/**
 * What can be turned in a formula: its numbers as sliders, the classic mistakes as switches.
 *
 *   value = low · (high / low)^position        at the far end of a slider whose formula has no such number: off
 */

import { make, shown } from "./dom.js";

const STEPS = 200;

/** @typedef {{name: string, does: string, value: number | null, own: number | null, low: number, high: number}} Dial */

/** Where a value stands on its slider, 0 … 200. @param {Dial} dial */
export function dialPosition({ value, low, high }) {
  if (value === null || value === undefined) return STEPS;
  return Math.round((STEPS * Math.log(value / low)) / Math.log(high / low));
}

/** The value at a position; null where the dial is off, or as the formula has it. @param {Dial} dial @param {number} position */
export function dialValue({ name, own, low, high }, position) {
  if (own === null && position >= STEPS) return null;
  const value = low * (high / low) ** (position / STEPS);
  return name === "window" ? Math.max(1, Math.round(value)) : Number(value.toPrecision(3));
}

/** The sliders that an answer offers; `turn(name, value)` with null to take a change back. */
export class Dials {
  /** @param {(name: string, value: number | null) => void} turn */
  constructor(turn) {
    this.turn = turn;
    this.rows = new Map();
    this.element = make("div", { class: "dials" });
  }

  /** @param {Dial[]} dials */
  show(dials) {
    const names = dials.map(({ name }) => name).join();
    if (this.names !== names) this.element.replaceChildren(...dials.map((dial) => this.row(dial)));
    this.names = names;
    for (const dial of dials) this.set(dial);
  }

  row(dial) {
    const number = make("button", { class: "quiet num", type: "button", title: "back to its own", onclick: () => this.turn(dial.name, null) });
    const slider = make("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": dial.name, oninput: () => this.turned(dial.name) });
    this.rows.set(dial.name, { slider, number, dial });
    return make("label", { class: "dial", title: dial.does }, make("span", { text: dial.name }), slider, number);
  }

  set(dial) {
    const row = this.rows.get(dial.name);
    row.dial = dial;
    if (!row.slider.matches(":active")) row.slider.value = String(dialPosition(dial));
    this.write(row, dial.value);
  }

  write({ number, slider, dial }, value) {
    const text = value === null || value === undefined ? "off" : shown(value, 3);
    number.textContent = text;
    number.classList.toggle("turned", value !== dial.own);
    slider.setAttribute("aria-valuetext", text);
  }

  turned(name) {
    const row = this.rows.get(name), value = dialValue(row.dial, Number(row.slider.value));
    this.write(row, value);
    this.turn(name, value === row.dial.own ? null : value);
  }
}

/** The mistakes that a formula can be written with, as switches of which one is on. */
export class Mistakes {
  /** @param {(name: string | null) => void} pick */
  constructor(pick) {
    this.pick = pick;
    this.list = make("div", { class: "mistakes" });
    this.says = make("p", { class: "mistake-says" });
    this.element = make("div", { class: "mistakes-part" }, make("h3", { class: "label", text: "classic mistakes" }), this.list, this.says);
  }

  /** @param {{name: string, does: string, leadsTo: string}[]} mistakes @param {string | null} chosen */
  show(mistakes, chosen) {
    this.element.toggleAttribute("hidden", !mistakes.length);
    const names = mistakes.map(({ name }) => name).join();
    if (this.names !== names) this.list.replaceChildren(...mistakes.map((mistake) => this.button(mistake)));
    this.names = names;
    for (const button of this.list.children) button.setAttribute("aria-pressed", String(button.textContent === chosen));
    const one = mistakes.find(({ name }) => name === chosen);
    this.says.textContent = one ? `${one.does}: ${one.leadsTo}` : "";
  }

  button({ name, does }) {
    const toggle = (event) => this.pick(event.currentTarget.getAttribute("aria-pressed") === "true" ? null : name);
    return make("button", { class: "quiet", type: "button", title: does, text: name, onclick: toggle });
  }
}
