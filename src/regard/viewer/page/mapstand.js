/**
 * Where a map stands: its camera, moved at once or in a short glide, and kept in the link.
 *
 *   zoom = middle column, middle row, columns across [, mean]        so that a link holds on any screen; "" is the whole
 */

import { cameraBetween, cameraCentred, cameraFitting, cameraMoved, cameraWindow, cameraWithin, cameraZoomed } from "./camera.js";

const GLIDE = 180; // ms

export class MapStand {
  /** @param {any} state @param {() => void} changed */
  constructor(state, changed) {
    Object.assign(this, { state, changed, camera: null, plot: null, way: null, asked: null, link: "", plane: 0 });
  }

  /** Takes the link's word, where it is not this map's own. */
  read() {
    const link = this.state.get("zoom");
    if (link === this.link && this.camera) return;
    const [x, y, across, plane] = link.split(",");
    this.plane = plane === "mean" ? 1 : 0;
    this.asked = Number(across) > 0 ? { x: Number(x), y: Number(y), across: Number(across) } : null;
    this.link = link;
    this.camera = null;
  }

  write() {
    const { width, height } = this.plot, { x, y, scale } = this.camera;
    const place = this.isWhole ? "" : [x + width / scale / 2, y + height / scale / 2, width / scale].map((value) => Number(value.toPrecision(6))).join(",");
    this.link = this.plane ? `${place || ",,"},mean` : place;
    this.state.set({ zoom: this.link }, { step: false });
  }

  get isWhole() {
    return this.camera.scale <= cameraFitting(this.plot).scale * 1.001;
  }

  get window() {
    return cameraWindow(this.camera, this.plot);
  }

  /** A plot of another size: what was whole stays whole, what was near stays near. */
  settle(plot) {
    const other = this.plot && (this.plot.rows !== plot.rows || this.plot.columns !== plot.columns);
    const whole = !this.camera || other || this.isWhole;
    this.plot = plot;
    this.camera = whole ? this.opening() : cameraWithin(this.camera, plot);
    this.glide();
  }

  opening() {
    const { asked, plot } = this;
    this.asked = null;
    if (!asked) return cameraFitting(plot);
    const near = cameraWithin({ x: 0, y: 0, scale: plot.width / asked.across }, plot);
    return cameraCentred(near, asked.y - 0.5, asked.x - 0.5, plot);
  }

  look(camera, slow = false) {
    const still = !slow || globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
    this.way = still ? null : { from: this.camera, to: camera, start: performance.now() };
    if (still) this.camera = camera;
    this.write();
    this.changed();
  }

  glide() {
    if (!this.way) return;
    const share = Math.min(1, (performance.now() - this.way.start) / GLIDE);
    this.camera = share < 1 ? cameraBetween(this.way.from, this.way.to, share) : this.way.to;
    if (share === 1) this.way = null;
    this.write();
    if (this.way) this.changed();
  }

  /** Zooms at a point of the plot. @returns {boolean} whether there was anything to zoom */
  zoom(factor, at, slow = false) {
    const from = this.way?.to ?? this.camera, camera = cameraZoomed(from, factor, at, this.plot);
    const same = camera.scale === from.scale;
    if (!same) this.look(camera, slow);
    return !same || factor > 1;
  }

  zoomMiddle(factor) {
    this.zoom(factor, { x: this.plot.width / 2, y: this.plot.height / 2 }, true);
  }

  move(dx, dy, slow = false) {
    this.look(cameraMoved(this.way?.to ?? this.camera, dx, dy, this.plot), slow);
  }

  whole() {
    this.look(cameraFitting(this.plot), true);
  }

  centre(row, column, slow = false) {
    this.look(cameraCentred(this.camera, row, column, this.plot), slow);
  }

  /** Brings a cell into sight, if it is not. */
  follow({ row, column }) {
    const { top, bottom, left, right } = this.window;
    if (row < top || row >= bottom || column < left || column >= right) this.centre(row, column, true);
  }

  /** The cell under a point of the plot; null beside the map. */
  cellAt({ x, y }) {
    const { camera, plot } = this, row = Math.floor(camera.y + y / camera.scale), column = Math.floor(camera.x + x / camera.scale);
    const inPlot = x >= 0 && y >= 0 && x < plot.width && y < plot.height;
    const inMap = row >= 0 && column >= 0 && row < plot.rows && column < plot.columns;
    return inPlot && inMap ? { row, column } : null;
  }
}
