/**
 * Probes for crawlers connected to another coordinator: requested, measured there and answered by notices. The crawler takes
 * the time, so the detour does not reduce accuracy, and a round can ask the nearest crawlers wherever they are connected. The
 * round's coordinator paces all its probes.
 */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { ProbeOutcome } from "#protocol/messages";
import { type Fleet, unreported } from "../../place/crawlers/crawler.ts";
import type { Notice } from "./notice.ts";
import type { NoticeLine } from "./notice-store.ts";

interface RelayPorts {
  /** A crawler's coordinator; null when it is connected nowhere or here. */
  readonly coordinatorOf: (crawlerId: CrawlerId) => number | null;
  readonly line: Pick<NoticeLine, "send">;
  readonly gateway: Pick<Fleet, "probe">;
  readonly log: Log;
}

type Target = Parameters<Fleet["probe"]>[1];
type Asked = Extract<Notice, { type: "probe" }>;
type Answered = Extract<Notice, { type: "probed" }>;

interface Pending {
  readonly to: number;
  readonly target: Target;
  readonly settle: (outcome: ProbeOutcome) => void;
}

/** The other coordinator gives the crawler its deadline plus 3 s (gateway settings), and two notices travel. */
const graceMs = 6000;

/** Running probes for others. They are paced at their origin, so more are a fault. */
const mostForOthers = 2000;

export class RelayedProbes {
  readonly #ports: RelayPorts;
  readonly #pending = new Map<number, Pending>();
  #lastRequestId = 0;
  #forOthers = 0;

  constructor(ports: RelayPorts) {
    this.#ports = ports;
  }

  get underWay(): number {
    return this.#pending.size;
  }

  /** Never rejects, like `Fleet.probe`. */
  async probe(crawlerId: CrawlerId, target: Target): Promise<ProbeOutcome> {
    const to = this.#ports.coordinatorOf(crawlerId);
    if (to === null) return unreported(target.method, "the crawler is not connected");
    this.#lastRequestId += 1;
    const requestId = this.#lastRequestId;
    return await new Promise((resolve) => {
      const settle = (outcome: ProbeOutcome) => {
        clearTimeout(deadline);
        this.#pending.delete(requestId);
        resolve(outcome);
      };
      const waitMs = target.deadlineMs + graceMs;
      const silent = unreported(
        target.method,
        `the coordinator of its crawler did not answer within ${waitMs} ms`,
      );
      const deadline = setTimeout(() => settle(silent), waitMs);
      this.#pending.set(requestId, { to, target, settle });
      this.#ports.line.send({ type: "probe", to, requestId, crawlerId, target }).catch((error: unknown) => {
        this.#ports.log.error({ crawlerId, error }, "a probe could not be passed on");
        settle(unreported(target.method, "the coordinator of its crawler could not be asked"));
      });
    });
  }

  async onAsked({ from, requestId, crawlerId, target }: Asked): Promise<void> {
    const asked = target as Target;
    if (this.#forOthers >= mostForOthers) return;
    this.#forOthers += 1;
    try {
      const outcome = await this.#ports.gateway.probe(crawlerId as CrawlerId, asked);
      await this.#ports.line.send({ type: "probed", to: from, requestId, outcome });
    } catch (error) {
      this.#ports.log.error({ crawlerId, error }, "a probe for another coordinator failed");
    } finally {
      this.#forOthers -= 1;
    }
  }

  onAnswered({ from, requestId, outcome }: Answered): void {
    const pending = this.#pending.get(requestId);
    if (pending?.to === from) pending.settle(outcome);
  }

  /** Abandons probes of coordinators that no longer run. */
  onOthers(running: ReadonlySet<number>): void {
    for (const { to, target, settle } of [...this.#pending.values()])
      if (!running.has(to)) settle(unreported(target.method, "the coordinator of its crawler is gone"));
  }

  close(): void {
    for (const { target, settle } of [...this.#pending.values()])
      settle(unreported(target.method, "the coordinator is stopping"));
  }
}
