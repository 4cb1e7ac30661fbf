/**
 * Keeps one session with the coordinator open. After a loss it reconnects at the time that the coordinator named, or else with
 * exponential back-off, both with jitter, and to another coordinator if it knows several (coordinator-addresses.ts). It stops
 * for good only when the coordinator says that retrying is useless, or with the crawler. Results count against the
 * coordinator's credits.
 *
 *   idle → connecting → up ⇄ waiting (back-off) → stopped
 */

import { ConfigError, ProtocolError } from "#core/errors";
import { canParseUrl } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import type {
  CoordinatorMessage,
  CoordinatorRefuse,
  CoordinatorWelcome,
} from "#protocol/coordinator-messages";
import type { ChallengedConnection } from "#protocol/identity";
import { isCoordinatorUrl } from "#protocol/invitation";
import type { CrawlerHeartbeat, CrawlerHello, CrawlerMessage, Goodbye } from "#protocol/messages";
import type { PackedMessage } from "#protocol/packed/packed-message";
import type { CoordinatorRoute } from "../net/coordinator-socket.ts";
import { CoordinatorAddresses } from "./coordinator-addresses.ts";
import { LinkConnection } from "./link-connection.ts";

/**
 * The messages that the rest of the crawler receives. Welcome and refuse have their own handlers, and addresses stay in the
 * link.
 */
export type LinkMessage = Exclude<
  CoordinatorMessage,
  CoordinatorWelcome | CoordinatorRefuse | { type: "coordinator:addresses" }
>;

/** Handlers run one at a time in the order of arrival and must not throw. */
interface LinkHandlers {
  /** A session begins: drop the spool up to `acknowledgedSequence`, send what follows, ask for work. */
  onWelcome(welcome: CoordinatorWelcome): void;
  /**
   * Receives all other messages, including `coordinator:acknowledge` and `coordinator:pace`, whose credits are already
   * counted.
   */
  onMessage(message: LinkMessage): void;
  /** Is called when `sendResult` would be accepted again after a refusal. */
  onRoom(): void;
  /** The session or attempt has ended. The link tries again by itself. */
  onDown(reason: string): void;
  /** The link has ended for good. `refused` is the coordinator's refusal, or null after `stop()`. */
  onStopped(reason: string, refused: CoordinatorRefuse | null): void;
}

interface LinkLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface LinkSettings {
  /** `wss://host/crawler`, or `ws://` to a loopback host. Only used if `addresses` is absent. */
  readonly url: string;
  readonly addresses?: CoordinatorAddresses;
  readonly hello: (connection: ChallengedConnection) => CrawlerHello;
  readonly heartbeat: () => CrawlerHeartbeat;
  readonly handlers: LinkHandlers;
  readonly log: LinkLog;
  /** Returns a uniform number in [0, 1) for the jitter. */
  readonly random: () => number;
  /** Certificates and proxy, for all addresses or by address. Default: the system's authorities and a direct connection. */
  readonly route?: CoordinatorRoute | ((url: string) => CoordinatorRoute);
  /** Signs results with the identity of the hello, if there is one. */
  readonly sign?: ((text: string) => string) | undefined;
  /** Maximum silence from the start of an attempt to the welcome. */
  readonly welcomeTimeoutMs?: number;
  /** For `soonForMs` after a session is lost, the wait is at most `soonMs`. */
  readonly backOff?: {
    readonly firstMs: number;
    readonly mostMs: number;
    readonly soonMs?: number;
    readonly soonForMs?: number;
  };
}

/** A result from `packResult`. `sequence` increases by one within the spool that the hello names. */
export interface OutgoingResult {
  readonly sequence: number;
  readonly packed: PackedMessage;
}

/**
 * A killed coordinator returns within seconds, so the wait is at most `soonMs` for this long after a session is lost. A large
 * fleet uses the normal back-off, because all of it would return at once.
 */
