/** The line above a map: which of a pixel's numbers is shown, on which scale, and what its colours mean. */

import { make, shown } from "./dom.js";
import { placeLabel, placeText } from "./mapaxes.js";
import { nearText } from "./mapdraw.js";
import { weightAt } from "./mappaint.js";

const PLANES = [
  ["max", "the largest weight under a pixel"],
  ["mean", "the mean weight under a pixel"],
];
/** Buttons of which one is pressed. */
export function choiceOf(label, options, pick) {
  const buttons = options.map(([name, text, title]) =>
    make("button", { class: "quiet", type: "button", title, text, onclick: () => pick(name), "data-name": name }),
  );
  const element = make("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
  const press = (name) => buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.name === name)));
  return { element, press };
}

export class MapBar {
  /** @param {any} context @param {(plane: number) => void} turn */
  constructor(context, turn) {
    this.context = context;
    const planes = PLANES.map(([name, title]) => [name, name, title]);
    this.planes = choiceOf("of a pixel", planes, (name) => turn(name === "mean" ? 1 : 0));
    this.strip = make("canvas", { class: "map-strip", "aria-hidden": "true" });
    this.low = make("span", { class: "num" });
    this.high = make("span", { class: "num" });
    const legend = make("div", { class: "map-legend" }, this.low, this.strip, this.high);
    this.told = make("p", { class: "map-told num" });
    this.element = make("div", { class: "map-bar" }, this.planes.element, this.told, legend);
  }

  /** How this map is painted now. */
  paint(cache, level, plane, { even, sided, theme }) {
    const scale = this.context.state.get("scale"), signed = cache.low < -1e-6;
    const seen = cache.largest(plane, level), top = seen >= 0.5 && seen <= 1.001 ? 1 : seen;
    const name = [theme, plane, scale, top.toPrecision(3), signed].join(" ");
    return { table: signed ? sided : even, plane, scale, top, signed, name };
  }

  show({ paint, cache, level }) {
    this.planes.element.hidden = cache.top === 0;
    this.planes.element.classList.toggle("resting", level === 0);
    this.element.classList.toggle("two-lines", cache.top > 0);
    this.planes.press(PLANES[paint.plane][0]);
    if (this.drawn === paint.name) return;
    this.drawn = paint.name;
    const most = paint.scale === "log" ? 1 : paint.top;
    this.high.textContent = shown(most, 2);
    this.low.textContent = paint.signed ? shown(-most, 2) : paint.scale === "log" ? "10⁻⁶" : "0";
    this.drawStrip(paint);
  }

  drawStrip({ table, scale, top, signed }) {
    const width = table.length, context = this.strip.getContext("2d");
    Object.assign(this.strip, { width, height: 1 });
    const pixels = context.createImageData(width, 1);
    new Uint32Array(pixels.data.buffer).set(table);
    context.putImageData(pixels, 0, 0);
    const middle = weightAt(0.5, scale, top);
    this.strip.title = signed ? "less, none, more" : `in the middle ${shown(middle, 2)}`;
  }

  /** Says what is pointed at, or what went wrong. */
  tell(scene, problem) {
    const words = problem ?? this.words(scene);
    if (this.told.textContent !== words) this.told.textContent = words;
    this.told.classList.toggle("wrong", Boolean(problem));
  }

  /** The pointed cell in words: query, key, weight; or what a pixel covers. */
  words({ hover, chosen, level, cache, weight, pixel, sides }) {
    const pair = hover ?? chosen;
    if (!pair) return "";
    if (level === 0) {
      const value = weight(pair.row, pair.column);
      const told = (side, place) => (side.text ? `${placeLabel(side, place, 40)} ${placeText(place)}` : placeText(place));
      return `${told(sides.query, pair.row)}  →  ${told(sides.key, pair.column)}    ${value === null ? "…" : nearText(value)}`;
    }
    const side = 2 ** level, from = (place) => Math.floor(place / side) * side;
    const stretch = (place, cells) => `${placeText(from(place))}–${placeText(Math.min(cells, from(place) + side) - 1)}`;
    const [most, mean, known] = pixel(pair.row, pair.column) ?? [NaN, NaN, 1], [least, about] = known < 1 ? ["≥ ", "≈ "] : ["", ""];
    const where = `${stretch(pair.row, cache.rows)}  →  ${stretch(pair.column, cache.columns)}`;
    return `${where}    max ${least}${shown(most, 3)}  mean ${about}${shown(mean, 3)}`;
  }
}
