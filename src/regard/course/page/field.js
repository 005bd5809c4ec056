/** A square of the plane: places in and out, and the hairlines of its axes. */

import { makeSvg, spoken } from "./dom.js";

const FIELD_SIDE = 400; // units across; the square is as large as there is room

const LONGEST = 14; // letters of a name in a picture

/** A token as a picture names it: not too long. @param {string} label */
export function nameText(label) {
  const text = spoken(label);
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/** Attributes, set again. @param {Element} element @param {Record<string, any>} given */
export function put(element, given) {
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, typeof value === "number" ? value.toFixed(2) : value);
}

export class Field {
  /** @param {{ middle?: number[], reach: number, label: string }} given */
  constructor({ middle = [0, 0], reach, label }) {
    this.middle = middle;
    this.reach = reach;
    this.svg = makeSvg("svg", { class: "field", viewBox: `0 0 ${FIELD_SIDE} ${FIELD_SIDE}`, role: "group", "aria-label": label });
  }

  /** From the plane to the picture. @param {number[]} place */
  at([x, y]) {
    return [this.far(x - this.middle[0]) + FIELD_SIDE / 2, FIELD_SIDE / 2 - this.far(y - this.middle[1])];
  }

  /** @param {number} length */
  far(length) {
    return (length / this.reach) * (FIELD_SIDE / 2);
  }

  /** From the pointer to the plane. @param {PointerEvent} event @returns {number[]} */
  from(event) {
    const box = this.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
    return [this.middle[0] + (2 * x - 1) * this.reach, this.middle[1] + (1 - 2 * y) * this.reach];
  }

  /** A place within what is seen. @param {number[]} place */
  within(place) {
    return place.map((one, at) => Math.max(this.middle[at] - this.reach, Math.min(this.middle[at] + this.reach, one)));
  }

  /** The two axes through 0, with a tick at each whole step. */
  axes() {
    const [x, y] = this.at([0, 0]), step = tickStep(this.reach), group = makeSvg("g", { class: "field-axes", "aria-hidden": "true" });
    group.append(makeSvg("path", { d: `M0 ${y}H${FIELD_SIDE}M${x} 0V${FIELD_SIDE}` }));
    for (let at = -Math.floor(this.reach / step); at * step <= this.reach; at++) {
      const [across, up] = this.at([at * step, at * step]);
      if (at) group.append(makeSvg("path", { d: `M${across} ${y - 3}v6M${x - 3} ${up}h6` }));
    }
    const [one] = this.at([step, 0]);
    group.append(makeSvg("text", { x: one, y: y + 15, "text-anchor": "middle", text: String(step) }));
    return group;
  }
}

/** A round step that leaves two to five ticks on each side. @param {number} reach */
function tickStep(reach) {
  const ten = 10 ** Math.floor(Math.log10(reach / 2));
  return [1, 2, 5].map((many) => many * ten).findLast((step) => reach / step >= 2) ?? ten;
}

/** An arrow from one place of the picture to another, its head drawn along. @param {number[]} from @param {number[]} to @param {number} [short] left free before the end */
export function arrowPath([x, y], [to, up], short = 0) {
  const length = Math.hypot(to - x, up - y);
  if (length < short + 8) return "";
  const [across, down] = [(to - x) / length, (up - y) / length], [endX, endY] = [to - across * short, up - down * short];
  const side = (/** @type {number} */ way) => `${(endX - 8 * across + way * 3.6 * down).toFixed(2)} ${(endY - 8 * down - way * 3.6 * across).toFixed(2)}`;
  return `M${x.toFixed(2)} ${y.toFixed(2)}L${endX.toFixed(2)} ${endY.toFixed(2)}M${side(1)}L${endX.toFixed(2)} ${endY.toFixed(2)}L${side(-1)}`;
}

/** A handle: a ring that is seen, and the larger one that a finger finds. @param {string} name @param {string} label @param {string} [shape] */
export function handleOf(name, label, shape = "ring") {
  const group = makeSvg("g", { class: `handle handle-${name}`, tabindex: 0, role: "slider", "aria-label": label, "aria-valuenow": 0, "aria-valuetext": "" });
  const seen = shape === "ring" ? makeSvg("circle", { class: "handle-seen", r: 8 }) : makeSvg("rect", { class: "handle-seen", x: -6, y: -6, width: 12, height: 12, rx: 2 });
  group.append(makeSvg("circle", { class: "handle-room", r: 24 }), seen);
  return group;
}
