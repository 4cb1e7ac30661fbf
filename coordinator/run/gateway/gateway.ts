/**
 * The endpoint of crawlers. It takes over an HTTP server's WebSocket upgrades at one path, checks who connects
 * (limits, version, key), keeps one session per crawler, and offers them as the `Fleet` of crawlers/crawler.ts. A
 * crawler or stranger can end at most its own session. It is created before the rooms, which need to know who is
 * connected, and gets their handlers before it serves anybody. `main` decides about TLS by the server that it
 * attaches.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { KeyedTurns, LoopTurns } from "#core/clock";
import type { CrawlerId } from "#core/ids";
import { isHostName } from "#core/ip/url-host";
import type { Log } from "#core/log";
import { maxMessageBytes } from "#protocol/codec";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { challengeHeader, tlsBindingOf } from "#protocol/identity";
import type { CrawlerHello, ProbeOutcome } from "#protocol/messages";
import { InflaterPool, type ZlibSync } from "#protocol/zlib-sync-inflater";
import type { Admitted } from "../../place/crawlers/admit-crawler.ts";
import type { Fleet } from "../../place/crawlers/crawler.ts";
import { heartbeatMsFor, type SessionEnd, sessionEnd } from "../../place/crawlers/sessions.ts";
import { ConnectionLimits } from "../../web/limits.ts";
import { AcceptPressure } from "./arrivals-first.ts";
import {
  AdmissionLine,
  type Arrival,
  blameless,
  busyWithTheOther,
  comeBackLater,
  type GatewayHandlers,
  type GatewaySettings,
  incidentOf,
  replaced,
  shuttingDown,
  starting,
  turnedAway,
  unableToAdmit,
} from "./gateway-settings.ts";
import { mostPingMs, PendingProbes } from "./liveness.ts";
import { CrawlerSession, type SessionHandlers } from "./session.ts";

/** Maximum fragments of a message, since even empty ones take memory. Our crawlers send messages whole. */
const maxFragments = 1024;

/**
 * How long each turn of the event loop may handle strangers' upgrades and hellos. Node accepts one connection per
 * turn, so turns must be short while thousands connect.
 */
const strangersMs = 1;

/** How soon a departure is recorded again after the database failed to record it. */
const departAgainMs = 2000;

/** This many arriving crawlers are a crowd. */
const crowd = 16;

export class CrawlerGateway implements Fleet {
  readonly #settings: GatewaySettings;
  #handlers: GatewayHandlers = unhandled;
  readonly #log: Log;
  readonly #onFault: (error: unknown) => void;
  readonly #pool: InflaterPool;
  readonly #limits: ConnectionLimits;
  readonly #sockets: WebSocketServer;
  readonly #probes = new PendingProbes();
  readonly #connected = new Set<CrawlerSession>();
  readonly #sessions = new Map<CrawlerId, CrawlerSession>();
  readonly #turns = new KeyedTurns<CrawlerId>();
  /** Orders the newcomers of each crawler, from its hello to its welcome. */
  readonly #newcomers = new KeyedTurns<CrawlerId>();
  /** The challenges sent with upgrades that are in progress. */
  readonly #challenges = new WeakMap<IncomingMessage, string>();
  readonly #admissions = new Set<Promise<void>>();
  readonly #line: AdmissionLine;
  /** Sessions that wait for their turn or their welcome. If they leave, that is no misbehaviour. */
  readonly #waiting = new WeakSet<CrawlerSession>();
  /** Limits departures, so that a fleet that leaves at once does not block the database for newcomers. */
  readonly #departures: AdmissionLine;
  readonly #refusals = new Map<string, number>();
  readonly #pressure = new AcceptPressure();
  readonly #strangers = new LoopTurns(strangersMs, () => this.#pressure.isLasting);
  #upgrades = 0;
  readonly #silent = new Set<CrawlerSession>();
  /** Why no crawler is served; null if crawlers are served. */
  #closed: Refusal | null = starting;

