/**
 * How far this machine's clock may be from the coordinator's before somebody should mend it: leases are timed by each
 * end's own stopwatch, but schedules, signatures and certificates go by the wall clock.
 */
export const mostClockErrorMs = 60_000;
