/** Two columns, queries and keys, and a thread for each weight between them. */

import { make, makeSvg, spoken, weightText } from "./dom.js";

const ROW = 26; // CSS pixels of a line
const WIDE = 100; // units across, stretched to the room there is
const THIN = 0.1; // parts of the scale below which a thread is not drawn

/** @param {number} from @param {number} to */
const threadPath = (from, to) => {
  const [a, b] = [(from + 0.5) * ROW, (to + 0.5) * ROW];
  return `M0 ${a}C${WIDE * 0.45} ${a} ${WIDE * 0.55} ${b} ${WIDE} ${b}`;
};

export class Threads {
  /** @param {HTMLElement} element @param {any} context @param {any} queries @param {any} keys @param {any} view */
  constructor(element, context, queries, keys, view) {
    this.context = context;
    this.view = view;
    this.sides = { query: this.column("query", queries), key: this.column("key", keys) };
    const height = ROW * Math.max(queries.length, keys.length);
    /** @type {any[][]} by query, by key */
    this.paths = Array.from({ length: queries.length }, (_, from) =>
      Array.from({ length: keys.length }, (_, to) => makeSvg("path", { d: threadPath(from, to), "vector-effect": "non-scaling-stroke" })));
    this.svg = makeSvg("svg", { viewBox: `0 0 ${WIDE} ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true" }, ...this.paths.flat());
    element.append(
      make("div", { class: "threads-head" }, make("h2", { class: "label", text: "reads" }), make("h2", { class: "label", text: "is read" })),
      make("div", { class: "threads" }, this.sides.query.element, this.svg, this.sides.key.element));
  }

  /** @param {"query" | "key"} side @param {any} axis */
  column(side, axis) {
    const { data, state } = this.context;
    const lines = Array.from({ length: axis.length }, (_, at) => {
      const label = spoken(data.label(axis.name, at) ?? String(at));
      const name = make("span", { class: axis.special.has(at) ? "token special" : "token", text: label });
      return { name, number: make("span", { class: "num" }), at };
    });
    const point = (/** @type {PointerEvent} */ event) => event.pointerType !== "touch" && this.view.point(side, event);
    const element = make("div", { class: `threads-${side}`, onpointermove: point, onpointerleave: () => state.set({ hover: null }),
      onclick: (/** @type {Event} */ event) => this.view.place(event) !== null && this.view.choose(side, this.view.place(event)) },
      ...lines.map(({ name, number, at }) => make("div", { "data-at": at }, ...(side === "query" ? [number, name] : [name, number]))));
    return { element, lines };
  }

  /** @param {number | null} query @param {number | null} key @param {ArrayLike<number> | null} reads @param {ArrayLike<number> | null} read */
  paint(query, key, reads, read) {
    const { state, data } = this.context;
    this.lines("key", reads, "reads", data.square(state.get("layer")) && query === null ? key : state.get("key"));
    this.lines("query", read, "read", query);
    for (let from = 0; from < this.paths.length; from++) {
      const row = this.view.weights.row(from);
      for (let to = 0; to < this.paths[from].length; to++) this.thread(this.paths[from][to], row?.[to] ?? 0, from === query && !!reads, to === key && !!read);
    }
  }

  /** @param {any} path @param {number} weight @param {boolean} reads @param {boolean} read */
  thread(path, weight, reads, read) {
    const { colour, state } = this.context;
    const part = colour.part(weight, state.get("scale"));
    const drawn = part > (reads || read ? UNSEEN_THREAD : THIN);
    path.style.display = drawn ? "" : "none";
    if (!drawn) return;
    path.setAttribute("class", reads ? "reads" : read ? "read" : "");
    path.style.strokeWidth = `${(0.4 + (reads || read ? 3.2 : 1.4) * part).toFixed(2)}px`;
    path.style.strokeOpacity = reads || read ? (0.25 + 0.75 * part).toFixed(2) : (0.14 * part).toFixed(3);
  }

  /** @param {"query" | "key"} side @param {ArrayLike<number> | null} weights @param {string} sense @param {number | null} marked */
  lines(side, weights, sense, marked) {
    const { colour, state, theme } = this.context;
    for (const { name, number, at } of this.sides[side].lines) {
      const part = weights ? colour.part(weights[at], state.get("scale")) : 0;
      number.textContent = weights && weights[at] >= 0.005 ? weightText(weights[at]) : "";
      if (sense === "reads") {
        name.style.backgroundColor = part > 0.02 ? colour.css(theme, part) : "";
        name.style.color = part > 0.02 ? colour.ink(theme, part) : "";
      } else name.style.setProperty("--under", `${Math.round(100 * part)}%`);
      name.classList.toggle(side === "query" ? "is-query" : "is-key", at === marked);
    }
  }
}

const UNSEEN_THREAD = 0.03;
