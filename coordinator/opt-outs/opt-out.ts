/**
 * Opt-outs: sites (a domain with everything below it) and networks that the whole fleet leaves alone because
 * somebody asked for it. One that nobody has confirmed is honoured all the same, but lapses.
 *
 *   waiting ──(confirmed)──┐
 *                          ▼
 *   in force, unconfirmed → in force, confirmed → ended (lifted)
 *        └──────────────→ ended (lifted, or lapsed)
 */
import { getPublicSuffix } from "tldts";
import type { CrawlerId } from "#core/ids";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, formatRange, isUnary, lastAddress, parseRange } from "#core/ip/range";
import { hostNamed } from "#core/url-key";

/** An unconfirmed opt-out is honoured for so long. */
export const unconfirmedDays = 30;

/** So many unconfirmed ones by the form take force in a day; more wait until they are confirmed. */
export const mostUnconfirmedADay = 200;

/** An unconfirmed one by the form that covers more hosts of the frontier waits until it is confirmed. */
export const mostHostsUnconfirmed = 100;

/**
 * So does one that covers several hosts (a name and its `www.` count as one) with more pages in the index: who takes
 * out others' sites does most harm there, and who runs such a domain can publish a record in its DNS.
 */
export const mostPagesUnconfirmed = 1000;

/** A domain with everything below it, or a network from its first address to its last. */
export type OptOutTarget =
  | { readonly site: string; readonly network: null }
  | { readonly site: null; readonly network: { readonly first: string; readonly last: string } };

export interface OptOutRequest {
  readonly target: OptOutTarget;
  readonly source: "form" | "operator";
  /** What the requester says; may be empty. */
  readonly words: string;
  /** Where the requester can be reached; null: not told. */
  readonly replyTo: string | null;
  /** Where the form came from. */
  readonly requester: string | null;
  /** By the operator, who knows that it is genuine. */
  readonly confirmed: boolean;
}

export type OptOutState = "waiting" | "unconfirmed" | "confirmed" | "lifted" | "lapsed";

export interface OptOut {
  readonly optOutId: number;
  /** The domain, or the network as text. */
  readonly target: string;
  readonly kind: "site" | "network";
  readonly state: OptOutState;
  readonly source: "form" | "operator";
  /** What the site publishes in DNS to confirm it. */
  readonly token: string;
  readonly words: string;
  readonly replyTo: string | null;
  readonly requester: string | null;
  readonly createdAt: Date;
  readonly inForceAt: Date | null;
  readonly lapsesAt: Date | null;
  readonly confirmedAt: Date | null;
  readonly confirmedBy: "site" | "operator" | null;
  readonly endedAt: Date | null;
  readonly endingWords: string;
  /** Hosts of the frontier that it covers, and their pages in the index. */
  readonly hosts: number;
  readonly pages: number;
}

/** A lease that ended because its host opted out. */
export interface EndedLease {
  readonly crawlerId: CrawlerId;
  readonly host: string;
}

/** What one pass has brought in line with the opt-outs. */
export interface AppliedOptOuts {
  /** Marked just now; how many of each crawler's leases ended by it. */
  readonly hosts: number;
  readonly leases: readonly EndedLease[];
  /** Deleted from the index. */
  readonly pages: number;
}

export interface OptOutStore {
  /**
   * Records it, or gives the open one of the same site or network: an operator's word confirms that one. Running
   * coordinators are told.
   */
  request(request: OptOutRequest, now: Date): Promise<OptOut>;
  /** `open`: without what has ended. The latest first; at most `most`. */
  list(query: { readonly open: boolean; readonly most: number }): Promise<OptOut[]>;
  /** The open one of a number or a site; null when there is none. */
  find(target: OptOutTarget | number): Promise<OptOut | null>;
  /** Null when it is not open. */
  confirm(optOutId: number, by: "site" | "operator", now: Date): Promise<OptOut | null>;
  lift(optOutId: number, words: string, now: Date): Promise<OptOut | null>;
  /** Unconfirmed ones whose time is over end; how many did. */
  lapse(now: Date): Promise<number>;
  /** Sites to ask DNS about: unconfirmed ones, the longest not looked at first. Counts as looked at now. */
  toConfirm(limit: number, now: Date): Promise<{ optOutId: number; site: string; token: string }[]>;
  /** Sites that opted out since then and still are, and hosts of such networks, the latest first; at most `most`. */
  sitesSince(since: Date, most: number): Promise<string[]>;
  /** The one in force that covers this host or one of its addresses; null: none does. */
  covering(host: string | null, addresses: readonly string[]): Promise<OptOut | null>;
  /** Calls back whenever an opt-out was recorded, confirmed or ended (Postgres NOTIFY `nearcrawl_opt_outs`). */
  onChange(changed: () => void): Promise<{ stop(): Promise<void> }>;
}

