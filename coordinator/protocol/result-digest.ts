/**
 * What a seal signs (identity.ts, `sealText`): a running SHA-256 over results as both ends have them in hand,
 * before deflate and after inflate, so that nothing is packed twice for it. For each result
 *
 *   length of the numbers (LEB128) | numbers | text, UTF-8 | ff
 *
 * No UTF-8 text holds ff, so no two rows of results have the same bytes.
 */
import { createHash, type Hash } from "node:crypto";
import { NumberWriter } from "./packed/numbers.ts";

/** A crawler seals after so many results, so many bytes of text and numbers, or so long after the first. */
export const sealAfter = { results: 32, bytes: 1024 * 1024, ms: 1000 } as const;
/**
 * The coordinator holds no more than this of one crawler without a seal, unpacked: `sealAfter.results` pages with the
 * most links fit, and a longest list.
 */
export const maxUnsealedBytes: number = 64 * 1024 * 1024;

/** Results that one signature stands for, by their sequences; `digest` in hex, `signature` in base64url. */
export interface Seal {
  readonly first: number;
  readonly last: number;
  readonly digest: string;
  readonly signature: string;
}

const textEnd = Buffer.from([0xff]);

export class ResultDigest {
  #hash: Hash = createHash("sha256");

  add({ numbers, text }: { readonly numbers: Buffer; readonly text: Buffer }): void {
    const head = new NumberWriter();
    head.number(numbers.length);
    this.#hash.update(head.finish()).update(numbers).update(text).update(textEnd);
  }

  /** Of what was added since the last time, in hex; begins anew. */
  take(): string {
    const digest = this.#hash.digest("hex");
    this.#hash = createHash("sha256");
    return digest;
  }
}
