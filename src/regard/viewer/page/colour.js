/**
 * One accent and one scale, made in OKLab: lightness moves evenly from paper to ink, so order survives colour
 * blindness and grey print; hue only turns from amber through vermilion to wine.
 *
 *     (L, C, h) -> OKLab (L, C cos h, C sin h) -> linear sRGB -> sRGB
 */

/** @typedef {"light" | "dark"} Theme */

/** The paper of each theme as L, C, h; the page's CSS uses the same. */
const PAPER = { light: [0.986, 0.004, 85], dark: [0.185, 0.008, 60] };
/** The far end of the scale. */
const DEEP = { light: [0.3, 0.115, 14], dark: [0.955, 0.055, 88] };
/** Print on the scale: on pale colours, on deep ones, and the strongest of the first kind before they turn. */
const PRINT = { light: ["#211d1a", "#000000", "#ffffff"], dark: ["#efe9e1", "#ffffff", "#000000"] };

/** @param {number} light @param {number} a @param {number} b @returns {number[]} linear, outside of 0…1 where a screen has no such colour */
function linearRgb(light, a, b) {
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

/** @param {number} x linear @returns {number} 0…255 */
function encoded(x) {
  const cut = Math.min(1, Math.max(0, x));
  return Math.round(255 * (cut <= 0.0031308 ? 12.92 * cut : 1.055 * cut ** (1 / 2.4) - 0.055));
}

/** As much chroma as a screen has at this lightness and hue: lightness is never given up for it. @param {number} light @param {number} chroma @param {number} hue in degrees */
function fromPolar(light, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  const at = (/** @type {number} */ c) => linearRgb(light, c * Math.cos(angle), c * Math.sin(angle));
  let kept = chroma;
  while (kept > 0 && at(kept).some((x) => x < -1e-4 || x > 1.0001)) kept -= 0.001;
  return at(Math.max(0, kept)).map(encoded);
}

/** @param {number} from @param {number} to @param {number} t */
const between = (from, to, t) => from + (to - from) * t;

/** Chroma swells in the middle, where sRGB has room for it. @param {number} t @param {number} from @param {number} to */
const swell = (t, from, to) => between(from, to, t) + 0.15 * Math.sin(Math.PI * t ** 0.92) ** 1.35;

/** @param {Theme} theme @returns {Uint8ClampedArray} 256 × RGBA */
function ramp(theme) {
  const [light0, chroma0] = PAPER[theme];
  const [light1, chroma1] = DEEP[theme];
  const [hue0, hue1] = theme === "light" ? [66, 10] : [14, 80];
  const table = new Uint8ClampedArray(1024);
  for (let at = 0; at < 256; at++) {
    const t = at / 255;
    const hue = between(hue0, hue1, theme === "light" ? t ** 0.8 : t ** 1.25);
    table.set([...fromPolar(between(light0, light1, t), swell(t, chroma0, chroma1), hue), 255], 4 * at);
  }
  return table;
}

/** Less ← none → more: slate on one side, the accent on the other, equal in lightness. @param {Theme} theme */
function twoSided(theme) {
  const [light0, chroma0] = PAPER[theme];
  const far = theme === "light" ? 0.42 : 0.82;
  const table = new Uint8ClampedArray(1024);
  for (let at = 0; at < 256; at++) {
    const t = Math.abs(at - 127.5) / 127.5;
    const [chroma, hue] = at < 128 ? [0.1, 245] : [0.16, 38];
    table.set([...fromPolar(between(light0, far, t), between(chroma0, chroma, t ** 0.8), hue), 255], 4 * at);
  }
  return table;
}

const RAMPS = { light: ramp("light"), dark: ramp("dark") };
const SIDED = { light: twoSided("light"), dark: twoSided("dark") };

/** @param {Uint8ClampedArray} table */
const spelledTable = (table) =>
  Array.from({ length: 256 }, (_, at) => `rgb(${table[4 * at]} ${table[4 * at + 1]} ${table[4 * at + 2]})`);

const CSS = { light: spelledTable(RAMPS.light), dark: spelledTable(RAMPS.dark) };

/** @param {number} part 0…1 */
const step = (part) => (part <= 0 || Number.isNaN(part) ? 0 : part >= 1 ? 255 : Math.round(part * 255));

/** Where print on the scale turns from ink to paper: black and white are equally readable there, at 4.5 to 1. */
const TURN = { light: 0.578, dark: 0.518 };

/** The colours that every view shares; context.colour is this object. */
export const colour = {
  /** @param {Theme} theme @returns {Uint8ClampedArray} 256 × RGBA: none … all */
  ramp: (theme) => RAMPS[theme],
  /** @param {Theme} theme @returns {Uint8ClampedArray} 256 × RGBA: much less … the same … much more */
  difference: (theme) => SIDED[theme],
  /** @param {Theme} theme @param {number} part 0…1 @returns {string} a CSS colour */
  css: (theme, part) => CSS[theme][step(part)],
  /** @param {Theme} theme @param {number} part @returns {string} print that is readable on css(theme, part) */
  ink: (theme, part) => PRINT[theme][part > TURN[theme] ? 2 : part > 0.25 ? 1 : 0],
  /**
   * From a weight to how deep its colour is, 0…1.
   * @param {number} weight @param {"root" | "log" | "linear"} scale @returns {number}
   */
  part(weight, scale) {
    const size = Math.abs(weight);
    if (!(size > 0)) return 0;
    if (scale === "linear") return Math.min(1, size);
    if (scale === "log") return Math.min(1, Math.max(0, 1 + Math.log10(size) / 4));
    return Math.min(1, Math.sqrt(size));
  },
};
