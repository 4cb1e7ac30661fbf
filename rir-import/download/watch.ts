/** A clock on a download: when it runs out, its signal aborts with the reason. */
import type { Clock } from "./clock.ts";
import { DownloadFailure } from "./download-failure.ts";

export class Watch {
  readonly signal: AbortSignal;
  readonly #own = new AbortController();
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #runOut: () => void;
  #callOff: (() => void) | null = null;

  /** Stands still until `restart`. The signal aborts with the parent's too. */
  constructor(settings: {
    readonly clock: Clock;
    readonly ms: number;
    readonly again: DownloadFailure["again"];
    readonly reason: string;
    readonly parent: AbortSignal;
  }) {
    this.#clock = settings.clock;
    this.#ms = settings.ms;
    this.#runOut = () => this.#own.abort(new DownloadFailure(settings.again, settings.reason));
    this.signal = AbortSignal.any([settings.parent, this.#own.signal]);
  }

  restart(): void {
    this.pause();
    this.#callOff = this.#clock.after(this.#ms, this.#runOut);
  }

  pause(): void {
    this.#callOff?.();
    this.#callOff = null;
  }
}
