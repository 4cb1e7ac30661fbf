/** Which refusals are incidents, and of which kind: what a crawler or a stranger is to blame for. */
import type { CrawlerId } from "#core/ids";
import type { Refusal } from "./connection.ts";

/** Codes that are not here say nothing bad, or are recorded where more is known of them. */
const kinds: Partial<Record<Refusal["code"], string>> = {
  "wrong-key": "wrong-key",
  revoked: "revoked-key",
  "bad-message": "bad-message",
  "too-much": "flood",
  "bad-signature": "bad-signature",
};

export interface EdgeIncident {
  readonly crawlerId: CrawlerId | null;
  readonly kind: string;
  readonly words: string;
  readonly remoteAddress: string;
}

/** Null: it is none. */
export function incidentOf(
  from: {
    readonly crawlerId: CrawlerId | null;
    readonly name: string | null;
    readonly remoteAddress: string;
  },
  refusal: Refusal | null,
): EdgeIncident | null {
  const kind = refusal === null ? undefined : kinds[refusal.code];
  if (refusal === null || kind === undefined) return null;
  const { crawlerId, name, remoteAddress } = from;
  const whose = crawlerId === null && name !== null ? `as ${name}: ` : "";
  return { crawlerId, kind, words: `${whose}${refusal.reason}`, remoteAddress };
}

/** An upgrade that was turned away before a word was said. */
export function turnedAway(remoteAddress: string, words: string): EdgeIncident {
  return { crawlerId: null, kind: "connection-flood", words, remoteAddress };
}
