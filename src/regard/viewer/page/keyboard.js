/** Keys of the page; the view that is shown is asked first. */

import { make } from "./dom.js";
import { largest } from "./weights.js";

/** What the help shows. */
const KEYS = [
  ["← →", "the token; on the map, the key"],
  ["↑ ↓", "a key with more, with less weight; on the map, the query"],
  ["shift ← →", "the key, place by place"],
  ["[ ]", "the head"],
  ["{ }", "the layer"],
  ["t m i", "text, map, image"],
  ["h a x", "this head, mean, maximum over heads"],
  ["l", "the scale: root, log, linear"],
  ["/", "find heads"],
  ["d", "dark or light"],
  ["+ − 0", "zoom the map"],
  ["esc", "let go"],
];

/** @param {number} value @param {number} count */
const around = (value, count) => ((value % count) + count) % count;
/** @param {number} value @param {number} count */
const keptIn = (value, count) => Math.max(0, Math.min(count - 1, value));

class Keys {
  /** @param {any} context @param {any} page */
  constructor(context, page) {
    this.context = context;
    this.page = page;
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (target.closest?.("input, textarea, select, [contenteditable], dialog")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (this.page.current()?.key?.(event) || this.act(event)) event.preventDefault();
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the key means something */
  act(event) {
    const { state } = this.context;
    const { head, view } = state.values;
    const quietly = { step: false };
    const acts = /** @type {Record<string, () => void>} */ ({
      "[": () => this.head(-1),
      "]": () => this.head(1),
      "{": () => this.layer(-1),
      "}": () => this.layer(1),
      t: () => state.set({ view: "text" }),
      m: () => state.set({ view: "map" }),
      i: () => this.page.views.includes("image") && state.set({ view: "image" }),
      h: () => state.set({ over: "head" }),
      a: () => state.set({ over: "mean" }),
      x: () => state.set({ over: "max" }),
      l: () => state.set({ scale: /** @type {any} */ ({ root: "log", log: "linear", linear: "root" })[state.get("scale")] }),
      d: () => state.set({ theme: this.context.theme === "dark" ? "light" : "dark" }),
      "/": () => this.page.search(),
      "?": () => this.page.help(),
      Escape: () => state.set({ hover: null, query: null, key: null }, quietly),
    });
    if (event.key.startsWith("Arrow")) return this.arrow(event.key.slice(5), event.shiftKey, view === "map");
    if (!(event.key in acts) || head < 0) return false;
    acts[event.key]();
    return true;
  }

  /** @param {string} way @param {boolean} shift @param {boolean} map */
  arrow(way, shift, map) {
    const by = way === "Left" || way === "Up" ? -1 : 1;
    const level = way === "Left" || way === "Right";
    if (map) this.place(level ? "key" : "query", by);
    else if (!level) this.rank(by);
    else this.place(shift ? "key" : "query", by);
    return true;
  }

  /** @param {"query" | "key"} side @param {number} by */
  place(side, by) {
    const { state, data } = this.context;
    const { queries, keys } = data.layer(state.get("layer"));
    const now = state.get(side);
    const count = side === "query" ? queries : keys;
    state.set({ [side]: now === null ? (by > 0 ? 0 : count - 1) : keptIn(now + by, count), hover: null }, { step: false });
    this.page.spoken();
  }

  /** The next key by weight. @param {number} by */
  rank(by) {
    const { state } = this.context;
    const { query, key } = state.values;
    const row = query === null ? null : this.page.row(query);
    if (!row) return;
    const order = largest(row, Math.min(row.length, 256));
    const at = key === null ? -1 : order.indexOf(key);
    state.set({ key: order[keptIn(at + by, order.length)], hover: null }, { step: false });
  }

  /** @param {number} by */
  head(by) {
    const { state, about } = this.context;
    const { layer, head } = state.values;
    state.set({ head: around(head + by, about.layers[layer].heads.length), over: "head" }, { step: false });
  }

  /** @param {number} by */
  layer(by) {
    const { state, about } = this.context;
    const layer = around(state.get("layer") + by, about.layers.length);
    state.set({ layer, head: keptIn(state.get("head"), about.layers[layer].heads.length) }, { step: false });
  }
}

/** @param {any} context @param {any} page @returns {(event: KeyboardEvent) => void} */
export function keyboard(context, page) {
  const keys = new Keys(context, page);
  return (event) => keys.press(event);
}

/** @returns {HTMLDialogElement} */
export function helpDialog() {
  const dialog = make("dialog", { class: "help", "aria-label": "Keys and help", onclick: (/** @type {Event} */ event) => event.target === dialog && dialog.close() },
    make("h2", { class: "label", text: "Reading" }),
    make("p", {}, "Point at a token. ", make("span", { class: "swatch reads", text: "Colour behind" }), " a token: it is read. ", make("span", { class: "swatch read", text: "A line under" }), " a token: it reads the one that is pointed at. A click keeps a token; shift and a click chooses the other half of the pair."),
    make("h2", { class: "label", text: "Keys" }),
    make("dl", {}, ...KEYS.flatMap(([keys, says]) => [make("dt", { text: keys }), make("dd", { text: says })])),
    make("form", { method: "dialog" }, make("button", { class: "quiet", text: "close" })));
  return dialog;
}