const defaultBackOff = { firstMs: 500, mostMs: 60_000, soonMs: 2000, soonForMs: 20_000 };
/** A coordinator that sends a crawler away for longer is still asked again after this time. */
const mostToldWaitMs = 600_000;
const lateShare = 0.1;
const defaultWelcomeTimeoutMs = 30_000;
/** When this much is unsent, results wait in the spool instead of in memory. */
const maxQueuedResultBytes = 4 * 1024 * 1024;
/** A session ends after this many ping intervals without a sign of the coordinator. */
const missedPings = 3;
/**
 * Coordinators of large fleets ask for less frequent heartbeats. Half of the excess over this interval spreads the return of
 * crawlers that lost their sessions together: 10,000 of them with a 30 s heartbeat return over 10 s.
 */
const smallFleetHeartbeatMs = 10_000;
const returnShare = 0.5;
/** Timeouts if another address is available: for connecting, and from the connection to a sign of the welcome. */
const mostConnectMs = 5000;
const mostWelcomeMs = 8000;
/**
 * A coordinator that fell silent or did not answer for this long is asked last for a while, during which the others may be
 * asked ten times.
 */
const slowAnswerMs = 3000;
const silentRestMs = 15_000;

export class CoordinatorLink {
  readonly #settings: LinkSettings;
  readonly #addresses: CoordinatorAddresses;
  #connection: LinkConnection | null = null;
  #up = false;
  #stopped = false;
  #attempts = 0;
  #attemptMs = 0;
  #retry: NodeJS.Timeout | undefined;
  #beat: NodeJS.Timeout | undefined;
  #refused: CoordinatorRefuse | null = null;
  /** The time over which a fleet returns after losing all sessions. */
  #returnMs = 0;
  /** When a session ended. Before the first one, no return is expected. */
  #lostAtMs = Number.NEGATIVE_INFINITY;
  #credits = 0;
  #acknowledged = 0;
  #lastSent: number | null = null;
  #roomWanted = false;
  /** Whether sessions are suspended, and whether a new one is wanted at once. */
  #isHeld = false;
  #isRenewed = false;
  #sentBefore = 0;

  /** Throws ConfigError for a URL that is invalid or would send the key unencrypted. */
  constructor(settings: LinkSettings) {
    checkUrl(settings.url);
    const { url, addresses = new CoordinatorAddresses({ own: [url] }) } = settings;
    for (const one of addresses.all) checkUrl(one);
    this.#settings = settings;
    this.#addresses = addresses;
  }

  get isUp(): boolean {
    return this.#up;
  }

  /** Compressed bytes sent since the start, over all connections. */
  get sentBytes(): number {
    return this.#sentBefore + (this.#connection?.sentBytes ?? 0);
  }

  get queuedBytes(): number {
    return this.#connection?.queuedBytes ?? 0;
  }

