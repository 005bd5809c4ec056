/**
 * The image with its patches: point at one, and its row is painted over the image, or who reads it.
 *
 *   cover of a patch = depth of its weight, against the largest of another patch; special tokens stand beside the image
 *
 * Of both ways at once, what is read is painted and who reads is dotted.
 */

import { TokenChips } from "./chips.js";
import { eachFrame, make, spoken, weightText } from "./dom.js";
import { choiceOf } from "./mapbar.js";
import { lookOf, sharpened } from "./mapdraw.js";
import { Patches, laidOver, ringAround } from "./patches.js";
import { ImageStrip } from "./strip.js";
import { Rollout } from "./rollout.js";
import { Weights } from "./weights.js";

const EDGES = [["exact", "patches", "one colour for each patch"], ["smooth", "smooth", "colours run between patches"]];
const WAYS = [["layer", "this layer", "the weights of the layer"], ["rollout", "rollout", "what comes through all layers"]];
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** @param {HTMLElement} element @param {any} context */
export function imageView(element, context) {
  return new ImageView(element, context);
}

class ImageView {
  constructor(element, context) {
    Object.assign(this, { element, context, data: context.data, state: context.state, photo: null, shownNow: false, smooth: false });
    this.weights = new Weights(context);
    this.draw = eachFrame(() => this.frame());
    this.rollout = new Rollout(context.data, () => this.draw());
    this.strip = new ImageStrip(context, () => this.draw());
    this.build();
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(element);
    this.load();
  }

  build() {
    this.edges = choiceOf("edges", EDGES, (name) => { this.smooth = name === "smooth"; this.draw(); });
    this.ways = choiceOf("layers", WAYS, (name) => this.rollout.switched(name === "rollout"));
    this.base = make("canvas", { class: "image-base" });
    const point = (event) => this.point(event), leave = () => this.state.set({ hover: null });
    this.over = make("canvas", { class: "image-over", tabindex: 0, role: "img", "aria-label": "the image; arrow keys choose a patch",
      onpointermove: point, onpointerdown: point, onpointerleave: leave, onclick: (event) => this.choose(event) });
    this.chips = new TokenChips(this.context);
    this.told = make("p", { class: "map-told num" });
    this.frameBox = make("div", { class: "image-frame" }, this.base, this.over);
    const bar = make("div", { class: "map-bar" }, this.edges.element, this.ways.element, this.rollout.element);
    this.stage = make("div", { class: "image-stage" }, this.frameBox);
    this.element.append(make("div", { class: "image" }, bar, this.chips.element, this.stage, this.told, this.strip.element));
  }

  async load() {
    if (!this.context.about.image) return;
    const { meta, arrays } = await this.data.ask("image").catch(() => ({ arrays: [] }));
    if (!arrays.length) return;
    this.photo = await createImageBitmap(new Blob([arrays[0].data], { type: meta.type ?? "image/png" }));
    this.draw();
  }

  show() {
    this.shownNow = true;
    this.draw();
  }

  hide() {
    this.shownNow = false;
    this.weights.stop();
    this.rollout.rest();
    this.strip.rest();
  }

  free() {
    this.hide();
    this.watcher.disconnect();
  }

  update() {
    this.draw();
  }

  get sense() {
    return this.state.get("sense") === "read" ? "read" : "reads";
  }

  /** The axis one points along and the axis that is painted. */
  sides() {
    const layer = this.state.get("layer"), [query, key] = [this.data.axis(layer, "query"), this.data.axis(layer, "key")];
    return this.sense === "reads" ? { from: query, onto: key } : { from: key, onto: query };
  }

  /** The place whose row or column is painted: pointed at, else chosen, else the first. */
  place() {
    const name = this.sense === "reads" ? "query" : "key";
    return this.state.get("hover")?.[name] ?? this.state.get(name) ?? 0;
  }

  painted(place) {
    if (this.rollout.on) return this.rollout.of(place, this.state.get("over"));
    const reads = this.sense === "reads", found = reads ? this.weights.row(place) : this.weights.column(place);
    this.weights.bring(reads ? place : null, reads ? null : place).then((came) => came && this.draw(), () => {});
    return found;
  }

  frame() {
    if (!this.shownNow || !this.element.clientWidth) return;
    const { from, onto } = this.sides(), place = this.place(), found = this.painted(place), weights = found ?? this.last;
    this.last = weights;
    this.press();
    if (!onto.grid) return this.say("these places are not patches of an image");
    this.patches = new Patches(onto);
    this.pointers = from.grid ? (from === onto ? this.patches : new Patches(from)) : null;
    this.most = weights ? this.patches.most(weights, place) : 1;
    this.chips.show(from, place, { weights: from.name === onto.name ? found : null, most: this.most, side: this.sense === "reads" ? "query" : "key" });
    this.drawImage(place, weights);
    this.strip.show(this.patches, place, this.sense, this.photo, this.smooth);
    this.say(this.rollout.problem ?? this.words(from, onto, place, found), Boolean(this.rollout.problem));
  }

