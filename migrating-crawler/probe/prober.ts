/**
 * Measures the way to an address: HTTP HEAD, TCP connect or ICMP echo, the smallest of several tries
 * (as few as agree), within a deadline. HEAD that a site does not answer falls back to connect, and the outcome names the
 * method really used. Through a proxy connect is the time of the proxy's answer; ICMP is not possible.
 * Looking a name up is no part of the measurement, but of its deadline.
 *
 * A machine that is busy notices answers late: how late at most is part of the outcome (`LoopTicks`).
 *
 * While a probe is under way, `quiet()` holds back the crawler's own long computations (extraction) for a
 * moment: an answer that waits for the processor would measure us, not the network.
 *
 * A site is asked once at a time and not before its pace allows it, for pages and measurements together: a probe waits
 * for its turn among the pages of the address. A HEAD that finds no turn of the host in time, or that robots.txt forbids,
 * becomes a TCP connect, which asks the site for nothing.
 *
 * Whoever asks, every measurement goes through the gate (limits/probe-gate.ts), which holds it back for half of its
 * deadline at most, and only to ports where web sites are: 80 and 443, those of URLs under lease, and what the partner
 * allows by name (`allowRanges`).
 */

import { hostInUrl } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import type { CoordinatorProbe } from "#protocol/coordinator-messages";
import { heldBackWords, type ProbeMethod, type ProbeOutcome } from "#protocol/messages";
import { Failure, failureOf } from "../core/failure.ts";
import { steadyNowMs } from "../core/steady-time.ts";
import type { SignRequest } from "../fetch/sign-request.ts";
import { ProbeGate } from "../limits/probe-gate.ts";
import type { Connector } from "../net/connector.ts";
import { ProxyRefusal } from "../net/proxy.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { type TimedTry, timeHeads, triesAgree } from "./http-head.ts";
import { type Echoes, systemEchoes } from "./icmp-echo.ts";

/** Longest that a computation is held back for probes. */
const mostQuietMs = 250;
/** Between two connects to the same address: no burst that looks like a scan. */
const betweenConnectsMs = 20;

/** An echo request or its answer, as `ping` sends them over IPv4. */
const echoBytes = 84;

/** What TCP takes for a connection that carries nothing: seven segments. No socket shows them. */
const connectBytes = 400;
/** Of a deadline, for the wait until it is let out; the measurement has the rest. */
const waitPart = 1 / 2;
/** Of that, for a turn of the host; a connect, which needs none, has the rest. */
const headWaitPart = 1 / 2;
const webPorts: readonly number[] = [80, 443];

/** What the host's limits have to do with probes. */
interface ProbeLimits {
  readonly gate: ProbeGate;
  /** Why nothing may be contacted now, in words; empty when something may. */
  readonly silence: () => string;
  /** Told of bytes that no socket of ours shows. */
  readonly addBytes: (bytes: number) => void;
  /** Whether a URL with this host and port is being crawled. */
  readonly isLeased: (host: string, port: number) => boolean;
  /**
   * The turn of an address among the pages of its hosts; with a host, that one's, too. Resolves to what ends it, or to
   * null when there is none within the time.
   */
  readonly turn: (
    target: { readonly host: string | null; readonly address: string },
    withinMs: number,
  ) => Promise<(() => void) | null>;
  /** False: the site's robots.txt is known and keeps us from `/`. */
  readonly mayHead: (origin: string) => boolean;
}

/** Of a crawler without a host that limits it: the gate's own bounds. */
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
    /** Absent: the system's `ping`, which this process starts by itself. */
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

  /** Finds out whether ICMP works here. Call once before the first probe. */
  async start(): Promise<void> {
    this.#mayPing =
      this.#allowed.has("icmp") && !this.#connector.throughProxy && (await this.#echoes.canPing());
  }

  /** Other methods are allowed from now on. */
  apply(probeMethods: CrawlerConfig["probeMethods"]): void {
    const mayPing = this.#allowed.has("icmp");
    this.#allowed = new Set(probeMethods);
    if (this.#allowed.has("icmp") && !mayPing) void this.start();
  }

  /** What the partner allows and this machine can do. */
  get methods(): ProbeMethod[] {
    const usable = [...this.#allowed].filter((method) => method !== "icmp" || this.#mayPing);
    return (["head", "connect", "icmp"] as const).filter((method) => usable.includes(method));
  }

  /** Resolves when no probe is under way, at the latest after a quarter of a second. */
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

  /** Never throws. Asked by name, it measures what the name resolves to here and reports that address. */
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

  /** The address that a fetch of this host would go to. A question to DNS is let out like a probe. */
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
      // Much may have changed while it waited.
      const deadlineMs = Math.max(1, Math.round(leftUntil(times.deadlineAtMs)));
      return this.#refused(request) ?? this.#noted(request, await this.#measure({ ...request, deadlineMs }));
    } finally {
      this.#running--;
      this.#ticks.end();
      endTurn();
      if (this.#running === 0) for (const wake of this.#whenQuiet.splice(0)) wake();
    }
  }

  /** For the partner's list of what was asked of whom. */
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

  /** A reset is an answer, too: it crossed the network. */
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
    // The kernel notes when an echo is back.
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
  /** `performance.now()`: it is let out until then, or not at all. */
  readonly mayBeginUntilMs: number;
  readonly deadlineAtMs: number;
}

const leftUntil = (atMs: number) => Math.max(0, atMs - performance.now());

/** The crawler's own limits are to blame; nothing is known of the target, and the round goes on with others. */
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

// How late this process may be to notice an answer: it is kept from looking by a computation of its own, or by other
// programs that have the processor.

const tickMs = 5;

/** Ticks while anybody measures. Between two ticks the loop has looked at every socket. */
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
   * An event that is handled now had not come when the loop last looked, which was behind the tick before the last:
   * where the loop was kept, timers are served first, and sockets only then.
   */
  lateMs(): number {
    return Math.max(0, performance.now() - this.#beforeMs - 2 * tickMs);
  }
}
