/** The top line: what is looked at, what else there is, another sentence or image for the live model, what is missing. */

import { make } from "./dom.js";

const GROUPS = { live: "Seen live", given: "Opened", gallery: "Gallery" };

class Header {
  /** @param {HTMLElement} element @param {any} context @param {any} options */
  constructor(element, context, options) {
    this.context = context;
    this.options = options;
    this.status = make("p", { class: "look-status", role: "status" });
    this.exports = make("div", { class: "export-slot" });
    element.append(
      make("span", { class: "mark", "aria-hidden": "true" }),
      make("div", { class: "head-title" }, this.chooser(), this.model()),
      this.look() ?? make("span", { class: "spring" }),
      make("div", { class: "head-tools" }, this.batches(), this.exports, this.themes(), make("button", { class: "quiet", text: "?", "aria-label": "Keys and help", title: "keys and help", onclick: () => options.help() })),
      this.status);
  }

  /** Every lens that can be opened; the title alone where there is only this one. */
  chooser() {
    const { lenses = [] } = this.options;
    const { about, state } = this.context;
    if (lenses.length < 2) return make("p", { class: "title", text: about.title });
    const kinds = [...new Set(lenses.map((/** @type {any} */ { kind }) => kind))];
    return make("select", { class: "title", "aria-label": "Lens", onchange: (/** @type {any} */ event) => state.set({ lens: event.target.value }) },
      ...kinds.map((kind) => make("optgroup", { label: /** @type {any} */ (GROUPS)[kind] ?? kind },
        ...lenses.filter((/** @type {any} */ one) => one.kind === kind).map(({ id, title }) => make("option", { value: id, text: title, selected: id === state.get("lens") })))));
  }

  /** The model in words, and what could not be captured of it. */
  model() {
    const { model, missing = [], notes = [] } = this.context.about;
    const line = make("p", { class: "model" }, make("span", { text: model }));
    const count = missing.length + notes.length;
    if (!count) return line;
    const said = missing.length ? `${missing.length} not captured` : `${notes.length} ${notes.length === 1 ? "note" : "notes"}`;
    line.append(" ", make("details", { class: "missing" }, make("summary", { text: said }),
      make("ul", {}, ...missing.map((/** @type {any} */ { name, why }) => make("li", {}, make("code", { text: name }), ` ${why}`)), ...notes.map((/** @type {string} */ note) => make("li", { text: note })))));
    return line;
  }

  /** Another sentence, or an image that is dropped or chosen, for the model that is there. */
  look() {
    const { live } = this.options;
    const { source, root } = this.context;
    if (!source.look || !(live?.text || live?.image)) return null;
    this.field = make("input", { class: "look", type: "text", maxlength: 20000, "aria-label": "Another text for the live model", placeholder: live.text ? (live.image ? "Type a sentence, or drop an image" : "Type another sentence") : "Drop an image", autocomplete: "off", readonly: !live.text });
    const form = make("form", { class: "look-form", onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), this.field.value.trim() && this.send({ text: this.field.value })) }, this.field);
    if (live.image) {
      const pick = make("input", { type: "file", accept: "image/*", "aria-label": "Choose an image", onchange: () => pick.files[0] && this.send({ image: pick.files[0] }) });
      form.append(make("label", { class: "quiet pick", title: "choose an image" }, "image", pick));
      root.addEventListener("dragover", (/** @type {DragEvent} */ event) => event.preventDefault());
      root.addEventListener("drop", (/** @type {DragEvent} */ event) => this.dropped(event));
    }
    return form;
  }

  /** @param {DragEvent} event */
  dropped(event) {
    const image = [...(event.dataTransfer?.files ?? [])].find(({ type }) => type.startsWith("image/"));
    if (!image) return;
    event.preventDefault();
    this.send({ image });
  }

  /** @param {{ text: string } | { image: Blob }} input */
  async send(input) {
    this.status.textContent = "looking…";
    this.field.setAttribute("aria-busy", "true");
    try {
      const { id } = await this.context.source.look(input);
      await this.options.looked(id);
      this.status.textContent = "";
    } catch (error) {
      this.status.textContent = /** @type {Error} */ (error).message;
    } finally {
      this.field.removeAttribute("aria-busy");
    }
  }

  batches() {
    const { about, state } = this.context;
    if (!(about.batches > 1)) return null;
    return make("select", { class: "quiet", "aria-label": "Batch item", onchange: (/** @type {any} */ event) => state.set({ batch: Number(event.target.value), query: null, key: null }) },
      ...Array.from({ length: about.batches }, (_, at) => make("option", { value: at, text: `item ${at + 1} of ${about.batches}`, selected: at === state.get("batch") })));
  }

  themes() {
    const flip = () => this.context.state.set({ theme: this.context.theme === "dark" ? "light" : "dark" });
    return make("button", { class: "quiet theme", "aria-label": "Light or dark", title: "light or dark", text: "◐", onclick: flip });
  }
}

/** @param {HTMLElement} element @param {any} context @param {any} options */
export function headerView(element, context, options) {
  return new Header(element, context, options);
}
