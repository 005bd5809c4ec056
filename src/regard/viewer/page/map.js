/**
 * The map of one head: rows are queries, columns keys, of any size, from tiles that are asked for as they are seen.
 *
 *   one canvas; a frame draws what is here at once and asks for what is not
 */

import { arrowMove, gesturesOver } from "./camera.js";
import { eachFrame, make } from "./dom.js";
import { gutterOf, placeText } from "./mapaxes.js";
import { MapBar } from "./mapbar.js";
import { MapCells } from "./mapcells.js";
import { CRISP, TOLD, drawOverview, drawScene, lookOf, sharpened } from "./mapdraw.js";
import { colourTable } from "./mappaint.js";
import { MapStand } from "./mapstand.js";
import { mapSvg } from "./mapsvg.js";
import { TileCache, levelAt, tilesWithin } from "./tiles.js";

const HEADS_KEPT = 6;
const ARROW_PIXELS = 90;
const ZOOM_KEYS = { "+": 1.6, "=": 1.6, "-": 1 / 1.6, "−": 1 / 1.6 };

/** @param {HTMLElement} element @param {any} context */
export function mapView(element, context) {
  return new MapView(element, context);
}

/** A side of the map, whose labels may still have to come. */
export function mapSide(data, layer, which) {
  const axis = data.axis(layer, which), cells = data.layer(layer)[which === "query" ? "queries" : "keys"];
  return { name: axis.name, cells, text: !axis.grid && axis.length === cells, label: (place) => data.label(axis.name, place) };
}

/** The tiles of one head, or of all heads of a layer brought to one matrix. */
export function headTiles(data, { layer, head, formula }, changed, over = "head") {
  const { queries, keys } = data.layer(layer), what = formula ? { formula } : {};
  const one = { layer, ...(over === "head" ? { head } : {}), ...what }, together = data.small(layer, true) && !formula ? { layer } : one;
  return new TileCache((...given) => data.ask(...given), { rows: queries, columns: keys }, one, changed, over, together);
}

class MapView {
  constructor(element, context) {
    Object.assign(this, { element, context, data: context.data, state: context.state, caches: new Map(), at: null, pointer: null, shownNow: false });
    this.draw = eachFrame(() => this.frame());
    this.stand = new MapStand(context.state, () => this.draw());
    this.cells = new MapCells(context.data, () => this.draw());
    this.bar = new MapBar(context, (plane) => this.turn(plane));
    this.canvas = make("canvas", { class: "map-canvas", tabindex: 0, role: "img" });
    this.overview = make("canvas", { class: "map-overview", "aria-hidden": "true", hidden: true });
    this.stage = make("div", { class: "map-stage" }, this.canvas, this.overview);
    element.append(make("div", { class: "map" }, this.bar.element, this.stage));
    this.ending = new AbortController();
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(element);
    this.listen();
  }

  listen() {
    const { signal } = this.ending, inPlot = ({ x, y }) => ({ x: x - this.plot.left, y: y - this.plot.top });
    const does = {
      zoom: (factor, at, slow) => this.stand.zoom(factor, inPlot(at), slow),
      move: (dx, dy) => this.stand.move(dx, dy),
      point: (at) => this.point(at && this.plot ? inPlot(at) : null),
      click: (at) => this.choose(this.stand.cellAt(inPlot(at))),
    };
    gesturesOver(this.canvas, does, signal);
    const jump = ({ buttons, offsetX, offsetY }) => {
      const { clientWidth, clientHeight } = this.overview, { rows, columns } = this.plot;
      if (buttons) this.stand.centre((offsetY / clientHeight) * rows, (offsetX / clientWidth) * columns);
    };
    for (const name of ["pointerdown", "pointermove"]) this.overview.addEventListener(name, jump, { signal });
  }

  get plot() {
    return this.stand.plot;
  }

  show() {
    this.shownNow = true;
    this.stand.read();
    this.draw();
  }

  hide() {
    this.shownNow = false;
    this.at = null;
    this.cells.rest();
    for (const cache of this.caches.values()) cache.rest();
  }

  free() {
    this.hide();
    this.watcher.disconnect();
    this.ending.abort();
  }

  update(changed) {
    if (changed.has("zoom")) this.stand.read();
    if (changed.has("theme")) this.palettes = null;
    if (changed.has("query") || changed.has("key")) this.follow();
    this.draw();
  }

  /** Brings a pair that was chosen elsewhere into sight; the first pair of a page moves nothing. */
  follow() {
    const { chosen } = this.marks(), first = !this.followed;
    this.followed = chosen;
    if (chosen && !first && this.stand.camera && !this.pointer) this.stand.follow(chosen);
  }

  /** Maximum or mean of the cells under a pixel. */
  turn(plane) {
    this.stand.plane = plane;
    this.stand.write();
    this.draw();
  }

  cache() {
    const { batch, layer, head, formula, over: chosen } = this.state.values, few = this.data.small(layer, true), over = few ? chosen : "head";
    const name = JSON.stringify([batch, layer, over === "head" ? head : over, formula]);
    const cache = this.caches.get(name) ?? headTiles(this.data, { layer, head, formula }, () => this.shownNow && this.draw(), over);
    this.caches.delete(name);
    this.caches.set(name, cache);
    if (this.caches.size > HEADS_KEPT) this.caches.delete(this.caches.keys().next().value);
    for (const other of this.caches.values()) if (other !== cache) other.rest();
    return cache;
  }

