/**
 * Light or dark, as the page around says: its own mark where it has one (a notebook's, a page's), else the system's.
 *
 * @typedef {"light" | "dark"} Look
 */

const MARKS = ["class", "data-theme", "data-mode", "data-jp-theme-light", "data-vscode-theme-kind"];

/** What one element says of itself. @param {HTMLElement | null | undefined} element @returns {Look | null} */
function saidLook(element) {
  if (!element) return null;
  const { theme, mode, jpThemeLight, vscodeThemeKind } = element.dataset;
  const words = `${theme ?? ""} ${mode ?? ""} ${vscodeThemeKind ?? ""} ${jpThemeLight === "false" ? "dark" : ""} ${element.className}`;
  const found = words.match(/(?:^|[\s-])(dark|light)(?=$|[\s-])/);
  return /** @type {Look | null} */ (found ? found[1] : null);
}

/**
 * Keeps data-theme of an element as the page around it has it.
 * @param {HTMLElement} element @param {() => void} changed @returns {() => void} ends it
 */
export function keepLook(element, changed) {
  const page = element.ownerDocument;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const around = /** @type {HTMLElement | null | undefined} */ (element.parentElement?.closest("[data-theme]"));
  const places = [around, page.body, page.documentElement].filter((one) => one instanceof HTMLElement);
  const look = () => {
    const said = places.map(saidLook).find(Boolean) ?? (dark.matches ? "dark" : "light");
    if (element.dataset.theme === said) return;
    element.dataset.theme = said;
    changed();
  };
  const watch = new MutationObserver(look);
  for (const one of places) watch.observe(/** @type {HTMLElement} */ (one), { attributes: true, attributeFilter: MARKS });
  dark.addEventListener("change", look);
  look();
  return () => {
    watch.disconnect();
    dark.removeEventListener("change", look);
  };
}