  start(): void {
    if (this.#connection === null && !this.#stopped) this.#connect();
  }

  /**
   * Returns false and drops the message if the link is down, because such messages mean nothing in the next session (a lease
   * expires by itself).
   */
  send(message: CrawlerMessage): boolean {
    if (!this.#up || !this.#connection) return false;
    this.#connection.send(message);
    return true;
  }

  /**
   * Returns false if there is no link, credit or room. `onWelcome` or `onRoom` then says when to continue. Throws
   * ProtocolError if the result exceeds the coordinator's limit.
   */
  sendResult(outgoing: OutgoingResult): boolean {
    if (!this.#up || !this.#connection) return false;
    this.#roomWanted = !this.#hasRoom();
    if (this.#roomWanted) {
      this.#connection.seal();
      return false;
    }
    this.#checkOrder(outgoing.sequence);
    this.#connection.sendResult(outgoing.sequence, outgoing.packed);
    this.#lastSent = outgoing.sequence;
    return true;
  }

  /** Seals at once, because what was sent should be acknowledged soon. */
  seal(): void {
    if (this.#up) this.#connection?.seal();
  }

  /** Starts a new session, because the hello has changed. */
  renew(goodbye: Goodbye): void {
    if (!this.#up || this.#isHeld) return;
    this.#isRenewed = true;
    void this.#connection?.close(goodbye);
  }

  /** Ends the session and starts none until `release`. */
  hold(goodbye: Goodbye): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    clearTimeout(this.#retry);
    void this.#connection?.close(goodbye);
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.start();
  }

  /** Says goodbye and resolves when the socket is closed. Results already sent may still be acknowledged. */
  async stop(goodbye: Goodbye): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    clearTimeout(this.#retry);
    await this.#connection?.close(goodbye);
    this.#down();
    this.#settings.handlers.onStopped(goodbye.reason, null);
  }

  #connect(): void {
    this.#refused = null;
    const { hello, welcomeTimeoutMs = defaultWelcomeTimeoutMs } = this.#settings;
    const url = this.#addresses.current;
    this.#attemptMs = performance.now();
    this.#connection = new LinkConnection({
      url,
      hello,
      route: this.#routeTo(url, welcomeTimeoutMs),
      sign: this.#settings.sign,
      welcomeTimeoutMs:
        this.#addresses.size === 1 ? welcomeTimeoutMs : Math.min(welcomeTimeoutMs, mostWelcomeMs),
      onMessage: (message) => this.#take(message),
      onEnd: (reason, retryAfterMs, fellSilent) => {
        const nowMs = performance.now();
        const isSilent = this.#up ? fellSilent : nowMs - this.#attemptMs >= slowAnswerMs;
        if (isSilent) this.#addresses.comeBackTo(silentRestMs, nowMs);
        this.#onEnd(reason, retryAfterMs);
      },
    });
  }

  #routeTo(url: string, welcomeTimeoutMs: number): CoordinatorRoute {
    const { route = { certificatePin: null, proxy: null, timeoutMs: welcomeTimeoutMs } } = this.#settings;
    const to = typeof route === "function" ? route(url) : route;
    return this.#addresses.size === 1 ? to : { ...to, timeoutMs: Math.min(to.timeoutMs, mostConnectMs) };
  }

  #take(message: CoordinatorMessage): void {
    if (message.type === "coordinator:refuse") this.#onRefuse(message);
    else if (message.type === "coordinator:welcome") this.#onWelcome(message);
    else this.#onMessage(message);
  }

