/**
 * A covariance to pull at, in the plane as it is and whitened.
 *
 *     three handles: where it stands, and the end of each axis        two rings: as far as the nearest point, by each measure
 */

import { make, makeSvg, shown, spoken } from "./dom.js";
import { dragged } from "./drag.js";
import { Field, handleOf, nameText, put } from "./field.js";

const MEASURES = ["euclidean", "mahalanobis"];
const MEASURE_NAMES = /** @type {Record<string, string>} */ ({ euclidean: "Euclid", mahalanobis: "Mahalanobis" });
const CONTOURS = [1, 2, 3]; // distances that have a ring of their own
const SHORTEST = 0.01; // of the reach, as in ellipse.py
const BEYOND = 0.1; // of the reach: a handle stands as far beyond the end of its axis, where a finger finds it

/** @param {number} angle @param {number} length */
const along = (angle, length) => [Math.cos(angle) * length, Math.sin(angle) * length];

export class EllipseView {
  /** @param {HTMLElement} root @param {import("./held.js").Held} held @param {(text: string) => void} say */
  constructor(root, held, say) {
    Object.assign(this, { root, held, say });
    const { given } = held;
    this.field = new Field({ middle: given.mean, reach: given.reach, label: "A cloud of points, with an ellipse to drag" });
    this.white = new Field({ reach: 4, label: "The same cloud, whitened" });
    this.build();
    this.buildWhite();
    this.lines = Object.fromEntries(MEASURES.map((name) => [name, make("span", { class: "num" })]));
    const told = MEASURES.map((name) => make("p", { class: `nearest nearest-${name}` }, make("span", { class: "nearest-mark" }), make("span", { class: "nearest-name", text: MEASURE_NAMES[name] }), this.lines[name]));
    const choose = (/** @type {string} */ text, /** @type {() => any} */ at) => make("button", { type: "button", class: "quiet", text, onclick: () => (held.move(at()), this.end()) });
    const round = () => ({ spread: [Math.sqrt(held.at.spread[0] * held.at.spread[1])].flatMap((one) => [one, one]) });
    const buttons = make("div", { class: "ellipse-choices" }, choose("the cloud's own", () => given.own), choose("a circle", round));
    const figure = (/** @type {Field} */ { svg }, /** @type {string} */ text) => make("figure", {}, svg, make("figcaption", { class: "label", text }));
    root.append(make("div", { class: "ellipse" }, make("div", { class: "ellipse-fields" }, figure(this.field, "as it is"), figure(this.white, "whitened")),
      make("div", { class: "ellipse-told" }, make("div", { class: "nearest-both" }, ...told), buttons)));
    this.draw();
  }

  build() {
    const { given } = this.held, { field } = this;
    this.own = makeSvg("ellipse", { class: "own" });
    this.filled = makeSvg("ellipse", { class: "spread" });
    this.contours = CONTOURS.map(() => makeSvg("ellipse", { class: "contour" }));
    this.lanes = makeSvg("path", { class: "lanes" });
    this.rings = Object.fromEntries(MEASURES.map((name) => [name, makeSvg("ellipse", { class: `ring ring-${name}` })]));
    this.links = Object.fromEntries(MEASURES.map((name) => [name, makeSvg("path", { class: `near near-${name}` })]));
    this.dots = given.points.map((/** @type {number[]} */ one) => makeSvg("circle", { class: "dot", cx: field.at(one)[0], cy: field.at(one)[1], r: 3.4 }));
    const names = given.named ? given.points.map((/** @type {number[]} */ one, /** @type {number} */ at) => makeSvg("text", { class: "name name-point", x: field.at(one)[0] + 7, y: field.at(one)[1] - 6, text: nameText(given.labels[at]) })) : [];
    const [x, y] = field.at(given.mean), [a, b] = given.own.spread.map((/** @type {number} */ one) => field.far(one));
    put(this.own, { rx: a, ry: b, transform: this.placed([x, y], given.own.angle) });
    this.handles = [handleOf("query", "where the ellipse stands: arrow keys move it"), handleOf("first", "the end of the first axis: arrow keys turn and stretch it", "square"), handleOf("second", "the end of the second axis: arrow keys stretch it", "square")];
    field.svg.append(this.own, this.filled, ...this.contours, this.lanes, ...Object.values(this.rings), ...Object.values(this.links), ...this.dots, ...names, ...this.handles);
    const from = (/** @type {PointerEvent} */ event) => field.from(event), step = given.reach / 100, end = () => this.end();
    const ends = () => this.ends();
    dragged(this.handles[0], { from, where: () => this.held.at.query, move: (place) => this.held.move({ query: field.within(place) }), end, step });
    dragged(this.handles[1], { from, where: () => ends()[0], move: (place) => this.pull(0, place), end, step });
    dragged(this.handles[2], { from, where: () => ends()[1], move: (place) => this.pull(1, place), end, step });
  }

