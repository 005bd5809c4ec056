/**
 * Answers that came with the page: a file that opens without a server.
 *
 *     index = { "matrix?batch=0&layer=3": [start, length], … }        places of packets in one buffer
 *
 * Rows, columns and cells are read from the matrices that are there. What is not there is refused, with what to do.
 */

import { unpacked } from "./packet.js";
import { Refused } from "./source.js";

const EASY = new Set(["side"]); // whatever is wanted of it, what is there will do

/** @param {string} question @param {Record<string, any>} options */
export function embeddedKey(question, options) {
  const given = Object.entries(options).filter(([name, value]) => value !== null && value !== undefined && value !== "" && !EASY.has(name));
  return `${question}?${given.map(([name, value]) => `${name}=${value}`).sort().join("&")}`;
}

/** @param {string} text @returns {Promise<ArrayBuffer>} */
async function inflated(text) {
  const packed = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** One head of a matrix of all, or the matrix itself. @param {import("./packet.js").Numbers} all @param {number} head */
function headOf({ data, shape: [heads, rows, columns] }, head) {
  const at = heads === 1 ? 0 : head;
  return { data: data.subarray(at * rows * columns, (at + 1) * rows * columns), shape: [1, rows, columns] };
}

class Embedded {
  /** @param {Record<string, [number, number]>} index @param {ArrayBuffer} buffer @param {string} elsewhere */
  constructor(index, buffer, elsewhere) {
    this.index = index;
    this.buffer = buffer;
    this.elsewhere = elsewhere;
  }

  /** @param {string} question @param {Record<string, any>} options */
  found(question, options) {
    const place = this.index[embeddedKey(question, options)];
    return place && unpacked(this.buffer.slice(place[0], place[0] + place[1]));
  }

  /** All heads of a layer, or one of them. @param {Record<string, any>} options */
  matrix({ batch, layer, head, formula }) {
    const all = this.found("matrix", { batch, layer, formula });
    if (all && head !== undefined) return { meta: { heads: [head] }, arrays: [headOf(all.arrays[0], head)] };
    return all ?? this.found("matrix", { batch, layer, head, formula });
  }

  /** @param {"row" | "column"} question @param {Record<string, any>} options */
  lines(question, { batch, layers, query, key }) {
    const { meta } = /** @type {any} */ (this.found("about", {}));
    const wanted = layers ?? meta.layers.map((/** @type {any} */ _, /** @type {number} */ at) => at);
    const there = wanted.map((/** @type {number} */ layer) => [layer, this.matrix({ batch, layer })]).filter((/** @type {any} */ [, packet]) => packet);
    if (!there.length) return undefined;
    const cut = question === "row" ? rowOf : columnOf;
    return { meta: { layers: there.map((/** @type {any} */ [layer]) => layer) }, arrays: there.map((/** @type {any} */ [, packet]) => cut(packet.arrays[0], question === "row" ? query : key)) };
  }

  /** @param {Record<string, any>} options */
  cells({ batch, layer, head, rows, columns, formula }) {
    const packet = this.matrix({ batch, layer, head, formula });
    if (!packet) return undefined;
    const { data, shape } = packet.arrays[0], wide = columns[1] - columns[0];
    const some = new Float32Array((rows[1] - rows[0]) * wide);
    for (let row = rows[0]; row < rows[1]; row++)
      some.set(data.subarray(row * shape[2] + columns[0], row * shape[2] + columns[1]), (row - rows[0]) * wide);
    return { meta: {}, arrays: [{ data: some, shape: [rows[1] - rows[0], wide] }] };
  }

  /** @param {string} question @param {Record<string, any>} [options] */
  async ask(question, options = {}) {
    const made = /** @type {any} */ ({ matrix: () => this.matrix(options), row: () => this.lines("row", options), column: () => this.lines("column", options), cells: () => this.cells(options) });
    const packet = this.found(question, options) ?? made[question]?.();
    if (!packet) throw new Refused(`This page holds no more than was saved with it. ${this.elsewhere}`);
    return packet;
  }
}

/** @param {import("./packet.js").Numbers} all @param {number} query */
function rowOf({ data, shape: [heads, rows, columns] }, query) {
  const line = new Float32Array(heads * columns);
  for (let head = 0; head < heads; head++) {
    const start = (head * rows + query) * columns;
    line.set(data.subarray(start, start + columns), head * columns);
  }
  return { data: line, shape: [heads, columns] };
}

/** @param {import("./packet.js").Numbers} all @param {number} key */
function columnOf({ data, shape: [heads, rows, columns] }, key) {
  const line = Float32Array.from({ length: heads * rows }, (_, at) => data[at * columns + key]);
  return { data: line, shape: [heads, rows] };
}

/** @param {{ index: Record<string, [number, number]>, packed: string, elsewhere: string }} given @returns {Promise<import("./source.js").Source>} */
export async function embeddedSource({ index, packed, elsewhere }) {
  const embedded = new Embedded(index, await inflated(packed), elsewhere);
  return { ask: (question, options) => embedded.ask(question, options), still: true };
}
