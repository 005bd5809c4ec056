/**
 * Where answers come from. Three sources share one shape: the server (here), a notebook's kernel, and answers that
 * are embedded in an exported page.
 *
 * @typedef {import("./packet.js").Packet} Packet
 * @typedef {{ id: string, title: string, kind: string, live: boolean }} LensEntry
 * @typedef {{ text: boolean, image: boolean, model: string, how: string }} Live  what the model that is there can look at
 * @typedef {object} Source
 * @property {(question: string, options?: Record<string, any>, how?: { signal?: AbortSignal }) => Promise<Packet>} ask
 * @property {(id: string) => Source} [open]      another lens of the same place
 * @property {() => Promise<{ lenses: LensEntry[], live: Live | null }>} [shelf]  what there is to open, what can be looked at
 * @property {(input: { text: string } | { image: Blob }) => Promise<{ id: string }>} [look]  a new capture by the live model
 * @property {() => string} [exported]            the address of this lens as one HTML file
 * @property {boolean} [still]                    answers are embedded: a question may be refused
 */

import { unpacked } from "./packet.js";

/** A question that was answered with a reason instead of numbers. */
export class Refused extends Error {}

/** @param {any} value */
const spelled = (value) => (Array.isArray(value) ? value.join(",") : String(value));

/** @param {Record<string, any>} options */
export function spelledOptions(options) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options))
    if (value !== null && value !== undefined && value !== "") query.set(name, spelled(value));
  return query.toString();
}

/** @param {Response} response */
async function reason(response) {
  const said = await response.json().catch(() => ({}));
  return new Refused(said.error ?? `the server answered ${response.status}`);
}

/** @param {string} address @param {RequestInit} [how] */
async function asked(address, how) {
  const response = await fetch(address, { credentials: "same-origin", ...how });
  if (!response.ok) throw await reason(response);
  return response;
}

/** @param {string} lens @returns {Source} */
export function httpSource(lens) {
  const name = encodeURIComponent(lens);
  return {
    async ask(question, options = {}, { signal } = {}) {
      const query = spelledOptions(options);
      const response = await asked(`ask/${name}/${question}${query ? `?${query}` : ""}`, { signal });
      return unpacked(await response.arrayBuffer());
    },
    open: httpSource,
    shelf: async () => (await asked("lenses")).json(),
    async look(input) {
      const image = "image" in input;
      const body = image ? input.image : JSON.stringify(input);
      const type = image ? input.image.type || "application/octet-stream" : "application/json";
      return (await asked("look", { method: "POST", body, headers: { "Content-Type": type } })).json();
    },
    exported: () => `export/${name}.html`,
  };
}
