/** The sentence: point at a token and see what it reads and who reads it, in this head, over heads, layer by layer. */

import { make, shown, spoken } from "./dom.js";
import { layerStrip } from "./layers.js";
import { Readings } from "./readings.js";
import { Running } from "./running.js";
import { Threads } from "./threads.js";
import { Weights, largest } from "./weights.js";

const THREADED = 40; // tokens up to which threads are drawn
const SCROLLED = 600; // tokens from which the text scrolls by itself, and what is said of it stays in sight

/** @param {any} context @returns {{ query: number | null, key: number | null }} what is pointed at, else what was chosen */
export function textSubject({ state, data }) {
  const { hover, query, layer } = state.values;
  if (hover) return { query: hover.query, key: data.square(layer) ? (hover.query ?? hover.key) : hover.key };
  return { query, key: data.square(layer) ? query : null };
}

class TextView {
  /** @param {HTMLElement} element @param {any} context */
  constructor(element, context) {
    this.element = element;
    this.context = context;
    this.weights = new Weights(context);
    element.classList.add("text-view");
    this.built = "";
    this.chosen = /** @type {number | null} */ (null);
  }

  /** The page of one pair of axes; built again only where the axes change. */
  build() {
    const { data, state } = this.context;
    const layer = state.get("layer");
    const [query, key] = [data.axis(layer, "query"), data.axis(layer, "key")];
    const name = `${data.batch} ${query.name} ${key.name}`;
    if (name === this.built) return;
    this.free();
    this.built = name;
    this.square = data.square(layer);
    /** @type {{ running: Running, side: "query" | "key" }[]} */
    this.texts = [];
    const sections = this.square ? [this.section("query", query, "")] : [this.section("query", query, "Queries"), this.section("key", key, "Keys")];
    const short = Math.max(query.length, key.length) <= THREADED;
    const left = make("section", { class: short ? "text-threads" : "text-readings" });
    const right = make("section", { class: "text-layers" });
    this.scrolled = Math.max(query.length, key.length) > SCROLLED;
    this.element.classList.toggle("scrolled", this.scrolled);
    this.element.replaceChildren(...sections, make("div", { class: short ? "text-below" : "text-below lists" }, left, right));
    this.pairs = short ? new Threads(left, this.context, query, key, this) : new Readings(left, this.context, query, key, this);
    this.strip = layerStrip(right, this.context);
  }

  /** @param {"query" | "key"} side @param {any} axis @param {string} title */
  section(side, axis, title) {
    const body = make("div", {
      tabindex: 0, role: "group", "aria-label": `${title || "Text"}: ${axis.length} tokens; arrow keys move`,
      onpointermove: (/** @type {PointerEvent} */ event) => event.pointerType !== "touch" && this.point(side, event),
      onpointerleave: () => this.context.state.set({ hover: null }),
      onclick: (/** @type {MouseEvent} */ event) => this.pick(side, event),
    });
    this.texts?.push({ running: new Running(body, this.context, axis), side });
    return make("section", { class: "text-section" }, title ? make("h2", { class: "label", text: title }) : null, body);
  }

  /** @param {Event} event @returns {number | null} */
  place(event) {
    const token = /** @type {Element} */ (event.target).closest("[data-at]");
    return token ? Number(/** @type {HTMLElement} */ (token).dataset.at) : null;
  }

  /** @param {"query" | "key"} side @param {Event} event */
  point(side, event) {
    const at = this.place(event);
    if (at === null) return; // between two tokens the last one stays
    this.context.state.set({ hover: side === "query" ? { query: at, key: null } : { query: null, key: at } });
  }

  /** A click chooses the query; with shift, and on keys, the key. @param {"query" | "key"} side @param {MouseEvent} event */
  pick(side, event) {
    const at = this.place(event);
    if (at !== null) this.choose(event.shiftKey || event.altKey ? "key" : side, at);
  }

  /** @param {"query" | "key"} side @param {number} at */
  choose(side, at) {
    const { state } = this.context;
    if (side === "key") return state.set({ key: at });
    const row = this.weights.row(at);
    state.set({ query: at, key: row ? (largest(row, 1)[0] ?? null) : null });
    this.chosen = row ? null : at;
  }

  /** The key that goes with a query that was chosen before its row came. */
  complete() {
    const { state } = this.context;
    const row = this.chosen === null ? null : this.weights.row(this.chosen);
    if (!row) return;
    if (state.get("query") === this.chosen && state.get("key") === null) state.set({ key: largest(row, 1)[0] ?? null }, { step: false });
    this.chosen = null;
  }

  /** Marks a token that a number elsewhere speaks of. @param {"query" | "key"} side @param {number | null} at */
  glance(side, at) {
    for (const text of this.texts ?? []) if (this.square || text.side === side) text.running.marked({ glanced: at });
  }

  show() {
    this.build();
    this.update(new Set(["layer", "query", "key", "theme"]));
  }

  hide() {
    this.weights.stop();
    this.context.state.set({ hover: null });
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (changed.has("layer") || changed.has("batch")) this.build();
    this.paint();
    const { query, key } = textSubject(this.context);
    const patient = this.scrolled && this.context.state.get("hover"); // a column of a long text is not asked in passing
    this.weights.bring(query, patient ? null : key).then(
      (came) => came && (this.complete(), this.paint()),
      (error) => this.context.say(error.message),
    );
    if (changed.has("query") && !this.context.state.get("hover") && query !== null) this.texts?.[0].running.reveal(query);
  }

  paint() {
    const { state } = this.context;
    const { query, key } = textSubject(this.context);
    const sense = state.get("sense");
    const reads = query === null || sense === "read" ? null : this.weights.row(query);
    const read = key === null || sense === "reads" ? null : this.weights.column(key);
    const top = this.scrolled && reads ? reads[largest(reads, 1)[0]] || 1 : 1;
    if (top < 1) this.context.say(`The deepest colour is the largest weight, ${shown(top)}.`);
    for (const { running, side } of this.texts ?? []) {
      running.paint(this.square || side === "key" ? reads : null, this.square || side === "query" ? read : null, top);
      const pointed = side === "query" ? query : key;
      running.marked({ query: this.square || side === "query" ? state.get("query") : null, key: this.square || side === "key" ? state.get("key") : null, pointed });
    }
    this.pairs?.paint(query, key, reads, read);
    this.strip?.paint(query);
  }

  /** One line about what is pointed at, for those who listen. @param {number} query */
  spokenRow(query) {
    const { data, state } = this.context;
    const row = this.weights.row(query);
    const layer = data.layer(state.get("layer"));
    const name = (/** @type {string} */ axis, /** @type {number} */ at) => spoken(data.label(axis, at) ?? String(at));
    if (!row) return name(layer.query, query);
    const first = largest(row, 3).map((at) => `${name(layer.key, at)} ${row[at].toFixed(2)}`);
    return `${name(layer.query, query)} reads ${first.join(", ")}`;
  }

  free() {
    this.weights.stop();
    for (const { running } of this.texts ?? []) running.free();
    this.strip?.free();
  }
}

/** @param {HTMLElement} element @param {any} context */
export function textView(element, context) {
  return new TextView(element, context);
}
