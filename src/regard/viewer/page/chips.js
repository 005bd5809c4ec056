/** Places that are no patches, beside the image: special tokens, and every token of a text that reads the image. */

import { make, spoken, weightText } from "./dom.js";
import { depthOf } from "./mappaint.js";

const CHIPS = 256;

export class TokenChips {
  /** @param {any} context */
  constructor(context) {
    this.context = context;
    this.element = make("div", { class: "image-chips" });
  }

  /**
   * @param {any} axis  along which one points
   * @param {number} place  the one that is pointed at
   * @param {{weights: ArrayLike<number> | null, most: number, side: "query" | "key"}} told  weights: of this axis, where it is painted
   */
  show(axis, place, { weights, most, side }) {
    const { theme, colour, state, data } = this.context, scale = state.get("scale"), name = `${data.batch} ${axis.name} ${side}`;
    if (this.name !== name) this.build(axis, side);
    this.name = name;
    for (const chip of this.element.children) {
      const at = Number(chip.dataset.place), weight = weights ? weights[at] : 0, depth = depthOf(weight, scale, Math.max(most, weight));
      chip.setAttribute("aria-pressed", String(at === place));
      chip.style.setProperty("background-color", weights ? colour.css(theme, depth) : "transparent");
      chip.style.setProperty("color", colour.ink(theme, depth));
      chip.lastChild.textContent = weights ? weightText(weight) : "";
    }
  }

  build(axis, side) {
    const places = axis.grid ? [...axis.special].sort((a, b) => a - b) : Array.from({ length: Math.min(CHIPS, axis.length) }, (_, at) => at);
    this.element.replaceChildren(...places.map((place) => this.chip(axis, place, side)));
  }

  chip(axis, place, side) {
    const { state, data } = this.context, hover = (at) => state.set({ hover: at === null ? null : { query: null, key: null, [side]: at } });
    const does = { onpointerenter: () => hover(place), onpointerleave: () => hover(null), onclick: () => state.set({ [side]: place }) };
    const label = make("span", { text: spoken(data.label(axis.name, place) ?? String(place)) });
    return make("button", { class: "chip", type: "button", "data-place": place, ...does }, label, make("span", { class: "num" }));
  }
}
