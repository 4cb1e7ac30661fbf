/**
 * Several coordinators on one database, each with crawlers of its own. They are one fleet with one leader, and
 * changes by the others are mirrored in memory (crawlers/coordinator-presence-store, sharing/common-memory).
 */
import type { Pool } from "pg";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import { jobs, type Timekeeper } from "#core/scheduler";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { isCoordinatorUrl } from "#protocol/invitation";
import type { CrawlerHello, ProbeOutcome } from "#protocol/messages";
import { refreshCrawlers } from "../../place/balance/presence.ts";
import { coordinatorAddresses, socketUrl } from "../../place/crawlers/coordinator-place-store.ts";
import type { CoordinatorPresence } from "../../place/crawlers/coordinator-presence-store.ts";
import { type DayBudget, type Fleet, unreported } from "../../place/crawlers/crawler.ts";
import type { CrawlerStore } from "../../place/crawlers/crawler-store.ts";
import type { DeniedTargets } from "../../place/delegation/denied-targets.ts";
import type { DelegationQueue } from "../../place/delegation/queue.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { DelegationStore } from "../../place/delegation/store.ts";
import type { WholeFleet } from "../gateway/whole-fleet.ts";
import { CommonMemory } from "./common-memory.ts";
import type { Notice } from "./notice.ts";
import { NoticeLine } from "./notice-store.ts";
import { DenyLists, leaveRequests, takeRequests } from "./request-store.ts";

interface SharingPorts {
  readonly pool: Pool;
  readonly presence: CoordinatorPresence;
  readonly fleet: WholeFleet;
  readonly state: CoordinatorState;
  readonly crawlers: CrawlerStore;
  readonly delegations: DelegationStore;
  readonly budget: DayBudget;
  readonly denied: DeniedTargets;
  /** Reloads everything that is mirrored in memory from the database. */
  readonly readAnew: () => Promise<void>;
  readonly timekeeper: Pick<Timekeeper, "hurry">;
  readonly log: Log;
  readonly now: () => Date;
}

export type Sharing = ReturnType<typeof sharing>;

/** The newcomer is either the same crawler or a copy, as its tickets show (crawlers/admit-crawler). */
const elsewhere: Refusal = {
  code: "replaced",
  reason: "this crawler is connected to another coordinator of this fleet by now",
  retry: true,
};

/** Addresses on which to listen, but to which nobody can connect. */
const everyAddress = /^(0\.0\.0\.0|\[::\])$/;

/** How often all crawlers are read again, in case notices were lost. */
const refreshMs = 60_000;

