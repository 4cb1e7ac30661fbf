/**
 * Who may send the next request, when rate, processor, memory or the day's bytes are short: one after the other,
 * first come first served. Each is expected to bring as many bytes as requests did lately, and these are paid for in
 * advance: otherwise all would begin at once whenever there is something left, and come to far more together.
 */
import { timerMs } from "#core/timer-ms";
import { steadyNowMs } from "../core/steady-time.ts";

/** The right to send one request. */
export interface Grant {
  /** Counts a piece of the answer's body; null: go on, else when to. */
  readonly take: (bytes: number) => Promise<void> | null;
  /** The answer is read, or there is none. Call exactly once. */
  end(): void;
}

export interface AdmissionBounds {
  readonly signal: AbortSignal;
  /** A grant is of no use from then on (`steadyNowMs()`). */
  readonly endsAtMs: number;
  /** Called at the moment in which it is let in: what it takes is gone before the next one is looked at. */
  readonly onGrant?: () => void;
}

interface AdmissionRules {
  /** True: nobody is let in any more; those who wait leave without a grant. */
  readonly isClosed: () => boolean;
  /** Milliseconds until another may begin; infinite: not before one of those under way has ended. */
  readonly waitMs: (underWay: number, expectedBytes: number) => number;
  /** Pays in advance; negative: gives back. */
  readonly pay: (bytes: number) => void;
  readonly take: (bytes: number) => Promise<void> | null;
}

/** At the first request; later ones are expected to be as the ones before them. */
const firstExpectedBytes = 16 * 1024;
const newestPart = 1 / 16;
/** Looked at again so often at least: limits change, too. */
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

  /** Null when the limits, or the bounds, let it not begin. */
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

  /** Lets in whoever may begin; called whenever that may have changed. */
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
