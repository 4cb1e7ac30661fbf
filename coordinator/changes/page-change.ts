/** What the change feed tells of a URL, and which of it a reader asked for. */

/**
 * first-seen     the index has the page for the first time
 * changed        its body is another one (by SHA-256; the simhash distance tells how much of the text is)
 * links-changed  it links to other URLs than before
 * came-back      it is read again, after it was gone or led elsewhere
 * redirected     it leads elsewhere from now on, or did at the first visit
 * gone           it was in the index and is not any more: missing, refused, or no page; `reason` says which
 * given-up       it was missing so often in a row that it is hardly asked for any more
 */
export const changeKinds = [
  "first-seen",
  "changed",
  "links-changed",
  "came-back",
  "redirected",
  "gone",
  "given-up",
] as const;
export type ChangeKind = (typeof changeKinds)[number];

/** What one visit found; null wherever there is nothing to tell. */
export interface VisitChange {
  readonly kind: ChangeKind;
  readonly url: string;
  /** When it was fetched. */
  readonly seenAt: Date;
  readonly status: number | null;
  readonly reason: string | null;
  /** ISO 639-1, of the page as it is, or was. */
  readonly language: string | null;
  /** SHA-256 of the body, hex. */
  readonly digestBefore: string | null;
  readonly digestAfter: string | null;
  /** Bits of 64 in which the simhashes of the texts differ. */
  readonly simhashDistance: number | null;
  readonly titleBefore: string | null;
  readonly titleAfter: string | null;
  readonly wordsBefore: number | null;
  readonly wordsAfter: number | null;
  /** Links of the page to others, each URL once. */
  readonly linksBefore: number | null;
  readonly linksAfter: number | null;
  readonly linksAdded: number | null;
  readonly linksRemoved: number | null;
  /** Where a redirect leads. */
  readonly location: string | null;
}

/** As the feed has it: numbers go up by one, in the order in which they became readable. */
export interface PageChange extends VisitChange {
  readonly number: number;
  readonly host: string;
  readonly notedAt: Date;
}

export interface ChangeFilter {
  /** Empty: all. */
  readonly kinds: readonly ChangeKind[];
  /** Null: every host. */
  readonly host: string | null;
  /** Canonical URLs begin with it. */
  readonly prefix: string | null;
  /** Null: whatever domain and language. */
  readonly domains: ((page: { readonly host: string; readonly language: string | null }) => boolean) | null;
}

export const everyChange: ChangeFilter = { kinds: [], host: null, prefix: null, domains: null };

export function changeFits(filter: ChangeFilter, change: PageChange): boolean {
  const { kinds, host, prefix, domains } = filter;
  if (kinds.length > 0 && !kinds.includes(change.kind)) return false;
  if (host !== null && change.host !== host) return false;
  if (prefix !== null && !change.url.startsWith(prefix)) return false;
  return domains?.(change) ?? true;
}
