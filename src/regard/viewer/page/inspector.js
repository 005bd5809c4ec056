/**
 * One number explained: the weight of one pair, from the two vectors to what its value adds.
 *
 * Each number can be pointed at; what it comes from is marked, back to the vectors.
 */

import { grouped, make, mathNode, shown, spoken } from "./dom.js";
import { vectorStrips } from "./vectors.js";
import { largest } from "./weights.js";

/** @param {number} count */
const ordinal = (count) => `${grouped(count)}${["th", "st", "nd", "rd"][count % 100 > 10 && count % 100 < 14 ? 0 : count % 10] ?? "th"}`;

/** @param {number | boolean | null} value */
const stepValue = (value) => (value === true ? "✓" : value === false ? "✕" : value === null ? "–" : shown(value, 4));

class Inspector {
  /** @param {HTMLElement} element @param {any} context */
  constructor(element, context) {
    this.context = context;
    this.vectors = vectorStrips();
    this.name = make("h2", { class: "label" });
    this.title = make("div", { class: "pair-title" });
    this.formula = make("div", { class: "pair-formula", tabindex: 0, role: "img", "aria-label": "formula" });
    this.ladder = make("ol", { class: "ladder" });
    this.adds = make("div", { class: "pair-adds" });
    this.body = make("div", { class: "pair-body" }, this.formula, this.vectors.element, this.ladder, this.adds);
    this.element = element;
    element.append(this.name, this.title, this.body);
    this.update(new Set(["query"]));
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (["query", "key", "layer", "head", "batch", "formula"].some((name) => changed.has(name))) this.ask();
  }

  async ask() {
    const { layer, head, query, key, formula } = this.context.state.values;
    this.control?.abort();
    this.name.textContent = `One weight, layer ${layer}, head ${this.context.data.layer(layer).heads[head]}`;
    this.body.hidden = query === null || key === null;
    if (this.body.hidden) return this.title.replaceChildren(make("p", { class: "faint", text: "Choose a token, then one that it reads." }));
    this.control = new AbortController();
    try {
      const { meta } = await this.context.data.ask("pair", { layer, head, query, key, formula }, { signal: this.control.signal });
      this.show(meta);
    } catch (error) {
      if (/** @type {Error} */ (error).name === "AbortError") return;
      this.body.hidden = true;
      this.title.replaceChildren(make("p", { class: "refused", text: /** @type {Error} */ (error).message }));
    }
  }

  /** @param {any} pair */
  show(pair) {
    this.pair = pair;
    const word = (/** @type {string} */ text, /** @type {string} */ kind) => make("span", { class: `token ${kind}`, text: spoken(String(text)) });
    const keys = this.context.data.layer(pair.layer).keys;
    const rank = pair.rank === null ? "" : pair.rank === 0 ? `the most of ${grouped(keys)} keys` : `${ordinal(pair.rank + 1)} of ${grouped(keys)} keys`;
    this.title.replaceChildren(
      make("p", { class: "pair-words" }, word(pair.labels.query, "is-query"), make("span", { class: "faint", text: " reads " }), word(pair.labels.key, "is-key")),
      make("p", { class: "pair-weight" }, this.total(pair), make("span", { class: "faint", text: pair.admitted ? rank : "forbidden by the mask" })));
    this.formula.replaceChildren(mathNode(pair.mathml));
    this.formula.setAttribute("aria-label", `formula ${pair.formula ?? ""}`);
    this.vectors.show(pair);
    this.ladder.replaceChildren(...pair.steps.map((/** @type {any} */ step) => this.rung(step)));
    this.adds.replaceChildren(...this.added(pair));
  }

  /** The weight itself, which comes from the last steps. @param {any} pair */
  total(pair) {
    const mark = () => this.sources(pair.steps.find((/** @type {any} */ { name }) => name === "weight"));
    return make("b", { class: "num", text: shown(pair.weight, 4), onpointerenter: mark, onpointerleave: () => this.sources(null) });
  }

