/**
 * What if the formula were another: its text checked as one types, its numbers turned, a classic mistake made, and both
 * maps with their difference on the same q and k.
 *
 *   base (typed, or the layer's own) + changes (sliders, a mistake) → the formula that every view follows
 */

import { Dials, Mistakes } from "./dials.js";
import { ThreeMaps } from "./difference.js";
import { eachFrame, make, mathNode, shown, spoken } from "./dom.js";

const TYPING = 250;
const TURNING = 40;

/** @param {HTMLElement} element @param {any} context */
export function whatIf(element, context) {
  return new WhatIf(element, context);
}

class WhatIf {
  constructor(element, context) {
    Object.assign(this, { element, context, state: context.state, data: context.data });
    this.base = context.state.get("formula") || null;
    this.changes = {};
    this.draw = eachFrame(() => this.frame());
    this.dials = new Dials((name, value) => this.change(name, value));
    this.mistakes = new Mistakes((name) => this.change("mistake", name));
    this.maps = new ThreeMaps(context, () => this.draw());
    this.build();
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(element);
    this.begin();
    if (context.source.still) this.rest();
    else this.ask(0);
  }

  /** A page that came alone has nobody to ask. */
  rest() {
    for (const part of [this.field, this.dials.element, this.mistakes.element]) part.hidden = true;
    this.math.replaceChildren(make("p", { class: "faint", text: "To try another formula on the same vectors, open the lens itself: regard lens --open FOLDER, or lens.serve()." }));
    this.ask = () => {};
  }

  /** The layer's own formula, before the first answer. */
  begin() {
    const { formula } = this.data.layer(this.state.get("layer"));
    this.field.value = this.base ?? formula;
    if (!this.base) this.math.replaceChildren(mathNode(this.context.about.mathml[formula]));
  }

  build() {
    const plain = { spellcheck: "false", autocapitalize: "off", autocomplete: "off" };
    this.field = make("textarea", { class: "formula-field", rows: 2, ...plain, "aria-label": "formula", oninput: () => this.typed() });
    this.wrong = make("p", { class: "formula-wrong", role: "status" });
    this.math = make("div", { class: "formula-math" });
    this.back = make("button", { class: "quiet", type: "button", text: "reset", hidden: true, onclick: () => this.reset() });
    this.numbers = make("dl", { class: "change num" });
    this.rows = make("ol", { class: "change-rows" });
    this.shift = make("div", { class: "shift", hidden: true }, this.maps.element, this.numbers, make("h3", { class: "label", text: "most changed" }), this.rows);
    this.element.append(make("div", { class: "whatif" },
      make("header", {}, make("h2", { class: "label", text: "what if" }), this.back),
      this.math, this.field, this.wrong, this.dials.element, this.mistakes.element, this.shift));
  }

  free() {
    clearTimeout(this.timer);
    this.flight?.abort();
    this.watcher.disconnect();
    this.maps.rest();
  }

  update(changed) {
    const formula = this.state.get("formula");
    if (changed.has("formula") && formula !== this.sent) {
      this.base = formula || null;
      this.changes = {};
      this.ask(0);
    } else if (["layer", "head", "batch"].some((name) => changed.has(name))) this.ask(0);
    if (["hover", "query", "key", "scale", "theme", "formula"].some((name) => changed.has(name))) this.draw();
  }

  /** A typed formula stands for itself: what was turned before is in it, or gone. */
  typed() {
    this.base = this.field.value.trim() || null;
    this.changes = {};
    this.ask(TYPING);
  }

  change(name, value) {
    const { [name]: _, ...others } = this.changes;
    this.changes = value === null ? others : { ...others, [name]: value };
    this.ask(TURNING);
  }

  reset() {
    this.base = null;
    this.changes = {};
    this.ask(0);
  }

  /** Asks once the hand has paused; only the latest question counts. */
  ask(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetch(), pause);
  }

  async fetch() {
    this.flight?.abort();
    this.flight = new AbortController();
    const { signal } = this.flight, changes = Object.keys(this.changes).length ? JSON.stringify(this.changes) : null;
    const layer = this.state.get("layer"), formula = this.base ?? this.data.layer(layer).formula;
    const options = { layer, head: this.state.get("head"), formula, changes };
    try {
      const { meta } = await this.data.ask("whatif", options, { signal });
      if (!signal.aborted) this.answered(meta);
    } catch (error) {
      if (!signal.aborted) this.answered({ ok: false, error: error.message, at: null });
    }
  }

  answered(meta) {
    const own = this.data.layer(this.state.get("layer")).formula;
    this.showWrong(meta);
    if (!meta.ok) return this.back.toggleAttribute("hidden", !this.base && !Object.keys(this.changes).length);
    this.meta = meta;
    const same = meta.text === (meta.own ?? own);
    if (!this.field.matches(":focus") || Object.keys(this.changes).length) this.field.value = meta.text;
    this.math.replaceChildren(mathNode(meta.mathml));
    this.dials.show(meta.sliders ?? []);
    this.mistakes.show(meta.mistakes ?? [], this.changes.mistake ?? null);
    this.sent = same ? "" : meta.text;
    this.state.set({ formula: this.sent });
    this.back.toggleAttribute("hidden", same);
    this.showChange(meta.change, !same);
    this.draw();
  }

  /** The reason under the field, with the place where reading stopped. */
  showWrong({ ok, error, at }) {
    this.field.setAttribute("aria-invalid", String(!ok));
    if (ok) return this.wrong.replaceChildren();
    const text = this.field.value, from = Math.max(0, (at ?? 0) - 14);
    const known = at !== null && at !== undefined, mark = known && make("mark", { text: text[at] ?? " " });
    this.wrong.replaceChildren(...(known ? [make("code", {}, text.slice(from, at), mark, text.slice(at + 1, at + 15)), " "] : []), error);
  }

  showChange(change, on) {
    this.shift.toggleAttribute("hidden", !on || !change);
    if (!on || !change) return;
    const share = (value) => (value === null || value === undefined ? null : `${shown(100 * value, 3)} %`);
    const weights = make("dd", { text: share(change.weights) ?? "–", title: "mean over rows of ½ Σ |w′ − w|" });
    const output = make("dd", { text: share(change.output) ?? "values were not kept", title: "‖y′ − y‖ / ‖y‖" });
    this.numbers.replaceChildren(make("dt", { text: "weights moved" }), weights, make("dt", { text: "output changed" }), output,
      ...(change.exact === false ? [make("dt", { class: "sampled", text: "from an even sample of rows" })] : []));
    this.rows.replaceChildren(...change.rows.map((row) => this.row(row)));
  }

  row({ row, change }) {
    const axis = this.data.axis(this.state.get("layer"), "query"), label = this.data.label(axis.name, row);
    const bar = make("span", { class: "change-bar" }), go = () => this.state.set({ query: row });
    bar.style.setProperty("--share", String(Math.min(1, change ?? 0)));
    const hover = (query) => this.state.set({ hover: query === null ? null : { query, key: null } });
    const does = { onclick: go, onpointerenter: () => hover(row), onpointerleave: () => hover(null) };
    const token = make("span", { class: "change-token", text: label === null ? "" : spoken(label) });
    return make("li", {}, make("button", { class: "quiet", type: "button", ...does },
      make("span", { class: "change-place num", text: row }), token, bar, make("span", { class: "num", text: shown(change, 2) })));
  }

  frame() {
    const formula = this.state.get("formula");
    if (!formula || !this.element.clientWidth || this.shift.hasAttribute("hidden")) return this.maps.rest();
    this.maps.show(formula);
  }
}
