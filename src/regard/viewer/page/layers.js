/** Layer by layer: where the weight of one token goes, over all heads; one thin strip for each layer. */

import { make, shown, spoken, weightText } from "./dom.js";
import { largest, overHeads, rowOverHeads } from "./weights.js";

const LONG_ROW = 600; // keys from which the deepest colour is the largest weight, as in the text
const AT_ONCE = 2 ** 21; // weights of one token in all layers that may travel while pointing

class LayerStrip {
  /** @param {HTMLElement} element @param {any} context */
  constructor(element, context) {
    this.context = context;
    this.query = /** @type {number | null} */ (null);
    this.asked = /** @type {number | null} */ (null);
    this.title = make("h2", { class: "label" });
    this.rows = context.about.layers.map((/** @type {any} */ layer, /** @type {number} */ at) => this.row(layer, at));
    element.append(this.title, ...this.rows.map((/** @type {any} */ { element: row }) => row));
    this.width = 0; // of a strip, in the screen's own pixels: asking for it while drawing would lay the page out again
    this.size = new ResizeObserver(() => {
      this.width = Math.round((this.rows[0]?.canvas.clientWidth ?? 0) * devicePixelRatio);
      this.draw();
    });
    this.size.observe(element);
  }

  /** @param {any} layer @param {number} at */
  row(layer, at) {
    const canvas = make("canvas", { class: "layer-strip" });
    const [name, number] = [make("span", { class: "layer-top" }), make("span", { class: "num" })];
    const element = make("button", { class: "layer-row", title: layer.name, "aria-label": `layer ${at}`, onclick: () => this.context.state.set({ layer: at }) },
      make("span", { class: "num faint", text: at }), canvas, number, name);
    return { element, canvas, name, number };
  }

  /** May the weights of one token in all layers travel at once. */
  light() {
    const { layers } = this.context.about;
    return layers.reduce((/** @type {number} */ sum, /** @type {any} */ { heads, keys }) => sum + heads.length * keys, 0) <= AT_ONCE;
  }

  /** @param {number | null} query */
  paint(query) {
    const { over, layer, hover } = this.context.state.values;
    this.title.textContent = over === "max" ? "Layer by layer, maximum over heads" : "Layer by layer, mean over heads";
    this.rows.forEach((/** @type {any} */ { element }, /** @type {number} */ at) => element.setAttribute("aria-pressed", String(at === layer)));
    this.query = query;
    if (query !== null && query !== this.asked && (this.light() || !hover)) this.bring(query);
    this.draw();
  }

  /** @param {number} query */
  async bring(query) {
    this.asked = query;
    this.control?.abort();
    this.control = new AbortController();
    const { signal } = this.control;
    for (const [question, options] of this.wanted(query)) {
      await this.context.data.ask(question, options, { signal }).catch(() => null);
      if (signal.aborted) return;
      this.draw();
    }
  }

  /** Answers that are embedded hold matrices; a server is asked for what is pointed at. @param {number} query @returns {[string, any][]} */
  wanted(query) {
    if (!this.context.source.still && this.light()) return [["row", { query }]];
    return this.rows.map((/** @type {any} */ _, /** @type {number} */ layer) =>
      this.context.source.still ? ["matrix", { layer }] : ["row", { query, layers: [layer] }]);
  }

  /** @param {number} layer @returns {Float32Array | null} */
  weights(layer) {
    if (this.query === null) return null;
    const { data, state } = this.context;
    const over = state.get("over") === "max" ? "max" : "mean";
    const { keys, queries } = data.layer(layer);
    const whole = this.query < queries ? data.matrixNow(layer) : null;
    if (whole) return rowOverHeads(whole, data.layer(layer), this.query, over);
    const line = data.rowNow(layer, this.query) ?? data.now("row", { query: this.query, layers: [layer] })?.arrays[0]?.data;
    return line ? overHeads(line, keys, 0, over) : null;
  }

  draw() {
    this.rows.forEach((/** @type {any} */ row, /** @type {number} */ layer) => this.drawRow(row, layer, this.weights(layer)));
  }

  /** @param {any} row @param {number} layer @param {Float32Array | null} weights */
  drawRow({ canvas, name, number }, layer, weights) {
    const { data, state, colour, theme } = this.context;
    const { width } = this;
    if (!width) return;
    if (canvas.width !== width) [canvas.width, canvas.height] = [width, 1];
    const ramp = new Uint32Array(colour.ramp(theme).buffer);
    const pixels = new Uint32Array(width).fill(ramp[0]);
    const [best] = weights ? largest(weights, 1) : [];
    const top = weights && weights.length > LONG_ROW ? weights[best] || 1 : 1;
    if (weights) for (let x = 0; x < width; x++) pixels[x] = ramp[Math.round(255 * colour.part(most(weights, x, width) / top, state.get("scale")))];
    canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, 1), 0, 0);
    const label = weights ? data.label(data.layer(layer).key, best) : "";
    if (label === null) data.labels(data.layer(layer).key, best, best + 1).then(() => this.draw(), () => null);
    name.textContent = label === null ? "…" : label && spoken(label);
    number.textContent = weights ? (weights[best] < 0.0005 ? shown(weights[best], 1) : weightText(weights[best])) : "";
  }

  free() {
    this.size.disconnect();
    this.control?.abort();
  }
}

/** The largest weight that a pixel covers. @param {Float32Array} weights @param {number} x @param {number} width */
function most(weights, x, width) {
  const from = Math.floor((x * weights.length) / width);
  const to = Math.max(from + 1, Math.floor(((x + 1) * weights.length) / width));
  let found = 0;
  for (let at = from; at < to; at++) if (weights[at] > found) found = weights[at];
  return found;
}

/** @param {HTMLElement} element @param {any} context */
export function layerStrip(element, context) {
  return new LayerStrip(element, context);
}
