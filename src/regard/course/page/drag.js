/** Things that a hand takes: with a mouse, a finger, a pen, or the arrow keys. */

/** @type {Record<string, number[]>} */
const WAYS_OF_ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/**
 * @typedef {object} Grip
 * @property {(event: PointerEvent) => number[]} from  the place that is pointed at
 * @property {() => number[]} where                    the place of the thing
 * @property {(place: number[]) => void} move
 * @property {() => void} [end]
 * @property {number} step                             of an arrow key; ten of them with shift
 */

/** Lets an element be dragged; what lies between finger and thing stays between them. @param {SVGElement} handle @param {Grip} grip */
export function dragged(handle, grip) {
  /** @type {number[] | null} */
  let apart = null;
  const end = () => {
    if (!apart) return;
    apart = null;
    handle.classList.remove("is-held");
    grip.end?.();
  };
  handle.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    event.stopPropagation();
    handle.focus({ preventScroll: true });
    handle.setPointerCapture(event.pointerId);
    handle.classList.add("is-held");
    const [x, y] = grip.from(event), [left, up] = grip.where();
    apart = [left - x, up - y];
  });
  handle.addEventListener("pointermove", (event) => {
    if (!apart) return;
    const [x, y] = grip.from(event);
    grip.move([x + apart[0], y + apart[1]]);
  });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) handle.addEventListener(name, end);
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // the page stays where it is
  handle.addEventListener("keydown", (event) => pressed(event, grip));
  handle.addEventListener("keyup", (event) => event.key in WAYS_OF_ARROWS && grip.end?.());
}

/** @param {KeyboardEvent} event @param {Grip} grip */
function pressed(event, grip) {
  const way = WAYS_OF_ARROWS[event.key];
  if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const far = grip.step * (event.shiftKey ? 10 : 1), [x, y] = grip.where();
  grip.move([x + way[0] * far, y + way[1] * far]);
}

/**
 * Arrow keys, Home and End over a list of choices. @param {KeyboardEvent} event @param {number} at @param {number} count
 * @returns {number | null} where they lead
 */
export function arrowed(event, at, count) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const by = { ArrowUp: at - 1, ArrowLeft: at - 1, ArrowDown: at + 1, ArrowRight: at + 1, Home: 0, End: count - 1 };
  const to = /** @type {Record<string, number>} */ (by)[event.key];
  if (to === undefined) return null;
  event.preventDefault();
  event.stopPropagation();
  return Math.max(0, Math.min(count - 1, to));
}
