/**
 * A crawler: its parts wired together, and what passes between them and the coordinator's messages.
 *
 *   starting → (welcome) working ⇄ (link lost) working on its leases → stopping → stopped
 */
import { within } from "#core/timer-ms";
import type { CoordinatorProbe, CoordinatorRefuse, CoordinatorWelcome } from "#protocol/coordinator-messages";
import { type CrawlerHello, type Goodbye, maxHeldLeases } from "#protocol/messages";
import { steadyNowMs } from "./core/local-time.ts";
import { closeTools, type FetchTools, fetchTools } from "./crawl/slice-tools.ts";
import { TaskLoop } from "./crawl/task-loop.ts";
import { ExtractionPool } from "./extract/extraction-pool.ts";
import { Introduction } from "./fetch/sign-request.ts";
import type { HostGates } from "./limits/host-gate.ts";
import { youngMegabytes } from "./limits/machine-watch.ts";
import { ProbeGate } from "./limits/probe-gate.ts";
import { Carrier } from "./link/carrier.ts";
import { CoordinatorAddresses } from "./link/coordinator-addresses.ts";
import { CoordinatorLink, type LinkMessage } from "./link/coordinator-link.ts";
import { type CrawlerStatus, crawlerHello, heartbeatOf } from "./link/crawler-hello.ts";
import type { CrawlerSurroundings } from "./link/supervisor-line.ts";
import { allowedProbes, LiveSettings } from "./live-settings.ts";
import {
  coordinatorRoute,
  keepKnownCoordinators,
  readKnownCoordinators,
  withRefusalAdvice,
} from "./membership/coordinator-route.ts";
import { type Member, openMember } from "./membership/member.ts";
import { SigningKeys } from "./membership/signing-keys.ts";
import { Moving } from "./move/moving.ts";
import { measurePeers, Prober } from "./probe/prober.ts";
import type { CrawlerConfig } from "./settings/config.ts";
import { FetchedList } from "./spool/fetched-list.ts";
import { Spool } from "./spool/spool.ts";
import { CrawlerView } from "./status/crawler-view.ts";
import { Drain } from "./status/drain.ts";
import { StatusRecord } from "./status/status-record.ts";
import { openWarc, type Warc } from "./warc/open-warc.ts";

/** The network's NAT64 prefixes are looked up at the start, with the first time limit, and then at the second interval. */
const mostNat64Ms = 3000;
const learnAgainMs = 3_600_000;
/** Interval at which signing keys are announced again if the coordinator did not answer. */
const reviewKeysMs = 600_000;

/** When the crawler stops, open requests get the first time to finish and acknowledgements get the second to arrive. */
const endRequestsMs = 4000;

const endAcknowledgementsMs = 2000;

export class Crawler {
  readonly #config: CrawlerConfig;
  #learning: NodeJS.Timeout | undefined;
  readonly #surroundings: CrawlerSurroundings;
  readonly #tools: FetchTools;
  readonly #extraction: ExtractionPool;
  readonly #warc: Warc | null;
  readonly #spool: Spool;
  readonly #fetched: FetchedList;
  readonly #prober: Prober;
  /** Null if the key was set by hand, so that the crawler has no identity. */
  readonly #member: Member | null;
  readonly #link: CoordinatorLink;
  readonly #carrier: Carrier;
  readonly #live: LiveSettings;
  readonly #loop: TaskLoop;
  readonly #record: StatusRecord;
  readonly #drain: Drain;
  readonly #moving: Moving;
  readonly view: CrawlerView;
  /** Leases whose results an earlier process left in the spool. */
  readonly #leftBehind: string[];
  readonly #introduction: Introduction;
  /** Null if there is no identity under which to announce the keys. */
  readonly #signingKeys: SigningKeys | null;
  #reviewing: NodeJS.Timeout | undefined;
  #measuringPeers = new AbortController();
  readonly #probing = new AbortController();
  #stopped: Promise<void> | null = null;