export function sharing(ports: SharingPorts) {
  const { pool, presence, fleet, state, timekeeper, log, now } = ports;
  const denyLists = new DenyLists(pool);
  const saving = new Map<CrawlerId, Promise<void>>();
  let early: (Notice | null)[] | null = [];
  /** Receives requests for rounds. Until it is set, requests wait. */
  let queue: Pick<DelegationQueue, "request"> | null = null;
  const waiting: Parameters<DelegationQueue["request"]>[] = [];
  const askFor: DelegationQueue["request"] = (...asked) => {
    if (queue === null) waiting.push(asked);
    else queue.request(...asked);
  };
  let addresses: readonly string[] = [];
  let refreshing: NodeJS.Timeout | undefined;
  const line = new NoticeLine(pool, presence.number, (notice) => {
    if (early !== null) early.push(notice);
    else hear(notice);
  });
  const memory = new CommonMemory({
    ...ports,
    number: presence.number,
    others: () => presence.others,
    line,
    denyLists,
    refreshCrawlers: async (crawlerIds) => await refreshCrawlers(ports, crawlerIds),
    endSessions: (crawlerIds) => {
      for (const crawlerId of crawlerIds) fleet.refuse(crawlerId, elsewhere);
    },
    nowMs: () => performance.now(),
  });
  const relayed = new RelayedProbes({
    coordinatorOf: (crawlerId) => {
      const { coordinatorNumber = presence.number } = state.crawler(crawlerId) ?? {};
      return presence.others.has(coordinatorNumber) ? coordinatorNumber : null;
    },
    line,
    gateway: {
      probe: async (crawlerId, target) =>
        fleet.isHere(crawlerId)
          ? await fleet.probe(crawlerId, target)
          : unreported(target.method, "the crawler is not connected"),
    },
    log,
  });
  fleet.join({
    online: () => memory.elsewhere(),
    probe: async (crawlerId, target) => await relayed.probe(crawlerId, target),
  });
  ports.budget.onSpend = (crawlerId, spent) => memory.noteSpent(crawlerId, spent);

  const takeLeft = async () => {
    if (!presence.holdsLead) return;
    for (const { subnetId, cause } of await takeRequests(pool)) askFor([subnetId], cause);
  };
  const failing = (words: string) => (error: unknown) => log.error({ error }, words);
  const hear = (notice: Notice | null) => {
    if (notice?.type === "probe") void relayed.onAsked(notice);
    else if (notice?.type === "probed") relayed.onAnswered(notice);
    else if (notice?.type === "presence")
      presence.look().then(tellAddresses).catch(failing("the other coordinators could not be looked at"));
    else if (notice?.type === "requests")
      takeLeft().catch(failing("rounds that others asked for were not taken"));
    else {
      memory.hear(notice);
      if (notice === null) takeLeft().catch(failing("rounds that others asked for were not taken"));
    }
  };
  const tellAddresses = async () => {
    const known = await coordinatorAddresses(pool);
    if (known.join() === addresses.join()) return;
    addresses = known;
    const message: CoordinatorMessage = { type: "coordinator:addresses", urls: [...known] };
    for (const crawlerId of fleet.here()) fleet.send(crawlerId, message);
  };
  const comeBack = async () => {
    // If a crawler leaves meanwhile, that is recorded only after it was taken back.
    await fleet.forEachHere(async (crawlerId) => await presence.takeBack(crawlerId));
    await memory.readAll();
    for (const crawlerId of fleet.here()) memory.note("crawlers", crawlerId);
  };
  return {
    /** From now on notices are received, but wait until `start`. */
    listen: async () => await line.listen(),
    start: async (rounds: Pick<DelegationQueue, "request">) => {
      queue = rounds;
      for (const asked of waiting.splice(0)) queue.request(...asked);
      for (const [crawlerId, denies] of await denyLists.read(null)) ports.denied.setList(crawlerId, denies);
      for (const notice of early ?? []) hear(notice);
      early = null;
      presence.follow({
        onLead: async () => {
          await memory.readAll();
          await takeLeft();
          timekeeper.hurry(jobs.handOver);
          timekeeper.hurry(jobs.delegate);
        },
        onOthers: () => {
          relayed.onOthers(presence.others);
          memory.onOthers();
          tellAddresses().catch(failing("crawlers could not be told of other coordinators"));
        },
        onRegained: comeBack,
        onTakenOver: async (taken) => {
          log.warn({ crawlers: taken }, "crawlers of a coordinator that is gone have come to no other");
          await refreshCrawlers(ports);
          await line.send({ type: "crawlers", ids: null });
        },
        now,
      });
      memory.onOthers();
      await line.send({ type: "presence" });
      refreshing = setInterval(() => {
        if (presence.others.size > 0)
          refreshCrawlers(ports).catch(failing("crawlers of other coordinators could not be read"));
        tellAddresses().catch(failing("crawlers could not be told of other coordinators"));
      }, refreshMs);
    },
    /** Publishes this coordinator's address for crawlers. */
    stateAddress: async (webUrl: string) => {
      const url = socketUrl(webUrl);
      const isPlace = isCoordinatorUrl(url) && !everyAddress.test(new URL(url).hostname);
      if (isPlace) await presence.stateAddress(url);
      await tellAddresses();
      await line.send({ type: "presence" });
    },
    onHello: (crawlerId: CrawlerId, hello: CrawlerHello) => {
      const save = denyLists
        .save(crawlerId, hello.denies)
        .catch(failing("what a crawler denies could not be kept"))
        .finally(() => saving.delete(crawlerId));
      saving.set(crawlerId, save);
    },
    onWelcome: (crawlerId: CrawlerId) => {
      void (saving.get(crawlerId) ?? Promise.resolve()).then(() => memory.note("crawlers", crawlerId));
    },
    onLeft: (crawlerId: CrawlerId) => memory.note("crawlers", crawlerId),
    onPeerReport: (crawlerId: CrawlerId) => memory.note("rtts", crawlerId),
    /** Requests rounds from whichever coordinator leads. */
    request: (subnetIds: readonly SubnetId[], cause: RoundCause): void => {
      if (subnetIds.length === 0) return;
      if (presence.holdsLead) askFor(subnetIds, cause);
      else
        leaveRequests(pool, subnetIds, cause)
          .then(async () => await line.send({ type: "requests" }))
          .catch(failing("rounds could not be asked for"));
    },
    addresses: () => addresses,
    close: () => relayed.close(),
    stop: async () => {
      clearInterval(refreshing);
      relayed.close();
      await memory.stop();
      await line.stop();
    },
  };
}

// Probes for crawlers that are connected to another coordinator: requested and answered by notices, and measured
// there. The crawler takes the time, so the detour does not make results less accurate, and a round can ask the
// nearest crawlers wherever they are connected. The round's coordinator sets the pace of all its probes.

interface RelayPorts {
  /** Number of the coordinator to which a crawler is connected; null if it is connected here or nowhere. */
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

/** The other coordinator adds 3 s to the crawler's deadline (gateway settings), and two notices take time, too. */
const graceMs = 6000;

/** Maximum probes running for others. Where they are requested they are paced, so more are a fault. */
const mostForOthers = 2000;

class RelayedProbes {
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

  /** Abandons probes for coordinators that no longer run. */
  onOthers(running: ReadonlySet<number>): void {
    for (const { to, target, settle } of [...this.#pending.values()])
      if (!running.has(to)) settle(unreported(target.method, "the coordinator of its crawler is gone"));
  }

  close(): void {
    for (const { target, settle } of [...this.#pending.values()])
      settle(unreported(target.method, "the coordinator is stopping"));
  }
}
