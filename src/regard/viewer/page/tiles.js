/**
 * Tiles of a map: which are needed, which have come, which were given up.
 *
 *   a pixel of level ℓ covers 2^ℓ × 2^ℓ cells (their maximum and their mean); a tile is 256 × 256 pixels
 *
 * A matrix of at most 2^20 cells comes whole, and its levels are made here.
 *
 * @typedef {{level: number, row: number, column: number}} Place
 * @typedef {{rows: number, columns: number, planes: Float32Array[], known: number, exact: boolean, top: number[],
 *   low: number, canvas: HTMLCanvasElement | null, stamp: string}} Tile  planes: maximum, mean; top: the largest of each
 */

import { TILE_SIDE, levelsOf, matrixOver, pixelsOfTile } from "./pyramid.js";

export const WHOLE_CELLS = 2 ** 20;
const FLIGHTS = 4;
const KEPT = 128;
const AGAIN_AFTER = 300;
const TRIES = 3;

/** The level at which the whole map is one tile. */
export function topLevel(rows, columns) {
  let level = 0;
  while (Math.ceil(Math.max(rows, columns) / 2 ** level) > TILE_SIDE) level += 1;
  return level;
}

/** The level whose pixels are at least as large as the screen's; `scale` is screen pixels per cell. */
export function levelAt(scale, top) {
  return Math.max(0, Math.min(top, Math.ceil(-Math.log2(scale) - 0.15)));
}

/** The tiles of a level that touch a window of cells, those nearest to its middle first. */
export function tilesWithin(window, level, rows, columns) {
  const side = TILE_SIDE * 2 ** level;
  const first = (from) => Math.max(0, Math.floor(from / side));
  const last = (to, cells) => Math.min(Math.ceil(cells / side), Math.ceil(to / side));
  const middle = [(window.top + window.bottom) / 2 / side - 0.5, (window.left + window.right) / 2 / side - 0.5];
  const places = [];
  for (let row = first(window.top); row < last(window.bottom, rows); row += 1)
    for (let column = first(window.left); column < last(window.right, columns); column += 1)
      places.push({ level, row, column });
  const far = (place) => Math.hypot(place.row - middle[0], place.column - middle[1]);
  return places.sort((a, b) => far(a) - far(b));
}

/** One name for a place, to find its tile by. */
export function placeName(place) {
  return `${place.level}/${place.row}/${place.column}`;
}

/** A tile from its planes; a lone plane (level 0) is both maximum and mean. */
export function tileOf(planes, rows, columns, known = 1, exact = true) {
  const both = planes.length > 1 ? planes : [planes[0], planes[0]];
  let low = 0;
  for (const value of both[1]) if (value < low) low = value;
  return { rows, columns, planes: both, known, exact, top: both.map(largestOf), low, canvas: null, stamp: "" };
}

function isFinished(packet) {
  return (packet.meta.known ?? 1) >= 1;
}

function largestOf(values) {
  let largest = 0;
  for (const value of values) if (Math.abs(value) > largest) largest = Math.abs(value);
  return largest;
}

/** The tiles of one head under one formula, asked for as they come into view and given up as they leave it. */
export class TileCache {
  /**
   * @param {(question: string, options: object, how: {signal: AbortSignal}) => Promise<any>} ask
   * @param {{rows: number, columns: number}} shape
   * @param {object} options  batch, layer, head and, where there is one, formula
   * @param {() => void} changed  called when a tile has come or failed
   * @param {"head" | "mean" | "max"} over  one head, or what a whole matrix of all heads is brought to
   * @param {object} together  what a whole matrix is asked with: all heads at once, where they are few
   */
  constructor(ask, shape, options, changed, over = "head", together = options) {
    Object.assign(this, { ask, rows: shape.rows, columns: shape.columns, options, changed, over, together });
    this.top = topLevel(shape.rows, shape.columns);
    this.whole = shape.rows * shape.columns <= WHOLE_CELLS;
    this.levels = null;
    this.low = 0;
    this.tops = [[], []];
    this.problem = null;
    this.tiles = new Map();
    this.flights = new Map();
    this.failed = new Map();
    this.line = [];
    this.wanted = [];
    this.timers = new Set();
  }

  /** The tile of a place, if it has come; the last ones used are kept. */
  tile(place) {
    const name = placeName(place);
    let tile = this.tiles.get(name);
    if (!tile && this.levels) tile = this.measured(this.cut(place), place.level);
    if (!tile) return null;
    this.tiles.delete(name);
    this.tiles.set(name, tile);
    return tile;
  }

