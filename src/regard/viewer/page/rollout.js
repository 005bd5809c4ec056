/**
 * Attention rollout: what reaches a place through all layers.
 *
 *   R = Π_ℓ (r · 1 + (1 − r) · A_ℓ)        A: mean or maximum over heads, rows brought to 1; r: the residual's share
 */

import { make, shown } from "./dom.js";

const PAUSE_MS = 60;

export class Rollout {
  /** @param {any} data @param {() => void} changed */
  constructor(data, changed) {
    Object.assign(this, { data, changed, on: false, residual: 0.5, problem: null, flight: null, timer: 0 });
    this.value = make("span", { class: "num", text: "0.5" });
    this.slider = make("input", { type: "range", min: 0, max: 1, step: 0.05, value: 0.5, "aria-label": "share of the residual", oninput: () => this.turn() });
    this.element = make("label", { class: "rollout", hidden: true }, "residual ", this.slider, this.value);
  }

  turn() {
    this.residual = Number(this.slider.value);
    this.value.textContent = shown(this.residual, 2);
    this.changed();
  }

  /** Switches between one layer's weights and what comes through all of them. */
  switched(on) {
    this.on = on;
    this.problem = null;
    this.element.toggleAttribute("hidden", !on);
    this.changed();
  }

  question(query, over) {
    return { query, how: over === "max" ? "max" : "mean", residual: this.residual };
  }

  /** The rollout of a query, where it is here; else it is asked for. @returns {Float32Array | null} */
  of(query, over) {
    const question = this.question(query, over), packet = this.data.now("rollout", question);
    if (packet) return packet.arrays[0].data;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.bring(question), PAUSE_MS);
    return null;
  }

  async bring(question) {
    this.flight?.abort();
    this.flight = new AbortController();
    const { signal } = this.flight;
    try {
      await this.data.ask("rollout", question, { signal });
      this.problem = null;
    } catch (error) {
      if (signal.aborted) return;
      this.problem = error.message;
    }
    this.changed();
  }

  rest() {
    clearTimeout(this.timer);
    this.flight?.abort();
  }
}