  constructor(config: CrawlerConfig, surroundings: CrawlerSurroundings) {
    this.#config = config;
    this.#surroundings = surroundings;
    this.#member = openMember(config.home);
    const identity = this.#member?.identity ?? null;
    this.#signingKeys =
      identity &&
      new SigningKeys({
        ...{ home: config.home, identity, log: surroundings.log },
        send: (announcement) => this.#link.send(announcement),
      });
    this.#introduction = new Introduction(identity, this.#signingKeys);
    const { userAgent, sign } = this.#introduction;
    this.#tools = fetchTools({
      config,
      home: config.home,
      userAgent,
      sign,
      quiet: () => this.#prober.quiet(),
      log: surroundings.log,
      spoolBytes: () => this.#spool.bytes,
      queuedBytes: () => this.#link.queuedBytes,
    });
    const { governor, meter, connector } = this.#tools;
    this.#extraction = new ExtractionPool({
      threads: config.limits.extractionThreads,
      youngMegabytes: youngMegabytes(config.limits.memoryBytes),
    });
    this.#warc = openWarc(config, { software: `Nearcrawl/${surroundings.softwareVersion}`, userAgent });
    this.#spool = new Spool({ home: config.home, maxBytes: () => governor.disk.spoolMostBytes() });
    this.#fetched = new FetchedList({
      kept: { home: config.home, warn: (fields, words) => surroundings.log.warn(fields, words) },
      wanted: () => this.#live.config.fetched,
    });
    connector.contacted = (made) => this.#fetched.note(made);
    const probeMethods = allowedProbes(config);
    const limits = {
      gate: new ProbeGate({ limits: () => governor.probeLimits(), waitMs: () => governor.probeWaitMs() }),
      silence: () => governor.silence(),
      addBytes: (bytes: number) => meter.add(bytes),
      isLeased: (host: string, port: number) => this.#loop.isLeased(host, port),
      turn: async (target: Parameters<HostGates["takeProbe"]>[0], withinMs: number) =>
        await this.#tools.gates.takeProbe(target, {
          signal: this.#probing.signal,
          endsAtMs: steadyNowMs() + withinMs,
        }),
      mayHead: (origin: string) => {
        const known = this.#tools.robots.known(origin);
        return known?.type !== "known" || known.verdict("/").allowed;
      },
    };
    surroundings.supervisor?.onCarried((bytes) => meter.add(bytes));
    const echoes = surroundings.supervisor?.echoes;
    this.#prober = new Prober({ connector, probeMethods, userAgent, sign, echoes, limits });
    this.#record = StatusRecord.of(config, surroundings);
    this.#link = this.#makeLink();
    const { log } = surroundings;
    const mayShip = (bytes: number) => governor.mayShip(bytes);
    this.#carrier = new Carrier({ spool: this.#spool, link: this.#link, log, mayShip });
    const live = { governor, connector, prober: this.#prober, link: this.#link, carrier: this.#carrier, log };
    this.#live = new LiveSettings(config, live);
    this.#leftBehind = [...this.#carrier.leases].filter((leaseId) => leaseId !== "0");
    this.#loop = new TaskLoop({
      tools: {
        ...this.#tools,
        extract: (body) => this.#extraction.extract(body),
        recorder: this.#warc?.recorder,
        keep: (leaseId, result) => {
          this.#record.fetched(result);
          return this.#carrier.keep(leaseId, result);
        },
      },
      carrier: this.#carrier,
      send: (message) => this.#link.send(message),
      spoolHasRoom: () => this.#drain.asked === null && this.#spool.hasRoom(),
      log: surroundings.log,
    });
    this.#drain = new Drain({
      home: config.home,
      isEmpty: () => this.#link.isUp && this.#loop.openHosts === 0 && this.#spool.waiting === 0,
      onDrained: () => surroundings.onDrained?.(),
    });
    this.#moving = new Moving({
      ...{ ...live, home: config.home, member: this.#member, tools: this.#tools, loop: this.#loop },
      spool: this.#spool,
      beginAnew: () => surroundings.onMove?.("failed"),
    });
    this.view = new CrawlerView({
      ...{ ...live, surroundings, spool: this.#spool, loop: this.#loop, warc: this.#warc },
      ...{ member: this.#member, record: this.#record, drain: this.#drain, gates: this.#tools.gates },
      config: () => this.#live.config,
    });
  }

  async start(): Promise<void> {
    const { log } = this.#surroundings;
    if (this.#spool.lostBytes > 0)
      log.warn({ bytes: this.#spool.lostBytes }, "the spool's torn end was cut off");
    const { connector } = this.#tools;
    await Promise.all([this.#prober.start(), within(mostNat64Ms, connector.learnIpv6())]);
    this.#learning = setInterval(() => void connector.learnIpv6(), learnAgainMs).unref();
    this.#reviewing = setInterval(() => this.#signingKeys?.review(), reviewKeysMs).unref();
    this.#link.start();
  }

  status(): CrawlerStatus {
    return this.view.status();
  }

  change(config: CrawlerConfig): void {
    this.#live.change(config);
    this.#loop.askSoon();
  }

  /** Pauses until `resume`, even across restarts. Throws the system's error if the pause cannot be saved. */
  pause(reason: string): void {
    this.#tools.governor.pause(reason);
  }

  resume(): void {
    this.#tools.governor.resume();
    this.#drain.end();
    this.#loop.askSoon();
  }

  /** Finishes open work, sends all results and then asks to leave for good. Lasts until `resume`, even across restarts. */
  drain(reason: string): void {
    this.#drain.begin(reason);
  }

  /** Ends open work, returns the remaining leases and says goodbye, within about six seconds. */
  stop(goodbye: Goodbye = { code: "stops", reason: "the crawler stops" }): Promise<void> {
    this.#stopped ??= this.#stop(goodbye);
    return this.#stopped;
  }

  /** Stops, and tells the coordinator to reassign this crawler's subnets at once. */
  leave(): Promise<void> {
    this.#stopped ??= this.#stop({ code: "leaves", reason: "the crawler leaves for good", forGood: true });
    return this.#stopped;
  }

  async #stop(goodbye: Goodbye): Promise<void> {
    clearInterval(this.#learning);
    clearInterval(this.#reviewing);
    this.#live.close();
    this.#drain.close();
    this.#probing.abort();
    this.#measuringPeers.abort();
    await within(endRequestsMs, this.#loop.stop());
    this.#tools.connector.close();
    this.#link.seal();
    if (this.#link.isUp) await within(endAcknowledgementsMs, this.#carrier.drained());
    await this.#link.stop(goodbye);
    closeTools(this.#tools);
    await this.#extraction.close();
    await this.#warc?.close();
    this.#fetched.write();
    this.#spool.close();
    this.#record.close();
  }

  #makeLink(): CoordinatorLink {
    const { log } = this.#surroundings;
    const { coordinatorUrl: url, otherCoordinatorUrls, home } = this.#config;
    const addresses = new CoordinatorAddresses({
      own: [url, ...otherCoordinatorUrls],
      domains: this.#surroundings.supervisor?.coordinatorDomains,
      learned: readKnownCoordinators(home, log),
      keep: (learned) => keepKnownCoordinators(home, learned, log),
    });
    const { connector, meter } = this.#tools;
    return new CoordinatorLink({
      url,
      addresses,
      route: (coordinatorUrl) => ({
        ...coordinatorRoute({ ...this.#config, coordinatorUrl }, this.#member?.membership ?? null),
        watch: (socket) => meter.watch(socket),
        checked: addresses.isOwn(coordinatorUrl)
          ? undefined
          : async (...target) => await connector.coordinatorDestinations(...target),
      }),
      sign: this.#member === null ? undefined : (text) => this.#member!.identity.sign(text),
      hello: (connection) => this.#member?.sign(this.#hello(), connection) ?? this.#hello(),
      heartbeat: () => heartbeatOf(this.status()),
      random: Math.random,
      log: this.#surroundings.log,
      handlers: {
        onWelcome: (welcome) => {
          this.#member?.welcomed(welcome, log);
          this.#record.welcomed(welcome);
          this.#moving.onWelcome();
          this.#tools.governor.workPace.forget();
          this.#introduction.onWelcome(welcome);
          this.#signingKeys?.onWelcome(welcome.signatureAgent !== undefined && welcome.signingKeys === true);
          this.#tools.connector.seenFrom(
            [this.#config.publicAddress, welcome.seenAddress].filter((one) => typeof one === "string"),
          );
          this.#loop.onWelcome(leasesKeptMs(welcome));
          this.#loop.giveBackLeftBehind(this.#leftBehind.splice(0));
          this.#carrier.onWelcome(welcome.acknowledgedSequence);
          this.#surroundings.supervisor?.onWelcome((message) => this.#link.send(message));
        },
        onMessage: (message) => this.#take(message),
        onRoom: () => this.#carrier.pump(),
        onDown: (reason) => {
          void this.#tools.connector.learnIpv6();
          this.#record.down(reason);
          this.#loop.onDown();
          this.#moving.onDown();
        },
        onStopped: (reason, refused) => {
          this.#loop.onDown();
          if (refused !== null) void this.stop({ reason }).then(() => this.#refused(reason, refused.code));
        },
      },
    });
  }

  #refused(reason: string, code: CoordinatorRefuse["code"]): void {
    const { onMove, onRefused } = this.#surroundings;
    if (code === "moved" && this.#moving.isWaiting()) onMove?.("moved");
    else onRefused?.({ reason: this.#member === null ? reason : withRefusalAdvice(reason, code), code });
  }

  #take(message: LinkMessage): void {
    switch (message.type) {
      case "coordinator:tasks":
        this.#surroundings.supervisor?.onAnswer();
        this.#loop.onTasks(message.leases, message.askAgainMs, message.reason);
        break;
      case "coordinator:wake":
        this.#loop.onWake();
        break;
      case "coordinator:acknowledge":
        this.#carrier.onAcknowledge(message.sequence);
        this.#loop.askSoon();
        break;
      case "coordinator:pace":
        this.#record.paceReason = message.resultCredits === 0 ? message.reason : "";
        this.#carrier.pump();
        break;
      case "coordinator:work-pace":
        this.#tools.governor.workPace.take(message);
        this.#loop.askSoon();
        break;
      case "coordinator:key":
        if (this.#member?.keepKey(message.key, this.#surroundings.log))
          this.#link.send({ type: "crawler:key-kept" });
        break;
      case "coordinator:signing-key":
        this.#signingKeys?.onAnswer(message);
        break;
      case "coordinator:renew-signing-key":
        this.#signingKeys?.renew();
        break;
      case "coordinator:stop-hosts":
        this.#loop.stopSites(message.domains, message.reason);
        break;
      case "coordinator:stop-parts":
        this.#loop.stopParts(message.parts, message.reason);
        this.#erase(message.parts.flatMap(({ of, erases }) => (erases ? [of] : [])));
        break;
      case "coordinator:release":
        this.#surroundings.supervisor?.onOffer(message);
        break;
      case "coordinator:move":
        this.#moving.onMessage(message);
        break;
      case "coordinator:probe":
        void this.#probe(message);
        break;
      case "coordinator:peers":
        void this.#measurePeers(message.peers);
    }
  }

  async #probe(message: CoordinatorProbe): Promise<void> {
    const { type: _type, requestId, ...request } = message;
    const outcome = await this.#prober.probe(request);
    this.#record.probed(outcome);
    this.#link.send({ type: "crawler:probe-report", requestId, outcome });
  }

  async #measurePeers(peers: Extract<LinkMessage, { type: "coordinator:peers" }>["peers"]): Promise<void> {
    this.#measuringPeers.abort();
    const measuring = new AbortController();
    this.#measuringPeers = measuring;
    const measured = await measurePeers(this.#prober, peers, measuring.signal);
    // If a newer list interrupts a measurement, the distances measured so far still count.
    if (measured.length > 0) this.#link.send({ type: "crawler:peer-rtts", peers: measured });
  }

  /**
   * Deletes local copies of pages that the coordinator has erased, except in archives, which belong to the partner. The URLs
   * have no scheme.
   */
  #erase(urls: readonly string[]): void {
    if (urls.length === 0) return;
    this.#spool.erase();
    const { log } = this.#surroundings;
    log.info({ pages: urls.length }, "the coordinator has erased pages: what the spool has of them goes");
    const folder = this.#config.warc?.folder;
    if (folder !== undefined)
      log.warn(
        { folder, urls },
        "pages were erased: remove their records (WARC-Target-URI) from the archive",
      );
  }

  #hello(): CrawlerHello {
    return crawlerHello(this.#live.config, {
      softwareVersion: this.#surroundings.softwareVersion,
      spoolId: this.#spool.id,
      heldLeases: heldLeases([...this.#loop.leases, ...this.#carrier.leases]),
      ...(this.#surroundings.supervisor && { supervisor: this.#surroundings.supervisor.helloParts }),
      probeMethods: this.#prober.methods,
      ipv6: this.#tools.connector.speaksIpv6,
    });
  }
}

// Decides how long a crawler without a link may work on its leases, which is never longer than the coordinator reserves them.

/** The coordinator may notice a lost link this many heartbeats earlier than the crawler does. */
const noticedSooner = 2;

function leasesKeptMs({ departureSeconds, heartbeatSeconds }: CoordinatorWelcome): number {
  if (departureSeconds === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, departureSeconds - noticedSooner * heartbeatSeconds) * 1000;
}

/** Returns null if there are too many leases to list in the hello. */
function heldLeases(leaseIds: readonly string[]): string[] | null {
  // Results whose lease was lost on disk are filed under "0", which is not a lease.
  const held = new Set(leaseIds.filter((leaseId) => leaseId !== "0"));
  return held.size > maxHeldLeases ? null : [...held];
}
