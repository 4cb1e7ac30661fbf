/**
 * How fast one address may be asked, whatever host is meant. Hosts that share an address share a machine or a
 * network's gate, so they are asked one at a time; but a content network has thousands of them behind one address,
 * and a whole host's delay between any two requests would give each host a page every few hours. So an address
 * rests between two requests for a quarter of a host's floor, or for as long as it just worked when that is
 * longer: never more than half of its time goes to us. Each 429 or 503 doubles the rest, each other answer takes a
 * tenth of that back. (BUbiNG, too, keeps a shorter delay for addresses than for hosts.) Pure.
 */
import { parseAddress, unmapAddress } from "#core/ip/address";
import type { PaceSettings } from "./host-pace.ts";
import type { HostAnswer } from "./request-outcome.ts";

export interface AddressPace {
  readonly notBeforeMs: number;
  /** How many times longer the rest is because the address turned us away. */
  readonly strain: number;
}

export const newAddressPace: AddressPace = { notBeforeMs: 0, strain: 1 };

/** The part of a host's floor that an address rests. */
const floorPart = 1 / 4;
const mostStrain = 32;
const relief = 0.9;
/** However long the answer took. */
const mostRestMs = 10_000;

export function addressAfterAnswer(
  pace: AddressPace,
  answer: Pick<HostAnswer, "status" | "tookMs">,
  { settings, nowMs }: { readonly settings: PaceSettings; readonly nowMs: number },
): AddressPace {
  const turnedAway = answer.status === 429 || answer.status === 503;
  const strain = turnedAway ? Math.min(mostStrain, pace.strain * 2) : Math.max(1, pace.strain * relief);
  const workedMs = Math.min(1, settings.responseTimeFactor) * (answer.status === null ? 0 : answer.tookMs);
  const restMs = Math.min(mostRestMs, Math.max(settings.floorMs * floorPart, workedMs) * strain);
  return { strain, notBeforeMs: nowMs + restMs };
}

/** A measurement takes next to no work, and says nothing of how the address copes: it rests no shorter than it did. */
export function addressAfterProbe(
  pace: AddressPace,
  { settings, nowMs }: { readonly settings: PaceSettings; readonly nowMs: number },
): AddressPace {
  return { ...pace, notBeforeMs: Math.max(pace.notBeforeMs, nowMs + settings.floorMs * floorPart) };
}

/** What counts as one address: an IPv4 address, or the /64 that one IPv6 subscriber has (RFC 6177). */
export function addressKey(text: string): string {
  const address = parseAddress(text);
  if (address === null) return text;
  const plain = unmapAddress(address);
  return plain.family === 4 ? `4:${plain.value}` : `6:${plain.value >> 64n}`;
}
