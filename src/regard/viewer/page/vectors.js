/** Vectors as strips of bars: q, k and what each dimension adds, one under the other, so that a dimension is a column. */

import { make, makeSvg, shown } from "./dom.js";

const TALL = 30; // units of a strip, half above zero
const ACROSS = 100;

/** One path for all bars of a strip. @param {(number | null)[]} values @param {number} largestSize @param {number} sign */
function barsPath(values, largestSize, sign) {
  const wide = ACROSS / values.length;
  const gap = values.length > 80 ? 0 : wide * 0.18;
  let path = "";
  values.forEach((value, at) => {
    if (value === null || value * sign <= 0) return;
    const tall = (Math.abs(value) / largestSize) * (TALL / 2 - 1);
    const top = value > 0 ? TALL / 2 - tall : TALL / 2;
    path += `M${(at * wide + gap / 2).toFixed(3)} ${top.toFixed(2)}h${(wide - gap).toFixed(3)}v${tall.toFixed(2)}h${(gap - wide).toFixed(3)}z`;
  });
  return path;
}

/** @param {(number | null)[]} values */
const sizeOf = (values) => values.reduce((/** @type {number} */ most, value) => Math.max(most, Math.abs(value ?? 0)), 1e-12);

class Vectors {
  constructor() {
    this.line = make("p", { class: "vector-line num", "aria-live": "off" });
    this.strips = make("div", { class: "vector-strips" });
    this.element = make("div", { class: "vectors", onpointermove: (/** @type {any} */ event) => this.point(event), onpointerleave: () => this.mark(null) }, this.strips, this.line);
    /** @type {any} */
    this.pair = null;
  }

  /** @param {any} pair */
  show(pair) {
    this.pair = pair;
    const given = [["q", "q", pair.q, "the query"], ["k", "k", pair.k, "the key"]];
    if (pair.products) given.push(["products", pair.pairs?.[0]?.name ?? "q·k", pair.products, "what each dimension adds"]);
    this.strips.replaceChildren(...given.map(([name, letter, values, says]) => this.strip(name, letter, values, says)));
    this.mark(null);
  }

  /** @param {string} name @param {string} letter @param {(number | null)[]} values @param {string} says */
  strip(name, letter, values, says) {
    const size = sizeOf(values);
    const svg = makeSvg("svg", { viewBox: `0 0 ${ACROSS} ${TALL}`, preserveAspectRatio: "none", role: "img", "aria-label": `${says}: ${values.length} numbers up to ${shown(size)}` },
      makeSvg("rect", { class: "vector-mark", y: 0, height: TALL, width: ACROSS / values.length, x: -ACROSS }),
      makeSvg("path", { class: "more", d: barsPath(values, size, 1) }),
      makeSvg("path", { class: "less", d: barsPath(values, size, -1) }),
      makeSvg("line", { x1: 0, x2: ACROSS, y1: TALL / 2, y2: TALL / 2, "vector-effect": "non-scaling-stroke" }));
    return make("div", { class: "vector", "data-name": name, title: says }, make("span", { class: "vector-name", text: letter }), svg, make("span", { class: "num faint", text: `±${shown(size, 2)}` }));
  }

  /** @param {PointerEvent} event */
  point(event) {
    const svg = this.strips.querySelector("svg");
    if (!svg || !this.pair) return;
    const box = svg.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * this.pair.q.length);
    this.mark(at >= 0 && at < this.pair.q.length ? at : null);
  }

  /** @param {number | null} at a dimension */
  mark(at) {
    const { q, k, products } = this.pair ?? {};
    for (const svg of this.strips.querySelectorAll("svg")) {
      const rect = svg.firstElementChild;
      rect.setAttribute("x", at === null ? -ACROSS : Number(rect.getAttribute("width")) * at);
    }
    this.line.replaceChildren();
    if (!this.pair) return;
    if (at === null) this.line.append(make("span", { class: "faint", text: `${q.length} dimensions` }));
    else {
      const added = products ? [" adds ", make("b", { text: shown(products[at]) })] : [];
      this.line.append(make("span", { class: "faint", text: `dimension ${at}: ` }), `q ${shown(q[at])}, k ${shown(k[at] ?? NaN)}`, ...added);
    }
  }
}

export function vectorStrips() {
  return new Vectors();
}
