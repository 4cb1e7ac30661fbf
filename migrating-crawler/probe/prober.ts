/**
 * Measures the round trip to an address by HTTP HEAD, TCP connect or ICMP echo: the smallest of several tries (as few as
 * agree) within a deadline. An unanswered HEAD falls back to connect, and the outcome names the method used. Through a proxy,
 * connect means the time of the proxy's answer, and ICMP is impossible. A DNS look-up counts towards the deadline but not
 * towards the measurement.
 *
 * A busy machine notices answers late, so the outcome includes the maximum delay (`LoopTicks`).
 *
 * During a probe, `quiet()` briefly defers the crawler's long computations (extraction), because an answer that waits for the
 * processor would measure the crawler and not the network.
 *
 * A site gets one request at a time at its own pace, pages and probes together, so a probe waits for a turn. A HEAD that gets
 * no turn in time, or is forbidden by robots.txt, becomes a TCP connect, which requests nothing.
 *
 * Every measurement passes the gate (limits/probe-gate.ts), which delays it for at most half of its deadline. It only goes to
 * web ports: 80 and 443, those of leased URLs, and those that the partner allows by name (`allowRanges`).
 */
import { hostInUrl } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import type { CoordinatorMessage, CoordinatorProbe } from "#protocol/coordinator-messages";
import { heldBackWords, type ProbeMethod, type ProbeOutcome } from "#protocol/messages";
import { Failure, failureOf } from "../core/failure.ts";
import { steadyNowMs } from "../core/local-time.ts";
import type { SignRequest } from "../fetch/sign-request.ts";
import { ProbeGate } from "../limits/probe-gate.ts";
import type { Connector } from "../net/connector.ts";
import { ProxyRefusal } from "../net/proxy.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { type TimedTry, timeHeads, triesAgree } from "./http-head.ts";
import { type Echoes, systemEchoes } from "./icmp-echo.ts";

const mostQuietMs = 250;
/** Gap between two connects to an address, so that they do not look like a scan. */
const betweenConnectsMs = 20;

/** Size of an IPv4 echo request or answer of `ping`. */
const echoBytes = 84;

/** A TCP connection without data takes seven segments, which sockets do not count. */
const connectBytes = 400;
/** The fraction of a deadline that may be spent waiting. The measurement gets the rest. */
const waitPart = 1 / 2;
/** The fraction of that wait spent on a host's turn. A connect, which needs no turn, gets the rest. */
const headWaitPart = 1 / 2;
const webPorts: readonly number[] = [80, 443];

interface ProbeLimits {
  readonly gate: ProbeGate;
  /** Returns why nothing may be contacted now, or an empty string. */
  readonly silence: () => string;
  /** Counts bytes that none of the crawler's sockets shows. */
  readonly addBytes: (bytes: number) => void;
  readonly isLeased: (host: string, port: number) => boolean;
  /**
   * Waits for a turn among the page requests to the address and, if given, to the host. Resolves with a function that ends the
   * turn, or with null if there is none in time.
   */
  readonly turn: (
    target: { readonly host: string | null; readonly address: string },
    withinMs: number,
  ) => Promise<(() => void) | null>;
  /** Returns false if the site's known robots.txt forbids `/`. */
  readonly mayHead: (origin: string) => boolean;
}

/** If no host sets limits, only the gate's own bounds apply. */
const noLimits = (): ProbeLimits => ({
  gate: new ProbeGate({
    limits: () => ({ probesPerSecond: 50, concurrentHosts: 32 }),
    waitMs: () => 0,
  }),
  silence: () => "",
  addBytes: () => {},
  isLeased: () => false,
  turn: async () => () => {},
  mayHead: () => true,
});

export type ProbeRequest = Omit<CoordinatorProbe, "type" | "requestId">;

export class Prober {
  readonly #connector: Connector;
  #allowed: ReadonlySet<ProbeMethod>;
  readonly #userAgent: () => string;
  readonly #sign: SignRequest | undefined;
  readonly #echoes: Echoes;
  readonly #limits: ProbeLimits;
  #mayPing = false;
  readonly #ticks = new LoopTicks();
  #running = 0;
  #whenQuiet: (() => void)[] = [];

  constructor(settings: {
    readonly connector: Connector;
    readonly probeMethods: CrawlerConfig["probeMethods"];
    readonly userAgent: () => string;
    readonly sign?: SignRequest;
    /** Default: the system's `ping`, started by this process. */
    readonly echoes?: Echoes | undefined;
    readonly limits?: ProbeLimits;
  }) {
    this.#connector = settings.connector;
    this.#allowed = new Set(settings.probeMethods);
    this.#userAgent = settings.userAgent;
    this.#sign = settings.sign;
    this.#echoes = settings.echoes ?? systemEchoes();
    this.#limits = settings.limits ?? noLimits();
  }

