/** The page as one file: its answers lie in a script of data beside it. */

import { mount } from "./app.js";
import { make } from "./dom.js";
import { embeddedSource } from "./embedded.js";
import { addressLink } from "./link.js";
import { fromLink } from "./state.js";

/** @param {HTMLElement} element @param {any} given */
export function mountAlone(element, given) {
  embeddedSource(given)
    .then((source) => mount(element, source, { link: addressLink(), state: { ...given.state, ...fromLink(location.hash) }, whole: true }))
    .catch((error) => element.replaceChildren(make("p", { class: "failed", text: error.message })));
}
