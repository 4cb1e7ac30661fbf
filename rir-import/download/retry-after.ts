/** How long to wait before another try. */
import type { IncomingHttpHeaders } from "node:http";

/** Retry-After (RFC 9110 section 10.2.3), seconds or a date, in ms from now; null when absent or neither. */
export function retryAfterMs(headers: IncomingHttpHeaders, now: Date): number | null {
  const text = headers["retry-after"]?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = /^[A-Za-z]{3}/.test(text) && text.length <= 60 ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now.getTime());
}

const firstBackOffMs = 1000;
const mostBackOffMs = 60_000;

/** Doubling from a second to a minute, spread over half of that so that many clients do not come at once. */
export function backOffMs(failedTries: number, random: () => number): number {
  const most = Math.min(mostBackOffMs, firstBackOffMs * 2 ** Math.min(10, failedTries - 1));
  return most * (0.5 + random() / 2);
}
