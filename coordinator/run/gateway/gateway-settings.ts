/** What main hands to the crawler gateway: its settings and the handlers of what crawlers say. */
import type { IncomingMessage } from "node:http";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorWelcome, Refusal } from "#protocol/coordinator-messages";
import type { CrawlerHello } from "#protocol/messages";
import type { Admitted, Introduction } from "../../place/crawlers/admit-crawler.ts";
import type { SessionEnd } from "../../place/crawlers/session-ends.ts";
import type { ConnectionLimitSettings } from "../../web/limits.ts";
import type { BatchedResult, CrawlerReport, MessageSize } from "./inbox.ts";

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
  }): Promise<void>;
  onMessage(crawlerId: CrawlerId, message: CrawlerReport, size: MessageSize): Promise<void>;
  /** `forGood`: it said goodbye and that it will not be back. */
  onLeave(crawlerId: CrawlerId, end: SessionEnd, forGood: boolean): Promise<void>;
  /** Somebody was refused for what he did. Must not throw. */
  onIncident?(incident: EdgeIncident): void;
}

export interface GatewaySettings {
  readonly path: string;
  readonly userAgent: string;
  readonly resultCredits: number;
  /** At least; with a large fleet less often (crawlers/heartbeats). */
  readonly heartbeatMs: number;
  /** How many crawlers there are, connected or not; left out: as many as are connected. */
  readonly fleetSize?: () => number;
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
  // A fleet of 10,000, half of it twice: with a connection that has died and one that takes its place.
  limits: { connections: 15_000, connectionsPerAddress: 500, failuresPerAddressAndMinute: 60 },
  // Those that are worked on together go to the database together. A crawler gives up after 30 s without a word.
  admission: { atOnce: 1024, mostWaitMs: 6000 },
  remoteAddressOf: (request) => request.socket.remoteAddress ?? "unknown",
};

/** What a welcome says to crawlers that know of it. */
export type WelcomeExtras = Partial<
  Pick<
    CoordinatorWelcome,
    "ticket" | "time" | "userAgent" | "signatureAgent" | "signingKeys" | "seenAddress" | "coordinators"
  >
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

/** Before all is read that crawlers are answered from. */
export const starting: Refusal = {
  code: "shutting-down",
  reason: "the coordinator starts, and serves crawlers in a moment",
  retry: true,
  retryAfterMs: 1000,
};

/** It may have been replaced without knowing (crawlers/coordinator-presence-store). */
export const standingAside: Refusal = {
  code: "shutting-down",
  reason: "this coordinator does not reach its database in time, and leaves crawlers to the others",
  retry: true,
  retryAfterMs: 2000,
};

export const busyWithTheOther: Refusal = {
  code: "busy",
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
  return { code: "busy", reason, retry: true, retryAfterMs };
}

/** Codes of refusals that say nothing bad about whom they went to. */
export const blameless: ReadonlySet<string> = new Set([
  "internal-error",
  "busy",
  "shutting-down",
  "replaced",
  "moved",
]);

