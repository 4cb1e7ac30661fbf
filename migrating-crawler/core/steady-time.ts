/**
 * Ms as those of `Date.now()` were when the process began, which go on evenly whatever becomes of the machine's clock: what waits
 * (a host, an address, the end of a lease) goes by them, so that a clock that is a day ahead for a moment keeps no host for a day.
 */
export const steadyNowMs = (): number => Math.round(performance.timeOrigin + performance.now());
