/**
 * Keeps what was fetched as WARC records, where the partner asks for it: a response with its request, or, for
 * what is known already, a revisit in its place (WARC/1.1 section 6.7): `server-not-modified` for a 304, and
 * `identical-payload-digest` when these very bytes were written before by this process.
 */
import { LRUCache } from "lru-cache";
import type { SiteAnswer, WireBody } from "../fetch/exchange.ts";
import type { AskedOfSite, ExchangeRecorder } from "../fetch/site-client.ts";
import { fieldOf, requestBlock, responseHead } from "./http-exchange.ts";
import { RecordedAnswer } from "./recorded-answer.ts";
import { newRecordId, type WarcRecord, warcDigest, writeWarcRecord } from "./warc-record.ts";

export interface WarcSink {
  /** Appends records that belong together. */
  append(records: readonly Buffer[]): Promise<void>;
}

interface Exchanged {
  readonly asked: AskedOfSite;
  readonly date: Date;
  readonly answer: SiteAnswer;
  readonly body: WireBody | null;
}

/** Payloads that are remembered, by digest: about 10 MB. */
const rememberedPayloads = 50_000;
const profiles = "http://netpreserve.org/warc/1.1/revisit/";

export class WarcRecorder implements ExchangeRecorder {
  readonly #sink: WarcSink;
  readonly #now: () => Date;
  readonly #written = new LRUCache<string, { readonly url: string; readonly date: Date }>({
    max: rememberedPayloads,
  });

  constructor(sink: WarcSink, now: () => Date) {
    this.#sink = sink;
    this.#now = now;
  }

  watch(asked: AskedOfSite, answer: SiteAnswer): SiteAnswer {
    const date = this.#now();
    return new RecordedAnswer(answer, (body) => this.#record({ asked, date, answer, body }));
  }

  async #record(exchanged: Exchanged): Promise<void> {
    const id = newRecordId();
    const records = [this.#answerOf(exchanged, id), requestOf(exchanged, id)];
    await this.#sink.append(records.map(writeWarcRecord));
  }

  #answerOf(exchanged: Exchanged, id: string): WarcRecord {
    const { asked, date, answer, body } = exchanged;
    const head = responseHead(answer.status, answer.head);
    const common = { id, date, contentType: "application/http; msgtype=response" };
    const fields = fieldsOf(asked);
    const revisit = this.#revisitOf(exchanged);
    if (revisit !== null) {
      return { ...common, type: "revisit", fields: { ...fields, ...revisit }, block: head, payloadAt: null };
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

  /** The fields of a revisit; null: it is none. */
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

function requestOf({ asked, date }: Exchanged, answerId: string): WarcRecord {
  const block = requestBlock(asked);
  const fields = { ...fieldsOf(asked), "WARC-Concurrent-To": answerId };
  const contentType = "application/http; msgtype=request";
  return { type: "request", date, contentType, fields, block, payloadAt: null };
}

function fieldsOf({ url, address, http }: AskedOfSite): Record<string, string | null> {
  return {
    "WARC-Target-URI": url,
    "WARC-IP-Address": address,
    "WARC-Protocol": http === "2" ? "h2" : null,
  };
}

/** Of an answer whose body was dropped. */
function hasBody({ status, head }: SiteAnswer): boolean {
  return status !== 204 && fieldOf(head, "content-length") !== "0";
}
