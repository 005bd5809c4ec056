/**
 * From weights to pixels: a table of 1024 colours, and tiles painted through it.
 *
 *   depth = √(w / top) | w / top | 1 + log₁₀(w) / 6        for a signed map, by the size of w, to both sides of none
 *
 * @typedef {import("./tiles.js").Tile} Tile
 * @typedef {{table: Uint32Array, plane: 0 | 1, scale: "root" | "linear" | "log", top: number, signed: boolean, name: string}} Paint
 */

import { TILE_SIDE } from "./pyramid.js";
import { tilesWithin } from "./tiles.js";

const COLOURS = 1024;
const DECADES = 6;

/** 1024 colours between those of a table of RGBA, as words that ImageData holds. */
export function colourTable(ramp) {
  const table = new Uint32Array(COLOURS), bytes = new Uint8ClampedArray(table.buffer), last = ramp.length / 4 - 1;
  for (let at = 0; at < COLOURS; at += 1) {
    const place = (at / (COLOURS - 1)) * last, left = Math.min(last - 1, Math.floor(place));
    for (let part = 0; part < 4; part += 1) {
      const from = ramp[4 * left + part], to = ramp[4 * left + 4 + part];
      bytes[4 * at + part] = from + (to - from) * (place - left);
    }
  }
  return table;
}

/** How deep a weight is painted, 0 … 1. */
export function depthOf(weight, scale, top) {
  const size = Math.abs(weight);
  if (!(size > 0)) return 0;
  if (scale === "log") return Math.max(0, Math.min(1, 1 + Math.log10(size) / DECADES));
  const share = Math.min(1, size / (top || 1));
  return scale === "linear" ? share : Math.sqrt(share);
}

/** The weight that is painted at a depth: the other way round, for a legend. */
export function weightAt(depth, scale, top) {
  if (scale === "log") return depth > 0 ? 10 ** ((depth - 1) * DECADES) : 0;
  return top * (scale === "linear" ? depth : depth * depth);
}

/** Where in the table a weight's colour stands. */
export function colourAt(weight, paint) {
  const depth = depthOf(weight, paint.scale, paint.top);
  if (!paint.signed) return Math.round((weight < 0 ? 0 : depth) * (COLOURS - 1));
  return Math.round((COLOURS - 1) * (0.5 + (weight < 0 ? -depth : depth) / 2));
}

/** Values as pixels. */
export function paintedValues(values, rows, columns, paint) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d"), pixels = context.createImageData(columns, rows);
  const words = new Uint32Array(pixels.data.buffer), { table } = paint;
  for (let at = 0; at < words.length; at += 1) words[at] = table[colourAt(values[at], paint)];
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** A tile's pixels, painted again only when the paint is another. */
export function paintedTile(tile, paint) {
  if (tile.stamp !== paint.name || !tile.canvas) {
    tile.canvas = paintedValues(tile.planes[paint.plane], tile.rows, tile.columns, paint);
    tile.stamp = paint.name;
  }
  return tile.canvas;
}

/**
 * Draws the tiles of a level; where one has not come, the pixels of the finest coarser one that has.
 * Edges stand on whole pixels of the screen, so that no seam shows.
 *
 * @param {CanvasRenderingContext2D} context  in pixels of the screen
 * @param {import("./tiles.js").TileCache} cache
 * @param {{x: number, y: number, scale: number}} camera
 * @param {{left: number, top: number, ratio: number}} plot
 * @param {object} window  the cells that are seen
 */
export function drawTiles(context, cache, camera, plot, window, level, paint) {
  for (const place of tilesWithin(window, level, cache.rows, cache.columns)) {
    const found = finestOf(cache, place);
    if (found) drawTile(context, camera, plot, overlapOf(place, window, cache), found, paint);
  }
}

function finestOf(cache, place) {
  for (let up = 0; place.level + up <= cache.top; up += 1) {
    const there = { level: place.level + up, row: place.row >> up, column: place.column >> up };
    const tile = cache.tile(there);
    if (tile) return { tile, place: there };
  }
  return null;
}

/** The cells that a tile's place and the window share, out to whole pixels of the place's level. */
function overlapOf({ level, row, column }, window, { rows, columns }) {
  const cells = 2 ** level, side = TILE_SIDE * cells;
  const out = (from, to, first, count) => [
    Math.max(first * side, Math.floor(from / cells) * cells),
    Math.min((first + 1) * side, Math.ceil(to / cells) * cells, count),
  ];
  const [top, bottom] = out(window.top, window.bottom, row, rows);
  const [left, right] = out(window.left, window.right, column, columns);
  return { top, bottom, left, right };
}

function drawTile(context, camera, plot, part, { tile, place }, paint) {
  const cells = 2 ** place.level, size = camera.scale * plot.ratio;
  const x = (column) => Math.round((plot.left + (column - camera.x) * camera.scale) * plot.ratio);
  const y = (row) => Math.round((plot.top + (row - camera.y) * camera.scale) * plot.ratio);
  const [x0, x1, y0, y1] = [x(part.left), x(part.right), y(part.top), y(part.bottom)];
  if (x1 <= x0 || y1 <= y0) return;
  const fromX = part.left / cells - place.column * TILE_SIDE, fromY = part.top / cells - place.row * TILE_SIDE;
  const wide = (part.right - part.left) / cells, high = (part.bottom - part.top) / cells;
  context.imageSmoothingEnabled = size * cells < 2;
  context.drawImage(paintedTile(tile, paint), fromX, fromY, wide, high, x0, y0, x1 - x0, y1 - y0);
}

/** Hairlines between cells, stronger as cells grow. */
export function drawHairlines(context, camera, plot, window, colour, strength) {
  const size = camera.scale * plot.ratio, thin = Math.max(1, Math.round(plot.ratio / 2));
  const left = plot.left * plot.ratio, top = plot.top * plot.ratio;
  const x = (column) => Math.round(left + (column - camera.x) * size), y = (row) => Math.round(top + (row - camera.y) * size);
  const [x0, x1, y0, y1] = [x(window.left), x(window.right), y(window.top), y(window.bottom)];
  context.globalAlpha = strength;
  context.fillStyle = colour;
  for (let column = Math.ceil(window.left); column <= window.right; column += 1) context.fillRect(x(column), y0, thin, y1 - y0 + thin);
  for (let row = Math.ceil(window.top); row <= window.bottom; row += 1) context.fillRect(x0, y(row), x1 - x0 + thin, thin);
  context.globalAlpha = 1;
}
