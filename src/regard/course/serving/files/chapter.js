// The bar above a chapter: back to the contents, one back, one on. Its chapters stand in the tag of this script.

const { chapters } = document.currentScript.dataset;

// A page that leaves no worker behind: marimo would register one for files that the course does not have.
delete Navigator.prototype.serviceWorker;

// A chapter opens at its title: a widget may not scroll the page to itself before the reader has touched anything.
const { scrollIntoView } = Element.prototype;
Element.prototype.scrollIntoView = () => {};
const moves = ["wheel", "touchstart", "pointerdown", "keydown"];
const given = () => (Element.prototype.scrollIntoView = scrollIntoView);
for (const move of moves) addEventListener(move, given, { capture: true, passive: true, once: true });

/** @param {string} name @param {Record<string, string>} given @param {...(Node | string)} inside */
function element(name, given, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

/** The bar of the chapter in the address. */
function bar() {
  const all = JSON.parse(chapters ?? "[]"); // [[1, "A pixel and its neighbours"], …]
  const here = all.findIndex(([number]) => location.pathname.startsWith(`/${number}/`));
  const links = [[here - 1, "←"], [here + 1, "→"]].filter(([at]) => all[at]).map(([at, sign]) => {
    const [number, title] = all[at];
    const says = sign === "←" ? `← ${number}` : `${number} →`;
    return element("a", { href: `/${number}/`, title, rel: sign === "←" ? "prev" : "next" }, says);
  });
  const brand = element("span", { class: "course-brand" }, element("i", { class: "course-mark" }), "regard");
  return element("nav", { class: "course-bar course", "aria-label": "Course" }, brand, element("a", { href: "/" }, "Contents"), ...links);
}

addEventListener("DOMContentLoaded", () => document.body.prepend(bar()));
