/**
 * Packets: what every source answers with.
 *
 *     4 bytes: length of the JSON | JSON, padded | array, padded to 8 bytes | array | …
 *     JSON = { meta, arrays: [{ dtype: "f2" | "f4" | "u1" | "i4", shape }] }
 *
 * @typedef {{ data: Float32Array | Uint8Array | Int32Array, shape: number[] }} Numbers
 * @typedef {{ meta: any, arrays: Numbers[] }} Packet
 */

const WIDTH = { f2: 2, f4: 4, u1: 1, i4: 4 };

/** @type {Float32Array | null} the 65 536 half-precision numbers, made when first needed */
let halves = null;

/** @param {number} bits @returns {number} */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** @param {Uint16Array} bits @returns {Float32Array} */
export function widened(bits) {
  halves ??= Float32Array.from({ length: 65536 }, (_, at) => half(at));
  const table = halves;
  const wide = new Float32Array(bits.length);
  for (let at = 0; at < bits.length; at++) wide[at] = table[bits[at]];
  return wide;
}

/** @param {ArrayBuffer} buffer @param {string} dtype @param {number} start @param {number} count */
function numbers(buffer, dtype, start, count) {
  if (dtype === "f4") return new Float32Array(buffer, start, count);
  if (dtype === "i4") return new Int32Array(buffer, start, count);
  if (dtype === "u1") return new Uint8Array(buffer, start, count);
  if (dtype === "f2") return widened(new Uint16Array(buffer, start, count));
  throw new Error(`packet: arrays are f2, f4, u1 or i4; got ${dtype}`);
}

/** A buffer of its own, so that arrays begin where their type wants it. @param {ArrayBuffer | ArrayBufferView} given */
function whole(given) {
  if (given instanceof ArrayBuffer) return given;
  return given.buffer.slice(given.byteOffset, given.byteOffset + given.byteLength);
}

/** @param {ArrayBuffer | ArrayBufferView} given @returns {Packet} */
export function unpacked(given) {
  const buffer = whole(given);
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let start = padded(4 + length);
  const arrays = head.arrays.map((/** @type {{ dtype: keyof WIDTH, shape: number[] }} */ { dtype, shape }) => {
    const count = shape.reduce((product, side) => product * side, 1);
    const data = numbers(buffer, dtype, start, count);
    start = padded(start + count * WIDTH[dtype]);
    return { data, shape };
  });
  return { meta: head.meta, arrays };
}

/** @param {number} bytes */
const padded = (bytes) => (bytes + 7) & ~7;
