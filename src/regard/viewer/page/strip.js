/** The same patch in every layer: small images, one for each, and the way from layer to layer. */

import { make } from "./dom.js";
import { sharpened } from "./mapdraw.js";
import { laidOver } from "./patches.js";
import { overHeads } from "./weights.js";

const SIDE = 56;
const STILL_MS = 90;

export class ImageStrip {
  /** @param {any} context @param {() => void} changed */
  constructor(context, changed) {
    Object.assign(this, { context, changed, timer: 0, flight: null });
    const { layers } = context.about;
    this.layers = layers.map((_, layer) => layer).filter((layer) => context.data.axis(layer, "key").grid);
    this.boxes = this.layers.map((layer) => this.box(layer, layers[layer].name));
    this.element = make("div", { class: "strip", role: "group", "aria-label": "layers" }, ...(this.layers.length > 1 ? this.boxes : []));
  }

  box(layer, name) {
    const pick = () => this.context.state.set({ layer });
    return make("button", { class: "strip-layer", type: "button", title: name, onclick: pick }, make("canvas"), make("span", { class: "num", text: layer }));
  }

  /** Paints every layer's row (or column) of a place; asks for it once one stays there. */
  show(patches, place, sense, image, smooth) {
    if (this.layers.length < 2) return;
    const question = sense === "reads" ? ["row", { query: place }] : ["column", { key: place }];
    const packet = this.context.data.now(...question) ?? this.packet;
    this.packet = packet;
    if (!this.context.data.now(...question)) this.later(question);
    this.layers.forEach((layer, at) => this.paint(layer, this.boxes[at], packet, patches, place, image, smooth));
  }

  later(question) {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      this.flight?.abort();
      this.flight = new AbortController();
      await this.context.data.ask(...question, { signal: this.flight.signal }).then(this.changed, () => {});
    }, STILL_MS);
  }

  paint(layer, box, packet, patches, place, image, smooth) {
    const { state, theme, colour } = this.context, canvas = box.firstChild, shape = image ? image.width / image.height : patches.columns / patches.rows;
    const [width, height] = shape > 1 ? [SIDE * Math.min(shape, 1.6), SIDE * Math.min(shape, 1.6) / shape] : [SIDE * shape, SIDE];
    const ratio = sharpened(canvas, width, height), context = canvas.getContext("2d");
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${height}px`);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.globalAlpha = 0.4;
    if (image) context.drawImage(image, 0, 0, width, height);
    context.globalAlpha = 1;
    box.setAttribute("aria-pressed", String(layer === state.get("layer")));
    const line = packet?.arrays[packet.meta.layers.indexOf(layer)];
    if (!line || line.shape[1] < patches.places.length) return;
    const over = state.get("over"), head = Math.min(state.get("head"), line.shape[0] - 1);
    const weights = overHeads(line.data, line.shape[1], head, over);
    laidOver(context, patches.painted(weights, colour.ramp(theme), state.get("scale"), patches.most(weights, place)), width, height, smooth);
  }

  rest() {
    clearTimeout(this.timer);
    this.flight?.abort();
  }
}
