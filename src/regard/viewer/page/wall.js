/** All heads at once: rows are layers, columns are heads, each a small map; ranked by a measure where one is chosen. */

import { make, weightText } from "./dom.js";
import { measureList } from "./measures.js";
import { wallFilter } from "./search.js";

const THUMB = 48; // pixels of a small map, at most
const SMALLEST = 21; // CSS pixels of a cell before a layer takes two lines

/** From a byte 255·√w to the colour of w. @param {any} context @returns {Uint32Array} */
function thumbInks({ colour, state, theme }) {
  const ramp = new Uint32Array(colour.ramp(theme).buffer);
  return Uint32Array.from({ length: 256 }, (_, at) => ramp[Math.round(255 * colour.part((at / 255) ** 2, state.get("scale")))]);
}

/** @param {HTMLCanvasElement} canvas @param {Uint8Array} bytes @param {number} rows @param {number} columns @param {Uint32Array} inks */
function thumbPainted(canvas, bytes, rows, columns, inks) {
  canvas.width = columns;
  canvas.height = rows;
  const pixels = new Uint32Array(rows * columns);
  for (let at = 0; at < pixels.length; at++) pixels[at] = inks[bytes[at]];
  const image = new ImageData(new Uint8ClampedArray(pixels.buffer), columns, rows);
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  canvas.classList.add("here");
}

class Wall {
  /** @param {HTMLElement} element @param {any} context */
  constructor(element, context) {
    this.element = element;
    this.context = context;
    this.seen = new Set();
    this.measures = measureList(context, () => this.arrange());
    this.count = make("span", { class: "num faint" });
    this.search = make("input", {
      type: "search", class: "wall-search", placeholder: "find heads", spellcheck: "false", autocomplete: "off",
      "aria-label": "Find heads: 3.7, layer 3, previous, first > .5", title: "3.7 · layer 3 · previous · first > .5",
      oninput: () => context.state.set({ search: this.search.value }),
    });
    this.rows = make("div", { class: "wall-rows", role: "group", "aria-label": "Heads by layer" });
    this.ranked = make("div", { class: "wall-ranked", role: "group", "aria-label": "Heads by rank" });
    /** @type {any[][]} by layer, by head */
    this.cells = context.about.layers.map((/** @type {any} */ layer, /** @type {number} */ at) => this.row(layer, at));
    this.all = make("button", { class: "quiet wall-all", onclick: () => this.widen() });
    this.order = this.measures.chooser();
    const head = make("div", { class: "wall-head" }, make("h2", { class: "label", text: "Heads" }), this.count, this.order, this.search, this.all);
    element.append(head, this.rows, this.ranked, this.measures.element);
    this.watch();
    this.arrange();
    this.update(new Set(["layer", "hover"]));
  }

  /** @param {any} layer @param {number} at */
  row(layer, at) {
    const cells = layer.heads.map((/** @type {number} */ number, /** @type {number} */ head) => this.cell(at, head, number));
    const line = make("div", { class: "wall-row", "data-layer": at },
      make("span", { class: "wall-layer num", text: at, title: layer.name }), make("div", { class: "wall-cells" }, ...cells));
    this.rows.append(line);
    return cells;
  }

  /** @param {number} layer @param {number} head @param {number} number */
  cell(layer, head, number) {
    return make("button", {
      class: "wall-cell", tabindex: -1, "data-layer": layer, "data-head": head, "aria-label": `layer ${layer}, head ${number}`,
      title: `layer ${layer} · head ${number}`, onclick: () => this.context.state.set({ layer, head, over: "head" }),
    }, make("canvas", { width: 1, height: 1 }), make("span", { class: "wall-caption num" }));
  }

