/** The parts of the answer to `who` that tell what the frontier knows of a URL, a host and a subnet (who/answer.ts). */

import type { StatedCount, StatedUses } from "../results/stated-uses.ts";
import type { HostPages, PageWorth } from "./budgets.ts";
import type { DomainReport } from "./domain-store.ts";
import type { KeptRate } from "./kept-rate.ts";
import type { UrlTurn } from "./open-lease-reads.ts";

export interface FetchLine {
  readonly url: string;
  readonly crawler: string;
  readonly fetchedAt: string;
  readonly outcome: string;
  readonly blame: string | null;
  readonly status: number | null;
  readonly totalMs: number;
  readonly bodyBytes: number;
  readonly shippedBytes: number;
  /** Whether it found other content than the fetch before it; null: nothing to compare with. */
  readonly changed: boolean | null;
}

/** Of one URL, the latest. */
export const visitsListed = 50;

export interface UrlReport {
  /** Canonical. */
  readonly url: string;
  /** Its key: what the frontier and the web graph know it by. */
  readonly id: { readonly hostHash: string; readonly urlHash: string };
  readonly foundBy: "seed" | "redirect" | "list" | "link";
  /** `held`: over its host's budget for the time being; `payment-required`: the site asks to be paid (402). */
  readonly state: UrlTurn | "payment-required" | "held";
  readonly depth: number;
  /** Redirects in a row that led to it. */
  readonly redirects: number;
  readonly backLinks: number;
  readonly discoveredAt: string;
  readonly nextFetchAt: string | null;
  readonly visits: number;
  readonly failures: number;
  readonly lastFetchedAt: string | null;
  readonly lastOutcome: string | null;
  readonly lastStatus: number | null;
  readonly lastReason: string | null;
  /** What it counts for in its host's budget; null: nothing. */
  readonly worth: PageWorth | null;
  /** What the next fetch asks with, so that an unchanged page is not sent again; null: not known. */
  readonly validators: {
    readonly etag: string | null;
    readonly lastModified: string | null;
    /** SHA-256 of the body last read, in hex. */
    readonly digest: string | null;
  };
  readonly changes: {
    /** Estimated (recrawl/change-rate); null: not known. */
    readonly perDay: number | null;
    readonly comparedVisits: number;
    readonly contentChanges: number;
    readonly outLinks: number | null;
    /** Of its links the share that changed between its last two visits (results/change-ratio). */
    readonly linkRatio: number | null;
  };
  readonly page: PageReport | null;
  /** Of the page in the index; null: nothing is stated, or there is no page. */
  readonly stated: StatedUses | null;
  /** Newest first. */
  readonly fetches: readonly FetchLine[];
}

export interface PageReport {
  readonly title: string;
  readonly language: string | null;
  readonly words: number;
  /** What the page states of its language, and what its text looks like. */
  readonly declaredLanguage: string | null;
  readonly detectedLanguage: string | null;
  readonly publishedAt: string | null;
  readonly modifiedAt: string | null;
  /** The main thing that its structured data describes. */
  readonly structured: { readonly type: string; readonly name: string; readonly description: string } | null;
  /** A page that had nearly the same text before, and has it still. */
  readonly duplicateOf: string | null;
}

export interface HostReport {
  readonly host: string;
  readonly state: "unresolved" | "resolved" | "refused" | "unresolvable";
  readonly stateReason: string;
  readonly resolveAt: string;
  readonly resolveFailures: number;
  readonly addresses: readonly string[];
  readonly urlCount: number;
  readonly urlStates: Readonly<Record<string, number>>;
  readonly dueAt: string | null;
  readonly notBefore: string | null;
  readonly lease: {
    readonly crawler: string;
    readonly grantedAt: string;
    readonly expiresAt: string;
    readonly openUrls: number;
  } | null;
  /** Its robots.txt, as it was found last; null: nobody has told. */
  readonly robots: {
    readonly state: "rules" | "none" | "closed" | "unreachable";
    readonly at: string;
  } | null;
  /** Politeness, as the last crawler left it; null: nobody has told. */
  readonly pace: {
    readonly crawlDelayMs: number;
    /** Since when it has been backed off from (429, 503), and for how long; null: not at all. */
    readonly backOffMs: number | null;
    readonly backedOffAt: string | null;
    readonly usualMs: number | null;
    /** The rate that it was found to tolerate; null: nothing limits it but the above. */
    readonly tolerated: KeptRate | null;
  } | null;
  /** Of the operators' cap that holds for it (site-caps): least time between two requests; null: there is none. */
  readonly capDelayMs: number | null;
  /** How it was spoken to last. */
  readonly connection: { readonly http: string; readonly tls: string | null } | null;
  readonly budget: {
    /** How many URLs of the host may be held by what its pages have been worth so far (budgets.ts); the operator's limit comes on top. */
    readonly earnedUrls: number;
    readonly heldUrls: number;
    /** Times that a URL was named beyond what is held: left out each time, and not kept. */
    readonly leftOutUrls: number;
    readonly pages: HostPages;
  };
  /** Its registrable domain, as far as links have brought in hosts of it, or its pages have others; null: they have not. */
  readonly domain: DomainReport | null;
  /** Of its pages in the index, how many state what; counted to a bound, and `more` where there are more. */
  readonly stated: {
    readonly pages: number;
    readonly more: boolean;
    readonly counts: readonly StatedCount[];
  };
  /** It asked to be paid for the last pages that were fetched (402); null: it did not. */
  readonly payment: {
    /** Answers in a row. */
    readonly inARow: number;
    readonly askedAt: string | null;
    /** As the site names it; null: it names none. */
    readonly price: string | null;
  } | null;
  /** A bot gate answers in its place; null: not the last time that it was asked. */
  readonly botGate: {
    /** As protocol/bot-gate names it. */
    readonly provider: string;
    readonly of: "page" | "robots";
    /** Tries in a row, one after each rest. */
    readonly tries: number;
    readonly since: string;
    readonly lastAt: string;
  } | null;
  /** Due URLs, the next one first. */
  readonly nextUrls: readonly { readonly url: string; readonly nextFetchAt: string }[];
  /** Newest first. */
  readonly fetches: readonly FetchLine[];
}

export interface WaitingReport {
  readonly subnetId: number;
  /** Hosts with something to fetch that nobody has a lease on; `more` when the count was cut there. */
  readonly hosts: number;
  readonly more: boolean;
  readonly next: readonly { readonly host: string; readonly dueAt: string; readonly urls: number }[];
}
