/**
 * Answers that were given, kept within a bound, asked once however many want them.
 *
 *     data.ask("tile", { layer, head, level, row, column }, { signal })
 *
 * What is already here can be read at once (`…Now`), so that pointing never waits for a promise.
 */

/** @typedef {import("./packet.js").Packet} Packet */
/** @typedef {import("./source.js").Source} Source */
/** @typedef {{ name: string, length: number, special: Set<number>, grid: [number, number] | null }} Axis */

const BYTES = 192 * 2 ** 20;
const WHOLE_MATRIX = 2 ** 20; // cells: what the question `matrix` answers
const UNBATCHED = new Set(["about", "image"]);
const SOME_LABELS = 2048; // labels are asked in blocks of this many

/** @param {Packet} packet */
const weightOf = (packet) => packet.arrays.reduce((sum, { data }) => sum + data.byteLength, 512);

/** @param {AbortSignal | undefined} signal @param {() => void} act */
function whenLeft(signal, act) {
  if (signal?.aborted) act();
  else signal?.addEventListener("abort", act, { once: true });
}

/** A question under way: stopped when all who asked have left. */
class Waiting {
  /** @param {(signal: AbortSignal) => Promise<Packet>} start */
  constructor(start) {
    this.control = new AbortController();
    this.count = 0;
    this.promise = start(this.control.signal);
  }

  /** @param {AbortSignal | undefined} signal @returns {Promise<Packet>} */
  join(signal) {
    this.count += 1;
    return new Promise((resolve, reject) => {
      whenLeft(signal, () => {
        this.count -= 1;
        if (this.count === 0) this.control.abort();
        reject(new DOMException("no longer wanted", "AbortError"));
      });
      this.promise.then(resolve, reject);
    });
  }
}

export class Data {
  /** @param {Source} source @param {any} about */
  constructor(source, about) {
    this.source = source;
    this.about = about;
    this.batch = 0;
    /** @type {Map<string, Packet>} oldest first */
    this.kept = new Map();
    this.bytes = 0;
    /** @type {Map<string, Waiting>} */
    this.waiting = new Map();
    /** @type {Map<string, Axis>} */
    this.axes = new Map();
    /** @type {Map<string, string[]>} */
    this.names = new Map();
  }

  /** @param {string} question @param {Record<string, any>} options */
  keyOf(question, options) {
    const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== null && value !== "");
    return `${this.batch} ${question} ${JSON.stringify(given.sort(([a], [b]) => (a < b ? -1 : 1)))}`;
  }

  /** What is already known, at once. @param {string} question @param {Record<string, any>} [options] */
  now(question, options = {}) {
    const key = this.keyOf(question, options);
    const packet = this.kept.get(key);
    if (packet) this.kept.delete(key), this.kept.set(key, packet);
    return packet;
  }

  /**
   * @param {string} question @param {Record<string, any>} [options]
   * @param {{ signal?: AbortSignal, keep?: (packet: Packet) => boolean }} [how] keep: may this answer be given again
   * @returns {Promise<Packet>}
   */
  ask(question, options = {}, { signal, keep = () => true } = {}) {
    const here = this.now(question, options);
    if (here) return Promise.resolve(here);
    const key = this.keyOf(question, options);
    let waiting = this.waiting.get(key);
    if (!waiting || waiting.control.signal.aborted) {
      const asked = UNBATCHED.has(question) ? options : { batch: this.batch, ...options };
      waiting = new Waiting((stop) => this.source.ask(question, asked, { signal: stop }));
      const begun = waiting;
      const end = () => this.waiting.get(key) === begun && this.waiting.delete(key);
      waiting.promise.then((packet) => (end(), keep(packet) && this.hold(key, packet)), end);
      this.waiting.set(key, waiting);
    }
    return waiting.join(signal);
  }

  /** @param {string} key @param {Packet} packet */
  hold(key, packet) {
    this.kept.set(key, packet);
    this.bytes += weightOf(packet);
    for (const [oldest, old] of this.kept) {
      if (this.bytes <= BYTES || oldest === key) break;
      this.kept.delete(oldest);
      this.bytes -= weightOf(old);
    }
  }

  /** @param {number} layer */
  layer(layer) {
    return this.about.layers[layer];
  }

  /** @param {number} layer @param {"query" | "key"} side @returns {Axis} */
  axis(layer, side) {
    const one = this.layer(layer);
    return this.axisNamed(one[side], side === "query" ? one.queries : one.keys);
  }

  /** @param {string} name @param {number} [length] @returns {Axis} */
  axisNamed(name, length = 0) {
    const key = `${this.batch} ${name}`;
    let axis = this.axes.get(key);
    if (!axis) {
      const said = this.about.axes?.[this.batch]?.[name] ?? {};
      axis = {
        name,
        length: said.length ?? said.labels?.length ?? length,
        special: new Set(said.special ?? []),
        grid: said.grid ?? null,
      };
      this.axes.set(key, axis);
      if (said.labels?.length === axis.length) this.names.set(key, said.labels);
    }
    return axis;
  }

  /** Queries and keys of this layer are the same text. @param {number} layer */
  square(layer) {
    return this.layer(layer).query === this.layer(layer).key;
  }

  /** @param {string} axis @param {number} at @returns {string | null} null: not here yet, ask for `labels` */
  label(axis, at) {
    return this.names.get(`${this.batch} ${axis}`)?.[at] ?? null;
  }

  /** Brings the labels from…to here. @param {string} axis @param {number} from @param {number} to */
  async labels(axis, from, to) {
    const key = `${this.batch} ${axis}`;
    const { length } = this.axisNamed(axis);
    if (!this.names.has(key)) this.names.set(key, new Array(length));
    const names = /** @type {string[]} */ (this.names.get(key));
    const wanted = [];
    for (let block = Math.floor(from / SOME_LABELS); block * SOME_LABELS < Math.min(to, length); block++)
      if (names[block * SOME_LABELS] === undefined) wanted.push(block * SOME_LABELS);
    await Promise.all(
      wanted.map(async (start) => {
        const { meta } = await this.ask("labels", { axis, from: start, to: Math.min(start + SOME_LABELS, length) });
        meta.labels.forEach((/** @type {string} */ label, /** @type {number} */ at) => (names[start + at] = label));
        for (const at of meta.special ?? []) this.axisNamed(axis).special.add(at);
      }),
    );
  }

  /** Is the head's whole matrix small enough to keep. @param {number} layer @param {boolean} [all] of all heads at once */
  small(layer, all = false) {
    const { queries, keys, heads } = this.layer(layer);
    return queries * keys * (all ? heads.length : 1) <= WHOLE_MATRIX;
  }

  /**
   * The weights of one query in one layer: Float32Array of (heads × keys), or null where they are not here yet.
   * @param {number} layer @param {number} query
   */
  rowNow(layer, query) {
    const packet = this.now("row", { query });
    const at = packet?.meta.layers.indexOf(layer) ?? -1;
    return at < 0 ? null : /** @type {Float32Array} */ (packet?.arrays[at].data);
  }

  /** The weights that all queries give to one key: (heads × queries), or null. @param {number} layer @param {number} key */
  columnNow(layer, key) {
    const packet = this.now("column", { key });
    const at = packet?.meta.layers.indexOf(layer) ?? -1;
    return at < 0 ? null : /** @type {Float32Array} */ (packet?.arrays[at].data);
  }

  /** All heads of a layer where they are few, else null: (heads × queries × keys). @param {number} layer */
  matrixNow(layer) {
    return this.small(layer, true) ? (this.now("matrix", { layer })?.arrays[0].data ?? null) : null;
  }
}