  buildWhite() {
    this.whiteDots = this.held.given.points.map(() => makeSvg("circle", { class: "dot", r: 3.4 }));
    this.whiteRings = Object.fromEntries(MEASURES.map((name) => [name, makeSvg("ellipse", { class: `ring ring-${name}` })]));
    this.whiteLinks = Object.fromEntries(MEASURES.map((name) => [name, makeSvg("path", { class: `near near-${name}` })]));
    this.whiteOne = makeSvg("circle", { class: "spread" });
    this.whiteQuery = makeSvg("circle", { class: "query-dot", r: 5 });
    this.white.svg.append(this.whiteOne, ...Object.values(this.whiteRings), ...Object.values(this.whiteLinks), ...this.whiteDots, this.whiteQuery);
  }

  /** Where the handles of the two axes stand. */
  ends() {
    const { query, angle, spread } = this.held.at, beyond = BEYOND * this.held.given.reach;
    return [along(angle, spread[0] + beyond), along(angle + Math.PI / 2, spread[1] + beyond)].map(([x, y]) => [query[0] + x, query[1] + y]);
  }

  /** The end of an axis is pulled: both turn with it, and it is as long as the hand says. @param {number} axis @param {number[]} place */
  pull(axis, place) {
    const { query, spread } = this.held.at, { reach } = this.held.given, [x, y] = [place[0] - query[0], place[1] - query[1]];
    const length = Math.max(SHORTEST * reach, Math.min(reach, Math.hypot(x, y) - BEYOND * reach));
    this.held.move({ angle: Math.atan2(y, x) - (axis ? Math.PI / 2 : 0), spread: axis ? [spread[0], length] : [length, spread[1]] });
  }

  end() {
    if (!this.held.still) return;
    this.held.back();
    this.say("`regard learn` moves this.");
  }

  /** @param {number[]} place of the picture @param {number} angle */
  placed([x, y], angle) {
    return `translate(${x.toFixed(2)} ${y.toFixed(2)}) rotate(${((-angle * 180) / Math.PI).toFixed(3)})`;
  }

