/**
 * How fast one address may be asked, whatever host is meant. Hosts that share an address share a machine or a
 * network's gate, so they are asked one at a time; but a content network has thousands of them behind one address,
 * and a whole host's delay between any two requests would give each host a page every few hours. So an address
 * rests between two requests for a quarter of a host's floor, or for as long as it just worked when that is
 * longer: never more than half of its time goes to us. (BUbiNG, too, keeps a shorter delay for addresses than for hosts.)
 * What it tolerates is found as for a host (tolerated-rate), from what its hosts have in common: answers of any of them that
 * are several times slower than usual lower its rate, since machines work for all their hosts. A 429 or 503 is that host's own,
 * whose limit may be its own too, until a second host of the address refuses within ten minutes: then it is the address's.
 * The registrable domains with hosts there share its time by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): each
 * answer is charged to its domain with the time that it took and the rest that follows, and the domain that has had least goes
 * next, so that slow hosts of one domain hold up nobody but each other. Pure.
 */
import { z } from "zod";
import { parseAddress, unmapAddress } from "#core/ip/address";
import type { AnswerSpeed, PaceSettings } from "./host-pace.ts";
import { type HostAnswer, isRefusal } from "./request-outcome.ts";
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

/** As it lies on the disk, too. */
export const addressPace = z.object({
  notBeforeMs: amount,
  /** When the last request ended. */
  endedAtMs: amount,
  rate: toleratedRate.default(unlimitedRate),
  /** The host that refused last, and when. */
  refusedBy: z.string().max(253).default(""),
  refusedAtMs: amount,
  /** The virtual time: what the domain asked last had had before. */
  virtualMs: amount,
  /** By registrable domain, what it has had; of those left out, the virtual time. */
  hadMs: z.record(z.string().max(300), z.number().min(0)).default({}),
});

export type AddressPace = Readonly<z.infer<typeof addressPace>>;

export const newAddressPace: AddressPace = addressPace.parse({});

/** Of whom more is kept the least is forgotten, which is nobody's gain: they have had the virtual time then. */
const mostDomains = 32;

/** What a domain has had of the address; whoever asked for nothing meanwhile saves up nothing. */
export const hadOf = ({ virtualMs, hadMs }: AddressPace, domain: string): number =>
  Math.max(virtualMs, hadMs[domain] ?? 0);

/** After an answer of a host of the domain that took so long, with its rest. */
function withShare(pace: AddressPace, domain: string, tookMs: number): AddressPace {
  const virtualMs = hadOf(pace, domain);
  const had = Object.entries({ ...pace.hadMs, [domain]: virtualMs + tookMs })
    .filter(([, ms]) => ms > virtualMs)
    .sort(([, a], [, b]) => b - a)
    .slice(0, mostDomains);
  return { ...pace, virtualMs, hadMs: Object.fromEntries(had) };
}

/** The part of a host's floor that an address rests. */
const floorPart = 1 / 4;
/** However long the answer took, and however low the rate: it has many hosts, and the coordinator counts on it. */
const mostRestMs = 10_000;
/** Refusals of two hosts within this time are of one limiter. */
const togetherMs = 600_000;

export interface AddressAnswer extends Pick<HostAnswer, "status" | "tookMs"> {
  /** Which of its hosts was asked. */
  readonly host: string;
  readonly domain: string;
  /** By what is usual for that host. */
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

/** A rate below what the longest rest makes of it would take long to come back from, and change nothing. */
function withinRests(rate: ToleratedRate): ToleratedRate {
  return rate.perHour === 0
    ? rate
    : { ...rate, perHour: Math.max(highestPerHour / mostRestMs, rate.perHour) };
}

/** A measurement takes next to no work, and says nothing of how the address copes: it rests no shorter than it did. */
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

/** What counts as one address: an IPv4 address, or the /64 that one IPv6 subscriber has (RFC 6177). */
export function addressKey(text: string): string {
  const address = parseAddress(text);
  if (address === null) return text;
  const plain = unmapAddress(address);
  return plain.family === 4 ? `4:${plain.value}` : `6:${plain.value >> 64n}`;
}
