/**
 * How fast one host may be asked: the delay after an answer is the largest of our floor, the host's
 * Crawl-delay and a multiple of the time its last answer took; Retry-After is a minimum; 429 and 503
 * without it back off 60 s, doubling to a day, with jitter, forgiven after 30 quiet minutes (RFC 9110
 * section 10.2.3, RFC 6585 section 4). Pure: the time and chance are arguments.
 */
export interface PaceSettings {
  readonly floorMs: number;
  readonly responseTimeFactor: number;
}

export interface HostPace {
  /** No request earlier (same clock as `nowMs`). */
  readonly notBeforeMs: number;
  /** What robots.txt asks for. */
  readonly crawlDelayMs: number;
  /** The back-off in force; 0 when there is none. */
  readonly backOffMs: number;
  readonly backedOffAtMs: number;
}

export interface HostAnswer {
  /** Null when there was no answer at all. */
  readonly status: number | null;
  /** How long the answer took, or the failure. */
  readonly tookMs: number;
  readonly retryAfterSeconds: number | null;
}

export const newPace: HostPace = { notBeforeMs: 0, crawlDelayMs: 0, backOffMs: 0, backedOffAtMs: 0 };

const firstBackOffMs = 60_000;
const mostBackOffMs = 86_400_000;
const forgivenAfterMs = 30 * 60_000;
/** A very long Crawl-delay makes a host slow, not forgotten. */
const mostCrawlDelayMs = 3_600_000;
/** A slow answer stretches the delay, but not beyond this. */
const mostStretchMs = 60_000;

export function withCrawlDelay(pace: HostPace, seconds: number | null): HostPace {
  return { ...pace, crawlDelayMs: Math.min(mostCrawlDelayMs, (seconds ?? 0) * 1000) };
}

export function notBefore(pace: HostPace, atMs: number): HostPace {
  return { ...pace, notBeforeMs: Math.max(pace.notBeforeMs, atMs) };
}

/** The pace after an answer. `random` in [0, 1) spreads the back-off by up to a quarter. */
export function afterAnswer(
  pace: HostPace,
  answer: HostAnswer,
  circumstances: { readonly settings: PaceSettings; readonly nowMs: number; readonly random: number },
): HostPace {
  const { settings, nowMs, random } = circumstances;
  const stretchMs = Math.min(mostStretchMs, settings.responseTimeFactor * answer.tookMs);
  const usualMs = Math.max(settings.floorMs, pace.crawlDelayMs, stretchMs);
  const retryAfterMs = Math.min(mostBackOffMs, (answer.retryAfterSeconds ?? 0) * 1000);
  if (answer.status !== 429 && answer.status !== 503) {
    const forgiven = nowMs - pace.backedOffAtMs > forgivenAfterMs;
    return {
      ...pace,
      backOffMs: forgiven ? 0 : pace.backOffMs,
      notBeforeMs: nowMs + Math.max(usualMs, retryAfterMs),
    };
  }
  const backOffMs = Math.min(mostBackOffMs, Math.max(firstBackOffMs, 2 * pace.backOffMs));
  const waitMs = answer.retryAfterSeconds === null ? backOffMs * (1 + random / 4) : retryAfterMs;
  const notBeforeMs = nowMs + Math.min(mostBackOffMs, Math.max(usualMs, waitMs));
  return { ...pace, backOffMs, backedOffAtMs: nowMs, notBeforeMs };
}

/** Retry-After as seconds or an HTTP date; null when absent or neither. */
export function retryAfterSeconds(header: string | readonly string[] | undefined, now: Date): number | null {
  const text = [header ?? []].flat()[0]?.trim();
  if (text === undefined || text === "" || text.length > 60) return null;
  if (/^\d{1,9}$/.test(text)) return Math.min(31_536_000, Number(text));
  const at = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isFinite(at)) return null;
  return Math.min(31_536_000, Math.max(0, Math.ceil((at - now.getTime()) / 1000)));
}
