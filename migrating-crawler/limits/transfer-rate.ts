/**
 * Limits bytes a second with a token bucket: short pieces pass at once, longer ones wait until they are paid for, first
 * come first served. Headers, handshakes and the link also take from the bucket, and later pieces wait for them.
 */
import { timerMs } from "#core/timer-ms";

/** This much of a second's bytes may arrive at once. */
const burstSeconds = 0.1;
const leastBurstBytes = 8 * 1024;

interface Waiting {
  /** Total bytes taken, including this piece. */
  readonly takenBytes: number;
  readonly goOn: () => void;
}

export class TransferRate {
  #bytesPerSecond: number;
  #filledBytes: number;
  #takenBytes = 0;
  #filledAtMs: number;
  readonly #nowMs: () => number;
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(kilobytesPerSecond: number | null, nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#bytesPerSecond = rateOf(kilobytesPerSecond);
    this.#filledBytes = 0;
    this.#filledAtMs = nowMs();
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Waiting callers use the new rate at once. */
  apply(kilobytesPerSecond: number | null): void {
    this.#fill();
    this.#bytesPerSecond = rateOf(kilobytesPerSecond);
    this.#letGo();
  }

  /** Returns null to continue, or a promise to wait for. */
  take(bytes: number): Promise<void> | null {
    this.spend(bytes);
    if (this.waitMs() === 0) return null;
    return new Promise((goOn) => {
      this.#waiting.push({ takenBytes: this.#takenBytes, goOn });
      this.#letGo();
    });
  }

  /** Takes without waiting; a negative number is a refund. */
  spend(bytes: number): void {
    if (bytes >= 0) this.#takenBytes += bytes;
    else this.#filledBytes -= bytes;
  }

  /** Milliseconds until everything taken is paid for. */
  waitMs(): number {
    return this.#untilMs(this.#takenBytes);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { goOn } of this.#waiting.splice(0)) goOn();
  }

  #letGo(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#waiting[0] !== undefined) {
      const waitMs = this.#untilMs(this.#waiting[0].takenBytes);
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#letGo(), timerMs(waitMs));
        return;
      }
      this.#waiting.shift()?.goOn();
    }
  }

  #untilMs(takenBytes: number): number {
    if (this.#bytesPerSecond === Number.POSITIVE_INFINITY) return 0;
    this.#fill();
    return Math.max(0, ((takenBytes - this.#filledBytes) / this.#bytesPerSecond) * 1000);
  }

  #fill(): void {
    const nowMs = this.#nowMs();
    const seconds = Math.max(0, nowMs - this.#filledAtMs) / 1000;
    this.#filledAtMs = nowMs;
    const burstBytes = Math.max(leastBurstBytes, this.#bytesPerSecond * burstSeconds);
    const most = this.#takenBytes + burstBytes;
    const filled = this.#filledBytes + seconds * this.#bytesPerSecond;
    this.#filledBytes = Number.isFinite(filled) ? Math.min(most, filled) : this.#takenBytes;
  }
}

function rateOf(kilobytesPerSecond: number | null): number {
  return kilobytesPerSecond === null ? Number.POSITIVE_INFINITY : kilobytesPerSecond * 1024;
}