  cut(place) {
    const { planes, rows, columns } = pixelsOfTile(this.levels, place);
    return tileOf(planes, rows, columns);
  }

  /** Remembers how large the values of a level are. */
  measured(tile, level) {
    for (const plane of [0, 1]) this.tops[plane][level] = Math.max(this.tops[plane][level] ?? 0, tile.top[plane]);
    this.low = Math.min(this.low, tile.low);
    return tile;
  }

  /** The largest value seen: a maximum is the same on every level, a mean is not. */
  largest(plane, level) {
    const seen = plane === 0 || level === 0 ? Math.max(0, ...this.tops[0].filter(Number.isFinite)) : this.tops[1][level];
    return seen || this.tops[plane][this.top] || 1;
  }

  /** What the view needs, most wanted first: other requests are given up. */
  want(places) {
    if (this.whole) return this.wantWhole();
    const names = new Set(places.map(placeName));
    for (const [name, flight] of this.flights) if (!names.has(name)) flight.abort();
    this.line = places.filter((place) => this.lacking(placeName(place)));
    this.wanted = places;
    this.launch();
  }

  lacking(name) {
    const tile = this.tiles.get(name);
    return !this.flights.has(name) && (this.failed.get(name) ?? 0) < TRIES && (!tile || (tile.known < 1 && tile.stale));
  }

  /** The share of what is wanted that is here and exact. */
  get share() {
    if (this.whole) return this.levels || this.problem ? 1 : 0;
    const wanted = this.wanted.length > 1 ? this.wanted.slice(1) : this.wanted; // the first is the whole, for the overview
    const known = wanted.map((place) => this.tiles.get(placeName(place))?.known ?? 0);
    return wanted.length ? known.reduce((a, b) => a + b, 0) / wanted.length : 1;
  }

  launch() {
    while (this.line.length && this.flights.size < FLIGHTS) this.send(this.line.shift());
  }

  async send(place) {
    const name = placeName(place), flight = new AbortController();
    this.flights.set(name, flight);
    try {
      const { meta, arrays } = await this.ask("tile", { ...this.options, ...place }, { signal: flight.signal, keep: isFinished });
      if (!flight.signal.aborted) this.keep(place, arrays[0], meta);
    } catch (error) {
      if (!flight.signal.aborted) this.fail(name, error);
    }
    if (this.flights.get(name) === flight) this.flights.delete(name);
    this.launch();
  }

  keep(place, { data, shape }, meta) {
    const [planes, rows, columns] = shape, cells = rows * columns, name = placeName(place);
    const cut = Array.from({ length: planes }, (_, plane) => data.subarray(plane * cells, (plane + 1) * cells));
    const tile = this.measured(tileOf(cut, rows, columns, meta.known ?? 1, meta.exact ?? true), place.level);
    this.tiles.delete(name);
    this.tiles.set(name, tile);
    this.failed.delete(name);
    if (this.tiles.size > KEPT) this.tiles.delete(this.tiles.keys().next().value);
    if (tile.known < 1) this.later(() => { tile.stale = true; }, AGAIN_AFTER);
    this.problem = null;
    this.changed();
  }

  fail(name, error) {
    this.failed.set(name, (this.failed.get(name) ?? 0) + 1);
    this.problem = error.message;
    this.later(() => {}, 2 * AGAIN_AFTER);
  }

  /** Does something after a while, and has the view drawn again, which asks anew. */
  later(act, after) {
    const timer = setTimeout(() => { this.timers.delete(timer); act(); this.changed(); }, after);
    this.timers.add(timer);
  }

  async wantWhole() {
    if (this.levels || this.flights.size || this.problem) return;
    const flight = new AbortController();
    this.flights.set("whole", flight);
    try {
      const { arrays } = await this.ask("matrix", this.together, { signal: flight.signal });
      this.levels = levelsOf(matrixOver(arrays[0], this.over, this.options.head), this.rows, this.columns);
    } catch (error) {
      if (!flight.signal.aborted) this.problem = error.message;
    }
    this.flights.delete("whole");
    if (!flight.signal.aborted) this.changed();
  }

  /** Gives up every request; what has come stays. */
  rest() {
    for (const flight of this.flights.values()) flight.abort();
    for (const timer of this.timers) clearTimeout(timer);
    this.flights.clear();
    this.timers.clear();
    this.line = [];
  }
}
