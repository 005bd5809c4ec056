/**
 * Which heads a few words mean.
 *
 *     3.7              layer 3, head 7          layer 3, l3      head 7, h7
 *     previous         heads that do this more than anything else
 *     previous > .5    heads whose number is above (or below) this
 *     attn, encoder    layers whose name holds it
 */

const COMPARED = /^([\p{L} -]+?)\s*([<>])\s*(\d*\.?\d+)$/u;

/** @typedef {(layer: number, head: number) => boolean} HeadTest */

/** @param {string} word @param {any} about @param {any} measures @returns {HeadTest} */
function wordTest(word, about, measures) {
  const numberOf = (/** @type {number} */ layer, /** @type {number} */ head) => about.layers[layer].heads[head];
  const place = word.match(/^(\d+)[.:](\d+)$/);
  if (place) return (layer, head) => layer === Number(place[1]) && numberOf(layer, head) === Number(place[2]);
  const layered = word.match(/^l(?:ayer)?\s*(\d+)$/);
  if (layered) return (layer) => layer === Number(layered[1]);
  const headed = word.match(/^h(?:ead)?\s*(\d+)$/);
  if (headed) return (layer, head) => numberOf(layer, head) === Number(headed[1]);
  const compared = word.match(COMPARED);
  const named = (compared?.[1] ?? word).trim();
  const measure = measures.names.find((/** @type {{ name: string }} */ { name }) => name.toLowerCase().startsWith(named));
  if (measure && compared) {
    const sign = compared[2] === ">" ? 1 : -1;
    return (layer, head) => sign * ((measures.value(layer, head, measure.name) ?? NaN) - Number(compared[3])) > 0;
  }
  if (measure) return (layer, head) => measures.leading(layer, head).startsWith(measure.name);
  return (layer) => about.layers[layer].name.toLowerCase().includes(word);
}

/** @param {string} search parts joined by commas must all hold @param {any} about @param {any} measures @returns {HeadTest} */
export function wallFilter(search, about, measures) {
  const words = search.toLowerCase().split(",").map((word) => word.trim()).filter(Boolean);
  const tests = words.map((word) => wordTest(word, about, measures));
  return (layer, head) => tests.every((test) => test(layer, head));
}
