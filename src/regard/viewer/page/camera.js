/**
 * Where one looks at a map: the cell (x, y) at the corner of the plot and the pixels of a cell.
 *
 *   screen = (cell − corner) · scale        a gesture at a point leaves the cell under that point where it is
 *
 * @typedef {{x: number, y: number, scale: number}} Camera
 * @typedef {{rows: number, columns: number, width: number, height: number}} Stage  cells of the map, pixels of the plot
 */

const LARGEST_CELL = 120;
const LARGEST_FIT = 72;

/** The whole map in the plot. */
export function cameraFitting(stage) {
  const scale = Math.min(stage.width / stage.columns, stage.height / stage.rows, LARGEST_FIT);
  return cameraWithin({ x: 0, y: 0, scale }, stage);
}

/** The camera, kept so that the map neither leaves the plot nor becomes smaller than it. */
export function cameraWithin(camera, stage) {
  const fit = Math.min(stage.width / stage.columns, stage.height / stage.rows, LARGEST_FIT);
  const scale = Math.max(fit, Math.min(Math.max(LARGEST_CELL, fit), camera.scale));
  return {
    x: cornerWithin(camera.x, stage.columns, stage.width / scale, 0.5),
    y: cornerWithin(camera.y, stage.rows, stage.height / scale, 0),
    scale,
  };
}

/** A map narrower than the plot stands in its middle, a lower one at its top. */
function cornerWithin(corner, cells, seen, spare) {
  return seen >= cells ? spare * (cells - seen) : Math.max(0, Math.min(cells - seen, corner));
}

/** The camera after zooming by a factor at a point of the plot. */
export function cameraZoomed(camera, factor, point, stage) {
  const near = cameraWithin({ ...camera, scale: camera.scale * factor }, stage);
  const x = camera.x + point.x / camera.scale - point.x / near.scale;
  const y = camera.y + point.y / camera.scale - point.y / near.scale;
  return cameraWithin({ x, y, scale: near.scale }, stage);
}

/** The camera after dragging by pixels. */
export function cameraMoved(camera, dx, dy, stage) {
  return cameraWithin({ ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale }, stage);
}

/** The camera with a cell in the middle. */
export function cameraCentred(camera, row, column, stage) {
  const x = column + 0.5 - stage.width / camera.scale / 2, y = row + 0.5 - stage.height / camera.scale / 2;
  return cameraWithin({ x, y, scale: camera.scale }, stage);
}

/** A camera between two, scale by scale: `share` from 0 to 1. */
export function cameraBetween(from, to, share) {
  const ease = 1 - (1 - share) ** 3, scale = from.scale * (to.scale / from.scale) ** ease;
  const turn = Math.abs(1 / to.scale - 1 / from.scale) < 1e-12 ? ease : (1 / scale - 1 / from.scale) / (1 / to.scale - 1 / from.scale);
  return { x: from.x + (to.x - from.x) * turn, y: from.y + (to.y - from.y) * turn, scale };
}

/** The cells that the plot shows, as fractions of cells. */
export function cameraWindow(camera, stage) {
  return {
    left: Math.max(0, camera.x),
    top: Math.max(0, camera.y),
    right: Math.min(stage.columns, camera.x + stage.width / camera.scale),
    bottom: Math.min(stage.rows, camera.y + stage.height / camera.scale),
  };
}

const KEY_MOVES = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * Gestures over an element: wheel, pinch, drag, click, double click.
 *
 * @param {HTMLElement} element
 * @param {{zoom: (factor: number, point: {x: number, y: number}, slow: boolean) => boolean, move: (dx: number, dy: number) => void,
 *   point: (at: {x: number, y: number} | null) => void, click: (at: {x: number, y: number}) => void}} does  `zoom` says whether anything changed
 * @param {AbortSignal} signal  ends the listening
 */
export function gesturesOver(element, does, signal) {
  const fingers = new Map();
  let travelled = 0;
  const at = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const listen = (name, act, passive = true) => element.addEventListener(name, act, { signal, passive });
  const lift = (event) => {
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && travelled < 5) does.click(at(event));
    element.classList.toggle("dragging", fingers.size > 0);
  };
  listen("wheel", (event) => {
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    const factor = Math.exp(-Math.max(-120, Math.min(120, pixels)) * (event.ctrlKey ? 0.01 : 0.0025));
    if (does.zoom(factor, at(event), false)) event.preventDefault();
  }, false);
  listen("pointerdown", (event) => {
    if (event.button > 0) return;
    if (!fingers.size) travelled = 0;
    fingers.set(event.pointerId, at(event));
    element.setPointerCapture(event.pointerId);
  });
  listen("pointermove", (event) => {
    const now = at(event), before = fingers.get(event.pointerId);
    if (!before) return does.point(now);
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    const other = [...fingers].find(([name]) => name !== event.pointerId)?.[1];
    if (other) does.zoom(distanceOf(now, other) / distanceOf(before, other), middleOf(now, other), false);
    const part = other ? 0.5 : 1;
    if (travelled >= 5) does.move((now.x - before.x) * part, (now.y - before.y) * part);
    element.classList.toggle("dragging", travelled >= 5);
    fingers.set(event.pointerId, now);
    does.point(other ? null : now);
  });
  listen("pointerup", lift);
  listen("pointercancel", lift);
  listen("pointerleave", (event) => { if (event.pointerType === "mouse" && !fingers.size) does.point(null); });
  listen("dblclick", (event) => { does.zoom(event.shiftKey ? 1 / 3 : 3, at(event), true); });
}

/** How far an arrow key moves, as directions of the map; null for other keys. */
export function arrowMove(key) {
  return KEY_MOVES[key] ?? null;
}

function distanceOf(a, b) {
  return Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
}

function middleOf(a, b) {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}
