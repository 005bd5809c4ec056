/**
 * The classic mistakes, on and off.
 *
 *     right        as written        difference        each row with its sum
 */

import { Cells } from "./cells.js";
import { make, mathNode, shown } from "./dom.js";
import { arrowed } from "./drag.js";
import { sizeWithin } from "./signed.js";

/** Words as a sentence; a letter of the mathematics stays as it is. @param {string} words */
const sentence = (words) => `${words.replace(/^[a-z](?=[a-z])|^a(?= )/, (letter) => letter.toUpperCase())}.`;

export class MistakesView {
  /** @param {HTMLElement} root @param {import("./held.js").Held} held @param {(text: string) => void} say */
  constructor(root, held, say) {
    Object.assign(this, { root, held, say });
    const { given } = held;
    this.switches = given.wrong.map((/** @type {any} */ one) => make("button", { type: "button", class: one.largest ? "switch" : "switch changes-nothing", role: "switch", title: one.does, onclick: () => this.turn(one.name) },
      make("span", { class: "switch-mark" }), make("span", { text: one.name })));
    const list = make("div", { class: "switches", role: "group", "aria-label": "Mistakes: one at a time", onkeydown: (/** @type {any} */ event) => this.pressed(event) }, ...this.switches);
    this.words = make("p", { class: "mistake-words" });
    this.leads = make("p", { class: "mistake-leads" });
    this.formulas = [make("div", { class: "hand-formula" }, mathNode(given.right.formula)), make("div", { class: "hand-formula is-wrong" })];
    root.append(make("div", { class: "mistakes" }, list, make("div", { class: "mistake-told" }, this.words, this.leads), this.maps()));
    this.draw();
  }

  maps() {
    const { queries, tokens } = this.held.given, count = Math.max(queries.length, tokens.length);
    const given = { queries, keys: tokens, cell: Math.max(11, Math.min(30, 150 / count)) };
    this.right = new Cells({ ...given, label: "The right weights", sums: true });
    this.wrong = new Cells({ ...given, label: "The weights as they come out", sums: true, rows: false });
    this.apart = new Cells({ ...given, label: "The difference", rows: false });
    this.captions = ["meant", "comes out", "difference"].map((text) => make("span", { class: "label", text }));
    const formulas = [this.formulas[0], this.formulas[1], make("div", { class: "hand-formula num" })];
    this.most = formulas[2];
    return make("div", { class: "mistake-maps" }, ...[this.right, this.wrong, this.apart].map(({ svg }, at) => make("figure", {}, this.captions[at], svg, formulas[at])));
  }

  /** @param {string} name */
  turn(name) {
    this.held.move({ mistake: this.held.at.mistake === name ? "" : name });
  }

  /** Arrow keys move between switches; space turns. @param {KeyboardEvent} event */
  pressed(event) {
    const from = this.switches.indexOf(/** @type {any} */ (event.target).closest(".switch")), to = arrowed(event, from, this.switches.length);
    if (to !== null) this.switches[to].focus();
  }

  draw() {
    const { given, at } = this.held, theme = this.root.dataset.theme ?? "light";
    const made = given.wrong.find((/** @type {any} */ one) => one.name === at.mistake), wrong = made ?? given.right;
    this.switches.forEach((/** @type {any} */ one, /** @type {number} */ which) => {
      one.setAttribute("aria-checked", String(given.wrong[which] === made));
      one.tabIndex = given.wrong[which] === made || (!made && which === 0) ? 0 : -1;
    });
    const top = Math.max(1, Math.min(sizeWithin(wrong.weights), 8)), apart = sizeWithin(wrong.difference);
    this.right.paint(given.right.weights, theme, { sums: given.right.sums });
    this.wrong.paint(wrong.weights, theme, { top, sums: wrong.sums });
    this.apart.paint(wrong.difference, theme, { signed: true, top: Math.min(apart, 8) });
    this.words.textContent = made ? sentence(made.does) : "Nothing is wrong yet. Turn a mistake on.";
    this.leads.textContent = made ? sentence(made.leads_to) : "";
    this.formulas[1].replaceChildren(mathNode(wrong.formula));
    this.formulas[1].classList.toggle("is-wrong", Boolean(made));
    this.most.textContent = made ? (made.largest ? `at most ${shown(made.largest, 2)}` : "none, on these vectors") : "none";
    const sums = wrong.sums.filter((/** @type {number} */ sum) => Math.abs(sum - 1) > 1e-6).length;
    this.say(!made ? "" : !made.largest ? "No weight changes here: nothing in these numbers gives it away." : sums ? `${sums} of ${wrong.sums.length} rows no longer sum to 1.` : "Every row still sums to 1: a check of the sums finds nothing.");
  }
}
