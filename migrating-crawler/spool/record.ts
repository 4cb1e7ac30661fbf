/**
 * A result as the spool keeps it: packed as it will be shipped, so that it is packed once.
 *
 *   form u8 = 2 | lease u64 | length of the numbers u32 | links + 1, or 0 for none, u32 | numbers | lines, UTF-8
 *
 * Crawlers before protocol version 2 kept `{"leaseId", "result"}` as JSON; such records are still read.
 */
import { packResult } from "#protocol/packed/message-frames";
import type { PackedMessage } from "#protocol/packed/packed-message";
import type { FetchResult } from "#protocol/result";

const form = 2;
const [leaseAt, numbersAt, linksAt, headBytes] = [1, 9, 13, 17] as const;

/** A result and the lease that it was fetched under. */
export interface KeptResult {
  readonly leaseId: string;
  readonly packed: PackedMessage;
}

export function writeRecord({ leaseId, packed }: KeptResult): Buffer {
  const { numbers, links } = packed;
  const lines = links === null || links.length === 0 ? packed.text : `${packed.text}\n${links.join("\n")}`;
  const record = Buffer.allocUnsafe(headBytes + numbers.length + Buffer.byteLength(lines));
  record.writeUInt8(form, 0);
  record.writeBigUInt64LE(BigInt(leaseId), leaseAt);
  record.writeUInt32LE(numbers.length, numbersAt);
  record.writeUInt32LE(links === null ? 0 : links.length + 1, linksAt);
  numbers.copy(record, headBytes);
  record.write(lines, headBytes + numbers.length, "utf8");
  return record;
}

/** The checksum has been looked at: what is read is what was written. */
export function readRecord(record: Buffer): KeptResult {
  if (record[0] !== form) return olderRecord(record);
  const numbersEnd = headBytes + record.readUInt32LE(numbersAt);
  const linkCount = record.readUInt32LE(linksAt) - 1;
  const numbers = Buffer.from(record.subarray(headBytes, numbersEnd));
  const lines = record.toString("utf8", numbersEnd).split("\n");
  const links = linkCount < 0 ? null : lines.splice(lines.length - linkCount);
  return { leaseId: leaseIdOf(record), packed: { text: lines.join("\n"), numbers, links } };
}

export function leaseIdOf(record: Buffer): string {
  if (record[0] !== form) return olderRecord(record).leaseId;
  return String(record.readBigUInt64LE(leaseAt));
}

function olderRecord(record: Buffer): KeptResult {
  const { leaseId, result } = JSON.parse(record.toString("utf8")) as { leaseId: string; result: FetchResult };
  return { leaseId, packed: packResult(leaseId, result) };
}
