/** What each head does, as numbers; the names are also the ways to rank the wall. */

import { make, weightText } from "./dom.js";

/** @typedef {{ name: string, what: string }} Measure */

class Measures {
  /** @param {any} context @param {() => void} came */
  constructor(context, came) {
    this.context = context;
    this.came = came;
    /** @type {Measure[]} */
    this.names = [];
    /** @type {Map<number, { names: Measure[], values: Float32Array }>} by layer: (heads × measures); layers may differ in what suits them */
    this.found = new Map();
    this.list = make("ul", { class: "measures" });
    this.title = make("h2", { class: "label" });
    this.element = make("section", { class: "measures-of" }, this.title, this.list);
  }

  /** The ways to rank as one field. */
  chooser() {
    this.order = make("select", { class: "quiet wall-order", "aria-label": "Order of the heads", onchange: () => this.context.state.set({ sort: this.order.value }) });
    this.orders();
    return this.order;
  }

  orders() {
    const { state } = this.context;
    const names = ["", ...this.names.map(({ name }) => name)];
    this.order?.replaceChildren(...names.map((name) => make("option", { value: name, text: name || "by layer", selected: name === state.get("sort") })));
  }

  /** @param {number} layer */
  async bring(layer) {
    if (this.found.has(layer)) return;
    const { meta, arrays } = await this.context.data.ask("measures", { layer });
    this.found.set(layer, { names: meta.names, values: /** @type {Float32Array} */ (arrays[0].data) });
    const fresh = meta.names.filter((/** @type {Measure} */ { name }) => !this.names.some((known) => known.name === name));
    if (fresh.length) this.build([...this.names, ...fresh]);
    this.show(this.context.state.get("layer"), this.context.state.get("head"));
  }

  /** @param {Measure[]} names */
  build(names) {
    this.names = names;
    this.orders();
    this.list.replaceChildren(
      ...names.map(({ name, what }) =>
        make("li", {},
          make("button", { class: "measure", title: `${what}; rank the heads by it`, "data-name": name, "aria-pressed": "false", onclick: () => this.rank(name) },
            make("span", { class: "measure-name", text: name }), make("span", { class: "measure-bar" }), make("span", { class: "num" }))),
      ),
    );
  }

  /** @param {string} name */
  rank(name) {
    const { state } = this.context;
    state.set({ sort: state.get("sort") === name ? "" : name });
  }

  /** @param {number} layer @param {number} head @param {string} name @returns {number | null} */
  value(layer, head, name) {
    const { names, values } = this.found.get(layer) ?? { names: [], values: [] };
    const at = names.findIndex((measure) => measure.name === name);
    const value = values[head * names.length + at];
    return at < 0 || value === undefined || Number.isNaN(value) ? null : value;
  }

  /** The measure that says most about a head. @param {number} layer @param {number} head */
  leading(layer, head) {
    let best = "";
    let most = 0.25;
    for (const { name } of this.names) {
      const value = this.value(layer, head, name) ?? 0;
      if (value > most) [best, most] = [name, value];
    }
    return best && `${best} ${weightText(most)}`;
  }

  /** The numbers of one head. @param {number} layer @param {number} head */
  show(layer, head) {
    const number = this.context.about.layers[layer]?.heads[head];
    this.title.textContent = `Layer ${layer}, head ${number}`;
    if (this.order) this.order.value = this.context.state.get("sort");
    for (const row of this.list.children) {
      const button = row.firstElementChild;
      const value = this.value(layer, head, button.dataset.name);
      button.setAttribute("aria-pressed", String(this.context.state.get("sort") === button.dataset.name));
      button.lastChild.textContent = value === null ? "–" : weightText(value);
      button.children[1].style.setProperty("--part", String(Math.max(0, Math.min(1, value ?? 0))));
    }
  }
}

/** @param {any} context @param {() => void} came */
export function measureList(context, came) {
  return new Measures(context, came);
}
