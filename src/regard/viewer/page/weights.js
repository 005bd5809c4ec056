/**
 * Rows and columns of the matrix that the state asks for: one head, or the mean or the maximum over the heads.
 *
 *     row(i)_j = w_ij            what i reads
 *     column(j)_i = w_ij         who reads j
 *
 * Short inputs keep the whole matrix here, so that pointing waits for nobody.
 */

/** @typedef {"head" | "mean" | "max"} Over */

/**
 * @param {ArrayLike<number>} all the rows of all heads @param {number} size @param {(head: number) => number} start
 * @param {number} stride between neighbours of a row @param {number[]} heads @param {Over} over
 */
function gathered(all, size, start, stride, heads, over) {
  const found = new Float32Array(size);
  for (const head of heads) {
    const from = start(head);
    if (over === "max") for (let at = 0; at < size; at++) found[at] = Math.max(found[at], all[from + at * stride]);
    else for (let at = 0; at < size; at++) found[at] += all[from + at * stride];
  }
  if (over === "mean") for (let at = 0; at < size; at++) found[at] /= heads.length;
  return found;
}

/** @param {number} count */
const allOf = (count) => Array.from({ length: count }, (_, at) => at);

/** One line of an answer to `row` or `column`: (heads × size). @param {Float32Array} line @param {number} size @param {number} head @param {Over} over */
export function overHeads(line, size, head, over) {
  const heads = over === "head" ? [head] : allOf(line.length / size);
  return gathered(line, size, (one) => one * size, 1, heads, over);
}

/** The row of one query from the matrices of all heads. @param {ArrayLike<number>} all @param {any} layer @param {number} query @param {Over} over */
export function rowOverHeads(all, { heads, queries, keys }, query, over) {
  return gathered(all, keys, (one) => (one * queries + query) * keys, 1, allOf(heads.length), over);
}

export class Weights {
  /** @param {any} context */
  constructor({ state, data }) {
    this.state = state;
    this.data = data;
    /** @type {Map<string, { name: string, control: AbortController, came: Promise<boolean> }>} what is under way, by what it is for */
    this.asking = new Map();
  }

  /** The question whose answer holds the whole matrix, or null where it is too large. */
  question() {
    const { layer, head, over, formula } = this.state.values;
    if (over === "head" && formula && this.data.small(layer)) return { layer, head, formula };
    if (this.data.small(layer, true)) return { layer };
    return over === "head" && this.data.small(layer) ? { layer, head } : null;
  }

  /** @returns {{ all: ArrayLike<number>, heads: number[], over: Over } | null} the whole, where it is here */
  whole() {
    const question = this.question();
    const packet = question && this.data.now("matrix", question);
    if (!packet) return null;
    const { head, over } = this.state.values;
    const { data: all, shape } = packet.arrays[0];
    if (over !== "head") return { all, heads: allOf(shape[0]), over };
    return { all, heads: [shape[0] > 1 ? head : 0], over };
  }

  /** @param {number} query @returns {Float32Array | null} */
  row(query) {
    const { layer, head, over } = this.state.values;
    const { queries, keys } = this.data.layer(layer);
    if (!(query < queries)) return null;
    const whole = this.whole();
    if (whole) return gathered(whole.all, keys, (one) => (one * queries + query) * keys, 1, whole.heads, whole.over);
    const line = this.data.now("row", { query, layers: [layer] })?.arrays[0]?.data ?? this.data.rowNow(layer, query);
    return line && overHeads(line, keys, head, over);
  }

  /** @param {number} key @returns {Float32Array | null} */
  column(key) {
    const { layer, head, over } = this.state.values;
    const { queries, keys } = this.data.layer(layer);
    if (!(key < keys)) return null;
    const whole = this.whole();
    if (whole) return gathered(whole.all, queries, (one) => one * queries * keys + key, keys, whole.heads, whole.over);
    const line = this.data.now("column", { key, layers: [layer] })?.arrays[0]?.data;
    return line && overHeads(line, queries, head, over);
  }

  /**
   * Asks for what is missing; the promise tells whether something new came.
   * @param {number | null} query @param {number | null} key
   */
  async bring(query, key) {
    const { layer } = this.state.values;
    const question = this.question();
    if (question) return this.once("matrix", "matrix", question);
    const came = await Promise.all([
      query === null ? false : this.once("row", "row", { query, layers: [layer] }),
      key === null ? false : this.once("column", "column", { key, layers: [layer] }),
    ]);
    return came.some(Boolean);
  }

  /** A question of which only the latest matters. @param {string} use @param {string} question @param {any} options */
  async once(use, question, options) {
    if (this.data.now(question, options)) return false;
    const name = this.data.keyOf(question, options);
    const before = this.asking.get(use);
    if (before?.name === name && !before.control.signal.aborted) return before.came;
    before?.control.abort();
    const control = new AbortController();
    const came = this.data.ask(question, options, { signal: control.signal }).then(
      () => true,
      (/** @type {Error} */ error) => {
        if (this.asking.get(use)?.control === control) this.asking.delete(use); // it may be asked again
        if (error.name === "AbortError") return false;
        throw error;
      },
    );
    this.asking.set(use, { name, control, came });
    return came;
  }

  stop() {
    for (const { control } of this.asking.values()) control.abort();
    this.asking.clear();
  }
}

/** Places of the largest weights, largest first. @param {ArrayLike<number>} weights @param {number} count @returns {number[]} */
export function largest(weights, count) {
  /** @type {number[]} */
  const found = [];
  for (let at = 0; at < weights.length; at++) {
    if (found.length === count && !(weights[at] > weights[found[count - 1]])) continue;
    let place = found.length;
    while (place > 0 && weights[found[place - 1]] < weights[at]) place--;
    found.splice(place, 0, at);
    if (found.length > count) found.pop();
  }
  return found;
}
