/**
 * A number that goes up after something changed, but not too often: what was made from it under the number before is
 * good enough until then.
 */
export class Freshness {
  readonly #everyMs: number;
  readonly #steadyMs: () => number;
  #version = 0;
  #changed = false;
  #raisedMs = Number.NEGATIVE_INFINITY;

  constructor(everyMs: number, steadyMs: () => number) {
    this.#everyMs = everyMs;
    this.#steadyMs = steadyMs;
  }

  touch(): void {
    this.#changed = true;
  }

  get version(): number {
    const nowMs = this.#steadyMs();
    if (this.#changed && nowMs - this.#raisedMs >= this.#everyMs) {
      this.#version += 1;
      this.#changed = false;
      this.#raisedMs = nowMs;
    }
    return this.#version;
  }
}
