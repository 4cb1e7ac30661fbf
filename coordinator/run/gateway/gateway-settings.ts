/** The gateway's settings, and the handlers of crawlers' messages, which `main` provides. */
import type { IncomingMessage } from "node:http";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorWelcome, Refusal } from "#protocol/coordinator-messages";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import type { Admitted, Introduction } from "../../place/crawlers/admit-crawler.ts";
import type { ResultBatch } from "../../place/crawlers/crawler.ts";
import type { SessionEnd } from "../../place/crawlers/sessions.ts";
import type { ConnectionLimitSettings } from "../../web/limits.ts";
import type { BatchedResult, CrawlerReport, MessageSize } from "./inbox.ts";

/**
 * For each crawler, these run one at a time (except `admit`), and `onArrive` and `onLeave` alternate. A rejection is
 * logged. If `onArrive`, `onResults` or `onMessage` rejects, the session ends, too, and the crawler sends again what
 * was not acknowledged.
 */
export interface GatewayHandlers {
  admit(introduction: Introduction): Promise<Admitted | { readonly refuse: Refusal }>;
  /** Returns the highest committed sequence of the hello's spool, or why the crawler may not come now. */
  onArrive(
    arrival: Arrival,
  ): Promise<
    { readonly acknowledgedSequence: number; readonly welcome?: WelcomeExtras } | { readonly refuse: Refusal }
  >;
  onWelcome?(crawlerId: CrawlerId): void;
  /** Called when `evidence` shows that two machines use one identity. Returns the refusal of the newcomer. */
  onCopy?(arrival: Arrival, evidence: string): Refusal;
  /** Results are in ascending order without gaps. They are acknowledged once this resolves. */
  onResults(batch: {
    readonly crawlerId: CrawlerId;
    readonly spoolId: string;
    readonly results: readonly BatchedResult[];
  }): Promise<void>;
  onMessage(crawlerId: CrawlerId, message: CrawlerReport, size: MessageSize): Promise<void>;
  /** `forGood` means that the crawler said it would not return. */
  onLeave(crawlerId: CrawlerId, end: SessionEnd, forGood: boolean): Promise<void>;
  /** Called when a peer was refused for its behaviour. Must not throw. */
  onIncident?(incident: EdgeIncident): void;
}

export interface GatewaySettings {
  readonly path: string;
  readonly userAgent: string;
  readonly resultCredits: number;
  /** Minimum interval between heartbeats. In a large fleet it is longer (crawlers/sessions). */
  readonly heartbeatMs: number;
  /** Number of crawlers, connected or not. If absent, only connected ones count. */
  readonly fleetSize?: () => number;
  /** Sent to crawlers: after this time offline they drop their leases. */
  readonly departureSeconds: number;
  readonly helloTimeoutMs: number;
  /** A batch of results ends at this size, or at the age `lingerMs`. */
  readonly batchResults: number;
  readonly lingerMs: number;
  /** Beyond this rate, reading from the crawler pauses. */
  readonly inflatedBytesPerSecond: number;
  /** Added to a probe's deadline. After it, the crawler counts as silent. */
  readonly probeGraceMs: number;
  /** If a session's crawler answers a ping within this time, it is alive, so another machine with its identity is a copy. */
  readonly rivalMs: number;
  readonly limits: ConnectionLimitSettings;
  readonly admission: AdmissionLineSettings;
  /** Returns the client's address as stated by a proxy, otherwise the socket's peer. */
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
  // About 1,000 results of 30 KB per second.
  inflatedBytesPerSecond: 32 * 1024 * 1024,
  probeGraceMs: 3000,
  rivalMs: 3000,
  // Suits a fleet of 10,000, half of which has a dead connection besides the new one.
  limits: { connections: 15_000, connectionsPerAddress: 500, failuresPerAddressAndMinute: 60 },
  // Admissions that run together share database queries. A crawler gives up after 30 s of silence.
  admission: { atOnce: 1024, mostWaitMs: 6000 },
  remoteAddressOf: (request) => request.socket.remoteAddress ?? "unknown",
};

/** Fields of the welcome that only some crawlers know. */
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
  readonly version: number;
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

/** The refusal until everything that answers depend on is loaded. */
export const starting: Refusal = {
  code: "shutting-down",
  reason: "the coordinator starts, and serves crawlers in a moment",
  retry: true,
  retryAfterMs: 1000,
};

/** The refusal while this coordinator may have been replaced without noticing it (crawlers/coordinator-presence-store). */
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

