/**
 * Answers from a notebook's kernel, over the messages of a widget.
 *
 *     { id, question, options } →        ← { id } with one buffer, or { id, error }
 */

import { unpacked } from "./packet.js";
import { Refused } from "./source.js";

/** @param {any} model the widget's, as anywidget hands it over @returns {import("./source.js").Source & { free: () => void }} */
export function kernelSource(model) {
  /** @type {Map<number, { resolve: (packet: any) => void, reject: (error: Error) => void }>} */
  const waiting = new Map();
  let last = 0;

  /** @param {any} message @param {DataView[]} buffers */
  function answered(message, buffers) {
    const asked = waiting.get(message.id);
    if (!asked) return;
    waiting.delete(message.id);
    if (message.error !== undefined) asked.reject(new Refused(message.error));
    else asked.resolve(unpacked(buffers[0]));
  }

  model.on("msg:custom", answered);
  return {
    ask(question, options = {}, { signal } = {}) {
      const id = ++last;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        signal?.addEventListener("abort", () => {
          if (!waiting.delete(id)) return;
          model.send({ id, left: true });
          reject(new DOMException("no longer wanted", "AbortError"));
        }, { once: true });
        model.send({ id, question, options });
      });
    },
    free: () => model.off("msg:custom", answered),
  };
}
