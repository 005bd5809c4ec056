/**
 * One frame of the map: tiles, hairlines, numbers, the pointed row and column, the chosen pair, tokens along the sides.
 *
 * @typedef {{ink: string, soft: string, faint: string, hair: string, paper: string, accent: string, font: string,
 *   strongFont: string, numberFont: string}} Look
 * @typedef {{row: number, column: number}} Pair
 * @typedef {object} Scene
 * @property {import("./camera.js").Camera} camera
 * @property {{left: number, top: number, width: number, height: number, ratio: number, rows: number, columns: number}} plot
 * @property {import("./tiles.js").TileCache} cache
 * @property {number} level
 * @property {import("./mappaint.js").Paint} paint
 * @property {{query: any, key: any}} sides
 * @property {Pair | null} hover
 * @property {Pair | null} chosen
 * @property {(row: number, column: number) => number | null} weight  of a cell, where it is known
 * @property {(depth: number) => string} ink  print that is readable on a depth of the scale
 * @property {Look} look
 */

import { cameraWindow } from "./camera.js";
import { shown, weightText } from "./dom.js";
import { drawSides } from "./mapaxes.js";
import { depthOf, drawHairlines, drawTiles, paintedTile } from "./mappaint.js";

export const CRISP = 14;
export const TOLD = 44;
const ROOMY = 62;

/** A weight as one reads it close up: small ones are told too. */
export function nearText(weight, digits = 2) {
  return weight !== 0 && Math.abs(weight) < 0.0005 ? shown(weight, digits) : weightText(weight);
}

/** The page's colours and letters, as a canvas wants them. @param {Element} root @returns {Look} */
export function lookOf(root) {
  const style = getComputedStyle(root), of = (name) => style.getPropertyValue(name).trim();
  const sans = of("--sans") || "sans-serif";
  return {
    ink: of("--ink"),
    soft: of("--soft"),
    faint: of("--faint"),
    hair: of("--hair"),
    paper: of("--paper"),
    accent: of("--accent"),
    font: `11.5px ${sans}`,
    strongFont: `600 11.5px ${sans}`,
    numberFont: `11px ${sans}`,
  };
}

/** Makes a canvas as sharp as the screen. @returns {number} pixels of the screen to one of the page */
export function sharpened(canvas, width, height) {
  const ratio = Math.max(1, globalThis.devicePixelRatio || 1);
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  return ratio;
}

/** Draws a scene. @param {CanvasRenderingContext2D} context @param {Scene} scene @returns stretches of tokens that are told */
export function drawScene(context, scene) {
  const { camera, plot, look } = scene, window = cameraWindow(camera, plot);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  drawTiles(context, scene.cache, camera, plot, window, scene.level, scene.paint);
  coverMargins(context, plot);
  const strength = Math.min(1, (camera.scale - CRISP) / 12 + 0.25);
  if (camera.scale >= CRISP) drawHairlines(context, camera, plot, window, look.hair, strength);
  context.setTransform(plot.ratio, 0, 0, plot.ratio, 0, 0);
  if (camera.scale >= TOLD) drawNumbers(context, scene, window);
  drawFrame(context, scene, window);
  if (scene.hover) drawCross(context, scene, window, scene.hover);
  if (scene.chosen) drawCell(context, scene, scene.chosen, look.ink);
  const told = [scene.chosen && { ...scene.chosen, strong: false }, scene.hover && { ...scene.hover, strong: true }];
  return drawSides(context, camera, plot, scene.sides, told.filter(Boolean), look);
}

/** Tiles are drawn out to whole pixels of theirs: what stands over the edge of the plot is taken away. */
function coverMargins(context, plot) {
  const [left, top] = [Math.round(plot.left * plot.ratio), Math.round(plot.top * plot.ratio)];
  const { width, height } = context.canvas;
  const [right, bottom] = [(plot.left + plot.width) * plot.ratio, (plot.top + plot.height) * plot.ratio];
  context.clearRect(0, 0, width, top);
  context.clearRect(0, 0, left, height);
  context.clearRect(right, 0, width, height);
  context.clearRect(0, bottom, width, height);
}

