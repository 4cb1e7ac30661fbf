/**
 * Decides how fast one address may be asked, over all its hosts. Hosts that share an address share a machine or gateway, so
 * they are asked one at a time. A content network has thousands of hosts per address, and with a full host delay, each would
 * get one page every few hours. An address therefore rests for a quarter of a host's floor, or for as long as it just worked
 * if that is longer, so that the crawler never takes more than half of its time. (BUbiNG also delays addresses less than
 * hosts.)
 *
 * The tolerated rate (tolerated-rate) follows what the hosts share. Answers several times slower than usual lower it, since a
 * machine serves all its hosts. A 429 or 503 counts for its host alone until a second host of the address refuses within ten
 * minutes.
 *
 * Registrable domains share the address by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). Each answer charges
 * its domain with the time taken plus the rest, and the domain with the lowest charge is next, so that slow hosts only delay
 * their own domain. Pure functions.
 */
import { z } from "zod";
import { parseAddress, unmapAddress } from "#core/ip/address";
import { type AnswerSpeed, type HostAnswer, isRefusal, type PaceSettings } from "./host-pace.ts";
import {
  afterGoodAnswer,
  afterRefusal,
  afterSlowAnswers,
  highestPerHour,
  intervalMs,
  type RateBounds,
  rateNow,
  type ToleratedRate,
  toleratedRate,
  unlimitedRate,
} from "./tolerated-rate.ts";

const amount = z.number().min(0).default(0);

/** This is also the format on disk. */
export const addressPace = z.object({
  notBeforeMs: amount,
  endedAtMs: amount,
  rate: toleratedRate.default(unlimitedRate),
  refusedBy: z.string().max(253).default(""),
  refusedAtMs: amount,
  /** Virtual time of fair queueing: what the domain asked last had been charged before its request. */
  virtualMs: amount,
  /** The charge of each registrable domain. A missing domain has the virtual time. */
  hadMs: z.record(z.string().max(300), z.number().min(0)).default({}),
});

export type AddressPace = Readonly<z.infer<typeof addressPace>>;

export const newAddressPace: AddressPace = addressPace.parse({});

/**
 * If there are more domains, the one with the lowest charge is dropped. It gains nothing, because its charge becomes the
 * virtual time.
 */
const mostDomains = 32;

/** A domain's charge is at least the virtual time, so that idle domains accumulate no credit. */
export const hadOf = ({ virtualMs, hadMs }: AddressPace, domain: string): number =>
  Math.max(virtualMs, hadMs[domain] ?? 0);

function withShare(pace: AddressPace, domain: string, tookMs: number): AddressPace {
  const virtualMs = hadOf(pace, domain);
  const had = Object.entries({ ...pace.hadMs, [domain]: virtualMs + tookMs })
    .filter(([, ms]) => ms > virtualMs)
    .sort(([, a], [, b]) => b - a)
    .slice(0, mostDomains);
  return { ...pace, virtualMs, hadMs: Object.fromEntries(had) };
}

/** An address rests for this fraction of a host's floor. */
const floorPart = 1 / 4;
/** Limits the rest whatever the answer time and rate, because the coordinator plans with many hosts per address. */
const mostRestMs = 10_000;
/** Refusals by two hosts within this time are assumed to come from one rate limiter. */
const togetherMs = 600_000;

export interface AddressAnswer extends Pick<HostAnswer, "status" | "tookMs"> {
  readonly host: string;
  readonly domain: string;
  /** The speed relative to what is usual for that host. */
  readonly speed: AnswerSpeed;
}

export function addressAfterAnswer(
  pace: AddressPace,
  answer: AddressAnswer,
  now: { readonly settings: PaceSettings; readonly nowMs: number },
): AddressPace {
  const { settings, nowMs } = now;
  const met = withRate(pace, answer, now);
  const workedMs = Math.min(1, settings.responseTimeFactor) * (answer.status === null ? 0 : answer.tookMs);
  const rate = rateNow(met.rate, boundsOf(settings), nowMs);
  const toleratedMs = met.rate.perHour === 0 ? 0 : intervalMs(rate) - answer.tookMs;
  const restMs = Math.min(mostRestMs, Math.max(leastRestMs(settings), workedMs, toleratedMs));
  const shared = withShare(met, answer.domain, answer.tookMs + restMs);
  return { ...shared, endedAtMs: nowMs, notBeforeMs: nowMs + restMs };
}

function withRate(
  pace: AddressPace,
  { host, status, speed }: AddressAnswer,
  { settings, nowMs }: { readonly settings: PaceSettings; readonly nowMs: number },
): AddressPace {
  const event = { nowMs, gapMs: pace.endedAtMs === 0 ? 0 : Math.max(0, nowMs - pace.endedAtMs) };
  const bounds = boundsOf(settings);
  if (isRefusal({ status })) {
    const isShared =
      pace.refusedBy !== "" && pace.refusedBy !== host && nowMs - pace.refusedAtMs < togetherMs;
    const rate = isShared ? afterRefusal(pace.rate, event, { bounds, limitedBy: "refused" }) : pace.rate;
    return { ...pace, rate: withinRests(rate), refusedBy: host, refusedAtMs: nowMs };
  }
  if (status === null) return pace;
  if (speed === "slow") return { ...pace, rate: withinRests(afterSlowAnswers(pace.rate, event, bounds)) };
  return { ...pace, rate: afterGoodAnswer(pace.rate, { ...event, isQuick: speed === "quick" }, bounds) };
}

const leastRestMs = ({ floorMs, fastestMs = floorMs }: PaceSettings) =>
  Math.min(floorMs, fastestMs) * floorPart;

function boundsOf(settings: PaceSettings): RateBounds {
  const mostPerHour = highestPerHour / Math.max(1, leastRestMs(settings));
  return { startPerHour: mostPerHour, mostPerHour };
}

/** Keeps the rate from falling below that of the longest rest. A lower one would change nothing and recover slowly. */
function withinRests(rate: ToleratedRate): ToleratedRate {
  return rate.perHour === 0
    ? rate
    : { ...rate, perHour: Math.max(highestPerHour / mostRestMs, rate.perHour) };
}

/** A probe costs little and says nothing about load, so it never shortens the rest. */
export function addressAfterProbe(
  pace: AddressPace,
  now: { readonly settings: PaceSettings; readonly nowMs: number; readonly domain: string },
): AddressPace {
  const restMs = now.settings.floorMs * floorPart;
  return {
    ...withShare(pace, now.domain, restMs),
    notBeforeMs: Math.max(pace.notBeforeMs, now.nowMs + restMs),
  };
}

/** Treats an IPv4 address, or the /64 of one IPv6 subscriber (RFC 6177), as one address. */
export function addressKey(text: string): string {
  const address = parseAddress(text);
  if (address === null) return text;
  const plain = unmapAddress(address);
  return plain.family === 4 ? `4:${plain.value}` : `6:${plain.value >> 64n}`;
}
