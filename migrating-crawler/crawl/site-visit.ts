/**
 * Manages a slice's contact with its host: the turns it waits for (host pace, address turn, the partner's limits, end of the
 * lease), its connections, and whether it occupies one of the partner's host slots.
 */
import { urlHost } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import { steadyNowMs } from "../core/local-time.ts";
import { NoTurn } from "../fetch/ask-robots.ts";
import type { SignRequest } from "../fetch/sign-request.ts";
import { type ExchangeRecorder, SiteClient, type Timeouts } from "../fetch/site-client.ts";
import type { Grant } from "../limits/admission.ts";
import type { Governor } from "../limits/governor.ts";
import type { HostGates } from "../limits/host-gate.ts";
import type { HostAnswer } from "../limits/host-pace.ts";
import { SiteStop } from "../limits/stopped-sites.ts";
import type { Connector } from "../net/connector.ts";

/** The pages of a host have few origins (http, https), so more clients are not kept open. */
const maxClients = 4;
/** A host that rests longer loses its connections, as sites would close them too and 500 idle sockets are not free. */
const longestIdleMs = 10_000;
/** A slice leaves its slot when waiting for its turn, or for an answer, takes longer than this. */
const longestQueueMs = 1000;
const longestSilenceMs = 250;

/** A slice occupies a slot (`in-place`) unless its host rests for long or stays silent. */
export type Standing = "in-place" | "resting" | "silent";

export interface VisitTools {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly governor: Governor;
  readonly gates: HostGates;
  readonly recorder?: ExchangeRecorder | undefined;
  readonly sign?: SignRequest | undefined;
  /** Is called when the standing changes. A slice starts `in-place`. */
  readonly stands?: (standing: Standing) => void;
}

interface VisitTurn {
  /** Counts a piece of the answer towards the partner's limits. Returns null to continue, or a promise to wait for. */
  readonly take: Grant["take"];
  /** Records the outcome (null if nothing was sent) and returns how long the host wants to rest. Must be called exactly once. */
  end(answer: HostAnswer | null): number;
}

interface VisitSettings {
  readonly host: string;
  readonly tools: VisitTools;
  readonly signal: AbortSignal;
  /** No request starts after `endsAtMs` (`steadyNowMs()`). */
  readonly endsAtMs: number;
}

export class SiteVisit {
  readonly #settings: VisitSettings;
  readonly #clients = new Map<string, SiteClient>();
  #place: NodeJS.Timeout | undefined;
  #untoldDnsMs: number | null = null;

  constructor(settings: VisitSettings) {
    this.#settings = settings;
    settings.signal.addEventListener("abort", this.#onAbort);
  }

  /** Waits until the host may be asked. Returns null, or why the slice ends here. */
  async rest(): Promise<string | null> {
    const { host, tools, signal, endsAtMs } = this.#settings;
    for (;;) {
      if (signal.aborted) return String(signal.reason);
      const stop = tools.governor.stop();
      if (stop !== "") return stop;
      const waitMs = tools.gates.waitMs(host, steadyNowMs());
      if (steadyNowMs() + waitMs >= endsAtMs) return "the lease ends before the host may be asked again";
      if (waitMs <= 0) return null;
      const isLong = waitMs > longestIdleMs;
      if (isLong || tools.governor.slots.isScarce()) await this.#closeClients();
      if (isLong) this.#stand("resting");
      await pause(waitMs, signal);
      this.#stand("in-place");
    }
  }

  clientFor(origin: string): SiteClient {
    const known = this.#clients.get(origin);
    if (known) return known;
    if (this.#clients.size >= maxClients) {
      const [oldest, client] = this.#clients.entries().next().value!;
      this.#clients.delete(oldest);
      void client.close();
    }
    const { connector, timeouts, recorder, sign } = this.#settings.tools;
    const client = new SiteClient({ origin, connector, timeouts, recorder, sign });
    this.#clients.set(origin, client);
    return client;
  }

  /**
   * Waits for the turn for one request to the slice's host, or to a host that its robots.txt redirects to. The request counts
   * as one of the day's pages unless the turn ends unsent. If there is no turn in time, throws a NoTurn with the reason.
   */
  async turn(client: SiteClient): Promise<VisitTurn> {
    const { tools, signal, endsAtMs } = this.#settings;
    const { governor } = tools;
    const host = urlHost(client.origin);
    const grant = await governor.admit({ signal, endsAtMs });
    if (grant === null) throw this.#noTurn();
    const endGrant = (isAsked: boolean) => {
      grant.end();
      if (!isAsked) governor.takeBack();
    };
    this.#standAfter(longestQueueMs, "resting");
    const turn = await tools.gates.take(
      { host, address: await this.#addressOf(client, host) },
      { signal, endsAtMs },
    );
    if (turn === null) {
      endGrant(false);
      throw this.#noTurn();
    }
    this.#stand("in-place");
    this.#standAfter(longestSilenceMs, "silent");
    return {
      take: grant.take,
      end: (answer) => {
        this.#stand("in-place");
        endGrant(answer !== null);
        return turn.end(answer, client.address);
      },
    };
  }

  #noTurn(): NoTurn {
    const { tools, signal } = this.#settings;
    if (signal.aborted) return new NoTurn(String(signal.reason));
    return new NoTurn(tools.governor.stop() || "the lease ends before the host's turn comes");
  }

  /** Returns the DNS time once, and null afterwards. */
  tellResolved(): number | null {
    const dnsMs = this.#untoldDnsMs;
    this.#untoldDnsMs = null;
    return dnsMs;
  }

  async close(): Promise<void> {
    this.#settings.signal.removeEventListener("abort", this.#onAbort);
    clearTimeout(this.#place);
    await this.#closeClients();
  }

  /**
   * Predicts the address of the next request: the connection's peer, or else the first allowed address. Returns null if there
   * is none. The request then fails with the reason.
   */
  async #addressOf(client: SiteClient, host: string): Promise<string | null> {
    if (client.address !== null) return client.address;
    try {
      const { address, dnsMs } = await this.#settings.tools.connector.pick({ host });
      this.#untoldDnsMs ??= dnsMs;
      return address;
    } catch {
      return null;
    }
  }

  /** An abort normally lets the current request finish, but cuts off a stopped site at once. */
  readonly #onAbort = (): void => {
    if (this.#settings.signal.reason instanceof SiteStop) void this.#closeClients();
  };

  #stand(standing: Standing): void {
    clearTimeout(this.#place);
    this.#settings.tools.stands?.(standing);
  }

  #standAfter(ms: number, standing: Standing): void {
    clearTimeout(this.#place);
    this.#place = setTimeout(() => this.#stand(standing), timerMs(ms));
  }

  async #closeClients(): Promise<void> {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    await Promise.all(clients.map((client) => client.close()));
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, timerMs(ms));
    signal.addEventListener("abort", done);
  });
}
