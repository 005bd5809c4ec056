/**
 * What stands on the page as one SVG: letters stay letters, threads stay paths, canvases become pictures.
 *
 * Every box that has a colour, a line under it or an outline is drawn where the browser put it; then its text, line by
 * line. Nothing is fetched and nothing foreign is embedded, so that the picture can become a PNG in any browser.
 */

import { makeSvg } from "./dom.js";

const CLEAR_COLOUR = /^(transparent|rgba\(.*, 0\)|.* \/ 0\))$/;

const MARGIN = 24;

/** @param {HTMLElement} element @param {string} paper the colour behind it @returns {string} SVG */
export function svgOf(element, paper) {
  const box = element.getBoundingClientRect(), leaves = [...element.querySelectorAll("*")].filter((one) => !one.firstElementChild);
  const bottom = leaves.reduce((lowest, leaf) => Math.max(lowest, leaf.getBoundingClientRect().bottom), box.top + 1);
  const page = { x: box.left - MARGIN, y: box.top - MARGIN };
  const svg = svgSheet(Math.max(box.width, element.scrollWidth) + 2 * MARGIN, bottom - box.top + 2 * MARGIN, paper);
  drawElement(svg, element, page);
  return svgText(svg);
}

/** An empty sheet of paper. */
export function svgSheet(width, height, paper) {
  const given = { xmlns: "http://www.w3.org/2000/svg", width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}` };
  return makeSvg("svg", given, makeSvg("rect", { width: "100%", height: "100%", fill: paper }));
}

/** A sheet as text, its colours in the words that every reader of SVG knows. */
export function svgText(svg) {
  const named = new Map(), context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const plain = (colour) => {
    if (!named.has(colour)) named.set(colour, plainColour(context, colour));
    return named.get(colour);
  };
  for (const part of svg.querySelectorAll("[fill], [stroke]"))
    for (const name of ["fill", "stroke"]) {
      const colour = part.getAttribute(name);
      if (!colour || colour === "none") continue;
      const [rgb, alpha] = plain(colour);
      part.setAttribute(name, rgb);
      if (alpha < 1) part.setAttribute(`${name}-opacity`, String(alpha * Number(part.getAttribute(`${name}-opacity`) ?? 1)));
    }
  return new XMLSerializer().serializeToString(svg);
}

function plainColour(context, colour) {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
  return [`#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`, Math.round((alpha / 255) * 1000) / 1000];
}

function drawElement(svg, element, page) {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
  if (element instanceof SVGSVGElement) return drawPaths(svg, element, page);
  if (element instanceof HTMLCanvasElement) return drawCanvas(svg, element, page);
  for (const box of element.getClientRects()) drawBox(svg, box, style, page);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) drawWords(svg, child, style, page);
    else if (child.nodeType === Node.ELEMENT_NODE) drawElement(svg, child, page);
  }
}

function drawBox(svg, box, style, page) {
  const [x, y] = [box.left - page.x, box.top - page.y], { width, height } = box;
  if (!width || !height) return;
  const radius = parseFloat(style.borderTopLeftRadius) || 0;
  if (!CLEAR_COLOUR.test(style.backgroundColor)) svg.append(makeSvg("rect", { ...round({ x, y, width, height }), rx: radius, fill: style.backgroundColor }));
  const ring = parseFloat(style.outlineWidth), out = (parseFloat(style.outlineOffset) || 0) + ring / 2;
  const around = round({ x: x - out, y: y - out, width: width + 2 * out, height: height + 2 * out });
  if (style.outlineStyle !== "none" && ring)
    svg.append(makeSvg("rect", { ...around, rx: radius + out, fill: "none", stroke: style.outlineColor, "stroke-width": ring }));
  drawEdge(svg, style, "Bottom", [x, y + height, x + width, y + height]);
  drawEdge(svg, style, "Top", [x, y, x + width, y]);
  drawEdge(svg, style, "Left", [x, y, x, y + height]);
}

function drawEdge(svg, style, side, [x1, y1, x2, y2]) {
  const width = parseFloat(style[`border${side}Width`]), colour = style[`border${side}Color`];
  if (!width || style[`border${side}Style`] === "none" || CLEAR_COLOUR.test(colour)) return;
  svg.append(makeSvg("line", { ...round({ x1, y1, x2, y2 }), stroke: colour, "stroke-width": width }));
}

/** A text node, as one <text> for each of its lines. */
function drawWords(svg, node, style, page) {
  const range = document.createRange(), words = node.nodeValue ?? "";
  if (!words.trim()) return;
  range.selectNodeContents(node);
  const lines = [...range.getClientRects()].filter(({ width }) => width > 0);
  const pieces = lines.length > 1 ? piecesOf(range, node, words) : lines.map((box) => ({ box, text: words }));
  const size = parseFloat(style.fontSize), spacing = parseFloat(style.letterSpacing) || 0;
  for (const { box, text } of pieces) {
    const at = round({ x: box.left - page.x, y: box.top - page.y + box.height / 2 + 0.35 * size });
    const said = style.textTransform === "uppercase" ? text.trim().toUpperCase() : text.trim();
    const letters = { "font-family": style.fontFamily.replace(/"/g, "'"), "font-size": size, "font-weight": style.fontWeight };
    const shape = { "font-style": style.fontStyle, "font-variant": style.fontVariantCaps, "letter-spacing": spacing || null };
    svg.append(makeSvg("text", { ...at, fill: style.color, ...letters, ...shape, text: said }));
  }
}

function piecesOf(range, node, words) {
  const pieces = [];
  for (const { index, 0: word } of words.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect(), last = pieces[pieces.length - 1];
    if (last && Math.abs(last.box.top - box.top) < 2) last.text += ` ${word}`;
    else pieces.push({ box, text: word });
  }
  return pieces;
}

/** Paths with the colours and widths that they are seen with, stretched as the page stretches them. */
function drawPaths(svg, drawing, page) {
  const box = drawing.getBoundingClientRect(), view = drawing.viewBox.baseVal;
  const [across, down] = view?.width ? [box.width / view.width, box.height / view.height] : [1, 1];
  const group = makeSvg("g", { transform: `translate(${box.left - page.x} ${box.top - page.y}) scale(${across} ${down})`, fill: "none" });
  for (const path of drawing.querySelectorAll("path")) {
    const style = getComputedStyle(path);
    if (style.display === "none") continue;
    const line = { stroke: style.stroke, "stroke-width": parseFloat(style.strokeWidth), "stroke-opacity": style.strokeOpacity };
    group.append(makeSvg("path", { d: path.getAttribute("d"), ...line, fill: style.fill, "vector-effect": "non-scaling-stroke" }));
  }
  svg.append(group);
}

function drawCanvas(svg, canvas, page) {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  if (!width || !canvas.width) return;
  svg.append(makeSvg("image", { ...round({ x: left - page.x, y: top - page.y, width, height }), href: canvas.toDataURL("image/png"), preserveAspectRatio: "none" }));
}

function round(places) {
  return Object.fromEntries(Object.entries(places).map(([name, value]) => [name, Math.round(value * 100) / 100]));
}