/** Codes that are not here say nothing bad, or are recorded where more is known of them. */
const kinds: Partial<Record<Refusal["code"], string>> = {
  "wrong-key": "wrong-key",
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

/**
 * Who waits to be let in, first come first served: so many are worked on at once, nothing is begun for who has gone,
 * and who would wait for too long is told when to come back. Those get times one after another, as fast as others were
 * let in until now, so that they do not all come back at once.
 *
 *   now ├── half of mostWaitMs ──┤ 1st sent away ┤ 2nd ┤ 3rd … ┤ mostAwayMs: from the 1st on again
 */

interface AdmissionLineSettings {
  /** Worked on at the same time; more of them only make each other wait, for the same connections to the database. */
  readonly atOnce: number;
  /** Who would wait longer is to come back later. */
  readonly mostWaitMs: number;
}

interface Waiting {
  readonly isGone: () => boolean;
  readonly begin: () => void;
  readonly skip: () => void;
}

/** From one admission to the next, before anything was measured. */
const firstGuessMs = 4;

/** Each is worked on twice: until it is known, and until it is let in. */
const passes = 2;

/** Nobody is sent away for longer: 10,000 crawlers are let in within it, at 150 a second. */
const mostAwayMs = 60_000;

/** Of each admission in the mean time of the last ones. */
const newShare = 0.1;

export class AdmissionLine {
  readonly #settings: AdmissionLineSettings;
  readonly #nowMs: () => number;
  /** Those that were let in halfway; they go first. */
  readonly #halfway: Waiting[] = [];
  #line: Waiting[] = [];
  /** Where the line begins: what is before it has had its turn. */
  #head = 0;
  readonly #starts = new Set<{ readonly atMs: number }>();
  #workMs: number;
  #lastReturnMs = Number.NEGATIVE_INFINITY;

  /** `nowMs`: monotonic. */
  constructor(settings: AdmissionLineSettings, nowMs: () => number) {
    this.#settings = settings;
    this.#nowMs = nowMs;
    this.#workMs = (firstGuessMs * settings.atOnce) / passes;
  }

  get waiting(): number {
    return this.#line.length - this.#head;
  }

  /** They have had a turn, or two, and are not in yet. */
  get working(): number {
    return this.#starts.size;
  }

  /** When the next one who is sent away is to come back; null: there is room in the line. `coming`: on the way into it. */
  comeBackMs(coming = 0): number | null {
    const { mostWaitMs } = this.#settings;
    const eachMs = this.#eachMs();
    if ((this.waiting + coming) * eachMs <= mostWaitMs) return null;
    const nowMs = this.#nowMs();
    const firstMs = nowMs + mostWaitMs / 2;
    const returnMs = Math.max(firstMs, this.#lastReturnMs + eachMs);
    this.#lastReturnMs = returnMs <= nowMs + mostAwayMs ? returnMs : firstMs;
    return Math.ceil(this.#lastReturnMs - nowMs);
  }

  /** Null: it had gone before its turn came, and nothing was begun. */
  take<Done>(isGone: () => boolean, work: () => Promise<Done>): Promise<Done | null> {
    return this.#enter(this.#line, isGone, work);
  }

  /** For who has had its turn, had to wait for something else, and is worked on again. */
  takeUp<Done>(isGone: () => boolean, work: () => Promise<Done>): Promise<Done | null> {
    return this.#enter(this.#halfway, isGone, work);
  }

  #enter<Done>(line: Waiting[], isGone: () => boolean, work: () => Promise<Done>): Promise<Done | null> {
    return new Promise((resolve, reject) => {
      const begin = () => void this.#work(work).then(resolve, reject);
      line.push({ isGone, begin, skip: () => resolve(null) });
      this.#next();
    });
  }

  async #work<Done>(work: () => Promise<Done>): Promise<Done> {
    const start = { atMs: this.#nowMs() };
    this.#starts.add(start);
    try {
      return await work();
    } finally {
      this.#starts.delete(start);
      this.#workMs += newShare * (this.#nowMs() - start.atMs - this.#workMs);
      this.#next();
    }
  }

  #next(): void {
    while (this.#starts.size < this.#settings.atOnce) {
      const next = this.#halfway.shift() ?? this.#shift();
      if (next === undefined) return;
      if (next.isGone()) next.skip();
      else next.begin();
    }
  }

  /** As `shift`, without moving those that wait. */
  #shift(): Waiting | undefined {
    const next = this.#line[this.#head];
    if (next === undefined) return undefined;
    this.#head += 1;
    if (this.#head * 2 > this.#line.length) {
      this.#line = this.#line.slice(this.#head);
      this.#head = 0;
    }
    return next;
  }

  /** From one admission to the next. What is under way counts as soon as it takes longer than the others took. */
  #eachMs(): number {
    const [oldest] = this.#starts;
    const oldestMs = oldest === undefined ? 0 : this.#nowMs() - oldest.atMs;
    return (passes * Math.max(this.#workMs, oldestMs)) / this.#settings.atOnce;
  }
}

/** Of the coordinator's settings. */
export function gatewaySettings(config: {
  readonly userAgent: string;
  readonly heartbeatSeconds: number;
  readonly departureSeconds: number;
}): GatewaySettings {
  return {
    ...defaultGatewaySettings,
    userAgent: config.userAgent,
    heartbeatMs: config.heartbeatSeconds * 1000,
    departureSeconds: config.departureSeconds,
  };
}
