/** Small helpers for elements. Data reaches the page as text nodes and properties, never as HTML. */

const SVG = "http://www.w3.org/2000/svg";
const MATH = "http://www.w3.org/1998/Math/MathML";

/** @param {Element} element @param {Record<string, any>} given */
function dressed(element, given) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * make("button", { class: "quiet", onclick: go, text: "Go" }, child, …)
 * @param {string} name @param {Record<string, any>} [given] @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
export function make(name, given = {}, ...children) {
  const element = document.createElement(name);
  dressed(element, given);
  element.append(.../** @type {any[]} */ (children.filter((child) => child !== null && child !== undefined)));
  return element;
}

/** @param {string} name @param {Record<string, any>} [given] @param {...Node} children @returns {any} */
export function makeSvg(name, given = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  dressed(element, given);
  element.append(...children);
  return element;
}

const MATHS = new Set(
  ("math semantics mrow mi mn mo mtext mspace msub msup msubsup munder mover munderover mfrac msqrt mroot mstyle " +
    "mtable mtr mtd mpadded mphantom menclose mfenced").split(" "),
);
const DRESS = new Set(
  ("display displaystyle mathvariant stretchy fence form separator lspace rspace width columnalign rowspacing " +
    "columnspacing largeop movablelimits accent linethickness data-step data-name").split(" "),
);

/** @param {Element} element @returns {Element | null} a copy that holds MathML alone */
function mathCopy(element) {
  if (!MATHS.has(element.localName)) return null;
  const copy = document.createElementNS(MATH, element.localName);
  for (const { name, value } of element.attributes) if (DRESS.has(name)) copy.setAttribute(name, value);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.nodeValue ?? "");
    else if (child.nodeType === Node.ELEMENT_NODE) {
      const kept = mathCopy(/** @type {Element} */ (child));
      if (kept) copy.append(kept);
    }
  }
  return copy;
}

/** @param {string | null | undefined} text MathML @returns {Element} a <math>, or the text itself where it is none */
export function mathNode(text) {
  if (!text?.startsWith("<math")) return make("code", { text: text ?? "" });
  const bare = text.replace(/ style="[^"]*"/g, ""); // no policy lets it be applied, and reading it is reported
  const root = new DOMParser().parseFromString(bare, "application/xml").documentElement;
  return (root.localName === "math" && mathCopy(root)) || make("code", { text });
}

/** @param {number} value @param {number} [digits] significant digits @returns {string} with a true minus sign */
export function shown(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 1e-3 || size >= 1e5) ? tenPower(value, digits) : Number(value.toPrecision(digits)).toString();
  return text.replace("-", "−");
}

/** @param {number} count @returns {string} with thin spaces between thousands */
export const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** @param {number} value @param {number} digits */
function tenPower(value, digits) {
  const [front, power] = value.toExponential(digits - 1).split("e");
  const raised = [...String(Math.abs(Number(power)))].map((digit) => RAISED[Number(digit)]).join("");
  return `${front}·10${Number(power) < 0 ? "⁻" : ""}${raised}`;
}

/** @param {number} weight @returns {string} a weight in three figures, "<.001" where it is less */
export function weightText(weight) {
  if (!Number.isFinite(weight)) return shown(weight);
  if (weight !== 0 && Math.abs(weight) < 0.0005) return weight < 0 ? "−0" : "<.001";
  return weight.toFixed(3).replace(/^(-?)0\./, "$1.").replace("-", "−");
}

/** @param {string} label a token as it is said on its own: no space around, line breaks visible */
export function spoken(label) {
  const bare = label.replace(/\n/g, "⏎").replace(/\t/g, "⇥").trim();
  return bare === "" ? "␣".repeat(Math.max(1, Math.min(label.length, 3))) : bare;
}

/** One call a frame, with the latest arguments. @template {any[]} A @param {(...given: A) => void} act */
export function eachFrame(act) {
  let frame = 0;
  /** @type {A} */
  let latest;
  return (/** @type {A} */ ...given) => {
    latest = given;
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      act(...latest);
    });
  };
}