/** Brings the frontier and the index in line with the opt-outs (idempotent; several coordinators may do it at once). */
export interface OptOutMarks {
  apply(now: Date): Promise<AppliedOptOuts>;
}

// What somebody wants left alone, from the text that he typed: a site, a URL of it, or (operators) a network or a public suffix.

/** Longest text that is looked at. */
const maxTargetLength = 2048;

/** The target, or why the text names none. `www.example.org` stays what it is: a site of its own. */
export function readTarget(text: string, networks: "networks" | "sites-only"): OptOutTarget | string {
  const given = text.trim();
  if (given === "") return "Name a site, such as www.example.org.";
  if (given.length > maxTargetLength) return "That is too long for the name of a site.";
  const range = parseRange(given);
  if (range !== null && (networks === "networks" || isUnary(range))) {
    if (networks === "sites-only") return addressFault;
    const [first, last] = [formatAddress(firstAddress(range)), formatAddress(lastAddress(range))];
    return { site: null, network: { first, last } };
  }
  const host = hostNamed(given);
  if (host === null) return `“${given.slice(0, 100)}” is not the name of a site, such as www.example.org.`;
  if (parseAddress(host) !== null) return networks === "networks" ? readTarget(host, networks) : addressFault;
  if (!host.includes("."))
    return `“${host}” is a whole top-level domain, or a name of your own network: name a site in it.`;
  if (networks === "sites-only" && isPublicSuffix(host)) return suffixFault(host);
  return { site: host, network: null };
}

/**
 * Below it anybody may have a site of his own (publicsuffix.org, both sections: `co.uk`, `github.io`), or below each
 * name in it (`compute.amazonaws.com`): no single site can ask for all of them.
 */
export function isPublicSuffix(host: string): boolean {
  const isSuffix = (name: string) => getPublicSuffix(name, suffixOptions) === name;
  return isSuffix(host) || isSuffix(`any.${host}`);
}

/** It is a host's name by now. */
const suffixOptions = { allowPrivateDomains: true, extractHostname: false } as const;

const suffixFault = (host: string) =>
  `“${host}” is a public suffix: the sites below it belong to different people. Name your own, such as www.${host}.`;

const addressFault =
  "That is an address or a network. Name the sites on it; for a whole network, write to us.";

/** What an operator should know before so much is left alone; null: it is nothing unusual. */
export function wideWords(text: string): string | null {
  const target = readTarget(text, "networks");
  if (typeof target === "string") return null;
  if (target.site !== null)
    return isPublicSuffix(target.site)
      ? `${target.site} is a public suffix: many people's sites are below it, and all of them are opted out.`
      : null;
  const range = parseRange(`${target.network.first}-${target.network.last}`);
  if (range === null || BigInt(range.last) - BigInt(range.first) < mostUsualAddresses[range.family])
    return null;
  return `${targetText(target)} is larger than a usual network assignment: every host in it is opted out.`;
}

/** A /16, and a /29 (RIPE's usual allocation). */
const mostUsualAddresses = { 4: 1n << 16n, 6: 1n << 99n } as const;

/** `example.org`, or `192.0.2.0/24`. */
export function targetText({ site, network }: OptOutTarget): string {
  if (site !== null) return site;
  const range = parseRange(`${network.first}-${network.last}`);
  return range === null ? `${network.first} - ${network.last}` : formatRange(range);
}

// What a site's operators asked of the crawl: its opt-out and their complaints. */
//
// What a site has asked of us by itself: that we leave it alone, or that somebody looks at what we did.

/** Without who asked and what was said, for everybody may look. */
export interface OptOutReport {
  /** The domain (with everything below it) or network that opted out. */
  readonly target: string;
  readonly kind: "site" | "network";
  readonly state: "unconfirmed" | "confirmed";
  readonly since: string;
  /** Unconfirmed ones end then. */
  readonly lapsesAt: string | null;
}

export interface ComplaintLine {
  readonly complaintId: number;
  readonly target: string;
  readonly at: string;
  readonly open: boolean;
}

export interface SiteWishes {
  readonly optOut: OptOutReport | null;
  /** The latest first. */
  readonly complaints: readonly ComplaintLine[];
}

export const noWishes: SiteWishes = { optOut: null, complaints: [] };
