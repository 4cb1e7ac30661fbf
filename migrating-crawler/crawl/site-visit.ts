/**
 * A host slice's dealings with its host: the turns it waits for (the host's pace, its address's turn, the
 * partner's limits, the lease's end), the connections it holds, and whether it takes one of the partner's places
 * for hosts meanwhile.
 */

import { urlHost } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import { steadyNowMs } from "../core/steady-time.ts";
import { NoTurn } from "../fetch/ask-robots.ts";
import type { SignRequest } from "../fetch/sign-request.ts";
import { type ExchangeRecorder, SiteClient, type Timeouts } from "../fetch/site-client.ts";
import type { Grant } from "../limits/admission.ts";
import type { Governor } from "../limits/governor.ts";
import type { HostGates } from "../limits/host-gate.ts";
import type { HostAnswer } from "../limits/request-outcome.ts";
import { SiteStop } from "../limits/stopped-sites.ts";
import type { Connector } from "../net/connector.ts";

/** Pages of one host lie on few origins (http, https); more clients are not kept open. */
const maxClients = 4;
/** A longer rest closes the connections: the site would, and 500 idle sockets are not free either. */
const longestIdleMs = 10_000;
/** A host takes no place while its turn is longer in coming, or its answer. */
const longestQueueMs = 1000;
const longestSilenceMs = 250;

/**
 * How a slice stands to the partner's places for hosts: it takes one, or it takes none because its host is left
 * alone for long, or keeps silent.
 */
export type Standing = "in-place" | "resting" | "silent";

export interface VisitTools {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly governor: Governor;
  readonly gates: HostGates;
  /** Where the partner keeps what is fetched. */
  readonly recorder?: ExchangeRecorder | undefined;
  /** Signs requests where that is asked for. */
  readonly sign?: SignRequest | undefined;
  /** Told how the slice stands to the places for hosts; at first it takes one. */
  readonly stands?: (standing: Standing) => void;
}

/** The right to send one request. */
interface VisitTurn {
  /** Counts a piece of the answer with the partner's limits; null: go on, else when to. */
  readonly take: Grant["take"];
  /** Notes how it went (null: nothing was asked); returns how long the host wants to rest. Call exactly once. */
  end(answer: HostAnswer | null): number;
}

interface VisitSettings {
  readonly host: string;
  readonly tools: VisitTools;
  readonly signal: AbortSignal;
  /** Nothing is begun from then on (`steadyNowMs()`). */
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

  /** Waits until the host may be asked. Null, or why the slice ends here, in words. */
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

  /** The connection to one of the host's origins. */
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
   * The turn for one request over this connection, be it to the slice's own host or to another that its robots.txt
   * redirects to: one of the day's pages from then on, unless it ends without having been sent. Throws a NoTurn with
   * the reason when there will be none in time.
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

  /** How long the name took to resolve, told once. */
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
   * Where the request will go: to the connection's other end, else to the first of the host's addresses that is
   * allowed. Null when there is none: the request will fail, and say why.
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

  /** Usually a request under way may end; where the site is to be left alone at once, it is cut off. */
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
