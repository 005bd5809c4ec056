/** Exact weights of single cells, asked for in blocks when cells are large enough to hold their number. */

import { TILE_SIDE } from "./pyramid.js";

const MOST = 4096;
const PAUSE = 90;

export class MapCells {
  /** @param {any} data @param {() => void} changed */
  constructor(data, changed) {
    Object.assign(this, { data, changed, block: null, timer: 0, flight: null });
  }

  /** Brings the cells of a window here, after the view has stood still a moment. */
  want(cache, window) {
    const top = Math.floor(window.top), left = Math.floor(window.left);
    const columns = Math.min(Math.ceil(window.right), left + 128) - left;
    const rows = Math.min(Math.ceil(window.bottom), top + Math.floor(MOST / columns)) - top;
    if (this.holds(cache, top, left) && this.holds(cache, top + rows - 1, left + columns - 1)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetchBlock(cache, { top, left, rows, columns }), PAUSE);
  }

  async fetchBlock(cache, { top, left, rows, columns }) {
    this.flight?.abort();
    this.flight = new AbortController();
    const { signal } = this.flight;
    const data = await this.read(cache, { top, left, rows, columns }, signal).catch(() => null);
    if (signal.aborted) return;
    this.block = { cache, top, left, rows, columns, data };
    this.changed();
  }

  /** The exact weights of a stretch of rows and columns; of the mean or maximum over heads there are only tiles. */
  async read(cache, { top, left, rows, columns }, signal) {
    if (cache.over !== "head") return null;
    const options = { ...cache.options, rows: [top, top + rows], columns: [left, left + columns] };
    return (await this.data.ask("cells", options, { signal })).arrays[0].data;
  }

  holds(cache, row, column) {
    const block = this.block;
    if (!block || block.cache !== cache) return false;
    return row >= block.top && row < block.top + block.rows && column >= block.left && column < block.left + block.columns;
  }

  /** The weight of a cell: exact where its block is here, else from the finest tile; null where neither is. */
  weight(cache, row, column) {
    const block = this.block;
    if (this.holds(cache, row, column) && block.data) return block.data[(row - block.top) * block.columns + column - block.left];
    return this.pixel(cache, 0, row, column)?.[0] ?? null;
  }

  /** Maximum and mean of the pixel of a level that covers a cell, and the share of it that was read; null before it comes. */
  pixel(cache, level, row, column) {
    const [i, j] = [row >> level, column >> level];
    const place = { level, row: Math.floor(i / TILE_SIDE), column: Math.floor(j / TILE_SIDE) }, tile = cache.tile(place);
    if (!tile) return null;
    const at = (i % TILE_SIDE) * tile.columns + (j % TILE_SIDE);
    return [tile.planes[0][at], tile.planes[1][at], tile.known];
  }

  /** The strongest cell of the pixel that covers a cell. */
  async strongest(cache, cell, level) {
    const side = 2 ** level;
    if (level === 0 || side * side > MOST) return cell;
    const top = Math.floor(cell.row / side) * side, left = Math.floor(cell.column / side) * side;
    const rows = Math.min(side, cache.rows - top), columns = Math.min(side, cache.columns - left);
    const data = await this.read(cache, { top, left, rows, columns }).catch(() => null);
    if (!data) return cell;
    const best = data.reduce((most, weight, at) => (weight > data[most] ? at : most), 0);
    return { row: top + Math.floor(best / columns), column: left + (best % columns) };
  }

  rest() {
    clearTimeout(this.timer);
    this.flight?.abort();
  }
}
