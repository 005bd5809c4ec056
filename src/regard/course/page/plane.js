/**
 * A vector in the plane, what it reads, and the mean of the values that it brings back.
 *
 *     x → q        threads to the keys, as wide as their weights        y within the hull of the values
 */

import { Bars, readsText } from "./bars.js";
import { colour } from "./colour.js";
import { make, makeSvg, mathNode, shown } from "./dom.js";
import { dragged } from "./drag.js";
import { Field, arrowPath, handleOf, nameText, put } from "./field.js";

export class PlaneView {
  /** @param {HTMLElement} root @param {import("./held.js").Held} held @param {(text: string) => void} say */
  constructor(root, held, say) {
    Object.assign(this, { root, held, say });
    const { given } = held;
    this.field = new Field({ reach: given.reach, label: "A plane with a vector to drag" });
    this.bars = new Bars(given.labels, given.projected ? "q reads" : "x reads");
    this.output = make("p", { class: "plane-output num" });
    const formula = make("div", { class: "hand-formula" }, mathNode(given.formula));
    root.append(make("div", { class: "plane" }, this.field.svg, make("div", { class: "plane-side" }, formula, this.bars.element, this.output)));
    this.build();
    this.draw();
  }

  build() {
    const { given } = this.held, { field } = this, each = (/** @type {() => any} */ act) => given.labels.map(act);
    const corners = given.hull.map((/** @type {number[]} */ one) => field.at(one).join(" ")).join("L");
    this.threads = each(() => makeSvg("path", { class: "thread" }));
    this.pulls = each(() => makeSvg("path", { class: "pull" }));
    this.discs = each(() => makeSvg("circle", { class: "disc" }));
    this.arrow = makeSvg("path", { class: "arrow arrow-x" });
    this.query = makeSvg("path", { class: "arrow arrow-q" });
    this.queryName = makeSvg("text", { class: "name name-q", text: given.projected ? "q" : "" });
    this.mean = makeSvg("path", { class: "mean" });
    this.meanName = makeSvg("text", { class: "name name-y", text: "y" });
    this.handle = handleOf("x", "the vector x: arrow keys move it, with shift farther");
    this.handle.append(makeSvg("text", { class: "name name-x", x: 13, y: -10, text: "x" }));
    field.svg.append(makeSvg("path", { class: "hull", d: corners ? `M${corners}Z` : "" }), field.axes(), ...this.fixed(),
      ...this.pulls, ...this.threads, ...this.discs, ...this.names(), this.arrow, this.query, this.queryName, this.mean, this.meanName, this.handle);
    const where = () => this.held.at.query, end = () => this.held.still && (this.held.back(), this.say("`regard learn` moves this."));
    dragged(this.handle, { from: (event) => field.from(event), where, move: (place) => this.move(place), end, step: given.reach / 100 });
    field.svg.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.jump(event));
  }

  /** The points where their keys lie elsewhere, and values that are not the points. */
  fixed() {
    const { given } = this.held, { field } = this;
    const links = given.projected ? given.points.map((/** @type {number[]} */ one, /** @type {number} */ at) =>
      makeSvg("path", { class: "link", d: `M${field.at(one).join(" ")}L${field.at(given.keys[at]).join(" ")}` })) : [];
    const dots = given.projected ? given.points.map((/** @type {number[]} */ one) => makeSvg("circle", { class: "dot", cx: field.at(one)[0], cy: field.at(one)[1], r: 2.5 })) : [];
    const values = given.apart ? given.values.map((/** @type {number[]} */ one) => this.valueMark(field.at(one))) : [];
    const names = given.apart ? given.values.map((/** @type {number[]} */ one, /** @type {number} */ at) => this.name(one, 9, `name name-v`, nameText(given.labels[at]))) : [];
    return [...links, ...dots, ...values, ...names];
  }

  /** @param {number[]} place */
  valueMark([x, y]) {
    return makeSvg("rect", { class: "value", x: x - 3, y: y - 3, width: 6, height: 6 });
  }

  names() {
    const { given } = this.held;
    return given.keys.map((/** @type {number[]} */ one, /** @type {number} */ at) => this.name(one, 17, "name name-key", nameText(given.labels[at])));
  }

  /** A name outside of a place, away from the middle. @param {number[]} place @param {number} far @param {string} kind @param {string} text */
  name(place, far, kind, text) {
    const [x, y] = this.field.at(place), length = Math.hypot(place[0], place[1]) || 1, [across, up] = [place[0] / length, place[1] / length];
    const anchor = across > 0.35 ? "start" : across < -0.35 ? "end" : "middle";
    return makeSvg("text", { class: kind, x: x + across * far, y: y - up * far + 4.5, "text-anchor": anchor, text });
  }

  /** @param {number[]} place */
  move(place) {
    this.held.move({ query: this.field.within(place) });
  }

  /** A mouse may point anywhere; a finger there scrolls the page. @param {PointerEvent} event */
  jump(event) {
    if (event.pointerType === "touch" || event.button) return;
    this.move(this.field.from(event));
    this.handle.dispatchEvent(new PointerEvent("pointerdown", event));
  }

  draw() {
    const { field } = this, { at, found, given } = this.held, theme = /** @type {any} */ (this.root.dataset.theme ?? "light");
    const origin = field.at([0, 0]), tip = field.at(at.query), query = given.projected ? field.at(found.q) : tip;
    put(this.handle, { transform: `translate(${tip.join(" ")})`, "aria-valuenow": at.query[0], "aria-valuetext": `${shown(at.query[0])}, ${shown(at.query[1])}; ${readsText("it", given.labels, found.weights)}` });
    put(this.arrow, { d: arrowPath(origin, tip, 9) });
    put(this.query, { d: given.projected ? arrowPath(origin, query) : "" });
    put(this.queryName, { x: query[0] + 9, y: query[1] - 8 });
    found.weights.forEach((/** @type {number} */ weight, /** @type {number} */ one) => this.drawKey(one, weight, query, theme));
    this.drawMean();
    this.bars.paint(found.weights);
    this.output.replaceChildren(make("i", { text: "y" }), ` = (${found.y.map((/** @type {number} */ one) => one.toFixed(2).replace("-", "−")).join(", ")})`);
  }

  /** @param {number} at @param {number} weight @param {number[]} query @param {any} theme */
  drawKey(at, weight, query, theme) {
    const [x, y] = this.field.at(this.held.given.keys[at]), part = colour.part(weight, "root");
    put(this.threads[at], { d: `M${query.join(" ")}L${x} ${y}`, "stroke-width": 0.4 + 4 * part, "stroke-opacity": part < 0.04 ? 0 : 0.12 + 0.7 * part });
    put(this.discs[at], { cx: x, cy: y, r: 4 + 10 * part });
    this.discs[at].style.fill = colour.css(theme, 0.06 + 0.94 * part);
  }

  drawMean() {
    const { found, given } = this.held, [x, y] = this.field.at(found.y);
    put(this.mean, { d: `M${x - 6} ${y}L${x} ${y - 6}L${x + 6} ${y}L${x} ${y + 6}Z` });
    const left = x < this.field.at(this.held.at.query)[0]; // its name stands away from the hand
    put(this.meanName, { x: x + (left ? -9 : 9), y: y + 14, "text-anchor": left ? "end" : "start" });
    found.weights.forEach((/** @type {number} */ weight, /** @type {number} */ at) => {
      const part = colour.part(weight, "root");
      put(this.pulls[at], { d: `M${x} ${y}L${this.field.at(given.values[at]).join(" ")}`, "stroke-opacity": part < 0.04 ? 0 : 0.15 + 0.5 * part });
    });
  }
}
