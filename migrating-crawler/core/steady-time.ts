/**
 * Milliseconds on the scale of `Date.now()` at process start that advance evenly when the machine's clock changes.
 * Waits for hosts, addresses and leases use them, so a clock that is briefly a day ahead blocks no host for a day.
 */
export const steadyNowMs = (): number => Math.round(performance.timeOrigin + performance.now());
