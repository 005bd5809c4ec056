/**
 * Three small maps side by side: the layer's own weights, those under another formula, and other − own.
 *
 *   of a long input they are the coarsest tile, and the difference is that of the means
 */

import { make, weightText } from "./dom.js";
import { headTiles } from "./map.js";
import { lookOf, sharpened } from "./mapdraw.js";
import { colourTable, paintedValues } from "./mappaint.js";

const NAMES = ["own", "what if", "change"];

export class ThreeMaps {
  /** @param {any} context @param {() => void} changed */
  constructor(context, changed) {
    Object.assign(this, { context, changed, caches: new Map(), painted: [], size: 0 });
    const leave = () => context.state.set({ hover: null });
    const does = { onpointermove: (event) => this.point(event), onpointerleave: leave, onclick: (event) => this.choose(event) };
    this.canvases = NAMES.map((name) => make("canvas", { class: "three-map", role: "img", "aria-label": `weights: ${name}`, ...does }));
    this.numbers = NAMES.map(() => make("span", { class: "num" }));
    const caption = (name, at) => make("figcaption", {}, make("span", { class: "label", text: name }), this.numbers[at]);
    const figures = NAMES.map((name, at) => make("figure", {}, this.canvases[at], caption(name, at)));
    this.element = make("div", { class: "three" }, ...figures);
  }

  cache(formula) {
    const { state, data } = this.context, [batch, layer, head] = ["batch", "layer", "head"].map((name) => state.get(name));
    const name = JSON.stringify([batch, layer, head, formula]);
    if (!this.caches.has(name)) {
      this.caches.set(name, headTiles(data, { layer, head, formula }, this.changed));
      if (this.caches.size > 8) this.drop(this.caches.keys().next().value);
    }
    return this.caches.get(name);
  }

  drop(name) {
    this.caches.get(name).rest();
    this.caches.delete(name);
  }

  /** Shows the layer's own formula beside another; what has not come yet keeps its last picture. */
  show(formula) {
    const [own, other] = [this.cache(""), this.cache(formula)], place = { level: own.top, row: 0, column: 0 };
    for (const cache of this.caches.values()) if (cache !== own && cache !== other) cache.rest();
    own.want([place]);
    other.want([place]);
    const [before, after] = [own.tile(place), other.tile(place)];
    this.grid = { rows: own.rows, columns: own.columns, cells: 2 ** own.top };
    if (before && after) this.paint(before, after);
    this.problem = other.problem ?? own.problem;
    this.draw();
  }

  paint(before, after) {
    const { theme, colour, state } = this.context, scale = state.get("scale");
    if (this.of?.[0] === before && this.of[1] === after && this.of[2] === theme + scale) return;
    this.of = [before, after, theme + scale];
    const apart = after.planes[1].map((value, at) => value - before.planes[1][at]);
    const most = apart.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) || 1;
    const top = Math.max(before.top[0], after.top[0]) || 1, even = { table: colourTable(colour.ramp(theme)), scale, top, signed: false };
    const sided = { table: colourTable(colour.difference(theme)), scale: scale === "log" ? "root" : "linear", top: most, signed: true };
    this.values = [before.planes[0], after.planes[0], apart];
    this.shape = [before.rows, before.columns];
    this.painted = [[0, even], [1, even], [2, sided]].map(([at, paint]) => paintedValues(this.values[at], ...this.shape, paint));
  }

  draw() {
    const width = this.canvases[0].clientWidth;
    if (!width || !this.grid) return;
    const { rows, columns } = this.grid, height = Math.max(16, Math.min(1.4 * width, (width * rows) / columns));
    const pair = this.pair(), look = lookOf(this.context.root);
    this.canvases.forEach((canvas, at) => {
      canvas.style.setProperty("height", `${height}px`);
      const ratio = sharpened(canvas, width, height), context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.imageSmoothingEnabled = columns / this.grid.cells > width * ratio;
      if (this.painted[at]) context.drawImage(this.painted[at], 0, 0, width, height);
      if (pair) this.mark(context, pair, width, height, look.accent);
      this.numbers[at].textContent = pair ? this.told(at, pair) : "";
    });
  }

  pair() {
    const { state } = this.context, hover = state.get("hover"), both = (one) => one && one.query !== null && one.key !== null;
    const pair = both(hover) ? hover : { query: state.get("query"), key: state.get("key") };
    return both(pair) && pair.query < this.grid.rows && pair.key < this.grid.columns ? pair : null;
  }

  mark(context, { query, key }, width, height, accent) {
    const wide = width / this.grid.columns, high = height / this.grid.rows, size = Math.max(4, wide, high);
    context.strokeStyle = accent;
    context.lineWidth = 1.25;
    context.strokeRect((key + 0.5) * wide - size / 2, (query + 0.5) * high - size / 2, size, size);
  }

  told(at, { query, key }) {
    if (!this.values) return "";
    const { cells } = this.grid, value = this.values[at][Math.floor(query / cells) * this.shape[1] + Math.floor(key / cells)];
    return (at === 2 && value > 0 ? "+" : "") + weightText(value);
  }

  under(event) {
    const box = event.currentTarget.getBoundingClientRect(), { rows, columns } = this.grid;
    const query = Math.floor(((event.clientY - box.top) / box.height) * rows), key = Math.floor(((event.clientX - box.left) / box.width) * columns);
    return { query: Math.max(0, Math.min(rows - 1, query)), key: Math.max(0, Math.min(columns - 1, key)) };
  }

  point(event) {
    if (this.grid) this.context.state.set({ hover: this.under(event) });
  }

  choose(event) {
    if (this.grid) this.context.state.set(this.under(event));
  }

  rest() {
    for (const cache of this.caches.values()) cache.rest();
  }
}
