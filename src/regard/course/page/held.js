/**
 * What the hand holds: given → at → found.
 *
 *     move(change)       drawn at once, then told to Python; one question under way, the latest place next
 *     back()             to where it was, in a page without Python
 *
 * The model is anywidget's, or a plain object with get, set, on and save_changes.
 */

const ANSWER = 700; // milliseconds after which another place is sent, even if none was answered
const GLIDE_BACK = 260; // milliseconds of the way back

/** What lies a part of the way from one value to another. @param {any} from @param {any} to @param {number} t @returns {any} */
function mixed(from, to, t) {
  if (typeof from === "number" && typeof to === "number") return from + (to - from) * t;
  if (Array.isArray(from) && Array.isArray(to)) return from.map((one, at) => mixed(one, to[at], t));
  return to;
}

export class Held {
  /** @param {any} model */
  constructor(model) {
    this.model = model;
    this.given = model.get("given");
    this.at = model.get("at");
    this.first = this.at;
    this.found = model.get("found");
    this.still = model.get("still") === true;
    this.waiting = 0;
    this.more = false;
    /** @type {(() => void)[]} */
    this.listeners = [];
    this.hears = { "change:found": () => this.came(), "change:at": () => this.moved() };
    for (const [name, act] of Object.entries(this.hears)) model.on(name, act);
  }

  /** @param {() => void} act */
  on(act) {
    this.listeners.push(act);
  }

  tell() {
    for (const act of this.listeners) act();
  }

  /** @param {Record<string, any>} change */
  move(change) {
    cancelAnimationFrame(this.gliding ?? 0);
    this.at = { ...this.at, ...change };
    this.tell();
    if (!this.still) this.send();
  }

  send() {
    this.more = this.waiting !== 0;
    if (this.more) return;
    this.waiting = setTimeout(() => this.next(), ANSWER);
    this.model.set("at", this.at);
    this.model.save_changes();
  }

  next() {
    clearTimeout(this.waiting);
    this.waiting = 0;
    if (this.more) this.send();
  }

  /** What Python found is here. */
  came() {
    this.found = this.model.get("found");
    this.next();
    this.tell();
  }

  /** Python moved it itself, or brought it back into range. */
  moved() {
    const at = this.model.get("at");
    if (this.waiting || at === this.at || !at) return;
    this.at = at;
    this.tell();
  }

  /** Glides back; at once for those who want no motion. */
  back() {
    const from = this.at;
    const begun = performance.now();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const frame = () => {
      const t = calm ? 1 : Math.min(1, (performance.now() - begun) / GLIDE_BACK);
      const eased = 1 - (1 - t) ** 3;
      this.at = t < 1 ? Object.fromEntries(Object.keys(from).map((name) => [name, mixed(from[name], this.first[name], eased)])) : this.first;
      this.tell();
      if (t < 1) this.gliding = requestAnimationFrame(frame);
    };
    frame();
  }

  free() {
    cancelAnimationFrame(this.gliding ?? 0);
    clearTimeout(this.waiting);
    this.listeners = [];
    for (const [name, act] of Object.entries(this.hears)) this.model.off?.(name, act);
  }
}
