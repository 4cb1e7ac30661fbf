/** What main hands to the crawler gateway: its settings and the handlers of what crawlers say. */
import type { IncomingMessage } from "node:http";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import type { CrawlerHello } from "#protocol/messages";
import type { Seal } from "#protocol/result";
import type { Admitted, Introduction } from "../crawlers/admit-crawler.ts";
import type { ConnectionLimitSettings } from "../web/limits.ts";
import type { AdmissionLineSettings } from "./admission-line.ts";
import type { Refusal } from "./connection.ts";
import type { BatchedResult, CrawlerReport, MessageSize } from "./inbox.ts";
import type { CrawlerSession } from "./session.ts";

/**
 * Of one crawler, no two of these run at once (save `admit`); `onArrive` and `onLeave` alternate. A
 * rejection is logged; one of `onArrive`, `onResults` or `onMessage` also ends that session, and the crawler
 * comes back and sends again what was not acknowledged.
 */
export interface GatewayHandlers {
  /** Whether to believe whoever came, and who it is. */
  admit(introduction: Introduction): Promise<Admitted | { readonly refuse: Refusal }>;
  /** The highest sequence of the hello's spool that is committed, or why the crawler may not come now. */
  onArrive(
    arrival: Arrival,
  ): Promise<
    { readonly acknowledgedSequence: number; readonly welcome?: WelcomeExtras } | { readonly refuse: Refusal }
  >;
  /** It was welcomed, and may be sent messages. Must not throw. */
  onWelcome?(crawlerId: CrawlerId): void;
  /** Two machines have its identity, as `evidence` shows; what to refuse the newcomer with. */
  onCopy?(arrival: Arrival, evidence: string): Refusal;
  /** Ascending, without gaps; acknowledged to the crawler as soon as this resolves. */
  onResults(batch: {
    readonly crawlerId: CrawlerId;
    readonly spoolId: string;
    readonly results: readonly BatchedResult[];
    /** Of a crawler with an identity: what it signed, each ending with one of the results. */
    readonly seals?: readonly Seal[];
  }): Promise<void>;
  onMessage(crawlerId: CrawlerId, message: CrawlerReport, size: MessageSize): Promise<void>;
  /** `forGood`: it said goodbye and that it will not be back. */
  onLeave(crawlerId: CrawlerId, reason: string, forGood: boolean): Promise<void>;
  /** Somebody was refused for what he did. Must not throw. */
  onIncident?(incident: EdgeIncident): void;
}

export interface GatewaySettings {
  readonly path: string;
  readonly userAgent: string;
  readonly resultCredits: number;
  readonly heartbeatMs: number;
  /** Told to crawlers: away for so long, they let go of their leases. */
  readonly departureSeconds: number;
  /** Told to crawlers: the database's major version. */
  readonly postgresVersion?: number;
  readonly helloTimeoutMs: number;
  /** A batch of results is this large, or has waited so long. */
  readonly batchResults: number;
  readonly lingerMs: number;
  /** What one crawler may make us inflate; beyond it, it is not read for a while. */
  readonly inflatedBytesPerSecond: number;
  /** Added to a probe's own deadline before the crawler counts as silent. */
  readonly probeGraceMs: number;
  /** A session whose crawler answers a ping within this is alive: another machine with its identity is a copy. */
  readonly rivalMs: number;
  readonly limits: ConnectionLimitSettings;
  readonly admission: AdmissionLineSettings;
  /** Whom a request comes from, where a proxy stands in front; otherwise the socket's peer. */
  readonly remoteAddressOf: (request: IncomingMessage) => string;
}

export const defaultGatewaySettings: Omit<GatewaySettings, "userAgent"> = {
  path: "/crawler",
  resultCredits: 200,
  heartbeatMs: 10_000,
  departureSeconds: 120,
  helloTimeoutMs: 10_000,
  batchResults: 100,
  lingerMs: 20,
  // Some 1,000 results of 30 KB.
  inflatedBytesPerSecond: 32 * 1024 * 1024,
  probeGraceMs: 3000,
  rivalMs: 3000,
  limits: { connections: 10_000, connectionsPerAddress: 500, failuresPerAddressAndMinute: 60 },
  // Those that are worked on together go to the database together. A crawler gives up after 30 s without a word.
  admission: { atOnce: 32, mostWaitMs: 10_000 },
  remoteAddressOf: (request) => request.socket.remoteAddress ?? "unknown",
};

/** What a welcome says to crawlers that know of it. */
export type WelcomeExtras = Partial<
  Pick<CoordinatorWelcome, "ticket" | "time" | "userAgent" | "signatureAgent" | "seenAddress">
>;

export interface Arrival {
  readonly crawlerId: CrawlerId;
  readonly hello: CrawlerHello;
  readonly remoteAddress: string;
  /** Of the protocol, as agreed on. */
  readonly version: number;
  /** The identity that belongs to its name; null: it has none. */
  readonly publicKey: string | null;
}

// What the gateway itself refuses crawlers with, in words for their operators.

export const replaced: Refusal = {
  code: "replaced",
  reason: "a newer session with the same name and key took the place of this one",
  retry: false,
};

export const shuttingDown: Refusal = {
  code: "shutting-down",
  reason: "the coordinator is shutting down",
  retry: true,
};

export const busyWithTheOther: Refusal = {
  code: "internal-error",
  reason: "what this crawler's session before has sent is still being worked off",
  retry: true,
};

export const unableToAdmit: Refusal = {
  code: "internal-error",
  reason: "the coordinator cannot take anyone now",
  retry: true,
};

/** More come at once than can be let in. */
export function comeBackLater(waiting: number, retryAfterMs: number): Refusal {
  const reason = `${waiting} crawlers wait to be let in; there is room in ${Math.ceil(retryAfterMs / 1000)} s`;
  return { code: "internal-error", reason, retry: true, retryAfterMs };
}

/** Codes of refusals that say nothing bad about whom they went to. */
export const blameless: ReadonlySet<string> = new Set([
  "internal-error",
  "shutting-down",
  "replaced",
  "moved",
]);

// Which refusals are incidents, and of which kind: what a crawler or a stranger is to blame for.

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

// What is known of a connected crawler, for operators.

export interface SessionInfo {
  readonly name: string;
  readonly remoteAddress: string;
  readonly openedAt: Date;
  readonly softwareVersion: string;
  readonly unacknowledgedResults: number;
  readonly waitingMessages: number;
  readonly held: boolean;
  readonly messagesIn: number;
  readonly wireBytesIn: number;
  readonly inflatedBytesIn: number;
  readonly messagesOut: number;
  readonly wireBytesOut: number;
}

/** Null before its hello. */
export function sessionInfoOf(session: CrawlerSession): SessionInfo | null {
  const { hello, remoteAddress, openedAt, unacknowledgedResults, waitingMessages, connection } = session;
  if (!hello) return null;
  const { name, softwareVersion } = hello;
  const held = connection.isHeld;
  return {
    ...{ name, remoteAddress, openedAt, softwareVersion, unacknowledgedResults, waitingMessages, held },
    ...connection.counts,
  };
}
