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

import type { Registry } from "#coordinator/place/subnets/subnet";
import { mayBeSpecialPurpose, specialPurposeOfRange } from "#core/ip/special-purpose";
import type { NetworkRecord, SourceKind } from "../formats/record.ts";

export function rankOf(record: {
  readonly source: SourceKind;
  readonly registry: Registry | null;
  readonly responsible: Registry | null;
}): number {
  if (record.source === "whois") return record.registry === record.responsible ? 0 : 1;
  return record.source === "statistics" ? 2 : 3;
}

/**
 * The registries' names for placeholders: space managed elsewhere (RIPE's NON-RIPE-NCC-MANAGED-ADDRESS-BLOCK), early
 * registrations that moved away (ERX), APNIC's STUB-… for transfers, IANA's blocks. One pattern, because every record
 * is tested.
 */
const placeholderName = new RegExp(
  "(?:^|-)(?:NON-[A-Z]+(?:-NCC)?-MANAGED-ADDRESS-BLOCK|ERX(?:-|$)|TRANSFERRED(?:-|$))|^(?:STUB-|VARIOUS-REGISTRIES" +
    "|IANA-(?:BLK|BLOCK|NETBLOCK|RESERVED)|NOT-(?:RIPE(?:NCC)?|APNIC|AFRINIC|LACNIC|ARIN)(?:-|$))",
  "i",
);
/** The same in descriptions that name the holder. */
const placeholderWords =
  /\b(?:transferred to|not (?:managed|administered|allocated) (?:by|to)) (?:the )?(?:ripe|apnic|arin|lacnic|afrinic)\b|^various registries\b/i;

/** Returns why a record makes no subnet, or null. */
export function reasonToDrop(record: NetworkRecord): string | null {
  if (isWholeSpace(record) || isPlaceholder(record) || hasPlaceholderHolder(record)) return "placeholder";
  return isSpecialPurpose(record) ? "special-purpose range" : null;
}

const isPlaceholder = ({ name }: NetworkRecord) => placeholderName.test(name);

const hasPlaceholderHolder = ({ holder }: NetworkRecord) =>
  holder?.type === "name" && placeholderWords.test(holder.name);

/** Nobody holds `0.0.0.0/0`, `::/0` or half of a family. */
function isWholeSpace({ range }: NetworkRecord): boolean {
  if (range.family === 4) return range.last - range.first >= 2 ** 31 - 1;
  return range.last - range.first >= 2n ** 127n - 1n;
}

/** The first 16 bits decide most records. */
function isSpecialPurpose({ range }: NetworkRecord): boolean {
  const start = range.family === 4 ? range.first >>> 16 : Number(range.first >> 112n);
  return mayBeSpecialPurpose(range.family, start) && specialPurposeOfRange(range) !== null;
}
