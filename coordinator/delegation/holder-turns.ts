/**
 * How many rounds of one holder run at once. Its first ones run one after the other: each teaches the next
 * where the holder stands, which saves more probes than running them together saves time. A holder that is
 * known has more at once, so that thousands of its subnets are not decided one by one.
 */
import type { PlaceKey } from "./placement.ts";

/** One round more at once for so many subnets of the holder that are known. */
const knownForOneMore = 8;

export class HolderTurns {
  readonly #running = new Map<PlaceKey, number>();

  /** `known`: subnets of this holder that somebody measured. Those without a holder wait for nobody. */
  mayStart(holderKey: PlaceKey | null, known: number): boolean {
    if (holderKey === null) return true;
    return (this.#running.get(holderKey) ?? 0) < 1 + Math.floor(known / knownForOneMore);
  }

  start(holderKey: PlaceKey | null): void {
    if (holderKey !== null) this.#running.set(holderKey, (this.#running.get(holderKey) ?? 0) + 1);
  }

  end(holderKey: PlaceKey | null): void {
    if (holderKey === null) return;
    const left = (this.#running.get(holderKey) ?? 0) - 1;
    if (left > 0) this.#running.set(holderKey, left);
    else this.#running.delete(holderKey);
  }
}