  press() {
    this.edges.press(this.smooth ? "smooth" : "exact");
    this.ways.press(this.rollout.on ? "rollout" : "layer");
  }

  drawImage(place, weights) {
    const { width, height } = this.fit(), under = this.base.getContext("2d"), over = this.over.getContext("2d");
    const ratio = sharpened(this.over, width, height);
    sharpened(this.base, width, height);
    if (this.photo) under.drawImage(this.photo, 0, 0, this.base.width, this.base.height);
    over.setTransform(ratio, 0, 0, ratio, 0, 0);
    over.clearRect(0, 0, width, height);
    if (weights) this.overlay(over, place, weights, width, height);
    this.rings(over, place, width, height);
  }

  /** The frame as large as there is room, in the shape of the image. */
  fit() {
    const { rows, columns } = this.patches, shape = this.photo ? this.photo.width / this.photo.height : columns / rows;
    const width = Math.max(80, Math.min(this.stage.clientWidth, this.room() * shape)), size = { width, height: width / shape };
    for (const [name, value] of Object.entries(size)) this.frameBox.style.setProperty(name, `${value}px`);
    return size;
  }

  overlay(over, place, weights, width, height) {
    const { theme, colour, root } = this.context, { scale, sense, layer } = this.state.values;
    laidOver(over, this.patches.painted(weights, colour.ramp(theme), scale, this.most), width, height, this.smooth);
    const both = sense === "both" && !this.rollout.on && this.data.square(layer), readers = both ? this.readers(place) : null;
    const dotted = getComputedStyle(root).getPropertyValue("--accent2");
    if (readers) this.patches.dots(over, readers, width, height, scale, this.patches.most(readers, place), dotted);
  }

  /** Around the pointed patch, light and dark so that it is seen on any image; around the other of the pair, the accent. */
  rings(over, place, width, height) {
    const other = this.state.get(this.sense === "reads" ? "key" : "query"), { paper, accent } = lookOf(this.context.root);
    const seen = [["rgba(0, 0, 0, 0.75)", 3], ["rgba(255, 255, 255, 0.95)", 1.5]];
    if (other !== null && !this.state.get("hover")) ringAround(over, this.patches, other, width, height, [[paper, 3.5], [accent, 2]]);
    if (this.pointers) ringAround(over, this.pointers, place, width, height, seen);
  }

  readers(place) {
    this.weights.bring(null, place).then((came) => came && this.draw(), () => {});
    return this.weights.column(place);
  }

  /** The height that is left for the image. */
  room() {
    const others = [...this.stage.parentElement.children].filter((child) => child !== this.stage && child.offsetHeight);
    return Math.max(120, this.element.clientHeight - others.reduce((sum, child) => sum + child.offsetHeight + 8, 0));
  }

  under(event) {
    const box = this.over.getBoundingClientRect();
    return this.pointers?.placeAt((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height) ?? null;
  }

  point(event) {
    const place = this.under(event);
    if (place !== null) this.state.set({ hover: { query: null, key: null, [this.sense === "reads" ? "query" : "key"]: place } });
  }

  /** The first click chooses whose row is painted; a click with shift the other side of the pair. */
  choose(event) {
    const place = this.under(event), other = event.shiftKey === (this.sense === "reads");
    if (place !== null) this.state.set({ [other ? "key" : "query"]: place });
    this.over.focus({ preventScroll: true });
  }

  key(event) {
    const move = ARROWS[event.key];
    if (!move || !this.pointers || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
    const name = this.sense === "reads" ? "query" : "key";
    this.state.set({ [name]: this.pointers.beside(this.state.get(name) ?? 0, ...move), hover: null }, { step: false });
    return true;
  }

  words(from, onto, place, weights) {
    if (!weights) return "…";
    let best = 0;
    for (let at = 1; at < weights.length; at += 1) if (weights[at] > weights[best]) best = at;
    const label = (axis, at) => {
      const spot = axis.grid && new Patches(axis).spot(at);
      return spot ? `patch ${spot.row}, ${spot.column}` : spoken(this.data.label(axis.name, at) ?? String(at));
    };
    const verb = this.rollout.on ? "receives most from" : this.sense === "reads" ? "reads most" : "is read most by";
    return `${label(from, place)} ${verb} ${label(onto, best)}    ${weightText(weights[best])}`;
  }

  say(words, wrong = false) {
    if (this.told.textContent !== words) this.told.textContent = words;
    this.told.classList.toggle("wrong", wrong);
  }

  async picture() {
    this.frame();
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    Object.assign(canvas, { width: this.over.width, height: this.over.height });
    context.fillStyle = getComputedStyle(this.context.root).getPropertyValue("--paper");
    context.fillRect(0, 0, canvas.width, canvas.height);
    Object.assign(context, { filter: "grayscale(0.5)", globalAlpha: 0.6 });
    context.drawImage(this.base, 0, 0);
    Object.assign(context, { filter: "none", globalAlpha: 1 });
    context.drawImage(this.over, 0, 0);
    return { canvas };
  }
}
