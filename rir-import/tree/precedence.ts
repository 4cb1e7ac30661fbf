/**
 * Decides which source wins. No other module does.
 *
 * 1. Several records of the same range are one subnet. Its fields come from the best-ranked record, and those that
 *    it leaves open (holder, country, name) from the next:
 *      a WHOIS object of the registry that is responsible for the range;
 *      a WHOIS object of another registry;
 *      delegated statistics;
 *      IANA's registries.
 *    Within a rank the first record read wins. Files are read in the order given, folders by name.
 * 2. Ranges that differ are all kept. An address belongs to the most specific of them.
 * 3. The registry responsible for a range is the one whose statistics cover it (they follow transfers), else the one
 *    to which IANA gave the block, else the one that claims the range itself.
 * 4. Records that represent another registry's space or nobody (placeholders), and ranges that lie wholly in a
 *    special-purpose block, are dropped. They make neither a subnet nor a holder.
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
 * registrations that moved away (ERX), APNIC's STUB-… for transfers, IANA's blocks. One pattern for speed, because
 * every record is tested.
 */
const placeholderName = new RegExp(
  "(?:^|-)(?:NON-[A-Z]+(?:-NCC)?-MANAGED-ADDRESS-BLOCK|ERX(?:-|$)|TRANSFERRED(?:-|$))|^(?:STUB-|VARIOUS-REGISTRIES" +
    "|IANA-(?:BLK|BLOCK|NETBLOCK|RESERVED)|NOT-(?:RIPE(?:NCC)?|APNIC|AFRINIC|LACNIC|ARIN)(?:-|$))",
  "i",
);
/** Placeholders by the description that names their holder. */
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

/** The first 16 bits are enough to decide about most records. */
function isSpecialPurpose({ range }: NetworkRecord): boolean {
  const start = range.family === 4 ? range.first >>> 16 : Number(range.first >> 112n);
  return mayBeSpecialPurpose(range.family, start) && specialPurposeOfRange(range) !== null;
}
