/**
 * The levels of a matrix that is here whole: each half as large as the one before.
 *
 *   a pixel keeps the maximum and the sum of its four; the mean is the sum over the cells that there are
 */

export const TILE_SIDE = 256;

/** Of the heads of a layer one, or their mean or maximum; a head that came alone is itself. */
export function matrixOver({ data, shape }, over, head) {
  const heads = shape.length > 2 ? shape[0] : 1, cells = data.length / heads;
  if (heads === 1) return data;
  if (over === "head") return data.subarray(head * cells, (head + 1) * cells);
  const one = data.slice(0, cells);
  for (let head = 1; head < heads; head += 1)
    for (let at = 0; at < cells; at += 1) {
      const value = data[head * cells + at];
      one[at] = over === "max" ? Math.max(one[at], value) : one[at] + value;
    }
  return over === "max" ? one : one.map((value) => value / heads);
}

/** Every level of a whole matrix: maxima, and sums that become means when a tile is cut. */
export function levelsOf(values, rows, columns) {
  const levels = [{ rows, columns, most: values, sum: values }];
  while (Math.max(rows, columns) > TILE_SIDE) {
    levels.push(halved(levels[levels.length - 1]));
    ({ rows, columns } = levels[levels.length - 1]);
  }
  return levels;
}

function halved(fine) {
  const rows = Math.ceil(fine.rows / 2), columns = Math.ceil(fine.columns / 2);
  const most = new Float32Array(rows * columns).fill(-Infinity), sum = new Float32Array(rows * columns);
  for (let i = 0; i < fine.rows; i += 1)
    for (let j = 0; j < fine.columns; j += 1) {
      const to = (i >> 1) * columns + (j >> 1), from = i * fine.columns + j;
      if (fine.most[from] > most[to]) most[to] = fine.most[from];
      sum[to] += fine.sum[from];
    }
  return { rows, columns, most, sum };
}

/** The pixels of a tile, cut from the levels of a whole matrix; those at the far edges cover fewer cells. */
export function pixelsOfTile(levels, place) {
  const { rows: all, columns: wide, most, sum } = levels[place.level];
  const cells = 2 ** place.level;
  const top = place.row * TILE_SIDE, left = place.column * TILE_SIDE;
  const rows = Math.min(TILE_SIDE, all - top), columns = Math.min(TILE_SIDE, wide - left);
  const planes = [new Float32Array(rows * columns), new Float32Array(rows * columns)];
  for (let i = 0; i < rows; i += 1) {
    const high = Math.min(cells, levels[0].rows - (top + i) * cells);
    for (let j = 0; j < columns; j += 1) {
      const from = (top + i) * wide + left + j, broad = Math.min(cells, levels[0].columns - (left + j) * cells);
      planes[0][i * columns + j] = most[from];
      planes[1][i * columns + j] = sum[from] / (high * broad);
    }
  }
  return { planes, rows, columns };
}
