/** What one sees, to keep: PNG and SVG made here, one HTML file made by the server, and the link. */

import { make, makeSvg } from "./dom.js";
import { svgOf, svgSheet, svgText } from "./drawn.js";

/** @param {HTMLElement} element @param {any} context */
export function exportMenu(element, context) {
  return new ExportMenu(element, context);
}

/** A name that says what is in the file. */
export function fileName({ about, state, data }, kind) {
  const { layer, head, over, view, formula } = state.values, one = data.layer(layer);
  const title = about.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40).replace(/^-+|-+$/g, "") || "lens";
  const heads = over === "head" ? `head-${one.heads[head]}` : `${over}-of-heads`;
  return `${[title, `layer-${layer}`, heads, view, ...(formula ? ["what-if"] : [])].join("-")}.${kind}`;
}

/** An SVG as pixels, as sharp as the screen. @param {string} svg @returns {Promise<HTMLCanvasElement>} */
export async function pixelsOf(svg) {
  const image = new Image(), address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const ratio = Math.max(2, globalThis.devicePixelRatio || 1), canvas = document.createElement("canvas");
    Object.assign(canvas, { width: image.naturalWidth * ratio, height: image.naturalHeight * ratio });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  } finally {
    URL.revokeObjectURL(address);
  }
}

class ExportMenu {
  constructor(element, context) {
    this.context = context;
    const { source, root } = context;
    const item = (text, act, title) => make("button", { class: "quiet", type: "button", role: "menuitem", text, title, onclick: () => this.run(act) });
    const items = [
      item("PNG", () => this.png(), "this view as pixels"),
      item("SVG", () => this.svg(), "this view as shapes and letters"),
      source.exported && !source.still ? this.whole(source.exported()) : null,
      root.hasAttribute("data-whole") ? item("copy link", () => this.link(), "a link to what is shown now") : null,
    ];
    const list = make("div", { class: "export-list", role: "menu" }, ...items);
    this.menu = make("details", { class: "export" }, make("summary", { class: "quiet", text: "export" }), list);
    this.menu.addEventListener("focusout", (event) => this.menu.contains(event.relatedTarget) || this.menu.removeAttribute("open"));
    this.menu.addEventListener("keydown", (event) => this.escape(event));
    element.append(this.menu);
  }

  whole(href) {
    const title = "this lens as one file that opens without a server";
    return make("a", { class: "quiet", role: "menuitem", text: "HTML", title, href, download: fileName(this.context, "html") });
  }

  /** Escape closes the menu, and lets nothing else go. */
  escape(event) {
    if (event.key !== "Escape" || !this.menu.open) return;
    event.preventDefault();
    this.menu.removeAttribute("open");
    this.menu.firstChild.focus();
  }

  async run(act) {
    try {
      await act();
    } catch (error) {
      this.context.say(`export: ${error.message}`);
    }
    this.menu.removeAttribute("open");
  }

  get paper() {
    return getComputedStyle(this.context.root).getPropertyValue("--paper").trim() || "white";
  }

  /** The shown view: its own picture where it makes one, else as the page has laid it out. */
  async picture() {
    const view = this.context.views.current();
    return (await view.picture?.()) ?? { svg: svgOf(view.element, this.paper) };
  }

  async png() {
    const { canvas, svg } = await this.picture(), flat = canvas ? this.onPaper(canvas) : await pixelsOf(svg);
    const blob = await new Promise((resolve) => flat.toBlob(resolve, "image/png"));
    this.save(blob, "png");
  }

  onPaper(canvas) {
    const flat = document.createElement("canvas"), context = flat.getContext("2d");
    Object.assign(flat, { width: canvas.width, height: canvas.height });
    context.fillStyle = this.paper;
    context.fillRect(0, 0, flat.width, flat.height);
    context.drawImage(canvas, 0, 0);
    return flat;
  }

  async svg() {
    const { svg, vector, canvas } = await this.picture();
    const text = svg ?? vector?.() ?? this.around(canvas);
    this.save(new Blob([text], { type: "image/svg+xml" }), "svg");
  }

  around(canvas) {
    const { width, height } = canvas, svg = svgSheet(width, height, this.paper);
    svg.append(makeSvg("image", { width, height, href: canvas.toDataURL("image/png") }));
    return svgText(svg);
  }

  save(blob, kind) {
    const address = URL.createObjectURL(blob), anchor = make("a", { href: address, download: fileName(this.context, kind) });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
    this.context.say(`saved ${anchor.download}`);
  }

  async link() {
    await navigator.clipboard.writeText(location.href);
    this.context.say("link copied");
  }
}
