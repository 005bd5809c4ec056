/** The page as the server gives it: lenses by name, the state in the address. */

import { mount } from "./app.js";
import { addressLink } from "./link.js";
import { make } from "./dom.js";
import { httpSource } from "./source.js";
import { fromLink } from "./state.js";

/** The token has become a cookie: it need not stand in the address, in the history, or in a link that is passed on. */
function withoutToken() {
  const here = new URL(location.href);
  if (!here.searchParams.has("token")) return;
  here.searchParams.delete("token");
  history.replaceState(null, "", here);
}

/** @param {Element} element */
async function begin(element) {
  withoutToken();
  const place = httpSource("");
  const { lenses, live } = await place.shelf();
  const wanted = fromLink(location.hash);
  const lens = lenses.find(({ id }) => id === wanted.lens)?.id ?? lenses[0]?.id;
  if (lens === undefined) throw new Error("there is no lens here yet");
  mount(element, httpSource(lens), { lens, lenses, live, link: addressLink(), state: { ...wanted, lens }, whole: true });
}

for (const element of document.querySelectorAll(".regard[data-whole]"))
  begin(element).catch((error) => element.replaceChildren(make("p", { class: "failed", text: error.message })));