  layOut({ rows, columns }) {
    const { clientWidth: width, clientHeight: height } = this.stage, layer = this.state.get("layer");
    this.sides = { query: mapSide(this.data, layer, "query"), key: mapSide(this.data, layer, "key") };
    this.look = lookOf(this.context.root);
    const context = this.canvas.getContext("2d"), ratio = sharpened(this.canvas, width, height);
    context.font = this.look.strongFont;
    const { left, top, right } = gutterOf(context, this.sides, width);
    const room = { width: Math.max(20, width - left - right), height: Math.max(20, height - top - 2) };
    this.stand.settle({ left, top, ...room, ratio, rows, columns });
    return context;
  }

  frame() {
    if (!this.shownNow || !this.element.clientWidth) return;
    const cache = this.cache(), context = this.layOut(cache), { camera, plot, window } = this.stand;
    const level = levelAt(camera.scale * plot.ratio, cache.top);
    this.pointed();
    this.want(cache, level);
    this.scene = { camera, plot, cache, level, sides: this.sides, look: this.look, ...this.marks(), ...this.numbers(cache, level) };
    for (const { axis, from, to } of drawScene(context, this.scene)) this.label(axis, from, to);
    this.drawProgress(context, cache.share);
    this.drawBox(window);
    this.bar.show(this.scene);
    this.bar.tell(this.scene, cache.problem);
    this.canvas.setAttribute("aria-label", `map of ${placeText(plot.rows)} queries by ${placeText(plot.columns)} keys`);
  }

  want(cache, level) {
    const { window, plot, camera } = this.stand, near = level < cache.top ? tilesWithin(window, level, plot.rows, plot.columns) : [];
    cache.want([{ level: cache.top, row: 0, column: 0 }, ...near]);
    if (camera.scale >= TOLD) this.cells.want(cache, window);
  }

  /** How the scene's weights are painted and read. */
  numbers(cache, level) {
    const { colour, theme } = this.context;
    this.palettes ??= { even: colourTable(colour.ramp(theme)), sided: colourTable(colour.difference(theme)), theme };
    return {
      paint: this.bar.paint(cache, level, this.stand.plane, this.palettes),
      weight: (row, column) => this.cells.weight(cache, row, column),
      pixel: (row, column) => this.cells.pixel(cache, level, row, column),
      ink: (depth) => colour.ink(theme, depth),
    };
  }

  marks() {
    const { hover, query, key, layer } = this.state.values, { queries, keys } = this.data.layer(layer);
    const cell = (row, column) => (row < queries && column < keys && row !== null && column !== null ? { row, column } : null);
    return { hover: this.pointer ?? (hover && cell(hover.query, hover.key)), chosen: cell(query, key) };
  }

  label(axis, from, to) {
    const side = this.sides[axis], known = (place) => side.label(place) !== null;
    if (known(from) && known(Math.max(from, to - 1))) return;
    this.data.labels(side.name, from, to).then(() => this.draw(), () => {});
  }

  drawProgress(context, share) {
    if (share >= 1) return;
    const { left, top, width } = this.plot;
    context.fillStyle = this.look.accent;
    context.fillRect(left, top - 3, Math.max(12, width * share), 1.5);
  }

  /** The whole map small, where little of a large one is seen. */
  drawBox(window) {
    const { rows, columns, left, width } = this.plot, seen = ((window.right - window.left) * (window.bottom - window.top)) / (rows * columns);
    const far = seen < 0.4 && Math.max(rows, columns) >= 64;
    this.overview.hidden = !far;
    this.canvas.classList.toggle("near", !this.stand.isWhole);
    if (!far) return;
    this.overview.style.setProperty("right", `${this.stage.clientWidth - left - width}px`);
    drawOverview(this.overview, this.scene, window, Math.min(120, width / 4));
  }

  /** Where the pointer is, in pixels of the plot: the map may move under it. */
  point(at) {
    const left = this.at && !at;
    this.at = at;
    if (left) this.state.set({ hover: null });
    this.draw();
  }

  /** The cell under the pointer, told to the other views. */
  pointed() {
    this.pointer = this.at ? this.stand.cellAt(this.at) : null;
    if (this.at) this.state.set({ hover: this.pointer && { query: this.pointer.row, key: this.pointer.column } });
  }

  /** Chooses a pair; where a pixel covers many, the strongest of them. */
  async choose(cell) {
    if (!cell) return;
    this.canvas.focus({ preventScroll: true });
    const best = await this.cells.strongest(this.scene.cache, cell, this.scene.level);
    this.state.set({ query: best.row, key: best.column });
  }

  /** Arrows move the chosen pair where cells are seen, which is the page's own; else, or with shift, they move the map. */
  key(event) {
    const arrow = arrowMove(event.key), factor = ZOOM_KEYS[event.key];
    if (!this.plot || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "0") this.stand.whole();
    else if (factor) this.stand.zoomMiddle(factor);
    else if (arrow && !this.stand.isWhole && (event.shiftKey || this.stand.camera.scale < CRISP))
      this.stand.move(arrow[0] * ARROW_PIXELS, arrow[1] * ARROW_PIXELS, true);
    else return false;
    return true;
  }

  async picture() {
    this.frame();
    return { canvas: this.canvas, vector: () => mapSvg(this.scene, this.canvas) };
  }
}
