/**
 * The state in the address of the page: links hold it, and the browser's own back and forward move through it.
 *
 * @typedef {object} Link
 * @property {() => Partial<import("./state.js").Values>} read
 * @property {(values: import("./state.js").Values, step: boolean) => void} write
 * @property {(listener: () => void) => () => void} on
 */

import { fromLink, toLink } from "./state.js";

/** @returns {Link} */
export function addressLink() {
  return {
    read: () => fromLink(location.hash),
    write(values, step) {
      const hash = `#${toLink(values)}`;
      if (hash === location.hash) return;
      history[step ? "pushState" : "replaceState"](null, "", hash);
    },
    on(listener) {
      addEventListener("popstate", listener);
      return () => removeEventListener("popstate", listener);
    },
  };
}
