/**
 * An axis of patches: which place of it is which patch of the image.
 *
 *   patches are the places that are not special, in order, row by row
 */

import { depthOf } from "./mappaint.js";

const CLEAR = 0.88; // how much of the image the deepest colour covers

export class Patches {
  /** @param {{length: number, special: Set<number>, grid: [number, number]}} axis */
  constructor(axis) {
    [this.rows, this.columns] = axis.grid;
    this.places = [];
    for (let place = 0; this.places.length < this.rows * this.columns && place < axis.length; place += 1)
      if (!axis.special.has(place)) this.places.push(place);
    this.special = [...axis.special].sort((a, b) => a - b);
    this.patchOf = new Map(this.places.map((place, patch) => [place, patch]));
  }

  /** The place under a point, given as shares of the image; null outside. */
  placeAt(x, y) {
    const row = Math.floor(y * this.rows), column = Math.floor(x * this.columns);
    const inside = row >= 0 && column >= 0 && row < this.rows && column < this.columns;
    return inside ? (this.places[row * this.columns + column] ?? null) : null;
  }

  /** Row and column of a place; null for a special one. */
  spot(place) {
    const patch = this.patchOf.get(place);
    return patch === undefined ? null : { row: Math.floor(patch / this.columns), column: patch % this.columns };
  }

  /** A neighbour of a place, by rows and columns; the place itself at the edge. */
  beside(place, down, across) {
    const at = this.spot(place);
    if (!at) return this.places[0];
    const row = Math.max(0, Math.min(this.rows - 1, at.row + down)), column = Math.max(0, Math.min(this.columns - 1, at.column + across));
    return this.places[row * this.columns + column];
  }

  /** What the deepest colour stands for: the largest weight of a patch other than the one that is pointed at. */
  most(weights, pointed) {
    let most = 0;
    for (const place of this.places) if (place !== pointed && Math.abs(weights[place]) > most) most = Math.abs(weights[place]);
    return most || 1;
  }

  /** The weights as dots, larger for more. */
  dots(context, weights, width, height, scale, most, colour) {
    const wide = width / this.columns, high = height / this.rows;
    context.fillStyle = colour;
    this.places.forEach((place, patch) => {
      const radius = 0.36 * Math.min(wide, high) * depthOf(weights[place], scale, most);
      if (radius < 0.6) return;
      context.beginPath();
      context.arc(((patch % this.columns) + 0.5) * wide, (Math.floor(patch / this.columns) + 0.5) * high, radius, 0, 2 * Math.PI);
      context.fill();
    });
  }

  /** The weights as a picture of one pixel a patch: colour and cover from the weight. */
  painted(weights, ramp, scale, most) {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: this.columns, height: this.rows });
    const context = canvas.getContext("2d"), pixels = context.createImageData(this.columns, this.rows);
    this.places.forEach((place, patch) => {
      const depth = depthOf(weights[place], scale, most), at = 4 * Math.round(depth * (ramp.length / 4 - 1));
      pixels.data.set([ramp[at], ramp[at + 1], ramp[at + 2], Math.round(255 * CLEAR * depth)], 4 * patch);
    });
    context.putImageData(pixels, 0, 0);
    return canvas;
  }
}

/** Lays a picture of patches over a box of a canvas, smooth or with the edges of the patches. */
export function laidOver(context, painted, width, height, smooth) {
  context.imageSmoothingEnabled = smooth;
  context.imageSmoothingQuality = "high";
  context.drawImage(painted, 0, 0, width, height);
}

/** A ring around a patch, light and dark so that it is seen on any image. */
export function ringAround(context, patches, place, width, height, colours) {
  const at = patches.spot(place);
  if (!at) return;
  const wide = width / patches.columns, high = height / patches.rows;
  colours.forEach(([colour, line]) => {
    context.lineWidth = line;
    context.strokeStyle = colour;
    context.strokeRect(at.column * wide, at.row * high, wide, high);
  });
}
