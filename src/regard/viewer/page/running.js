/**
 * Text set as text: tokens in their own order on wrapped lines, the weight behind each as colour.
 *
 * Pointing recolours the elements that are there. Of a long text only the paragraphs in sight have elements.
 */

import { grouped, make, spoken } from "./dom.js";

const PARAGRAPH = 256; // tokens that come and go together
const FLOWING = 3000; // tokens up to which all are set, in one flow
const SHORT = 40; // tokens up to which type is large
const UNSEEN = 0.012; // parts of the scale that nobody sees behind a token,
const UNSEEN_LINE = 0.1; // and under one

/** @param {string} label @param {number} at @param {boolean} special @param {boolean} apart @returns {(Node | string)[]} the space before a token stands outside it */
function tokenNodes(label, at, special, apart) {
  const space = special ? "" : (label.match(/^\s+(?=\S)/)?.[0] ?? (apart && at > 0 ? "  " : ""));
  const blank = !special && label.trim() === "";
  const kind = special ? "token special" : blank ? "token blank" : "token";
  const token = make("span", { class: kind, "data-at": at, text: blank ? spoken(label) : label.trimStart() });
  if (special) return at === 0 ? [token, " "] : [" ", token, " "];
  return blank ? [token, label.includes("\n") ? "\n" : " "] : space ? [space, token] : [token];
}

export class Running {
  /** @param {HTMLElement} element @param {any} context @param {any} axis */
  constructor(element, context, axis) {
    this.element = element;
    this.context = context;
    this.axis = axis;
    this.flowing = axis.length <= FLOWING;
    /** @type {Map<number, HTMLElement[]>} tokens by paragraph, of those that are set */
    this.set = new Map();
    /** @type {{ reads: ArrayLike<number> | null, read: ArrayLike<number> | null }} */
    this.weights = { reads: null, read: null };
    this.top = 1;
    this.marks = { query: /** @type {number | null} */ (null), key: /** @type {number | null} */ (null), pointed: /** @type {number | null} */ (null), glanced: /** @type {number | null} */ (null) };
    element.classList.add("running");
    element.classList.toggle("short", axis.length <= SHORT);
    element.classList.toggle("long", !this.flowing);
    this.paragraphs = Array.from({ length: Math.ceil(axis.length / PARAGRAPH) }, (_, at) =>
      make("div", { class: "paragraph", "data-paragraph": at, "data-from": grouped(at * PARAGRAPH) }));
    element.append(...this.paragraphs);
    if (this.flowing) this.paragraphs.forEach((_, at) => this.fill(at));
    else this.watch();
  }

  watch() {
    this.sight = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const at = Number(/** @type {HTMLElement} */ (target).dataset.paragraph);
        if (isIntersecting) this.fill(at);
        else this.clear(at);
      }
    }, { rootMargin: "400px 0px" });
    for (const paragraph of this.paragraphs) this.sight.observe(paragraph);
  }

  /** @param {number} at */
  async fill(at) {
    if (this.set.has(at)) return;
    this.set.set(at, []);
    const [from, to] = [at * PARAGRAPH, Math.min((at + 1) * PARAGRAPH, this.axis.length)];
    const { data } = this.context;
    if (data.label(this.axis.name, from) === null || data.label(this.axis.name, to - 1) === null)
      await data.labels(this.axis.name, from, to).catch((/** @type {Error} */ error) => this.context.say(error.message));
    if (!this.set.has(at)) return; // out of sight meanwhile
    const nodes = [];
    const apart = this.apart();
    for (let place = from; place < to; place++) {
      nodes.push(...tokenNodes(data.label(this.axis.name, place) ?? String(place), place, this.axis.special.has(place), apart));
    }
    if (!this.flowing && typeof nodes[0] === "string") nodes.shift(); // no space at the head of a paragraph
    const paragraph = this.paragraphs[at];
    paragraph.replaceChildren(...nodes);
    paragraph.style.removeProperty("height");
    this.set.set(at, /** @type {HTMLElement[]} */ (nodes.filter((node) => node instanceof HTMLElement)));
    this.colour(at);
    this.marked(this.marks, true);
    if (!this.flowing && !this.measured) this.measure(paragraph);
  }

  /** What is not set yet is as tall as the first paragraph was: the bar that scrolls hardly moves. @param {HTMLElement} paragraph */
  measure(paragraph) {
    this.measured = true;
    this.element.style.setProperty("--paragraph", `${paragraph.offsetHeight}px`);
  }

  /** Are labels names of places, and no text that has spaces of its own. */
  apart() {
    const first = Math.min(this.axis.length, 64);
    for (let at = 0; at < first; at++) if (/\s/.test(this.context.data.label(this.axis.name, at) ?? " ")) return false;
    return first > 1;
  }

  /** @param {number} at */
  clear(at) {
    if (!this.set.delete(at)) return;
    const paragraph = this.paragraphs[at];
    if (paragraph.offsetHeight) paragraph.style.setProperty("height", `${paragraph.offsetHeight}px`);
    paragraph.replaceChildren();
  }

  /** @param {number | null} place @returns {HTMLElement | null} */
  token(place) {
    return place === null ? null : (this.set.get(Math.floor(place / PARAGRAPH))?.[place % PARAGRAPH] ?? null);
  }

  /** Behind each token what it is read with, under it what it reads with. @param {ArrayLike<number> | null} reads @param {ArrayLike<number> | null} read @param {number} [top] the weight of the deepest colour */
  paint(reads, read, top = 1) {
    this.top = top;
    this.weights = { reads, read };
    for (const at of this.set.keys()) this.colour(at);
  }

  /** @param {number} paragraph */
  colour(paragraph) {
    const { colour, state, theme } = this.context;
    const { reads, read } = this.weights;
    const scale = state.get("scale");
    for (const [at, token] of (this.set.get(paragraph) ?? []).entries()) {
      const place = paragraph * PARAGRAPH + at;
      const part = reads ? colour.part(reads[place] / this.top, scale) : 0;
      const under = read ? colour.part(read[place] / this.top, scale) : 0;
      const style = token.style;
      style.backgroundColor = part > UNSEEN ? colour.css(theme, part) : "";
      style.color = part > UNSEEN ? colour.ink(theme, part) : "";
      style.setProperty("--under", under > UNSEEN_LINE ? `${Math.round(100 * under)}%` : "0%");
    }
  }

  /** @param {{ query?: number | null, key?: number | null, pointed?: number | null, glanced?: number | null }} given @param {boolean} [again] */
  marked(given, again = false) {
    const marks = { ...this.marks, ...given };
    for (const [name, place] of Object.entries(marks)) {
      const old = /** @type {any} */ (this.marks)[name];
      if (old === place && !again) continue;
      this.token(old)?.classList.remove(`is-${name}`);
      this.token(place)?.classList.add(`is-${name}`);
    }
    this.marks = marks;
  }

  /** @param {number} place */
  async reveal(place) {
    const paragraph = this.paragraphs[Math.floor(place / PARAGRAPH)];
    if (!this.token(place)) paragraph?.scrollIntoView({ block: "center" });
    else this.token(place)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  free() {
    this.sight?.disconnect();
  }
}