  draw() {
    const { at, found, given } = this.held, { field } = this, place = field.at(at.query), [a, b] = at.spread.map((/** @type {number} */ one) => field.far(one));
    const ends = this.ends().map((one) => field.at(one)), here = this.placed(place, at.angle);
    put(this.filled, { rx: a, ry: b, transform: here });
    this.contours.forEach((/** @type {any} */ ring, /** @type {number} */ which) => put(ring, { rx: a * CONTOURS[which], ry: b * CONTOURS[which], transform: here }));
    put(this.lanes, { d: ends.map((end) => `M${place.join(" ")}L${end.join(" ")}`).join("") });
    [place, ...ends].forEach((one, which) => put(this.handles[which], { transform: `translate(${one.join(" ")})${which ? ` rotate(${(-at.angle * 180) / Math.PI})` : ""}` }));
    this.room([place, ...ends]);
    this.label(at, found);
    const [flat, tilted] = MEASURES.map((name) => found[name].distances[found[name].nearest]);
    put(this.rings.euclidean, { rx: field.far(flat), ry: field.far(flat), transform: here });
    put(this.rings.mahalanobis, { rx: a * tilted, ry: b * tilted, transform: here });
    for (const name of MEASURES) {
      const { nearest, distances } = found[name];
      put(this.links[name], { d: `M${place.join(" ")}L${field.at(given.points[nearest]).join(" ")}` });
      this.lines[name].textContent = `${given.named ? spoken(given.labels[nearest]) : `point ${given.labels[nearest]}`}, ${shown(distances[nearest], 3)} away`;
    }
    this.drawDots(this.dots);
    this.drawWhite(flat, tilted);
    this.say(found.euclidean.nearest === found.mahalanobis.nearest ? "Both measures agree on the nearest." : "They disagree: what is near depends on what counts as far.");
  }

  /** @param {any[]} dots */
  drawDots(dots) {
    for (const name of MEASURES) dots.forEach((dot, at) => dot.classList.toggle(`is-${name}`, at === this.held.found[name].nearest));
  }

  /** The second picture follows when its numbers have come: there the rings have changed places. @param {number} flat @param {number} tilted */
  drawWhite(flat, tilted) {
    const { found, at } = this.held, { white } = this;
    this.frame(Math.max(1, tilted));
    const [x, y] = white.at([0, 0]);
    this.whiteDots.forEach((/** @type {any} */ dot, /** @type {number} */ one) => {
      const [left, top] = white.at(found.whitened[one]);
      put(dot, { cx: left, cy: top });
    });
    put(this.whiteOne, { cx: x, cy: y, r: white.far(1) });
    put(this.whiteQuery, { cx: x, cy: y });
    const here = this.placed([x, y], at.angle);
    put(this.whiteRings.mahalanobis, { rx: white.far(tilted), ry: white.far(tilted), transform: here });
    put(this.whiteRings.euclidean, { rx: white.far(flat / at.spread[0]), ry: white.far(flat / at.spread[1]), transform: here });
    for (const name of MEASURES) put(this.whiteLinks[name], { d: `M${x} ${y}L${white.at(found.whitened[found[name].nearest]).join(" ")}` });
    this.drawDots(this.whiteDots);
  }

  /** The square around the whitened cloud and the circle. @param {number} circle */
  frame(circle) {
    const { white } = this, ends = [0, 1].map((axis) => {
      const all = this.held.found.whitened.map((/** @type {number[]} */ one) => one[axis]);
      return [Math.min(-circle, ...all), Math.max(circle, ...all)];
    });
    white.middle = ends.map(([least, most]) => (least + most) / 2);
    white.reach = 1.12 * Math.max(...ends.map(([least, most]) => (most - least) / 2));
  }

  /** No handle covers another, however near they are. @param {number[][]} places */
  room(places) {
    places.forEach(([x, y], which) => {
      const apart = places.filter((_, other) => other !== which).map(([left, top]) => Math.hypot(left - x, top - y));
      put(this.handles[which].firstChild, { r: Math.max(7, Math.min(24, ...apart.map((far) => far / 2))) });
    });
  }

  /** For those who listen. @param {any} at @param {any} found */
  label(at, found) {
    const told = MEASURES.map((name) => `${MEASURE_NAMES[name]} nearest ${this.held.given.labels[found[name].nearest]}`).join(", ");
    const values = [[at.query[0], `${shown(at.query[0])}, ${shown(at.query[1])}`], [at.spread[0], `length ${shown(at.spread[0])}`], [at.spread[1], `length ${shown(at.spread[1])}`]];
    values.forEach(([now, text], which) => put(this.handles[which], { "aria-valuenow": now, "aria-valuetext": `${text}; ${told}` }));
  }
}
