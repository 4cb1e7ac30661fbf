/**
 * One record in WARC/1.1 (ISO 28500:2017; iipc.github.io/warc-specifications), before compression. Digests are
 * SHA-1 in base 32, which every reader knows: they tell copies and damage, and protect nothing.
 */
import { createHash, randomUUID } from "node:crypto";

export interface WarcRecord {
  readonly type: "warcinfo" | "request" | "response" | "revisit";
  /** `<urn:uuid:…>`; made up when it is left out. */
  readonly id?: string;
  readonly date: Date;
  readonly contentType: string;
  /** Further named fields, in this order; null: left out. */
  readonly fields: Readonly<Record<string, string | null>>;
  readonly block: Buffer;
  /** Where in the block the payload begins; null: no payload. */
  readonly payloadAt: number | null;
}

export function newRecordId(): string {
  return `<urn:uuid:${randomUUID()}>`;
}

export function writeWarcRecord(record: WarcRecord): Buffer {
  const { type, id = newRecordId(), date, contentType, fields, block, payloadAt } = record;
  const payload = payloadAt === null ? null : warcDigest(block.subarray(payloadAt));
  const all: Record<string, string | null> = {
    "WARC-Type": type,
    "WARC-Record-ID": id,
    "WARC-Date": date.toISOString(),
    "WARC-Payload-Digest": payload,
    ...fields,
    "WARC-Block-Digest": warcDigest(block),
    "Content-Type": contentType,
    "Content-Length": String(block.length),
  };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : [`${name}: ${clean(value)}`],
  );
  const head = Buffer.from(`WARC/1.1\r\n${lines.join("\r\n")}\r\n\r\n`, "utf8");
  return Buffer.concat([head, block, Buffer.from("\r\n\r\n")]);
}

export function warcDigest(bytes: Uint8Array): string {
  return `sha1:${base32(createHash("sha1").update(bytes).digest())}`;
}

/** Nobody outside may end a line of ours. */
function clean(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return value.replace(/[\u0000-\u001f\u007f]/g, " ");
}

/** RFC 4648 section 6, for a multiple of five bytes. */
function base32(bytes: Buffer): string {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  let bits = 0;
  let value = 0;
  let text = "";
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += letters[(value >> (bits - 5)) & 31];
  }
  return text;
}