  /** @param {any} step */
  rung(step) {
    const mark = () => this.sources(step);
    const truth = typeof step.value === "boolean";
    return make("li", { class: "rung", tabindex: 0, "data-name": step.name, onpointerenter: mark, onfocus: mark, onpointerleave: () => this.sources(null), onblur: () => this.sources(null) },
      make("div", { class: "rung-math" }, mathNode(step.mathml)),
      make("output", { class: truth ? "num truth" : "num", text: stepValue(step.value) }),
      make("p", { class: "rung-says", text: step.says }));
  }

  /** Marks what a number comes from. @param {any | null} step */
  sources(step) {
    const wanted = new Set(step?.from ?? []);
    if (step && this.pair.pairs?.some((/** @type {any} */ { name }) => name === step.name)) ["q", "k", "products"].forEach((name) => wanted.add(name));
    for (const element of this.element.querySelectorAll("[data-name]")) {
      element.classList.toggle("source", wanted.has(element.dataset.name));
      element.classList.toggle("asked", element.dataset.name === step?.name);
    }
    this.element.classList.toggle("asking", wanted.size > 0);
  }

  /** What the value adds to the output. @param {any} pair */
  added({ value }) {
    if (!value) return [];
    const number = (/** @type {string} */ name, /** @type {number} */ what, /** @type {string} */ says) =>
      make("div", { title: says }, make("dd", { class: "num", text: shown(what) }), make("dt", { text: name }));
    return [
      make("h2", { class: "label", text: "What its value adds" }),
      make("dl", {},
        number("length of v", value.norm, "‖v‖"),
        number("share of the output", value.share, "‖w v‖ / ‖y‖"),
        number("along the output", value.cosine, "cosine between w v and y")),
    ];
  }

  free() {
    this.control?.abort();
  }
}

/** @param {HTMLElement} element @param {any} context */
export function inspectorView(element, context) {
  return new Inspector(element, context);
}

const WORD = /[\p{L}\p{N}]{2}/u;

/** Are both words, or neither known to be something else. @param {any} data @param {number} layer @param {number} query @param {number} key */
const word = (data, layer, query, key) =>
  WORD.test(data.label(data.layer(layer).query, query) ?? "no label") && WORD.test(data.label(data.layer(layer).key, key) ?? "no label");

/** Of a long text: an early token, and what it reads most. @param {any} data @param {number} layer @param {number} head */
async function firstOfRow(data, layer, head) {
  const { queries, keys } = data.layer(layer);
  const query = Math.min(queries - 1, 40);
  const { arrays } = await data.ask("row", { query, layers: [layer] });
  const row = arrays[0].data.subarray(head * keys, (head + 1) * keys);
  return { query, key: largest(row, 1)[0] };
}

/** A pair worth looking at first: the largest weight between two tokens that are not special and not the same place. @param {any} context @returns {Promise<any>} */
export async function firstPair({ data, state }) {
  const { layer, head } = state.values;
  if (!data.small(layer)) return firstOfRow(data, layer, head);
  const { arrays } = await data.ask("matrix", data.small(layer, true) ? { layer } : { layer, head });
  const [heads, queries, keys] = arrays[0].shape;
  const [special, square] = [[data.axis(layer, "query").special, data.axis(layer, "key").special], data.square(layer)];
  const from = (heads > 1 ? head : 0) * queries * keys;
  const found = [{ pair: null, weight: 0 }, { pair: null, weight: 0 }]; // of words, of any
  for (let query = 0; query < queries; query++)
    for (let key = 0; key < keys; key++) {
      const weight = arrays[0].data[from + query * keys + key];
      if (special[0].has(query) || special[1].has(key) || (square && query === key)) continue;
      const kind = weight > found[0].weight && word(data, layer, query, key) ? 0 : 1;
      if (weight > found[kind].weight) found[kind] = { pair: { query, key }, weight };
    }
  return found[0].pair ?? found[1].pair;
}