  /** Small maps and measures load when their layer comes into sight. */
  watch() {
    this.sight = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.bring(Number(/** @type {HTMLElement} */ (entry.target).dataset.layer));
    }, { rootMargin: "200px" });
    for (const row of this.rows.children) this.sight.observe(row);
    this.size = new ResizeObserver(() => this.fit());
    this.size.observe(this.element);
  }

  /** So many heads on a line that a cell stays large enough to see; a divisor of the heads where one does. */
  fit() {
    const room = (this.rows.clientWidth || this.element.clientWidth) - 28;
    for (const [at, row] of [...this.rows.children].entries()) {
      const heads = this.context.about.layers[at].heads.length;
      let columns = heads;
      while (columns > 1 && (room / columns < SMALLEST || heads % columns)) columns--;
      if (columns === 1 && heads > 1) columns = Math.max(1, Math.floor(room / SMALLEST));
      /** @type {HTMLElement} */ (row).style.setProperty("--columns", String(Math.min(heads, columns)));
    }
  }

  /** @param {number} layer */
  async bring(layer) {
    if (this.seen.has(layer)) return;
    this.seen.add(layer);
    await Promise.all([this.paint(layer), this.measures.bring(layer).then(() => this.captions())]).catch((error) => {
      if (error.name !== "AbortError") this.context.say(error.message);
    });
  }

  /** @param {number} layer */
  async paint(layer) {
    const { arrays } = await this.context.data.ask("thumbs", { layer, side: THUMB });
    const [heads, rows, columns] = arrays[0].shape;
    const inks = thumbInks(this.context);
    for (let head = 0; head < heads; head++) {
      const bytes = arrays[0].data.subarray(head * rows * columns, (head + 1) * rows * columns);
      thumbPainted(this.cells[layer][head].firstChild, bytes, rows, columns, inks);
    }
  }

  /** Every head, in the order of the model. */
  heads() {
    return this.cells.flatMap((cells, layer) => cells.map((cell, head) => ({ cell, layer, head })));
  }

  /** By the model, or by a measure: the same cells in another place. */
  async arrange() {
    const { sort, search } = this.context.state.values;
    this.element.classList.toggle("by-rank", sort !== "");
    if (sort || search) await Promise.all(this.cells.map((_, layer) => this.bring(layer)));
    const matches = wallFilter(search, this.context.about, this.measures);
    const heads = this.heads();
    let found = 0;
    for (const { cell, layer, head } of heads) {
      const match = matches(layer, head);
      found += Number(match);
      cell.classList.toggle("unmatched", !match);
    }
    this.count.textContent = search ? `${found} of ${heads.length}` : String(heads.length);
    if (sort) this.ranked.append(...heads.sort((a, b) => this.value(b) - this.value(a)).map(({ cell }) => cell));
    else this.cells.forEach((cells, layer) => this.rows.children[layer].lastChild?.append(...cells));
    this.captions();
    this.mark();
  }

  /** @param {{ layer: number, head: number }} head */
  value({ layer, head }) {
    return this.measures.value(layer, head, this.context.state.get("sort")) ?? -1;
  }

  captions() {
    const { sort } = this.context.state.values;
    for (const { cell, layer, head } of this.heads()) {
      const number = this.context.about.layers[layer].heads[head];
      const value = sort ? this.measures.value(layer, head, sort) : null;
      cell.lastChild.replaceChildren(`${layer}.${number}`, make("b", { text: value === null ? "" : weightText(value) }));
      const said = value === null ? this.measures.leading(layer, head) : `${sort} ${weightText(value)}`;
      cell.title = `layer ${layer} · head ${number}${said ? ` · ${said}` : ""}`;
      cell.setAttribute("aria-label", cell.title);
    }
  }

  mark() {
    const { layer, head } = this.context.state.values;
    for (const old of this.element.querySelectorAll(".wall-cell[aria-current]")) {
      old.removeAttribute("aria-current");
      old.setAttribute("tabindex", "-1");
    }
    const cell = this.cells[layer]?.[head];
    cell?.setAttribute("aria-current", "true");
    cell?.setAttribute("tabindex", "0");
    for (const row of this.rows.children) row.classList.toggle("chosen", row.dataset.layer === String(layer));
    this.measures.show(layer, head);
    this.all.textContent = this.element.classList.contains("wide") ? "one layer" : "all layers";
    if (cell) requestAnimationFrame(() => this.reveal(cell));
  }

  /** Scrolls the wall, and nothing else, to a head that is out of sight. @param {Element} cell */
  reveal(cell) {
    const box = cell.closest(".wall-rows, .wall-ranked");
    if (!box || box.scrollHeight <= box.clientHeight) return;
    const [inner, outer] = [cell.getBoundingClientRect(), box.getBoundingClientRect()];
    if (inner.top >= outer.top && inner.bottom <= outer.bottom) return;
    box.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
  }

  /** On a narrow page: one layer, or all of them. */
  widen() {
    this.element.classList.toggle("wide");
    this.mark();
  }

  /** A hairline through every small map at what is pointed at. */
  point() {
    const { hover, query, layer } = this.context.state.values;
    const at = hover ? hover.query : query;
    const length = this.context.data.layer(layer).queries;
    this.rows.parentElement.style.setProperty("--row", at === null ? "-1" : String((at + 0.5) / length));
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (changed.has("sort") || changed.has("search")) this.arrange();
    if (changed.has("search") && this.search.value !== this.context.state.get("search")) this.search.value = this.context.state.get("search");
    if (changed.has("theme") || changed.has("scale")) for (const layer of this.seen) this.paint(layer);
    if (changed.has("layer") || changed.has("head")) {
      this.mark();
      this.bring(this.context.state.get("layer"));
      this.cells[this.context.state.get("layer")]?.[this.context.state.get("head")]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    if (changed.has("hover") || changed.has("query") || changed.has("layer")) this.point();
  }

  free() {
    this.sight?.disconnect();
    this.size?.disconnect();
  }
}

/** @param {HTMLElement} element @param {any} context */
export function wallView(element, context) {
  return new Wall(element, context);
}