  /** Tests whether ICMP works here. Must be called once before the first probe. */
  async start(): Promise<void> {
    this.#mayPing =
      this.#allowed.has("icmp") && !this.#connector.throughProxy && (await this.#echoes.canPing());
  }

  apply(probeMethods: CrawlerConfig["probeMethods"]): void {
    const mayPing = this.#allowed.has("icmp");
    this.#allowed = new Set(probeMethods);
    if (this.#allowed.has("icmp") && !mayPing) void this.start();
  }

  get methods(): ProbeMethod[] {
    const usable = [...this.#allowed].filter((method) => method !== "icmp" || this.#mayPing);
    return (["head", "connect", "icmp"] as const).filter((method) => usable.includes(method));
  }

  /** Resolves when no probe is in progress, after a quarter of a second at the latest. */
  async quiet(): Promise<void> {
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, mostQuietMs);
      this.#whenQuiet.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Never throws. For a name, measures and reports the address that the name resolves to here. */
  async probe(request: ProbeRequest): Promise<ProbeOutcome> {
    const mayBeginUntilMs = performance.now() + waitPart * request.deadlineMs;
    const deadlineAtMs = performance.now() + request.deadlineMs;
    if (request.byName !== true) return await this.#probeAddress(request, { mayBeginUntilMs, deadlineAtMs });
    const address = await this.#resolve(request, mayBeginUntilMs);
    if (typeof address !== "string") return address;
    return {
      ...(await this.#probeAddress({ ...request, address }, { mayBeginUntilMs, deadlineAtMs })),
      address,
    };
  }

  /** Returns the address that a fetch from this host would use. A DNS query passes the gate like a probe. */
  async #resolve({ host, method }: ProbeRequest, mayBeginUntilMs: number): Promise<string | ProbeOutcome> {
    const silence = this.#limits.silence();
    if (silence !== "") return heldBack(method, silence);
    const end = await this.#limits.gate.enter({ address: host, tries: 1 }, leftUntil(mayBeginUntilMs));
    if (typeof end === "string") return heldBack(method, end);
    try {
      return (await this.#connector.pick({ host })).address;
    } catch (error) {
      return failed(method, failureOf(error));
    } finally {
      end();
    }
  }

  async #probeAddress(request: ProbeRequest, times: ProbeTimes): Promise<ProbeOutcome> {
    const { address, method, tries } = request;
    const refused = (await this.#refusedFamily(request)) ?? this.#refused(request);
    if (refused !== null) return refused;
    const errand = { address, tries, pings: method === "icmp" };
    const end = await this.#limits.gate.enter(errand, leftUntil(times.mayBeginUntilMs));
    if (typeof end === "string") return heldBack(method, end);
    try {
      const turn = await this.#turn(request, times);
      return turn === null
        ? heldBack(method, "the pages of this address leave it no turn in time")
        : await this.#inTurn({ ...request, method: turn.method }, turn.end, times);
    } finally {
      end();
    }
  }

  async #inTurn(request: ProbeRequest, endTurn: () => void, times: ProbeTimes): Promise<ProbeOutcome> {
    this.#running++;
    this.#ticks.begin();
    try {
      // Conditions may have changed during the wait.
      const deadlineMs = Math.max(1, Math.round(leftUntil(times.deadlineAtMs)));
      return this.#refused(request) ?? this.#noted(request, await this.#measure({ ...request, deadlineMs }));
    } finally {
      this.#running--;
      this.#ticks.end();
      endTurn();
      if (this.#running === 0) for (const wake of this.#whenQuiet.splice(0)) wake();
    }
  }

  #noted({ host, address, port, secure }: ProbeRequest, outcome: ProbeOutcome): ProbeOutcome {
    const url = `${secure ? "https" : "http"}://${hostInUrl(host)}:${port}/`;
    const failure = outcome.type === "measured" ? {} : { failure: outcome.type };
    this.#connector.contacted({ url, how: `probe by ${outcome.method}`, status: null, address, ...failure });
    return outcome;
  }

  async #turn({ host, address, port, secure, method }: ProbeRequest, { mayBeginUntilMs }: ProbeTimes) {
    const origin = `${secure ? "https" : "http"}://${hostInUrl(host)}${port === (secure ? 443 : 80) ? "" : `:${port}`}`;
    if (method === "head" && this.#limits.mayHead(origin)) {
      const withinMs = leftUntil(mayBeginUntilMs) * headWaitPart;
      const end = await this.#limits.turn({ host, address }, withinMs);
      if (end !== null) return { method, end };
    }
    const end = await this.#limits.turn({ host: null, address }, leftUntil(mayBeginUntilMs));
    return end === null ? null : { method: method === "head" ? ("connect" as const) : method, end };
  }

  #refused(request: ProbeRequest): ProbeOutcome | null {
    const { host, address, port, method } = request;
    const stop = this.#connector.stoppedSites.stopOf(host, steadyNowMs());
    if (stop !== null) return { type: "failed", method, reason: stop.words };
    const forbidden = this.#forbidden(request);
    if (forbidden !== null) return { type: "not-allowed", method, reason: forbidden };
    const silence = this.#limits.silence();
    if (silence !== "") return heldBack(method, silence);
    const isOpen =
      webPorts.includes(port) ||
      this.#connector.guard.isAllowed(address, port) ||
      this.#limits.isLeased(host, port);
    return isOpen ? null : heldBack(method, `this crawler does not probe port ${port}`);
  }