  #onWelcome(welcome: CoordinatorWelcome): void {
    if (this.#up) throw new ProtocolError("a second welcome");
    this.#up = true;
    this.#attempts = 0;
    this.#credits = welcome.resultCredits;
    this.#acknowledged = welcome.acknowledgedSequence;
    this.#lastSent = null;
    this.#roomWanted = false;
    this.#addresses.onWelcome();
    if (welcome.coordinators !== undefined) this.#addresses.learn(welcome.coordinators);
    const heartbeatMs = welcome.heartbeatSeconds * 1000;
    this.#returnMs = returnShare * Math.max(0, heartbeatMs - smallFleetHeartbeatMs);
    this.#connection?.welcomed();
    this.#connection?.expectEvery(missedPings * (welcome.pingSeconds ?? welcome.heartbeatSeconds) * 1000);
    this.#beat = setInterval(() => this.send(this.#settings.heartbeat()), heartbeatMs);
    const { current: coordinatorUrl } = this.#addresses;
    this.#settings.log.info(
      { crawlerId: welcome.crawlerId, coordinatorUrl },
      "the coordinator welcomed this crawler",
    );
    this.#settings.handlers.onWelcome(welcome);
  }

  #onMessage(message: Exclude<CoordinatorMessage, CoordinatorWelcome | CoordinatorRefuse>): void {
    if (!this.#up) throw new ProtocolError(`${message.type} before the welcome`);
    if (message.type === "coordinator:addresses") {
      this.#addresses.learn(message.urls);
      return;
    }
    if (message.type === "coordinator:acknowledge") this.#acknowledged = message.sequence;
    if (message.type === "coordinator:pace") this.#credits = message.resultCredits;
    this.#settings.handlers.onMessage(message);
    if (!this.#roomWanted || !this.#up || !this.#hasRoom()) return;
    this.#roomWanted = false;
    this.#settings.handlers.onRoom();
  }

  #onRefuse(refuse: CoordinatorRefuse): void {
    this.#refused = refuse;
    this.#connection?.end(
      `the coordinator refused (${refuse.code}): ${refuse.reason}`,
      refuse.retryAfterMs ?? null,
    );
  }

  #onEnd(reason: string, retryAfterMs: number | null): void {
    if (this.#up) this.#lostAtMs = performance.now();
    const spreadMs = this.#up && retryAfterMs === null ? this.#returnMs * this.#settings.random() : 0;
    this.#down();
    if (this.#stopped) return;
    if (this.#refused && !this.#refused.retry) this.#giveUp(reason, this.#refused);
    else this.#tryLater(reason, retryAfterMs, spreadMs);
  }

  #giveUp(reason: string, refused: CoordinatorRefuse): void {
    this.#stopped = true;
    this.#settings.log.warn(
      { code: refused.code, reason: refused.reason },
      "the coordinator refused for good",
    );
    this.#settings.handlers.onStopped(reason, refused);
  }

  #tryLater(reason: string, retryAfterMs: number | null, spreadMs: number): void {
    const waitMs = this.#isRenewed && retryAfterMs === null ? 0 : this.#waitMs(retryAfterMs) + spreadMs;
    this.#isRenewed = false;
    const { current: coordinatorUrl } = this.#addresses;
    this.#settings.log.warn({ reason, waitMs, coordinatorUrl }, "the link to the coordinator is down");
    if (!this.#isHeld) this.#retry = setTimeout(() => this.#connect(), timerMs(waitMs));
    this.#settings.handlers.onDown(reason);
  }

  #down(): void {
    this.#up = false;
    this.#sentBefore = this.sentBytes;
    this.#connection = null;
    clearInterval(this.#beat);
  }

  #waitMs(retryAfterMs: number | null): number {
    if (this.#addresses.size === 1)
      return retryAfterMs === null ? this.#nextWaitMs() : this.#toldWaitMs(retryAfterMs);
    const nowMs = performance.now();
    if (retryAfterMs !== null) this.#addresses.comeBackTo(this.#toldWaitMs(retryAfterMs), nowMs);
    const toldMs = this.#addresses.next(nowMs);
    // A coordinator that names a time is alive, so the others are asked at the normal rate in the meantime.
    if (retryAfterMs !== null) this.#attempts = 0;
    return Math.max(toldMs, this.#nextWaitMs());
  }

  /** Waits at least as long as the coordinator said, plus jitter, since it sent other crawlers away too. */
  #toldWaitMs(retryAfterMs: number): number {
    const askedMs = Math.min(retryAfterMs, mostToldWaitMs);
    return Math.round(askedMs * (1 + lateShare * this.#settings.random()));
  }

  /**
   * Doubles with each failed attempt per address, with jitter from half to all of it, so that a fleet does not return all at
   * once.
   */
  #nextWaitMs(): number {
    const backOff = { ...defaultBackOff, ...this.#settings.backOff };
    const isSoon = this.#returnMs === 0 && performance.now() - this.#lostAtMs < backOff.soonForMs;
    const mostMs = isSoon ? Math.min(backOff.mostMs, backOff.soonMs) : backOff.mostMs;
    const rounds = Math.floor(this.#attempts / this.#addresses.size);
    const fullMs = Math.min(mostMs, backOff.firstMs * 2 ** Math.min(rounds, 30));
    // A wait that was cut short does not double the next one.
    if (!isSoon || fullMs < mostMs) this.#attempts += 1;
    return Math.round(fullMs * (0.5 + this.#settings.random() / 2));
  }

  /** The first sequence of a session may be any number, because a spool can lose its head. Later ones increase by one. */
  #checkOrder(sequence: number): void {
    if (this.#lastSent === null) this.#acknowledged = sequence - 1;
    else if (sequence !== this.#lastSent + 1) {
      throw new RangeError(`result ${sequence} cannot follow result ${this.#lastSent}`);
    }
  }

  #hasRoom(): boolean {
    const underWay = this.#lastSent === null ? 0 : this.#lastSent - this.#acknowledged;
    return underWay < this.#credits && this.queuedBytes < maxQueuedResultBytes;
  }
}

function checkUrl(text: string): void {
  if (isCoordinatorUrl(text)) return;
  const isPlain = canParseUrl(text) && new URL(text).protocol === "ws:";
  const problem = isPlain ? "sends the key in the clear, use wss://" : "is not a wss:// URL";
  throw new ConfigError([`coordinator URL: "${text.slice(0, 200)}" ${problem}`]);
}