function spotOf({ camera, plot }, { row, column }) {
  return {
    x: plot.left + (column - camera.x) * camera.scale,
    y: plot.top + (row - camera.y) * camera.scale,
  };
}

function drawNumbers(context, scene, window) {
  const { camera, paint, look, plot } = scene, size = camera.scale, digits = size < ROOMY ? 1 : 2;
  context.save();
  context.beginPath();
  context.rect(plot.left, plot.top, plot.width, plot.height);
  context.clip();
  context.font = look.numberFont;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = Math.floor(window.top); row < window.bottom; row += 1)
    for (let column = Math.floor(window.left); column < window.right; column += 1) {
      const weight = scene.weight(row, column);
      if (weight === null) continue;
      const { x, y } = spotOf(scene, { row, column });
      context.fillStyle = scene.ink(depthOf(weight, paint.scale, paint.top));
      context.fillText(nearText(weight, digits), x + size / 2, y + size / 2 + 0.5);
    }
  context.restore();
}

function drawFrame(context, scene, window) {
  const { camera, plot, look } = scene, { x, y } = spotOf(scene, { row: window.top, column: window.left });
  context.strokeStyle = look.hair;
  context.lineWidth = 1;
  const wide = (window.right - window.left) * camera.scale, high = (window.bottom - window.top) * camera.scale;
  context.strokeRect(Math.round(x) - 0.5, Math.round(y) - 0.5, Math.min(wide, plot.width) + 1, Math.min(high, plot.height) + 1);
}

function drawCross(context, scene, window, pair) {
  const { camera, look } = scene, size = camera.scale, { x, y } = spotOf(scene, pair), thick = Math.max(1, size);
  const { x: left, y: top } = spotOf(scene, { row: window.top, column: window.left });
  const { x: right, y: bottom } = spotOf(scene, { row: window.bottom, column: window.right });
  context.save();
  context.beginPath();
  context.rect(left, top, right - left, bottom - top);
  context.clip();
  context.globalAlpha = size >= CRISP ? 0.09 : 0.5;
  context.fillStyle = look.accent;
  context.fillRect(left, y, right - left, thick);
  context.fillRect(x, top, thick, bottom - top);
  context.restore();
  drawCell(context, scene, pair, look.accent);
}

/** A ring around a cell; around a cell too small to see, a ring that is not. */
function drawCell(context, scene, pair, colour) {
  const { camera, plot } = scene, { x, y } = spotOf(scene, pair), size = Math.max(7, camera.scale);
  const out = (size - camera.scale) / 2;
  if (x + size < plot.left || y + size < plot.top || x > plot.left + plot.width || y > plot.top + plot.height) return;
  context.lineWidth = 1.5;
  context.strokeStyle = colour;
  context.strokeRect(x - out, y - out, size, size);
}

/** Draws the whole map small, with a box around what is seen of it. */
export function drawOverview(canvas, scene, window, side) {
  const { cache, paint, look } = scene, tile = cache.tile({ level: cache.top, row: 0, column: 0 });
  const longest = Math.max(cache.rows, cache.columns), share = side / longest;
  const width = Math.max(8, cache.columns * share), height = Math.max(8, cache.rows * share);
  const ratio = sharpened(canvas, width, height), context = canvas.getContext("2d");
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = look.paper;
  context.fillRect(0, 0, width, height);
  if (tile) context.drawImage(paintedTile(tile, paint), 0, 0, width, height);
  const across = width / cache.columns, down = height / cache.rows;
  const box = [window.left * across, window.top * down, (window.right - window.left) * across, (window.bottom - window.top) * down];
  const grown = [box[0] - Math.max(0, 5 - box[2]) / 2, box[1] - Math.max(0, 5 - box[3]) / 2, Math.max(5, box[2]), Math.max(5, box[3])];
  context.lineWidth = 1.5;
  context.strokeStyle = look.accent;
  context.strokeRect(...grown);
}