  async #refusedFamily({ address, port, method }: ProbeRequest): Promise<ProbeOutcome | null> {
    const reason = await this.#connector.familyDenial(address, port);
    return reason === null ? null : { type: "not-allowed", method, reason };
  }

  #forbidden(request: ProbeRequest): string | null {
    const block = this.#connector.guard.denial(request) ?? this.#connector.guard.refusal(request.address);
    if (block !== null) return block.slice(0, 500);
    return this.methods.includes(request.method)
      ? null
      : `${request.method} is not possible or not allowed here`;
  }

  async #measure(request: ProbeRequest): Promise<ProbeOutcome> {
    const deadlineAtMs = performance.now() + request.deadlineMs;
    if (request.method === "icmp") return this.#echo(request);
    if (request.method === "connect") return this.#connect(request, deadlineAtMs);
    const head = await this.#head(request, deadlineAtMs);
    if (head !== "refused") return head;
    if (!this.#allowed.has("connect")) {
      return {
        type: "not-allowed",
        method: "head",
        reason: "HEAD is refused there, and connect is not allowed here",
      };
    }
    return this.#connect(request, deadlineAtMs);
  }

  async #head(request: ProbeRequest, deadlineAtMs: number): Promise<ProbeOutcome | "refused"> {
    const { host, address, port, secure, tries } = request;
    try {
      const timeoutMs = deadlineAtMs - performance.now();
      this.#limits.addBytes(connectBytes);
      const { socket } = await this.#connector.open({ host, address, port, secure, timeoutMs });
      const late = new Failure("first-byte-timeout", `no answer to HEAD within ${request.deadlineMs} ms`);
      const timer = setTimeout(() => socket.destroy(late), timerMs(deadlineAtMs - performance.now()));
      try {
        const mayGoOn = () => this.#limits.gate.mayGoOn();
        const lateMs = () => this.#ticks.lateMs();
        const said = { userAgent: this.#userAgent(), sign: this.#sign, mayGoOn, lateMs };
        const heads = await timeHeads(socket, { host, port, secure, tries, ...said });
        return heads.refused === null ? measured("head", heads.tries) : "refused";
      } finally {
        clearTimeout(timer);
        socket.on("error", () => {});
        socket.destroy();
      }
    } catch (error) {
      const failure = failureOf(error);
      return failure.code === "connect-refused" || failure.code === "tls"
        ? "refused"
        : failed("head", failure);
    }
  }

  async #connect(request: ProbeRequest, deadlineAtMs: number): Promise<ProbeOutcome> {
    const tries: TimedTry[] = [];
    let last: Failure | null = null;
    for (let tried = 0; tried < request.tries; tried++) {
      const timeoutMs = deadlineAtMs - performance.now();
      if (timeoutMs <= 0) break;
      const time = await this.#connectOnce(request, timeoutMs);
      if (time instanceof Failure) {
        last = time;
        if (tries.length === 0) break;
      } else tries.push({ rttMs: time, lateMs: Math.min(time, this.#ticks.lateMs()) });
      if (triesAgree(tries.map(({ rttMs }) => rttMs)) || !this.#limits.gate.mayGoOn()) break;
      if (tried + 1 < request.tries) await new Promise((resolve) => setTimeout(resolve, betweenConnectsMs));
    }
    if (tries.length > 0) return measured("connect", tries);
    return failed(
      "connect",
      last ?? new Failure("connect-timeout", `nothing within ${request.deadlineMs} ms`),
    );
  }

  /** A reset is also an answer that crossed the network. */
  async #connectOnce(request: ProbeRequest, timeoutMs: number): Promise<number | Failure> {
    const startedMs = performance.now();
    this.#limits.addBytes(connectBytes);
    try {
      const { socket, phases } = await this.#connector.open({
        host: request.host,
        address: request.address,
        port: request.port,
        secure: false,
        timeoutMs,
      });
      socket.on("error", () => {});
      socket.destroy();
      return phases.connectMs;
    } catch (error) {
      if (error instanceof ProxyRefusal && error.code === "connect-refused") return error.answerMs;
      const failure = failureOf(error);
      return failure.code === "connect-refused" ? performance.now() - startedMs : failure;
    }
  }

  async #echo(request: ProbeRequest): Promise<ProbeOutcome> {
    const { address, tries, deadlineMs } = request;
    this.#limits.addBytes(2 * tries * echoBytes);
    const times = await this.#echoes.timeEchoes({ address, tries, deadlineMs });
    // The kernel timestamps returning echoes.
    if (times.length > 0) {
      return measured(
        "icmp",
        times.map((rttMs) => ({ rttMs, lateMs: 0 })),
      );
    }
    return { type: "timed-out", method: "icmp", reason: `no echo within ${deadlineMs} ms` };
  }
}

