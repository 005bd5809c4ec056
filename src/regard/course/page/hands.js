/**
 * The course's widgets: what the hand moves, in a notebook and in a page without Python.
 *
 *     renderHand({ model, el })      as anywidget calls it; what it returns ends it
 *     mountHands(page)               every [data-hand] of a page, from the state that lies inside of it
 */

import { eachFrame, make } from "./dom.js";
import { EllipseView } from "./ellipse.js";
import { Held } from "./held.js";
import { keepLook } from "./look.js";
import { MatrixView } from "./matrix.js";
import { MistakesView } from "./mistakes.js";
import { PlaneView } from "./plane.js";
import { RowsView } from "./rows.js";

/** @type {Record<string, any>} */
const VIEWS = { plane: PlaneView, rows: RowsView, matrix: MatrixView, ellipse: EllipseView, mistakes: MistakesView };

/** @param {{ model: any, el: HTMLElement }} given @returns {() => void} */
export function renderHand({ model, el }) {
  const element = make("div", { class: "regard hand" });
  el.append(element);
  const held = new Held(model);
  const line = make("p", { class: "hand-line", role: "status", "aria-live": "polite" });
  const note = make("p", { class: "hand-note", hidden: true });
  const say = (/** @type {string} */ text) => {
    const about = text.startsWith("`"); // what a page without Python cannot do is said beside the rest
    const into = about ? note : line;
    if (about) note.hidden = false;
    if (into.textContent !== text.replaceAll("`", "")) into.replaceChildren(...spelledOut(text));
  };
  /** @type {any} */
  let view = null;
  const draw = eachFrame(() => view?.draw());
  const free = keepLook(element, draw);
  view = new VIEWS[model.get("kind")](element, held, say);
  element.append(make("div", { class: "hand-foot" }, line, note));
  held.on(draw);
  return () => {
    view = null;
    free();
    held.free();
    element.remove();
  };
}

/** Words between backticks are code. @param {string} text @returns {any[]} */
const spelledOut = (text) => text.split("`").map((part, at) => (at % 2 ? make("code", { text: part }) : part));

/** A model that holds its first state, and asks nobody. @param {any} state */
function stillModel(state) {
  const values = { ...state };
  return {
    get: (/** @type {string} */ name) => values[name],
    set: (/** @type {string} */ name, /** @type {any} */ value) => void (values[name] = value),
    on: () => {},
    off: () => {},
    save_changes: () => {},
  };
}

/** @param {Document} page */
export function mountHands(page) {
  for (const el of /** @type {NodeListOf<HTMLElement>} */ (page.querySelectorAll("[data-hand]:not([data-mounted])"))) {
    el.dataset.mounted = "";
    el.querySelector(".at-rest")?.remove();
    renderHand({ model: stillModel(JSON.parse(el.querySelector("script")?.textContent ?? "{}")), el });
  }
}
