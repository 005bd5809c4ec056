/** The map as SVG: cells as rectangles where they are few, else as one picture; the sides as letters. */

import { cameraWindow } from "./camera.js";
import { makeSvg } from "./dom.js";
import { svgSheet, svgText } from "./drawn.js";
import { drawSides } from "./mapaxes.js";
import { TOLD, nearText } from "./mapdraw.js";
import { colourAt, depthOf } from "./mappaint.js";

const MOST_CELLS = 64;

/** What drawSides needs of a canvas, writing SVG. */
class SvgPen {
  constructor(svg, measuring) {
    Object.assign(this, { svg, measuring, turns: [""], font: "", fillStyle: "", textAlign: "left" });
  }

  save() {
    this.turns.push(this.turns[this.turns.length - 1]);
  }

  restore() {
    this.turns.pop();
  }

  translate(x, y) {
    this.turns[this.turns.length - 1] += ` translate(${x.toFixed(2)} ${y.toFixed(2)})`;
  }

  rotate(angle) {
    this.turns[this.turns.length - 1] += ` rotate(${((angle * 180) / Math.PI).toFixed(1)})`;
  }

  measureText(text) {
    this.measuring.font = this.font;
    return this.measuring.measureText(text);
  }

  fillText(text, x, y) {
    const [, weight, size, family] = /^(\d+ )?([\d.]+)px (.*)$/.exec(this.font) ?? [null, "", "12", "sans-serif"];
    const anchor = { right: "end", center: "middle" }[this.textAlign] ?? "start", turn = this.turns[this.turns.length - 1];
    const given = { x: x.toFixed(2), y: (y + 0.35 * Number(size)).toFixed(2), fill: this.fillStyle, "font-size": size, "font-weight": weight?.trim() || null };
    this.svg.append(makeSvg("text", { ...given, "font-family": family.replace(/"/g, "'"), "text-anchor": anchor, transform: turn.trim() || null, text }));
  }
}

/** @param {import("./mapdraw.js").Scene} scene @param {HTMLCanvasElement} canvas @returns {string} */
export function mapSvg(scene, canvas) {
  const { camera, plot, sides, look } = scene, window = cameraWindow(camera, plot), ratio = plot.ratio;
  const svg = svgSheet(canvas.width / ratio, canvas.height / ratio, look.paper);
  const pen = new SvgPen(svg, canvas.getContext("2d"));
  const few = window.right - window.left <= MOST_CELLS && window.bottom - window.top <= MOST_CELLS;
  if (few) drawCells(svg, pen, scene, window);
  else drawPicture(svg, scene, canvas);
  if (few && scene.chosen) drawRing(svg, scene);
  drawSides(pen, camera, plot, sides, scene.chosen ? [{ ...scene.chosen, strong: true }] : [], look);
  return svgText(svg);
}

function drawCells(svg, pen, scene, window) {
  const { camera, plot, paint, look } = scene, size = camera.scale, bytes = new Uint8Array(paint.table.buffer);
  pen.font = look.numberFont;
  for (let row = Math.floor(window.top); row < window.bottom; row += 1)
    for (let column = Math.floor(window.left); column < window.right; column += 1) {
      const weight = scene.weight(row, column) ?? 0, at = 4 * colourAt(weight, paint);
      const x = plot.left + (column - camera.x) * size, y = plot.top + (row - camera.y) * size;
      const fill = `rgb(${bytes[at]},${bytes[at + 1]},${bytes[at + 2]})`;
      const [width, height] = [size.toFixed(2), size.toFixed(2)], place = { x: x.toFixed(2), y: y.toFixed(2), width, height };
      svg.append(makeSvg("rect", { ...place, fill, stroke: look.hair, "stroke-width": 0.5 }));
      if (size < TOLD) continue;
      Object.assign(pen, { fillStyle: scene.ink(depthOf(weight, paint.scale, paint.top)), textAlign: "center" });
      pen.fillText(nearText(weight), x + size / 2, y + size / 2);
    }
}

function drawRing(svg, { camera, plot, chosen, look }) {
  const size = camera.scale, x = plot.left + (chosen.column - camera.x) * size, y = plot.top + (chosen.row - camera.y) * size;
  svg.append(makeSvg("rect", { x, y, width: size, height: size, fill: "none", stroke: look.ink, "stroke-width": 1.5 }));
}

/** The plot of the canvas, without its labels. */
function drawPicture(svg, { plot, look }, canvas) {
  const part = document.createElement("canvas"), { ratio, left, top, width, height } = plot;
  Object.assign(part, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const context = part.getContext("2d");
  context.fillStyle = look.paper;
  context.fillRect(0, 0, part.width, part.height);
  context.drawImage(canvas, left * ratio, top * ratio, part.width, part.height, 0, 0, part.width, part.height);
  svg.append(makeSvg("image", { x: left, y: top, width, height, href: part.toDataURL("image/png") }));
}
