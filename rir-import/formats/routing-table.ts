/**
 * Routing tables as text, one route a line. Two forms:
 *
 *   RIPE's RIS whois dump (riswhoisdump.IPv4.gz): origin AS, prefix, and how many of RIS's peers see the route
 *     3333    193.0.0.0/21    371
 *     {64500,64501}    192.0.2.0/24    12         an AS set
 *   a plain table: prefix, origin AS
 *     193.0.0.0/21 AS3333
 *
 * What is no route of the Internet's core is left out, each with its reason:
 *
 * - Seen by fewer than ten peers: leaks of private more-specifics, tests, hijacks that nobody else took over. RIPEstat
 *   leaves them out by the same number ("low visibility"); RIS has several hundred peers.
 * - AS sets as origin: they name no single network, and are deprecated (RFC 9774).
 * - More specific than /24 or /48, which is generally neither announced nor accepted (RFC 7454, section 6.1.3), and so
 *   wide that it can only be a default route or its halves.
 * - ASes that are reserved or private (RFC 5398, 6793, 6996, 7300, 7607), special-purpose space, and IPv6 outside of what
 *   IANA gives to registries.
 */

import { blockBits, blockOf, type Family, prefixBlocks } from "#coordinator/subnets/routing-table";
import type { IpAddress } from "#core/ip/address";
import { firstAddress, formatRange, type IpRange, rangeOfPrefix } from "#core/ip/range";
import { mayBeSpecialPurpose, specialPurposeOfRange } from "#core/ip/special-purpose";
import { tooLongReason } from "./line-blocks.ts";
import { decodeText, LineCutter, type LineHandler } from "./lines.ts";
import type { RecordReader, RecordSink } from "./record.ts";
import { readIpv4, readIpv6 } from "./registry-range.ts";

/** Peers of RIS that have to see a route. */
export const fewestPeers = 10;

/** For a table that does not say how many see a route. */
export const peersNotStated = 0;

const widest = { 4: 8, 6: 16 } as const;

/** 2000::/3 (RFC 4291, section 2.4; RFC 3513). */
const firstUnicastBlock = 2 ** 45;
const endOfUnicastBlocks = 2 ** 46;

const anAsSet = "its origin is an AS set";

const comment = /^\s*(?:[%#;]|$)/;
const risLine = /^\s*(\{[\d,\s]{0,2000}\}|\d{1,10})\s+(\S+)\s+(\d{1,9})\s*$/;
const plainLine = /^\s*(\S+\/\d{1,3})\s+(?:AS)?(\d{1,10})\s*$/i;

/** Whether a first line that is no comment is of a routing table. */
export function looksLikeRoute(line: string): boolean {
  const prefix = risLine.exec(line)?.[2] ?? plainLine.exec(line)?.[1];
  return prefix !== undefined && /^[\da-f]+[.:][\da-f.:]+\/\d{1,3}$/i.test(prefix);
}

export function openRoutingTableReader(_file: string, sink: RecordSink): RecordReader {
  return new RoutingTableReader(sink);
}

class RoutingTableReader implements RecordReader, LineHandler {
  readonly #sink: RecordSink;
  readonly #cutter = new LineCutter(this);

  constructor(sink: RecordSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    this.#cutter.push(chunk);
  }

  end(): void {
    this.#cutter.end();
  }

  line(bytes: Buffer, start: number, end: number, line: number): void {
    const text = decodeText(bytes, start, end);
    if (comment.test(text)) return;
    const ris = risLine.exec(text);
    const plain = ris === null ? plainLine.exec(text) : null;
    if (ris !== null) this.#route(line, { origin: ris[1]!, prefix: ris[2]!, peers: Number(ris[3]) }, text);
    else if (plain !== null)
      this.#route(line, { origin: plain[2]!, prefix: plain[1]!, peers: peersNotStated }, text);
    else this.#malformed(line, "neither “origin prefix peers” nor “prefix origin”", text);
  }

  longLine(beginning: Buffer, line: number): void {
    this.#malformed(line, tooLongReason, decodeText(beginning, 0, beginning.length));
  }

  #route(
    line: number,
    { origin, prefix, peers }: { readonly origin: string; readonly prefix: string; readonly peers: number },
    text: string,
  ): void {
    const range = rangeOf(prefix);
    const asNumber = origin.startsWith("{") ? null : Number(origin);
    if (typeof range === "string" || isTooLarge(asNumber)) {
      this.#malformed(line, typeof range === "string" ? range : "not an AS number", text);
      return;
    }
    const length = Number(prefix.slice(prefix.lastIndexOf("/") + 1));
    const reason = reasonToIgnore(range, { asNumber, length, peers });
    if (asNumber === null || reason !== null) {
      this.#sink.ignore(reason ?? anAsSet);
      return;
    }
    const { family } = range;
    const firstBlock = blockOf(firstAddress(range));
    this.#sink.record({ type: "route", line, family, firstBlock, length, asNumber, peers });
  }

  #malformed(line: number, reason: string, value: string): void {
    this.#sink.malformed({ line, reason, value });
  }
}

const isTooLarge = (asNumber: number | null) => asNumber !== null && asNumber > 0xffff_ffff;

/** A prefix, or why it is none. Bits behind its length mean that the line says something else than it seems. */
function rangeOf(prefix: string): IpRange | string {
  const slash = prefix.lastIndexOf("/");
  const address = addressIn(prefix.slice(0, slash));
  const lengthText = prefix.slice(slash + 1);
  if (slash < 0 || address === null || !/^\d{1,3}$/.test(lengthText)) return "not a prefix";
  const range = rangeOfPrefix(address, Number(lengthText));
  if (range === null) return "not a prefix";
  return range.first === address.value
    ? range
    : `bits behind the prefix length are set: ${formatRange(range)}?`;
}

/** By the readers of millions: a dump has a million lines. */
function addressIn(text: string): IpAddress | null {
  if (text.includes(":")) {
    const value = readIpv6(text);
    return value === null ? null : { family: 6, value };
  }
  const value = readIpv4(text);
  return value < 0 ? null : { family: 4, value };
}

interface Route {
  /** Null: an AS set. */
  readonly asNumber: number | null;
  readonly length: number;
  readonly peers: number;
}

function reasonToIgnore(range: IpRange, { asNumber, length, peers }: Route): string | null {
  const { family } = range;
  if (peers !== peersNotStated && peers < fewestPeers) return `seen by fewer than ${fewestPeers} peers`;
  if (asNumber === null) return anAsSet;
  if (isReservedAs(asNumber)) return "a reserved or private AS";
  if (length < widest[family]) return `wider than /${widest[family]}`;
  if (length > blockBits[family]) return `more specific than /${blockBits[family]}`;
  if (isOutside(family, range, length)) return "special-purpose space";
  return null;
}

function isOutside(family: Family, range: IpRange, length: number): boolean {
  const block = blockOf(firstAddress(range));
  if (family === 6 && (block < firstUnicastBlock || block + prefixBlocks(6, length) > endOfUnicastBlocks))
    return true;
  const first16Bits = Math.floor(block / 2 ** (blockBits[family] - 16));
  return mayBeSpecialPurpose(family, first16Bits) && specialPurposeOfRange(range) !== null;
}

/** IANA's registry of special-purpose AS numbers, and what is for private use. */
function isReservedAs(asNumber: number): boolean {
  return (
    asNumber === 0 ||
    asNumber === 23_456 ||
    (asNumber >= 64_496 && asNumber <= 131_071) ||
    asNumber >= 4_200_000_000
  );
}