interface ProbeTimes {
  /** The probe starts before `mayBeginUntilMs` (`performance.now()`) or not at all. */
  readonly mayBeginUntilMs: number;
  readonly deadlineAtMs: number;
}

const leftUntil = (atMs: number) => Math.max(0, atMs - performance.now());

/** The crawler's own limits are the cause, so nothing is known about the target and the round continues with others. */
function heldBack(method: ProbeMethod, reason: string): ProbeOutcome {
  return { type: "failed", code: "held-back", method, reason: `${heldBackWords}: ${reason}`.slice(0, 500) };
}

function measured(method: ProbeMethod, tries: readonly TimedTry[]): ProbeOutcome {
  const { rttMs, lateMs } = tries.reduce((best, one) => (one.rttMs < best.rttMs ? one : best));
  return { type: "measured", method, rttMs, tries: tries.length, ...(lateMs > 0 && { lateMs }) };
}

function failed(method: ProbeMethod, failure: Failure): ProbeOutcome {
  return { type: outcomeType(failure), method, reason: failure.message.slice(0, 500) };
}

type FailedType = Exclude<ProbeOutcome["type"], "measured">;

function outcomeType(failure: Failure): FailedType {
  switch (failure.code) {
    case "refused-address":
    case "not-allowed":
      return "not-allowed";
    case "connect-timeout":
    case "first-byte-timeout":
    case "total-timeout":
      return "timed-out";
    case "connect-refused":
      return "refused";
    case "connect-unreachable":
      return "unreachable";
    default:
      return "failed";
  }
}

// Estimates how late this process may notice an answer, because of its own computations or other programs.

const tickMs = 5;

/** Ticks while a measurement runs. Between two ticks, the loop has checked every socket. */
class LoopTicks {
  #users = 0;
  #timer: NodeJS.Timeout | undefined;
  #lastMs = 0;
  #beforeMs = 0;

  begin(): void {
    this.#users++;
    if (this.#users > 1) return;
    this.#lastMs = this.#beforeMs = performance.now();
    this.#timer = setInterval(() => {
      this.#beforeMs = this.#lastMs;
      this.#lastMs = performance.now();
    }, tickMs);
  }

  end(): void {
    this.#users--;
    if (this.#users === 0) clearInterval(this.#timer);
  }

  /**
   * An event handled now had not arrived at the loop's last check. That was before the second to last tick, because timers run
   * before sockets after a stall.
   */
  lateMs(): number {
    return Math.max(0, performance.now() - this.#beforeMs - 2 * tickMs);
  }
}

// Measures the distance to the other crawlers, a few at a time, and returns one report.

type Peer = Extract<CoordinatorMessage, { type: "coordinator:peers" }>["peers"][number];
export interface PeerRtt {
  readonly crawlerId: number;
  readonly outcome: ProbeOutcome;
}

const atATime = 4;
const triesPerPeer = 5;
/** Deadline of a probe of a peer. Probes of targets have the deadline that the coordinator states in each question. */
const peerDeadlineMs = 5000;

/** Keeps the order of the peers. A newer list aborts the signal of the older one, which returns the results so far. */
export async function measurePeers(
  prober: Pick<Prober, "probe">,
  peers: readonly Peer[],
  signal: AbortSignal,
): Promise<PeerRtt[]> {
  const measured: PeerRtt[] = [];
  const waiting = peers.entries();
  const worker = async () => {
    for (const [index, peer] of waiting) {
      if (signal.aborted) return;
      const { address, port, crawlerId } = peer;
      const outcome = await prober.probe({
        host: address,
        address,
        port,
        secure: false,
        method: "connect",
        tries: triesPerPeer,
        deadlineMs: peerDeadlineMs,
      });
      measured[index] = { crawlerId, outcome };
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  return measured.filter((one) => one !== undefined);
}