  /** `zlibSync` is the result of `loadZlibSync()`. */
  constructor(options: {
    readonly settings: GatewaySettings;
    readonly log: Log;
    /** Called if the coordinator's own code failed on a crawler's message. */
    readonly onFault?: (error: unknown) => void;
    readonly zlibSync: ZlibSync | null;
  }) {
    this.#settings = options.settings;
    this.#log = options.log;
    this.#onFault = options.onFault ?? (() => {});
    this.#pool = new InflaterPool(options.zlibSync);
    const nowMs = () => performance.now();
    this.#limits = new ConnectionLimits(options.settings.limits, nowMs);
    this.#line = new AdmissionLine(options.settings.admission, nowMs);
    this.#departures = new AdmissionLine(options.settings.admission, nowMs);
    this.#sockets = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      maxFragments,
      clientTracking: false,
    });
    this.#sockets.on("headers", (headers, request) => {
      headers.push(`${challengeHeader}: ${this.#challenges.get(request)}`);
    });
  }

  handle(handlers: GatewayHandlers): void {
    this.#handlers = handlers;
  }

  get closed(): Refusal | null {
    return this.#closed;
  }

  /** If null, crawlers are served from now on. A refusal disconnects all crawlers and serves none. */
  serve(closed: Refusal | null): void {
    if (this.#closed === shuttingDown || this.#closed === closed) return;
    this.#closed = closed;
    if (closed !== null) for (const session of [...this.#connected]) session.refuse(closed);
  }

  /** Takes over upgrades at the path. Upgrades at other paths go to other listeners or are refused. */
  attach(server: Server | SecureServer): void {
    server.on("connection", () => this.#pressure.accepted());
    server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      if (pathOf(request) === this.#settings.path) this.#queueUpgrade(request, stream, head);
      else if (server.listenerCount("upgrade") === 1)
        turnAway(stream, "404 Not Found", "there is nothing here");
    });
  }

  online(): readonly CrawlerId[] {
    return [...this.#sessions.keys()];
  }

  isConnected(crawlerId: CrawlerId): boolean {
    return this.#sessions.has(crawlerId);
  }

  probe(crawlerId: CrawlerId, target: Parameters<Fleet["probe"]>[1]): Promise<ProbeOutcome> {
    // A frontier may contain such a host from the time when crawlers accepted it. No session may end because of it.
    if (!isHostName(target.host)) {
      const reason = "what the URL calls its host is no host's name";
      return Promise.resolve({ type: "failed", method: target.method, reason });
    }
    const waitMs = target.deadlineMs + this.#settings.probeGraceMs;
    return this.#probes.request({ crawlerId, method: target.method, waitMs }, (requestId) =>
      this.send(crawlerId, { type: "coordinator:probe", requestId, ...target }),
    );
  }

  get probesUnderWay(): number {
    return this.#probes.size;
  }

  /** Returns false if the crawler is not connected. Throws a ProtocolError if the message is too long. */
  send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean {
    return this.#sessions.get(crawlerId)?.send(message) ?? false;
  }

  refuse(crawlerId: CrawlerId, refusal: Refusal): boolean {
    const session = this.#sessions.get(crawlerId);
    session?.refuse(refusal);
    return session !== undefined;
  }

  /** Runs the work for every connected crawler, which neither arrives nor leaves meanwhile. */
  async forEachConnected(work: (crawlerId: CrawlerId) => Promise<void>): Promise<void> {
    const whileConnected = async (crawlerId: CrawlerId) => {
      if (this.#sessions.has(crawlerId)) await work(crawlerId);
    };
    await Promise.all(
      this.online().map(async (crawlerId) =>
        this.#turns.take(crawlerId, async () => await whileConnected(crawlerId)),
      ),
    );
  }

  sessionOf(crawlerId: CrawlerId): CrawlerSession | null {
    return this.#sessions.get(crawlerId) ?? null;
  }

  /** How many crawlers have sent a hello and wait for their turn. */
  get waitingCrawlers(): number {
    return this.#line.waiting;
  }

  /** Whether so many arrive at once that other work should leave them the processor. */
  get isCrowded(): boolean {
    if (this.#closed !== null) return false;
    return this.#pressure.isPressing || this.#strangers.waiting + this.#admissions.size >= crowd;
  }

  /** For metrics: connections (including strangers'), and refusals by code since the start. */
  counts(): { readonly connections: number; readonly refusals: Readonly<Record<string, number>> } {
    return { connections: this.#connected.size, refusals: Object.fromEntries(this.#refusals) };
  }

  /** Disconnects everybody. Resolves when no handler runs any more. The caller closes the server. */
  async close(): Promise<void> {
    const leaving = [...this.#connected];
    this.serve(shuttingDown);
    await Promise.all(leaving.map((session) => session.settled()));
    await Promise.all(this.#admissions);
    await this.#turns.allTaken();
  }

  /** Handles upgrades in turns of the event loop, so that a fleet that connects at once does not block other work. */
  #queueUpgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    stream.on("error", () => stream.destroy());
    const laterMs = this.#line.comeBackMs(this.#upgrades + this.#silent.size + this.#line.working);
    if (laterMs !== null) {
      this.#sendAway(stream, laterMs);
      return;
    }
    this.#upgrades += 1;
    this.#strangers.take(() => {
      this.#upgrades -= 1;
      this.#onUpgrade(request, stream, head);
    });
  }

  #onUpgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    if (stream.destroyed) return;
    const address = this.#settings.remoteAddressOf(request);
    if (this.#closed !== null) {
      turnAway(stream, "503 Service Unavailable", this.#closed.reason, this.#closed.retryAfterMs);
      return;
    }
    const full = this.#limits.open(address);
    if (full !== null) {
      this.#handlers.onIncident?.(turnedAway(address, full));
      turnAway(stream, "429 Too Many Requests", full);
      return;
    }
    stream.once("close", () => this.#limits.close(address));
    const challenge = randomBytes(32).toString("base64url");
    this.#challenges.set(request, challenge);
    this.#sockets.handleUpgrade(request, stream, head, (socket) => {
      const tlsBinding = tlsBindingOf(stream);
      const shared = { pool: this.#pool, strangers: this.#strangers };
      const settings = { ...this.#settings, remoteAddress: address, challenge, tlsBinding, ...shared };
      const session = new CrawlerSession(socket, stream, settings, this.#sessionHandlers);
      this.#connected.add(session);
      this.#silent.add(session);
    });
  }

  #sendAway(stream: Duplex, laterMs: number): void {
    const { reason } = comeBackLater(this.#line.waiting, laterMs);
    turnAway(stream, "503 Service Unavailable", reason, laterMs);
  }

  readonly #sessionHandlers: SessionHandlers = {
    onHello: (session, hello, version) => {
      this.#silent.delete(session);
      const laterMs = this.#line.comeBackMs();
      if (laterMs !== null) {
        session.refuse(comeBackLater(this.#line.waiting, laterMs));
        return;
      }
      const admission = this.#admit(session, hello, version);
      this.#admissions.add(admission);
      void admission.then(() => this.#admissions.delete(admission));
    },
    onResults: (crawlerId, spoolId, results) => this.#handlers.onResults({ crawlerId, spoolId, results }),
    onMessage: (crawlerId, message, size) => this.#handlers.onMessage(crawlerId, message, size),
    onProbeReport: (crawlerId, requestId, outcome) => this.#probes.report(crawlerId, requestId, outcome),
    onFault: (session, error) => {
      this.#log.error({ crawlerId: session.crawlerId, error }, "a crawler's messages could not be handled");
      this.#onFault(error);
    },
    onEnd: (session, end, refusal) => this.#onEnd(session, end, refusal),
  };

  async #admit(session: CrawlerSession, hello: CrawlerHello, version: number): Promise<void> {
    try {
      const { challenge, tlsBinding, remoteAddress } = session;
      this.#waiting.add(session);
      const admitted = await this.#line.take(isGone(session), async () => {
        this.#waiting.delete(session);
        return await this.#handlers.admit({ hello, challenge, tlsBinding, remoteAddress });
      });
      if (admitted === null) return;
      if ("refuse" in admitted) {
        session.refuse(admitted.refuse);
        return;
      }
      this.#waiting.add(session);
      if (admitted.publicKey !== null) session.requireSeals(admitted.publicKey);
      await this.#newcomers.take(admitted.crawlerId, () => this.#letIn(session, admitted, version));
    } catch (error) {
      this.#log.error({ name: hello.name, error }, "a crawler's arrival could not be handled");
      this.#onFault(error);
      session.refuse(unableToAdmit);
    }
  }

  /** Waits until this crawler's previous session has left, because the welcome states what that committed last. */
  async #letIn(session: CrawlerSession, admitted: Admitted, version: number): Promise<void> {
    const { hello, remoteAddress } = session;
    if (session.state !== "checking" || !hello) return;
    const { crawlerId, publicKey } = admitted;
    const arrival = { crawlerId, hello, remoteAddress, version, publicKey };
    const before = this.#sessions.get(crawlerId);
    const copy = before ? await this.#refusalBeside(before, arrival) : null;
    if (copy !== null) {
      session.refuse(copy);
      return;
    }
    this.#sessions.get(crawlerId)?.refuse(replaced);
    await this.#turns.take(crawlerId, async () => {
      await this.#line.takeUp(isGone(session), () => this.#arrive(session, arrival, admitted));
    });
  }

  /**
   * If a session of the same identity in another process still answers, it runs on another machine. Returns null if
   * there is no such session.
   */
  async #refusalBeside(before: CrawlerSession, newcomer: Arrival): Promise<Refusal | null> {
    const [here, there] = [newcomer.hello.identity, before.hello?.identity];
    const isRival =
      newcomer.publicKey !== null &&
      here?.publicKey === there?.publicKey &&
      here?.instanceId !== there?.instanceId;
    if (!isRival) return null;
    const answers = await before.connection.answersPing(this.#settings.rivalMs);
    if (answers === false) return null;
    if (answers === null) return busyWithTheOther;
    const evidence = `another one is at work from ${before.remoteAddress} since ${before.openedAt.toISOString()}`;
    return (
      this.#handlers.onCopy?.(newcomer, evidence) ?? { code: "copied-folder", reason: evidence, retry: false }
    );
  }

  async #arrive(session: CrawlerSession, arriving: Arrival, { first }: Admitted): Promise<void> {
    const { crawlerId, hello, remoteAddress, version: protocolVersion } = arriving;
    const arrival = await this.#handlers.onArrive(arriving);
    if ("refuse" in arrival) {
      session.refuse(arrival.refuse);
      return;
    }
    if (session.state !== "checking") {
      await this.#handlers.onLeave(crawlerId, sessionEnd("lost", "it left while it arrived"), false);
      return;
    }
    this.#sessions.set(crawlerId, session);
    this.#log.debug({ crawlerId, name: hello.name, remoteAddress }, "a session is open");
    const { resultCredits, departureSeconds, userAgent, fleetSize } = this.#settings;
    const crawlers = fleetSize?.() ?? this.#sessions.size;
    const heartbeatMs = heartbeatMsFor(crawlers, this.#settings.heartbeatMs);
    const heartbeatSeconds = Math.max(1, Math.ceil(heartbeatMs / 1000));
    const pingMs = heartbeatMsFor(crawlers, Math.min(this.#settings.heartbeatMs, mostPingMs));
    const { acknowledgedSequence } = arrival;
    const times = { heartbeatSeconds, departureSeconds, pingSeconds: pingMs / 1000 };
    const agreed = { protocolVersion, acknowledgedSequence, resultCredits, ...times, userAgent };
    session.welcome(
      { type: "coordinator:welcome", crawlerId, ...agreed, ...arrival.welcome },
      { heartbeatMs, pingMs },
    );
    for (const message of first) session.send(message);
    this.#handlers.onWelcome?.(crawlerId);
  }

  #onEnd(session: CrawlerSession, end: SessionEnd, refusal: Refusal | null): void {
    const { reason } = end;
    this.#connected.delete(session);
    this.#silent.delete(session);
    if (refusal) this.#refusals.set(refusal.code, (this.#refusals.get(refusal.code) ?? 0) + 1);
    const { crawlerId, remoteAddress, hello } = session;
    const incident = incidentOf({ crawlerId, remoteAddress, name: hello?.name ?? null }, refusal);
    if (incident !== null) this.#handlers.onIncident?.(incident);
    if (crawlerId === null) {
      const isBlameless = refusal
        ? blameless.has(refusal.code)
        : this.#waiting.has(session) || session.hasUnread;
      if (!isBlameless) this.#limits.countFailure(remoteAddress);
      this.#log.warn(
        { remoteAddress, name: session.hello?.name, reason },
        "a connection ended before its welcome",
      );
      return;
    }
    this.#sessions.delete(crawlerId);
    this.#log.debug({ crawlerId, name: session.hello?.name, reason }, "a session has ended");
    this.#probes.abandon(crawlerId, reason);
    void this.#turns.take(crawlerId, () => this.#depart(session, crawlerId, end));
  }

  async #depart(session: CrawlerSession, crawlerId: CrawlerId, end: SessionEnd): Promise<void> {
    try {
      await session.settled();
      const leaves = () => this.#handlers.onLeave(crawlerId, end, session.leavesForGood);
      await this.#departures.take(() => false, leaves);
    } catch (error) {
      this.#log.error({ crawlerId, error }, "a crawler's departure could not be recorded and is tried again");
      // Meanwhile the database states that the crawler is connected.
      setTimeout(() => {
        const hasReturned = () => this.#sessions.has(crawlerId) || this.#closed === shuttingDown;
        void this.#turns.take(crawlerId, async () => {
          if (!hasReturned()) await this.#depart(session, crawlerId, end);
        });
      }, departAgainMs).unref();
    }
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?")[0] ?? "";
}

/** Handlers until the real ones are set. No crawler is served before. */
const unhandled: GatewayHandlers = {
  admit: async () => ({ refuse: starting }),
  onArrive: async () => ({ refuse: starting }),
  onResults: async () => {},
  onMessage: async () => {},
  onLeave: async () => {},
};

const isGone = (session: CrawlerSession) => () => session.state !== "checking";

function turnAway(stream: Duplex, status: string, reason: string, retryAfterMs?: number): void {
  stream.on("error", () => stream.destroy());
  const later = retryAfterMs === undefined ? "" : `Retry-After: ${Math.ceil(retryAfterMs / 1000)}\r\n`;
  const headers = `Content-Type: text/plain\r\n${later}Content-Length: ${Buffer.byteLength(reason)}\r\nConnection: close`;
  stream.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${reason}`, () => stream.destroy());
}
