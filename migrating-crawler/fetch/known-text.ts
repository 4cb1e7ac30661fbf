/**
 * A page whose body is known under another URL of its channel (SARSS section 2.1): its text stays here, and its digest
 * travels with what depends on the URL, which are its links above all. The coordinator has the text under that digest,
 * or says that it has not, and gets it at the next fetch.
 */
import { KnownDigests } from "#protocol/known-digests";
import type { Lease } from "#protocol/lease";
import type { PageExtract } from "#protocol/result";
import type { PageResult } from "./fetch-page.ts";

/** Null: there is no set, or one that cannot be read, which is the coordinator's fault and no reason not to crawl. */
export function knownTexts({ known }: Pick<Lease, "known">): KnownDigests | null {
  if (known === undefined) return null;
  try {
    return new KnownDigests(Buffer.from(known, "base64"));
  } catch {
    return null;
  }
}

/** Without the text, where that is known. A page that forbids to be indexed has none to leave out. */
export function withoutKnownText(result: PageResult, known: KnownDigests | null): PageResult {
  const { page } = result;
  if (known === null || page === null || !canBeLeftOut(page) || !known.has(page.digest)) return result;
  const { structured: _, ...rest } = page;
  const noText = { title: "", description: "", headings: [], lexemes: "", excerpt: "" };
  return { ...result, page: { ...rest, ...noText, textKnown: true } };
}

function canBeLeftOut({ kind = "page", robots, softNotFound, lexemes }: PageExtract): boolean {
  return kind === "page" && !robots.noindex && softNotFound !== true && lexemes !== "";
}
