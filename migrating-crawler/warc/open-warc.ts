/** Opens a partner's WARC archive according to the crawler's settings. */

import { createHash, randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import { withoutUser, withoutUsers } from "#core/ip/url-host";
import { type StatedPreference, useAnswers } from "#protocol/preferences";
import type { AnswerHead, SiteAnswer, WireBody } from "../fetch/exchange.ts";
import type { AskedOfSite, ExchangeRecorder } from "../fetch/site-client.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { WarcFiles } from "./warc-files.ts";

export interface Warc {
  readonly recorder: ExchangeRecorder;
  /** Returns why writing has stopped, or an empty string. */
  stopped(): string;
  bytes(): number;
  close(): Promise<void>;
}

/** Returns null if the settings ask for none. Throws ConfigError if the folder is not writable. */
export function openWarc(
  { warc, name }: Pick<CrawlerConfig, "warc" | "name">,
  { software, userAgent }: { readonly software: string; readonly userAgent: () => string },
): Warc | null {
  if (warc === null) return null;
  const now = () => new Date();
  const firstRecord = (file: string) => warcinfo({ file, software, userAgent: userAgent(), date: now() });
  const files = new WarcFiles({ ...warc, name, firstRecord, now });
  return {
    recorder: new WarcRecorder(files, now),
    stopped: () => files.stopped,
    bytes: () => files.bytes,
    close: () => files.close(),
  };
}

/** Describes the file's writer and rules (WARC/1.1 section 6.2). */
function warcinfo(about: {
  readonly file: string;
  readonly software: string;
  readonly userAgent: string;
  readonly date: Date;
}): Buffer {
  const lines = [
    `software: ${about.software}`,
    "format: WARC File Format 1.1",
    "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
    "robots: obey",
    `http-header-user-agent: ${about.userAgent}`,
  ];
  return writeWarcRecord({
    type: "warcinfo",
    date: about.date,
    contentType: "application/warc-fields",
    fields: { "WARC-Filename": about.file },
    block: Buffer.from(`${lines.join("\r\n")}\r\n`),
  });
}

// Archives fetches as WARC records: a response with its request, or a revisit for known content (WARC/1.1 section 6.7):
// `server-not-modified` for a 304, and `identical-payload-digest` for bytes that this process wrote before. Statements about
// page uses are partly elsewhere (robots.txt, tdmrep.json), so a metadata record (section 6.6) that refers to the page lists
// all of them with their sources and the conclusion.

interface Exchanged {
  readonly asked: AskedOfSite;
  readonly date: Date;
  readonly answer: SiteAnswer;
  readonly body: WireBody | null;
}

/** This many payload digests take about 10 MB. */
const rememberedPayloads = 50_000;

/** Enough for pages that are being extracted, whose metadata may still follow. */
const rememberedAnswers = 1000;

const profiles = "http://netpreserve.org/warc/1.1/revisit/";

class WarcRecorder implements ExchangeRecorder {
  readonly #files: WarcFiles;
  readonly #now: () => Date;
  readonly #written = new LRUCache<string, { readonly url: string; readonly date: Date }>({
    max: rememberedPayloads,
  });
  /** The id of the record of each URL's latest answer. */
  readonly #answers = new LRUCache<string, string>({ max: rememberedAnswers });

  constructor(files: WarcFiles, now: () => Date) {
    this.#files = files;
    this.#now = now;
  }

  watch(asked: AskedOfSite, answer: SiteAnswer): SiteAnswer {
    const date = this.#now();
    return recorded(answer, (body) => this.#record({ asked, date, answer, body }));
  }

  async state(url: string, stated: readonly StatedPreference[]): Promise<void> {
    const answerId = this.#answers.get(url);
    if (answerId === undefined || stated.length === 0) return;
    await this.#files.append([writeWarcRecord(usesRecord(url, stated, { answerId, date: this.#now() }))]);
  }

  async #record(exchanged: Exchanged): Promise<void> {
    const id = newRecordId();
    this.#answers.set(exchanged.asked.url, id);
    const records = [this.#answerOf(exchanged, id), requestOf(exchanged, id)];
    await this.#files.append(records.map(writeWarcRecord));
  }

  #answerOf(exchanged: Exchanged, id: string): WarcRecord {
    const { asked, date, answer, body } = exchanged;
    const head = responseHead(answer.status, answer.head);
    const common = { id, date, contentType: "application/http; msgtype=response" };
    const fields = fieldsOf(asked);
    const revisit = this.#revisitOf(exchanged);
    if (revisit !== null) {
      return { ...common, type: "revisit", fields: { ...fields, ...revisit }, block: head };
    }
    const block = Buffer.concat([head, body?.bytes ?? Buffer.alloc(0)]);
    const isCut = body === null ? hasBody(answer) : body.truncated || body.unwanted;
    const truncated = { "WARC-Truncated": isCut ? "length" : null };
    return {
      ...common,
      type: "response",
      fields: { ...fields, ...truncated },
      block,
      payloadAt: head.length,
    };
  }

  #revisitOf({ asked, date, answer, body }: Exchanged): Record<string, string> | null {
    if (answer.status === 304) return { "WARC-Profile": `${profiles}server-not-modified` };
    if (body === null || body.truncated || body.unwanted || body.bytes.length === 0) return null;
    const digest = warcDigest(body.bytes);
    const original = this.#written.get(digest);
    if (original === undefined) {
      this.#written.set(digest, { url: asked.url, date });
      return null;
    }
    return {
      "WARC-Payload-Digest": digest,
      "WARC-Profile": `${profiles}identical-payload-digest`,
      "WARC-Refers-To-Target-URI": original.url,
      "WARC-Refers-To-Date": original.date.toISOString(),
    };
  }
}