/** The refusal when more crawlers come at once than can be admitted. */
export function comeBackLater(waiting: number, retryAfterMs: number): Refusal {
  const reason = `${waiting} crawlers wait to be let in; there is room in ${Math.ceil(retryAfterMs / 1000)} s`;
  return { code: "busy", reason, retry: true, retryAfterMs };
}

export const blameless: ReadonlySet<string> = new Set([
  "internal-error",
  "busy",
  "shutting-down",
  "replaced",
  "moved",
]);

/** Incidents by code. Other codes are harmless, or recorded elsewhere with more detail. */
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

export function turnedAway(remoteAddress: string, words: string): EdgeIncident {
  return { crawlerId: null, kind: "connection-flood", words, remoteAddress };
}

/**
 * The queue of crawlers to be admitted, in order of arrival. A limited number are admitted at the same time, nothing
 * is started for a crawler that has left, and one that would wait too long is told when to return. Those times follow
 * each other at the pace of admissions so far, so that crawlers do not all return at once.
 *
 *   now ├── half of mostWaitMs ──┤ 1st sent away ┤ 2nd ┤ 3rd … ┤ mostAwayMs: from the 1st on again
 */

interface AdmissionLineSettings {
  /** Maximum admissions that run at the same time. More would only wait for the same database connections. */
  readonly atOnce: number;
  /** A newcomer that would wait longer than this is told to return later. */
  readonly mostWaitMs: number;
}

interface Waiting {
  readonly isGone: () => boolean;
  readonly begin: () => void;
  readonly skip: () => void;
}

/** Interval between admissions that is assumed until one is measured. */
const firstGuessMs = 4;

/** An admission is worked on twice: for authentication and for the welcome. */
const passes = 2;

/** Maximum time until a crawler should return. At 150 admissions a second, 10,000 crawlers are admitted within about a minute. */
const mostAwayMs = 60_000;

/** Weight of a new measurement in the moving average. */
const newShare = 0.1;

export class AdmissionLine {
  readonly #settings: AdmissionLineSettings;
  readonly #nowMs: () => number;
  /** Crawlers that are half admitted, and go first. */
  readonly #halfway: Waiting[] = [];
  #line: Waiting[] = [];
  /** Index at which the queue begins. */
  #head = 0;
  readonly #starts = new Set<{ readonly atMs: number }>();
  #workMs: number;
  #lastReturnMs = Number.NEGATIVE_INFINITY;

  /** `nowMs` reads a monotonic clock. */
  constructor(settings: AdmissionLineSettings, nowMs: () => number) {
    this.#settings = settings;
    this.#nowMs = nowMs;
    this.#workMs = (firstGuessMs * settings.atOnce) / passes;
  }

  get waiting(): number {
    return this.#line.length - this.#head;
  }

  /** How many crawlers are being admitted. */
  get working(): number {
    return this.#starts.size;
  }

  /**
   * Returns when the next crawler sent away should return; null if the queue has room. `coming` is how many are about
   * to join the queue.
   */
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

  /** Resolves to null, without starting the work, if the crawler leaves before its turn. */
  take<Done>(isGone: () => boolean, work: () => Promise<Done>): Promise<Done | null> {
    return this.#enter(this.#line, isGone, work);
  }

  /** Resumes the admission of a crawler that had its turn and then waited for something else. */
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

  /** Like Array.shift, but without moving the rest. */
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

  /** Returns the interval between admissions. Running work counts once it takes longer than the average. */
  #eachMs(): number {
    const [oldest] = this.#starts;
    const oldestMs = oldest === undefined ? 0 : this.#nowMs() - oldest.atMs;
    return (passes * Math.max(this.#workMs, oldestMs)) / this.#settings.atOnce;
  }
}

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

export type ReleaseReport = Extract<CrawlerMessage, { type: "crawler:release-report" }>;

/** Arrivals, departures and reports of crawlers. The rooms are called in order. */
export interface CrawlerEvents {
  /** The crawler has sent its hello, and is not welcomed yet. */
  onHello?(crawlerId: CrawlerId, hello: CrawlerHello): void;
  onArrived?(crawlerId: CrawlerId): void;
  onWelcome?(crawlerId: CrawlerId): void;
  /** The crawler's session has ended, and this is recorded. `forGood` means that it said it would not return. */
  onLeft?(crawlerId: CrawlerId, forGood: boolean): void;
  onPeerReport?(crawlerId: CrawlerId): void;
  /** The crawler's results are stored. They are acknowledged once this resolves. */
  onFetched?(batch: ResultBatch): unknown;
  /** Results contained URLs of other hosts, which are now in the outbox. */
  onPosted?(): void;
  onReleaseReport?(crawlerId: CrawlerId, report: ReleaseReport): Promise<void>;
}
