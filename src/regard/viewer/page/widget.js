/** The page in a notebook: anywidget calls `render`, and what it returns when the cell goes. */

import { mount } from "./app.js";
import { kernelSource } from "./kernel.js";

/** @param {{ model: any, el: HTMLElement }} given */
export function renderWidget({ model, el }) {
  const element = el.ownerDocument.createElement("div");
  element.className = "regard in-notebook";
  element.style.setProperty("height", `${model.get("height")}px`);
  el.append(element);
  const source = kernelSource(model);
  const app = mount(element, source, { state: model.get("state") });
  return () => (app.free(), source.free());
}
