/**
 * The page of one lens after another, inside one element.
 *
 *     mount(element, source, { lens, lenses, live, state, link, whole })
 *
 * lenses: what else can be opened; live: what the model that is there can look at; link: where the state is kept
 * (the address of a page; nowhere in a notebook); whole: the element is the window, and keys are the document's.
 */

import { viewBar } from "./bar.js";
import { colour } from "./colour.js";
import { Data } from "./data.js";
import { make } from "./dom.js";
import { exportMenu } from "./export.js";
import { headerView } from "./header.js";
import { imageView } from "./image.js";
import { firstPair, inspectorView } from "./inspector.js";
import { helpDialog, keyboard } from "./keyboard.js";
import { mapView } from "./map.js";
import { BLANK, State } from "./state.js";
import { textView } from "./text.js";
import { wallView } from "./wall.js";
import { whatIf } from "./whatif.js";

const THEME = "regard-theme";

/** @returns {any} what was chosen last; a page that may keep nothing chooses anew */
function keptTheme() {
  try {
    return localStorage.getItem(THEME) ?? "";
  } catch {
    return "";
  }
}

/** @param {any} values @param {any} about @returns {any} the values, each within what there is */
function settled(values, about) {
  const within = (/** @type {number | null} */ at, /** @type {number} */ count) => (at === null ? null : Math.max(0, Math.min(at, count - 1)));
  const layer = within(values.layer, about.layers.length) ?? 0;
  const { heads, queries, keys } = about.layers[layer];
  const views = about.image ? ["image", "map", "text"] : ["text", "map"];
  const view = views.includes(values.view) ? values.view : views[0];
  return { layer, view, batch: within(values.batch, about.batches ?? 1), head: within(values.head, heads.length), query: within(values.query, queries), key: within(values.key, keys) };
}

class App {
  /** @param {HTMLElement} element @param {any} options */
  constructor(element, options) {
    this.root = element;
    this.options = options;
    this.state = new State({ ...options.state, lens: options.lens ?? "", theme: keptTheme() });
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.gone = new AbortController();
    /** @type {any[]} */
    this.steady = [];
    /** @type {Record<string, any>} */
    this.views = {};
    element.classList.add("regard");
    this.dark.addEventListener("change", () => this.state.tellOf("theme"), { signal: this.gone.signal });
    this.state.on((changed) => this.update(changed));
    this.unlink = options.link?.on(() => this.follow(options.link.read()));
    const keys = options.whole ? element.ownerDocument : element;
    keys.addEventListener("keydown", (/** @type {any} */ event) => this.keys?.(event), { signal: this.gone.signal });
  }

  /** Goes where a link or the browser's history says, at once: the parts of another lens must not see it. @param {any} values */
  follow(values) {
    this.options.state = values;
    this.state.set({ ...BLANK, theme: this.state.get("theme"), lens: this.state.get("lens"), ...values }, { step: false });
    this.state.tell();
  }

  get theme() {
    return this.state.get("theme") || (this.dark.matches ? "dark" : "light");
  }

  /** @param {any} source */
  async open(source) {
    this.source = source;
    this.root.dataset.theme = this.theme;
    const { meta: about } = await source.ask("about");
    if (this.source !== source) return; // another lens was chosen meanwhile
    this.free();
    if (!about.layers.length) return this.root.replaceChildren(make("p", { class: "failed", text: `${about.title}: no attention was captured.` }));
    this.about = about;
    const given = ["layer", "head", "query", "key"].some((name) => Number.isInteger(this.options.state?.[name]));
    if (!given) this.state.set(about.begin ?? {}, { step: false });
    const sense = this.options.state?.sense ?? (about.image ? "reads" : BLANK.sense); // over an image two are too much
    this.state.set({ ...settled(this.state.values, about), sense }, { step: false });
    this.context = this.made(source, about);
    this.build();
    if (this.options.whole) document.title = `${about.title} · regard`;
    this.options.state = undefined; // a link says where to begin once; a lens that is chosen begins where it shows something
    if (this.state.get("query") === null) this.first();
  }

  /** @param {any} source @param {any} about */
  made(source, about) {
    const app = this;
    const data = new Data(source, about);
    data.batch = this.state.get("batch");
    const say = (/** @type {string} */ text) => this.line && (this.line.textContent = text);
    return { source, about, state: this.state, data, colour, root: this.root, say, views: { current: () => app.shown }, get theme() { return app.theme; } };
  }

