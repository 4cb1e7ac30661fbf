/**
 * Decides who may send the next request when rate, processor, memory or the day's bytes are short, first come first served.
 * Each request pays in advance for the recent average size. Otherwise, all would start at once and together exceed the limit.
 */
import { timerMs } from "#core/timer-ms";
import { steadyNowMs } from "../core/local-time.ts";

export interface Grant {
  /** Counts a piece of the body. Returns null to continue, or a promise to wait for. */
  readonly take: (bytes: number) => Promise<void> | null;
  /** Must be called exactly once, when the answer has been read or there is none. */
  end(): void;
}

export interface AdmissionBounds {
  readonly signal: AbortSignal;
  readonly endsAtMs: number;
  /** Runs on admission, so that the next decision already takes this request into account. */
  readonly onGrant?: () => void;
}

interface AdmissionRules {
  readonly isClosed: () => boolean;
  /** Milliseconds until another request may start. Infinity means not before one in progress ends. */
  readonly waitMs: (underWay: number, expectedBytes: number) => number;
  /** Pays in advance. A negative number is a refund. */
  readonly pay: (bytes: number) => void;
  readonly take: (bytes: number) => Promise<void> | null;
}

/** The expected size of the first request. For later ones, it is the moving average. */
const firstExpectedBytes = 16 * 1024;
const newestPart = 1 / 16;
/** The limits are checked at least this often, because they can change. */
const lookEveryMs = 250;

export class Admission {
  readonly #rules: AdmissionRules;
  readonly #waiting = new Map<(grant: Grant | null) => void, (() => void) | undefined>();
  #underWay = 0;
  #expectedBytes = firstExpectedBytes;
  #timer: NodeJS.Timeout | null = null;

  constructor(rules: AdmissionRules) {
    this.#rules = rules;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves with null if the limits or the bounds prevent a start. */
  enter({ signal, endsAtMs, onGrant }: AdmissionBounds): Promise<Grant | null> {
    if (signal.aborted || steadyNowMs() >= endsAtMs) return Promise.resolve(null);
    return new Promise((resolve) => {
      const end = (grant: Grant | null) => {
        clearTimeout(late);
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(end);
        resolve(grant);
      };
      const giveUp = () => end(null);
      const late = setTimeout(giveUp, timerMs(endsAtMs - steadyNowMs()));
      signal.addEventListener("abort", giveUp);
      this.#waiting.set(end, onGrant);
      this.look();
    });
  }

  look(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const [end, onGrant] of this.#waiting) {
      if (this.#rules.isClosed()) {
        end(null);
        continue;
      }
      const waitMs = this.#rules.waitMs(this.#underWay, this.#expectedBytes);
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.look(), timerMs(Math.min(lookEveryMs, waitMs)));
        return;
      }
      onGrant?.();
      end(this.#grant());
    }
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const end of this.#waiting.keys()) end(null);
  }

  #grant(): Grant {
    this.#underWay++;
    const paidBytes = this.#expectedBytes;
    let leftBytes = paidBytes;
    let takenBytes = 0;
    this.#rules.pay(paidBytes);
    return {
      take: (bytes) => {
        takenBytes += bytes;
        const paid = Math.min(leftBytes, bytes);
        leftBytes -= paid;
        this.#rules.pay(-paid);
        const wait = this.#rules.take(bytes);
        return paid === bytes ? null : wait;
      },
      end: () => {
        this.#underWay--;
        this.#rules.pay(-leftBytes);
        this.#expectedBytes += (takenBytes - this.#expectedBytes) * newestPart;
        this.look();
      },
    };
  }
}
