/**
 * Sites that limit those who ask, of the kinds that are in use, on a clock of their own: a token bucket, a fixed window, a
 * sliding window, a queue that grows (and so the answers' times) until it overflows, a ban-list in front of a bucket,
 * the same over a server that slows under load, that server alone, and none at all. A seed draws their figures.
 */
import { mix32, seededRandom } from "#core/random";
import type { HostAnswer } from "#crawler/limits/request-outcome";

export const limiterKinds = [
  "token-bucket",
  "fixed-window",
  "sliding-window",
  "leaky-queue",
  "ban-list",
  "ban-list-slow",
  "slow-server",
  "none",
] as const;

export type LimiterKind = (typeof limiterKinds)[number];

export const limiterWords: Readonly<Record<LimiterKind, string>> = {
  "token-bucket": "token bucket",
  "fixed-window": "fixed window",
  "sliding-window": "sliding window",
  "leaky-queue": "leaky queue, growing times",
  "ban-list": "ban-list over a bucket",
  "ban-list-slow": "ban-list, slow under load",
  "slow-server": "slow under load alone",
  none: "no limit",
};

export interface LimitedSite {
  /** What it lets through in the long run; infinite: all. */
  readonly allowedPerHour: number;
  /** At a time that never goes back. */
  ask(atMs: number): HostAnswer;
  /** Within a ban. */
  isBanned(atMs: number): boolean;
  /** Others ask so much that it has no room for more. */
  isOverloaded(atMs: number): boolean;
}

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** What any page takes where nothing is in its way. */
const baseMs = 120;
const refusalMs = 20;
/** Nobody answers: as long as a connection is waited for. */
const silenceMs = 10_000;
const banMs = hourMs;
const banWindowMs = 10 * minuteMs;

/** The same seed draws the same site, and the same noise for whoever asks at the same times. */
export function limitedSite(kind: LimiterKind, seed: number): LimitedSite {
  const random = seededRandom(mix32(seed ^ Math.imul(limiterKinds.indexOf(kind) + 1, 0x9e3779b1)));
  const drawn: Drawn = {
    perHour: 60 * logUniform(4, 40, random()),
    saysRetryAfter: random() < 0.5,
    windowMs: [minuteMs, 10 * minuteMs, hourMs][Math.floor(random() * 3)]!,
    burst: Math.round(5 + 55 * random()),
    depth: Math.round(5 + 15 * random()),
    banAfter: Math.round(3 + 3 * random()),
    dropsBanned: random() < 0.5,
    phase: random(),
    random,
  };
  const server = slowingServer(drawn);
  const plain: Server = { tookMs: () => noisy(baseMs, random), isOverloaded: () => false };
  switch (kind) {
    case "token-bucket":
      return gated(drawn, tokenBucket(drawn), plain);
    case "fixed-window":
      return gated(drawn, fixedWindow(drawn), plain);
    case "sliding-window":
      return gated(drawn, slidingWindow(drawn), plain);
    case "leaky-queue":
      return leakyQueue(drawn);
    case "ban-list":
      return banning(drawn, gated(drawn, tokenBucket(drawn), plain));
    case "ban-list-slow":
      return banning(drawn, gated(drawn, tokenBucket(drawn), server));
    case "slow-server":
      return gated({ ...drawn, perHour: Number.POSITIVE_INFINITY }, () => 0, server);
    case "none":
      return gated({ ...drawn, perHour: Number.POSITIVE_INFINITY }, () => 0, plain);
  }
}

interface Drawn {
  readonly perHour: number;
  readonly saysRetryAfter: boolean;
  readonly windowMs: number;
  readonly burst: number;
  readonly depth: number;
  readonly banAfter: number;
  readonly dropsBanned: boolean;
  /** Of the day, and of windows. */
  readonly phase: number;
  readonly random: () => number;
}

interface Server {
  tookMs(atMs: number): number;
  isOverloaded(atMs: number): boolean;
}

/** 0: let through; otherwise after how many milliseconds asking would be of use. */
type Gate = (atMs: number) => number;

function gated({ perHour, saysRetryAfter }: Drawn, gate: Gate, server: Server): LimitedSite {
  return {
    allowedPerHour: perHour,
    ask: (atMs) => {
      const waitMs = gate(atMs);
      if (waitMs <= 0) return { status: 200, tookMs: server.tookMs(atMs), retryAfterSeconds: null };
      const retryAfterSeconds = saysRetryAfter ? Math.ceil(waitMs / 1000) : null;
      return { status: 429, tookMs: refusalMs, retryAfterSeconds };
    },
    isBanned: () => false,
    isOverloaded: (atMs) => server.isOverloaded(atMs),
  };
}

