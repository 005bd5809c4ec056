/**
 * What stands along the sides of a map: tokens where there is room for each, some of them where there is less, positions
 * where there are too many. The pointed row and column are always told.
 *
 * @typedef {{name: string, cells: number, text: boolean, label: (place: number) => string | null}} Side  text: has labels
 * @typedef {import("./mapdraw.js").Look} Look
 */

const LINE = 13;
const SLANT = -Math.PI / 3;
const TOKENS_UP_TO = 8;
const LONG = 2048; // labels of longer sides come as they are needed: their gutter is fixed

/** The smallest of 1, 2, 5, 10, 20, … that is at least as large. */
export function niceStep(least) {
  if (least <= 1) return 1;
  const decade = 10 ** Math.floor(Math.log10(least));
  return decade * [1, 2, 5, 10].find((step) => step * decade >= least - 1e-9);
}

/** Which places are told between two cells when a cell has `scale` pixels and a label needs `room`. */
export function ticksAlong(from, to, scale, room) {
  const step = niceStep(room / scale), places = [];
  for (let place = Math.ceil((from - 0.5) / step) * step; place + 0.5 <= to + 1e-9; place += step) places.push(place);
  return { step, places };
}

/** A token as it is written beside a map: no outer spaces, nothing empty, not too long. */
export function sideLabel(label, most = 16) {
  const seen = label.replace(/\n/g, "⏎").replace(/\t/g, "⇥").trim() || "␣";
  return seen.length > most ? `${seen.slice(0, most - 1)}…` : seen;
}

/** A position, its thousands set apart. */
export function placeText(place) {
  return String(place).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Do ticks this far apart tell tokens, or positions. */
export function tellsTokens(side, step) {
  return side.text && step <= TOKENS_UP_TO;
}

/** What stands at a place: its token, where it has one that has come. */
export function placeLabel(side, place, most) {
  const label = side.text ? side.label(place) : null;
  return label === null ? placeText(place) : sideLabel(label, most);
}

/** How wide the widest label of a side is, from a sample of it. */
export function widestLabel(context, side) {
  const stride = Math.max(1, Math.floor(side.cells / 400));
  let widest = context.measureText(placeText(side.cells)).width;
  if (!side.text) return widest;
  if (side.cells > LONG) return Math.max(widest, context.measureText("nnnnnnnn").width);
  for (let place = 0; place < side.cells; place += stride)
    widest = Math.max(widest, context.measureText(placeLabel(side, place)).width);
  return widest;
}

/** The room that labels need at the left and, slanted, at the top and to the right. */
export function gutterOf(context, { query, key }, width) {
  const across = Math.min(widestLabel(context, key), 96);
  const most = Math.max(44, Math.min(132, width * 0.24));
  return {
    left: Math.ceil(Math.min(most, Math.max(30, widestLabel(context, query) + 16))),
    top: Math.ceil(Math.max(30, across * Math.sin(-SLANT) + 18)),
    right: Math.ceil(across * Math.cos(SLANT) * 0.8),
  };
}

/**
 * Draws the labels of both sides.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {{x: number, y: number, scale: number}} camera
 * @param {{left: number, top: number, width: number, height: number}} plot
 * @param {{query: Side, key: Side}} sides
 * @param {Array<{row: number, column: number, strong: boolean}>} told  pairs whose labels are always written
 * @param {Look} look
 * @returns {{axis: "query" | "key", from: number, to: number}[]}  stretches along which tokens are told
 */
export function drawSides(context, camera, plot, sides, told, look) {
  const slant = LINE / Math.sin(-SLANT) + 1;
  const across = { axis: "key", pairs: "column", side: sides.key, from: camera.x, room: plot.width, need: slant, write: writeColumn };
  const down = { axis: "query", pairs: "row", side: sides.query, from: camera.y, room: plot.height, need: LINE + 1, write: writeRow };
  const beside = { ...plot, left: plot.left + Math.max(0, -camera.x * camera.scale) };
  return [[across, plot], [down, beside]].flatMap(([along, where]) => drawSide(context, camera.scale, where, along, told, look));
}

function drawSide(context, scale, plot, { axis, pairs, side, from, room, need, write }, told, look) {
  const until = Math.min(side.cells, from + room / scale), at = (place) => (place + 0.5 - from) * scale;
  const start = Math.max(0, from);
  let { step, places } = ticksAlong(start, until, scale, need);
  const tokens = tellsTokens(side, step);
  if (!tokens) ({ step, places } = ticksAlong(start, until, scale, 2 * need));
  const always = told.map((pair) => ({ place: pair[pairs], strong: pair.strong })).filter(({ place }) => at(place) > 0 && at(place) < room);
  for (const place of places)
    if (place < side.cells && !always.some((other) => Math.abs(at(other.place) - at(place)) < need))
      write(context, plot, at(place), tokens ? placeLabel(side, place) : placeText(place), look.soft, look.font);
  always.sort((a, b) => a.strong - b.strong).forEach(({ place, strong }, order) => {
    if (always.slice(order + 1).some((later) => Math.abs(at(later.place) - at(place)) < need)) return;
    write(context, plot, at(place), placeLabel(side, place, 22), strong ? look.accent : look.ink, look.strongFont);
  });
  return tokens ? [{ axis, from: Math.floor(start), to: Math.ceil(until) }] : [];
}

function writeRow(context, plot, at, text, colour, font) {
  context.font = font;
  context.fillStyle = colour;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText(fitting(context, text, plot.left - 12), plot.left - 8, plot.top + at + 0.5);
}

function writeColumn(context, plot, at, text, colour, font) {
  context.save();
  context.font = font;
  context.fillStyle = colour;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.translate(plot.left + at, plot.top - 7);
  context.rotate(SLANT);
  context.fillText(fitting(context, text, (plot.top - 12) / Math.sin(-SLANT)), 0, 0);
  context.restore();
}

/** A text cut so that it is no wider than there is room for. */
export function fitting(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let most = text.length - 1;
  while (most > 1 && context.measureText(`${text.slice(0, most)}…`).width > room) most -= 1;
  return `${text.slice(0, most)}…`;
}
