/**
 * Which source wins: the one place that says so.
 *
 * 1. The same range in several records is one subnet. Its fields come from the best-ranked record, and what
 *    that one leaves open (holder, country, name) from the next:
 *      a WHOIS object of the registry that is responsible for the range;
 *      a WHOIS object of another registry;
 *      delegated statistics;
 *      IANA's registries.
 *    Within a rank the record that was read first wins; files are read in the order given, folders by name.
 * 2. Ranges that differ are all kept: the tree gives an address to the most specific of them.
 * 3. Responsible for a range is the registry whose statistics cover it (they follow transfers), else the one
 *    that IANA gave the block to, else the one that says so itself.
 * 4. Dropped: records that stand in for another registry's space or for nobody (placeholders), and ranges
 *    that lie wholly in a special-purpose block. They neither make a subnet nor a holder.
 */

import type { Registry } from "#coordinator/subnets/subnet";
import { mayBeSpecialPurpose, specialPurposeOfRange } from "#core/ip/special-purpose";
import type { NetworkRecord, SourceKind } from "../formats/record.ts";
import type { TextBytes } from "../formats/text-decoding.ts";

/** Smaller wins. */
export function rankOf(record: {
  readonly source: SourceKind;
  readonly registry: Registry | null;
  readonly responsible: Registry | null;
}): number {
  if (record.source === "whois") return record.registry === record.responsible ? 0 : 1;
  return record.source === "statistics" ? 2 : 3;
}

/**
 * Names of the registries' own stand-ins: space managed elsewhere (RIPE's NON-RIPE-NCC-MANAGED-ADDRESS-BLOCK),
 * early registrations that moved away (ERX), APNIC's STUB-… for transfers, IANA's blocks. One pattern, since it is
 * asked of every record.
 */
const placeholderName =
  /(?:^|-)(?:NON-[A-Z]+(?:-NCC)?-MANAGED-ADDRESS-BLOCK|ERX(?:-|$)|TRANSFERRED(?:-|$))|^(?:IANA-(?:BLK|BLOCK|NETBLOCK|RESERVED)|STUB-|NOT-(?:RIPE(?:NCC)?|APNIC|AFRINIC|LACNIC|ARIN)(?:-|$)|VARIOUS-REGISTRIES)/i;
/** The same in words, where the description names the holder. */
const placeholderWords =
  /\b(?:transferred to|not (?:managed|administered|allocated) (?:by|to)) (?:the )?(?:ripe|apnic|arin|lacnic|afrinic)\b|^various registries\b/i;

/** Why a record makes no subnet, or null when it does. */
export function reasonToDrop(record: NetworkRecord): string | null {
  if (isWholeSpace(record) || isPlaceholder(record) || hasPlaceholderHolder(record)) return "placeholder";
  return isSpecialPurpose(record) ? "special-purpose range" : null;
}

function isPlaceholder(record: NetworkRecord): boolean {
  const bytes = record.nameBytes ?? null;
  return (bytes === null || mayBePlaceholder(bytes)) && placeholderName.test(record.name);
}

function hasPlaceholderHolder(record: NetworkRecord): boolean {
  const found = record.holderBytes ?? null;
  if (found !== null && (found.type !== "name" || !mayBePlaceholderWords(found.text))) return false;
  const { holder } = record;
  return holder?.type === "name" && holder.name.length >= fewestLetters && placeholderWords.test(holder.name);
}

/** `various registries`. */
const fewestLetters = 18;

/** The patterns' beginnings, by bytes and in small letters: a name without them needs no text and no search. */
const nameBeginnings = ["ian", "stu", "not", "var"].map(codeOf);
const partBeginnings = ["non", "erx", "tra"].map(codeOf);
const various = codeOf("var");
const pastTense = codeOf("ed ") & 0xffff00;
const dash = 0x2d;
const space = 0x20;

function codeOf(letters: string): number {
  return threeLetters(new TextEncoder().encode(letters), 0);
}

function threeLetters(bytes: Uint8Array, at: number): number {
  const letter = (offset: number) => (bytes[at + offset] as number) | 0x20;
  return (letter(0) << 16) | (letter(1) << 8) | letter(2);
}

function mayBePlaceholder({ bytes, start, end }: TextBytes): boolean {
  for (let at = start; at + 2 < end; at += 1) {
    if (at > start && bytes[at - 1] !== dash) continue;
    const code = threeLetters(bytes, at);
    if (partBeginnings.includes(code) || (at === start && nameBeginnings.includes(code))) return true;
  }
  return false;
}

/** `…ed to `, `…ed by `, or `var…` at the start. */
function mayBePlaceholderWords({ bytes, start, end }: TextBytes): boolean {
  if (end - start < fewestLetters) return false;
  if (threeLetters(bytes, start) === various) return true;
  for (let at = start; at + 3 < end; at += 1) {
    if (bytes[at + 2] === space && (threeLetters(bytes, at) & 0xffff00) === pastTense) return true;
  }
  return false;
}

/** `0.0.0.0/0`, `::/0` and whatever holds half of a family or more: nobody holds that. */
function isWholeSpace(record: NetworkRecord): boolean {
  const words = record.ipv6Words ?? null;
  if (words !== null && (words[4] as number) - (words[0] as number) < 2 ** 31 - 1) return false;
  const { range } = record;
  if (range.family === 4) return range.last - range.first >= 2 ** 31 - 1;
  return range.last - range.first >= 2n ** 127n - 1n;
}

/** Most records are told by their first 16 bits. */
function isSpecialPurpose(record: NetworkRecord): boolean {
  const words = record.ipv6Words ?? null;
  if (words !== null && !mayBeSpecialPurpose(6, (words[0] as number) >>> 16)) return false;
  const { range } = record;
  if (range.family === 4 && !mayBeSpecialPurpose(4, range.first >>> 16)) return false;
  return specialPurposeOfRange(range) !== null;
}