function tokenBucket({ perHour, burst }: Drawn): Gate {
  let tokens = burst;
  let lastMs = 0;
  return (atMs) => {
    tokens = Math.min(burst, tokens + ((atMs - lastMs) * perHour) / hourMs);
    lastMs = atMs;
    if (tokens < 1) return ((1 - tokens) * hourMs) / perHour;
    tokens -= 1;
    return 0;
  };
}

function fixedWindow({ perHour, windowMs, phase }: Drawn): Gate {
  const quota = Math.max(1, Math.round((perHour * windowMs) / hourMs));
  let window = -1;
  let used = 0;
  return (atMs) => {
    const at = atMs / windowMs + phase;
    if (Math.floor(at) !== window) [window, used] = [Math.floor(at), 0];
    if (used >= quota) return (window + 1 - at) * windowMs;
    used += 1;
    return 0;
  };
}

function slidingWindow({ perHour, windowMs }: Drawn): Gate {
  const quota = Math.max(1, Math.round((perHour * windowMs) / hourMs));
  const passed: number[] = [];
  return (atMs) => {
    while (passed.length > 0 && passed[0]! <= atMs - windowMs) passed.shift();
    if (passed.length >= quota) return passed[0]! + windowMs - atMs;
    passed.push(atMs);
    return 0;
  };
}

/** Others keep three quarters of it busy; who asks is behind all who wait, and beyond its depth is turned away. */
function leakyQueue({ perHour, depth, saysRetryAfter, random }: Drawn): LimitedSite {
  const othersShare = 0.75;
  const serviceMs = (hourMs * (1 - othersShare)) / perHour;
  let backlogMs = 0;
  let lastMs = 0;
  const pass = (untilMs: number) => {
    // Arrivals of others, one by one; after an hour that nobody looked at, only its end counts.
    for (let nowMs = Math.max(lastMs, untilMs - hourMs); ; ) {
      const nextMs = nowMs - Math.log(1 - random()) * (serviceMs / othersShare);
      backlogMs = Math.max(0, backlogMs - (Math.min(nextMs, untilMs) - nowMs));
      if (nextMs >= untilMs) break;
      if (backlogMs < depth * serviceMs) backlogMs += serviceMs;
      nowMs = nextMs;
    }
    lastMs = untilMs;
  };
  return {
    allowedPerHour: perHour,
    ask: (atMs) => {
      pass(atMs);
      if (backlogMs >= depth * serviceMs) {
        const retryAfterSeconds = saysRetryAfter ? Math.ceil(backlogMs / 1000) : null;
        return { status: 503, tookMs: refusalMs, retryAfterSeconds };
      }
      backlogMs += serviceMs;
      return { status: 200, tookMs: backlogMs + noisy(baseMs, random), retryAfterSeconds: null };
    },
    isBanned: () => false,
    isOverloaded: () => false,
  };
}

/** Who is refused too often within ten minutes is not answered for an hour, or refused for an hour. */
function banning({ banAfter, dropsBanned }: Drawn, site: LimitedSite): LimitedSite {
  let bannedUntilMs = 0;
  let refusedAtMs: number[] = [];
  return {
    ...site,
    ask: (atMs) => {
      if (atMs < bannedUntilMs)
        return {
          status: dropsBanned ? null : 429,
          tookMs: dropsBanned ? silenceMs : refusalMs,
          retryAfterSeconds: null,
        };
      const answer = site.ask(atMs);
      if (answer.status !== 429) return answer;
      refusedAtMs = [...refusedAtMs.filter((each) => each > atMs - banWindowMs), atMs];
      if (refusedAtMs.length < banAfter) return answer;
      [bannedUntilMs, refusedAtMs] = [atMs + banMs, []];
      return answer;
    },
    isBanned: (atMs) => atMs < bannedUntilMs,
  };
}

/** Others ask little at night and more than it has room for at noon: a page takes up to twelve times as long. */
function slowingServer({ phase, random }: Drawn): Server {
  const load = (atMs: number) => 0.5 + 0.49 * Math.sin(2 * Math.PI * (atMs / (24 * hourMs) + phase));
  return {
    tookMs: (atMs) => noisy(Math.min(12 * baseMs, baseMs / (1 - load(atMs))), random),
    isOverloaded: (atMs) => load(atMs) > 0.75,
  };
}

const logUniform = (least: number, most: number, random: number) => least * (most / least) ** random;

/** Log-normal, of a fifth. */
function noisy(ms: number, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return ms * Math.exp(0.2 * normal);
}