function usesRecord(
  url: string,
  stated: readonly StatedPreference[],
  { answerId, date }: { readonly answerId: string; readonly date: Date },
): WarcRecord {
  const lines = [
    ...stated.map(({ standard, place, uses, answer, text }) => {
      const of = uses.length === 0 ? "uses that we have no word for" : uses.join(" ");
      return `usage-statement: ${standard} in ${place}: ${of}: ${answer}: ${text}`;
    }),
    ...Object.entries(useAnswers(stated)).map(([use, answer]) => `usage: ${use}=${answer}`),
  ];
  return {
    type: "metadata",
    date,
    contentType: "application/warc-fields",
    fields: { "WARC-Target-URI": url, "WARC-Refers-To": answerId },
    block: Buffer.from(`${lines.map(clean).join("\r\n")}\r\n`),
  };
}

function requestOf({ asked, date }: Exchanged, answerId: string): WarcRecord {
  const block = requestBlock(asked);
  const fields = { ...fieldsOf(asked), "WARC-Concurrent-To": answerId };
  const contentType = "application/http; msgtype=request";
  return { type: "request", date, contentType, fields, block };
}

function fieldsOf({ url, address, http }: AskedOfSite): Record<string, string | null> {
  return { "WARC-Target-URI": url, "WARC-IP-Address": address, "WARC-Protocol": http === "2" ? "h2" : null };
}

/** Needed for answers whose body was dropped. */
function hasBody({ status, head }: SiteAnswer): boolean {
  return status !== 204 && fieldOf(head, "content-length") !== "0";
}

// Formats a request and its answer as HTTP/1.1 messages for WARC records, whichever HTTP version carried them, since there is
// no agreed form for HTTP/2. The body stays as transferred, with its content codings. Chunks are already removed, so
// `Transfer-Encoding` is renamed as in Common Crawl and readers do not expect chunks. Users and passwords are removed from
// URLs in headers.

function requestBlock({ url, headers }: Pick<AskedOfSite, "url" | "headers">): Buffer {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries({ host, connection: "keep-alive", ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return Buffer.from(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

function responseHead(status: number, { reason, rawHeaders }: AnswerHead): Buffer {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = textOf(rawHeaders[at]!);
    // Skips the pseudo-fields of HTTP/2.
    if (name.startsWith(":")) continue;
    const kept = name.toLowerCase() === "transfer-encoding" ? `X-Crawler-${name}` : name;
    const value = textOf(rawHeaders[at + 1]!);
    text += `${kept}: ${pointing.has(name.toLowerCase()) ? withoutUsers(withoutUser(value)) : value}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}

/** Headers whose values contain URLs. */
const pointing = new Set(["location", "content-location", "refresh", "link"]);

/** Returns the first field of this name (in lower case), or null. */
function fieldOf({ rawHeaders }: AnswerHead, wanted: string): string | null {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (textOf(rawHeaders[at]!).toLowerCase() === wanted) return textOf(rawHeaders[at + 1]!);
  }
  return null;
}

const textOf = (raw: string | Buffer): string => (typeof raw === "string" ? raw : raw.toString("latin1"));

// Records an answer when it has been read or dropped. An aborted one leaves no record.

/** `record` is awaited, so that a slow disk slows the crawl and does not fill the memory. It receives null for an unread body. */
function recorded(answer: SiteAnswer, record: (body: WireBody | null) => Promise<void>): SiteAnswer {
  const { status, headers, head, firstByteMs } = answer;
  return {
    status,
    headers,
    head,
    firstByteMs,
    read: async (reading) => {
      const body = await answer.read(reading);
      await record(body);
      return body;
    },
    drop: async (take, mostBytes) => {
      const isEnded = await answer.drop(take, mostBytes);
      await record(null);
      return isEnded;
    },
  };
}

// Builds one WARC/1.1 record (ISO 28500:2017, iipc.github.io/warc-specifications) before compression. Digests are SHA-1 in
// base 32, which every reader supports. They detect copies and damage but protect nothing.

interface WarcRecord {
  readonly type: "warcinfo" | "request" | "response" | "revisit" | "metadata";
  /** `<urn:uuid:…>`, generated if absent. */
  readonly id?: string;
  readonly date: Date;
  readonly contentType: string;
  /** More named fields, in order. Null values are left out. */
  readonly fields: Readonly<Record<string, string | null>>;
  readonly block: Buffer;
  /** The payload's offset in the block, if there is a payload. */
  readonly payloadAt?: number;
}

const newRecordId = (): string => `<urn:uuid:${randomUUID()}>`;

function writeWarcRecord(record: WarcRecord): Buffer {
  const { type, id = newRecordId(), date, contentType, fields, block, payloadAt } = record;
  const payload = payloadAt === undefined ? null : warcDigest(block.subarray(payloadAt));
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

const warcDigest = (bytes: Uint8Array): string => `sha1:${base32(createHash("sha1").update(bytes).digest())}`;

/** Text from outside must not end the record's own lines. */
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
