/**
 * What the page shows, as one flat set of values; a link holds those that are not passing.
 *
 * Listeners hear once a frame which values changed.
 */

/**
 * @typedef {object} Values
 * @property {string} lens
 * @property {number} batch
 * @property {number} layer
 * @property {number} head     an index into the captured heads of the layer
 * @property {"" | "text" | "map" | "image"} view  "": what suits the lens
 * @property {number | null} query   the chosen pair
 * @property {number | null} key
 * @property {string} formula  what if: "" for the formula as it was captured
 * @property {"root" | "log" | "linear"} scale  from weight to depth of colour
 * @property {"head" | "mean" | "max"} over     one head, or all heads of the layer
 * @property {"both" | "reads" | "read"} sense  what a token reads, who reads it
 * @property {string} sort     a measure's name, or "" for the order of the model
 * @property {string} search
 * @property {string} zoom     where the map stands, in the map's own words
 * @property {"" | "light" | "dark"} theme
 * @property {string} wing     on a narrow page, which column is open: "", "wall" or "pair"
 * @property {{ query: number | null, key: number | null } | null} hover  passing: what is pointed at
 */

/** @type {Values} */
export const BLANK = {
  lens: "",
  batch: 0,
  layer: 0,
  head: 0,
  view: "",
  query: null,
  key: null,
  formula: "",
  scale: "root",
  over: "head",
  sense: "both",
  sort: "",
  search: "",
  zoom: "",
  theme: "",
  wing: "",
  hover: null,
};

const PASSING = new Set(["hover", "theme", "wing", "search"]);
const WHOLE = new Set(["batch", "layer", "head", "query", "key"]);
/** @type {Record<string, string[]>} values that are one of a few words */
const WORDS = { view: ["text", "map", "image"], scale: ["root", "log", "linear"], over: ["head", "mean", "max"], sense: ["both", "reads", "read"] };

/** @param {string} hash @returns {Partial<Values>} the values that a link names */
export function fromLink(hash) {
  /** @type {any} */
  const values = {};
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!Object.hasOwn(BLANK, name) || PASSING.has(name) || (WORDS[name] && !WORDS[name].includes(text))) continue;
    if (!WHOLE.has(name)) values[name] = text;
    else if (/^\d{1,9}$/.test(text)) values[name] = Number(text);
  }
  return values;
}

/** @param {Values} values @returns {string} only what differs from a blank page */
export function toLink(values) {
  const link = new URLSearchParams();
  for (const [name, blank] of Object.entries(BLANK)) {
    const value = /** @type {any} */ (values)[name];
    if (!PASSING.has(name) && value !== blank && value !== null) link.set(name, String(value));
  }
  return link.toString();
}

/** @param {any} a @param {any} b */
function same(a, b) {
  if (a === b) return true;
  return !!a && !!b && typeof a === "object" && typeof b === "object" && a.query === b.query && a.key === b.key;
}

export class State {
  /** @param {Partial<Values>} [given] */
  constructor(given = {}) {
    /** @type {Values} */
    this.values = { ...BLANK, ...given };
    /** @type {Set<(changed: Set<string>) => void>} */
    this.listeners = new Set();
    /** @type {Set<string>} */
    this.changed = new Set();
    this.frame = 0;
    this.moved = false; // a change that deserves its own step in the history
  }

  /** @template {keyof Values} K @param {K} name @returns {Values[K]} */
  get(name) {
    return this.values[name];
  }

  /**
   * @param {Partial<Values>} changes
   * @param {{ step?: boolean }} [how] step: false where going back should not stop here (arrow keys, zooming)
   */
  set(changes, { step = true } = {}) {
    for (const [name, value] of Object.entries(changes)) {
      if (same(/** @type {any} */ (this.values)[name], value)) continue;
      /** @type {any} */ (this.values)[name] = value;
      this.changed.add(name);
      if (step && !PASSING.has(name)) this.moved = true;
    }
    if (this.changed.size) this.soon();
  }

  /** Something outside changed what a value means. @param {string} name */
  tellOf(name) {
    this.changed.add(name);
    this.soon();
  }

  soon() {
    this.frame ||= requestAnimationFrame(() => this.tell());
  }

  tell() {
    this.frame = 0;
    if (!this.changed.size) return;
    const changed = this.changed;
    this.changed = new Set();
    for (const listener of this.listeners) listener(changed);
    this.moved = false;
  }

  /** @param {(changed: Set<string>) => void} listener @returns {() => void} stops listening */
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