  build() {
    const slot = (/** @type {string} */ name, /** @type {string} */ tag, /** @type {any} */ given = {}) => make(tag, { class: name, ...given });
    const [top, wall, bar, side] = [slot("top", "header"), slot("wall", "aside", { "aria-label": "All heads" }), slot("bar", "div"), slot("side", "aside", { "aria-label": "One weight, and what if" })];
    const [pair, what] = [slot("pair", "section"), slot("what-if", "section")];
    this.line = slot("line", "p", { role: "status", "aria-live": "polite" });
    const names = this.about.image ? ["text", "map", "image"] : ["text", "map"];
    const makers = /** @type {any} */ ({ text: textView, map: mapView, image: imageView });
    this.slots = Object.fromEntries(names.map((name) => [name, slot(`view view-${name}`, "div", { hidden: true })]));
    side.append(pair, what);
    this.help = helpDialog();
    this.root.replaceChildren(make("div", { class: "page" }, top, wall, make("main", { class: "middle" }, bar, ...Object.values(this.slots), this.line), side), this.help);
    const header = headerView(top, this.context, { ...this.options, help: () => this.help.showModal(), looked: (/** @type {string} */ id) => this.looked(id) });
    this.views = Object.fromEntries(names.map((name) => [name, makers[name](this.slots[name], this.context)]));
    this.steady = [wallView(wall, this.context), viewBar(bar, this.context, names), inspectorView(pair, this.context), whatIf(what, this.context)];
    exportMenu(header.exports, this.context);
    const search = wall.querySelector(".wall-search");
    this.keys = keyboard(this.context, { views: names, current: () => this.shown, search: () => search?.focus(), help: () => this.help.showModal(), row: (/** @type {number} */ query) => this.views.text.weights.row(query), spoken: () => this.speak() });
    this.turn();
  }

  /** Shows the view that is chosen. */
  turn() {
    const view = this.state.get("view");
    if (this.shown === this.views[view]) return;
    this.shown?.hide();
    for (const [name, slot] of Object.entries(this.slots)) slot.hidden = name !== view;
    this.shown = this.views[view];
    this.shown.show();
  }

  /** A pair to begin with, so that no column is empty. */
  async first() {
    const pair = await firstPair(this.context).catch(() => null);
    if (pair && this.state.get("query") === null) this.state.set(pair, { step: false });
  }

  /** @param {string} id a capture that the live model has just made */
  async looked(id) {
    const { lenses, live } = await this.source.shelf();
    Object.assign(this.options, { lenses, live });
    this.state.set({ lens: id });
  }

  speak() {
    const query = this.state.get("query");
    if (query !== null) this.context.say(this.views.text.spokenRow(query));
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (changed.has("theme")) this.themed();
    if (changed.has("lens") && this.options.lens !== this.state.get("lens")) return this.change();
    if (!this.context) return;
    Object.assign(this.state.values, settled(this.state.values, this.about));
    this.context.data.batch = this.state.get("batch");
    if (changed.has("view")) this.turn();
    for (const part of [...this.steady, this.shown]) part.update(changed);
    this.options.link?.write(this.state.values, this.state.moved);
  }

  /** Another lens: what was chosen in the last one means nothing in it. */
  change() {
    const lens = this.state.get("lens");
    const step = this.state.moved;
    this.options.lens = lens;
    const { theme, view, scale, over, sense, layer, head } = this.state.values;
    if (step) this.state.values = { ...BLANK, lens, theme, scale, over, sense, layer, head, view: view === "map" ? view : "" };
    this.options.link?.write(this.state.values, step);
    this.free();
    this.open(this.source.open(lens)).catch((/** @type {Error} */ error) => this.failed(error));
  }

  /** @param {Error} error */
  failed(error) {
    this.root.replaceChildren(make("p", { class: "failed", role: "alert", text: error.message }));
  }

  themed() {
    this.root.dataset.theme = this.theme;
    try {
      localStorage.setItem(THEME, this.state.get("theme"));
    } catch {
      // a page that may keep nothing
    }
  }

  /** The parts of the lens that was shown. */
  free() {
    for (const part of [...this.steady, ...Object.values(this.views)]) part.free?.();
    this.shown = this.context = this.keys = undefined;
    [this.steady, this.views] = [[], {}];
  }

  leave() {
    this.gone.abort();
    this.unlink?.();
    this.free();
    this.root.replaceChildren();
  }
}

/** @param {HTMLElement} element @param {import("./source.js").Source} source @param {any} [options] @returns {{ free: () => void, state: State }} */
export function mount(element, source, options = {}) {
  const app = new App(element, { ...options });
  app.open(source).catch((error) => app.failed(error));
  return { free: () => app.leave(), state: app.state };
}
