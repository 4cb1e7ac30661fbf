/** How long the dock waits for what; tests wait less. */
export interface DockTiming {
  /** A new release that was welcomed has to be well for so long before it counts as good. */
  readonly watchMs: number;
  /** And has to be welcomed within so long, as long as the coordinator answers at all. */
  readonly welcomeMs: number;
  /** A dock that is started so often while it watches (a machine that falls over, say) goes back. */
  readonly mostWatchedStarts: number;
  /** A crawler that gives no sign of life for so long is stuck. */
  readonly silenceMs: number;
  /** Draining: requests 4 s, acknowledgements 2 s, the goodbye 5 s; the rest is for a slow machine. */
  readonly stopMs: number;
  /** Before a crawler that ended by itself is started again: doubled each time. */
  readonly backOff: { readonly firstMs: number; readonly mostMs: number };
  /** Between two looks at revocations (and at releases, when nothing runs well), and after one in vain. */
  readonly pollMs: number;
  /** The same while there is nothing to run at all: somebody waits for it. */
  readonly emptyPollMs: number;
  readonly retryMs: number;
}

const minuteMs = 60_000;

export const dockTiming: DockTiming = {
  watchMs: 10 * minuteMs,
  welcomeMs: 10 * minuteMs,
  mostWatchedStarts: 3,
  silenceMs: 2 * minuteMs,
  stopMs: 30_000,
  backOff: { firstMs: 1000, mostMs: 5 * minuteMs },
  pollMs: 5 * minuteMs,
  emptyPollMs: 30_000,
  retryMs: 2000,
};
