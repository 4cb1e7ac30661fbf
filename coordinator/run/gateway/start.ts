/** Routes each crawler message from the gateway, which handles sessions and bytes, to the room that decides about it. */

import type { Secrets } from "#core/access-types";
import { AtOnce } from "#core/coalesce";
import { ClockError } from "#core/errors";
import { asLeaseId, type CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import type { Log } from "#core/log";
import type { OwnClock } from "#core/own-clock";
import { type CoordinatorMessage, isKnownTo, type Refusal } from "#protocol/coordinator-messages";
import { userAgentOf } from "#protocol/user-agent";
import type { TakenResults } from "../../crawl/batch/accepted-result.ts";
import type {
  FrontierSettings,
  LeaseSettings,
  ScopeSettings,
} from "../../crawl/frontier/frontier-settings.ts";
import type { FrontierStore } from "../../crawl/frontier/frontier-store.ts";
import { handOutTasks, nothing, withoutWork } from "../../crawl/frontier/hand-out-tasks.ts";
import type { IdleCrawlers } from "../../crawl/frontier/idle-crawlers.ts";
import { frontierOrder } from "../../crawl/frontier/order/strategies.ts";
import type { PlanInForce } from "../../crawl/recrawl/recrawl-plan.ts";
import type { ResultStore } from "../../crawl/results/result-store.ts";
import { takeResults, takeResultsSettings } from "../../crawl/results/take-results.ts";
import { withoutChecks } from "../../crawl/trust/double-checks.ts";
import { refreshCrawlers, welcomeCrawler } from "../../place/balance/presence.ts";
import { admitCrawler, noteCopy, takeTicket } from "../../place/crawlers/admit-crawler.ts";
import type { DayBudget, ResultBatch } from "../../place/crawlers/crawler.ts";
import type { CrawlerStore } from "../../place/crawlers/crawler-store.ts";
import type { IdentityStore } from "../../place/crawlers/identity-store.ts";
import { admitUnlessMoved, type MoveDuties } from "../../place/crawlers/move-crawlers.ts";
import type { Heartbeats } from "../../place/crawlers/sessions.ts";
import type { SigningKeyStore } from "../../place/crawlers/signing-key-store.ts";
import { publishedKeySet, SigningKeyDesk } from "../../place/crawlers/signing-keys.ts";
import { takePeerReport } from "../../place/delegation/measure-peers.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { DelegationStore } from "../../place/delegation/store.ts";
import { domainSetFault } from "../../place/domain-sets/assign.ts";
import { partitionOf } from "../../place/domain-sets/partition.ts";
import { ArrivalsFirst, afterResults } from "./arrivals-first.ts";
import type { Arrival, CrawlerEvents, GatewayHandlers, WelcomeExtras } from "./gateway-settings.ts";

interface FleetMessagePorts {
  readonly crawlers: CrawlerStore;
  readonly delegations: DelegationStore;
  readonly frontier: FrontierStore;
  readonly results: ResultStore;
  readonly state: CoordinatorState;
  readonly budget: DayBudget;
  readonly idle: IdleCrawlers;
  readonly heartbeats: Heartbeats;
  readonly counters: {
    results(batch: ResultBatch, taken: TakenResults): void;
    refusedResults(count: number): void;
    leases(event: "granted" | "returned", count: number): void;
  };
  readonly log: Log;
  readonly send: (crawlerId: CrawlerId, message: CoordinatorMessage) => boolean;
  /** The rooms that are notified of crawlers' events, in this order. */
  readonly rooms: readonly CrawlerEvents[];
  readonly incidents: IncidentNotes;
  readonly moves?: Pick<MoveDuties, "onMessage" | "onLeave" | "onArrival" | "refusalOf">;
  readonly identities: IdentityStore;
  readonly signingKeys: SigningKeyStore;
  readonly secrets: Secrets;
  /** The recrawl plan. If absent, pages have a fixed interval. */
  readonly recrawlPlan?: () => PlanInForce;
  /** Whether more crawlers arrive than can be admitted at once. If absent, they never do. */
  readonly isCrowded?: () => boolean;
  /** Addresses of the coordinators on this database. If absent, crawlers are sent none. */
  readonly addresses?: () => readonly string[];
  /** Whether the database was restored to an older state. If absent, this is not checked. */
  readonly hasGoneBack?: () => Promise<boolean>;
  /** Checks this coordinator's clock, also by what crawlers on other machines report. If absent, the clock counts as right. */
  readonly clock?: Pick<OwnClock, "fault" | "hearCrawler" | "forgetCrawler">;
  /** Whether the address is of this machine, so that the crawler shares the coordinator's clock. */
  readonly isOwnAddress?: (address: string) => boolean;
  readonly now: () => Date;
}

/** Some of the coordinator's database connections (db/server-database), because jobs and pages need connections, too. */
const resultsAtOnce = 4;
/** Maximum requests for work at once. They are answered together, 64 at a time (frontier/frontier-store). */
const leasesAtOnce = 128;

interface FleetMessageSettings extends IntroductionSettings {
  readonly domainSets: readonly string[];
  readonly lease: LeaseSettings;
  readonly frontier: FrontierSettings;
  readonly scope: ScopeSettings;
  readonly recrawl: { readonly intervalHours: number };
  readonly signingKeyDays: number;
}

export function fleetMessageHandlers(
  ports: FleetMessagePorts,
  config: FleetMessageSettings,
): GatewayHandlers {
  const { rooms } = ports;
  const ownPartition = partitionOf(config.domainSets);
  const handOut = () => ({
    leaseSeconds: config.lease.seconds,
    urlsPerHost: config.lease.urlsPerHost,
    hostsPerRequest: config.lease.hostsPerRequest,
    addressRestSeconds: config.lease.addressRestSeconds,
    order: frontierOrder(config.frontier),
    linkTypeChecks: config.frontier.linkTypeChecks,
    partition: ownPartition,
  });
  const results = new AtOnce(resultsAtOnce);
  const leases = new AtOnce(leasesAtOnce);
  const arrivals = new ArrivalsFirst(ports.isCrowded ?? (() => false), () => performance.now());
  const taking = takeResultsSettings(config, ports.recrawlPlan);
  const signingKeys = new SigningKeyDesk(ports);
  /** Crawlers on other machines. */
  const elsewhere = new Set<CrawlerId>();
  const hear = (crawlerId: CrawlerId, time: string | undefined) => {
    if (time !== undefined && elsewhere.has(crawlerId)) ports.clock?.hearCrawler(crawlerId, new Date(time));
  };
  const refusalWhileWrong = (): { readonly refuse: Refusal } | null => {
    const fault = ports.clock?.fault ?? null;
    if (fault === null) return null;
    return {
      refuse: { code: "busy", reason: `${fault.words}: nothing is taken until it is right`, retry: true },
    };
  };
  return {
    admit: async (introduction) => {
      const admitted = await admitUnlessMoved(
        introduction,
        async () => await admitCrawler(introduction, ports, ports.now()),
        ports.moves,
      );
      // A key may seem expired because the clock is wrong, so nobody is refused for good until it is right.
      return "refuse" in admitted ? (refusalWhileWrong() ?? admitted) : admitted;
    },
    onArrive: async (arrival) => {
      const { crawlerId, publicKey, hello } = arrival;
      if (!ports.isOwnAddress?.(arrival.remoteAddress)) elsewhere.add(crawlerId);
      hear(crawlerId, hello.time);
      const refusal = refusalWhileWrong();
      if (refusal !== null) return refusal;
      const moved = await ports.moves?.onArrival({ crawlerId, publicKey, name: hello.name });
      if (moved) return { refuse: moved };
      const unreadable = domainSetFault(hello);
      if (unreadable !== null) return { refuse: unreadable };
      const taken = await takeTicket(arrival, ports, ports.now());
      if ("refuse" in taken) return taken;
      const acknowledgedSequence = await welcomeCrawler(arrival, ports, ports.now());
      for (const room of rooms) room.onHello?.(crawlerId, hello);
      ports.log.info({ crawlerId: arrival.crawlerId, crawler: arrival.hello.name }, "crawler arrived");
      ports.idle.arrived(crawlerId, isKnownTo(arrival.version, { type: "coordinator:wake" }));
      for (const room of rooms) room.onArrived?.(crawlerId);
      return {
        acknowledgedSequence,
        welcome: {
          time: ports.now().toISOString(),
          ...(taken.ticket === null ? {} : { ticket: taken.ticket }),
          ...seenFrom(arrival),
          ...introductionOf(arrival, config),
          ...(ports.addresses === undefined ? {} : { coordinators: [...ports.addresses()] }),
        },
      };
    },
    onWelcome: (crawlerId) => {
      for (const room of rooms) room.onWelcome?.(crawlerId);
    },
    onCopy: (arrival, evidence) => noteCopy(arrival, evidence, { ...ports, now: ports.now() }),
    onResults: async (batch) => {
      // The session ends, and the crawler keeps its data until the clock is right.
      const fault = ports.clock?.fault ?? null;
      if (fault !== null) throw new ClockError(fault.words);
      const taken = await results.run(async () => {
        await arrivals.turn();
        return await takeResults(batch, ports.results, taking, ports.now());
      });
      const pages = taken.stored + (taken.checked?.length ?? 0);
      const bytes = pages === 0 ? 0 : wireBytesOf(batch);
      ports.budget.spend(batch.crawlerId, { pages, bytes }, ports.now());
      for (const refused of taken.refused ?? []) {
        ports.counters.refusedResults(refused.count);
        ports.incidents.note({
          ...refused,
          crawlerId: batch.crawlerId,
          remoteAddress: null,
          at: ports.now(),
        });
      }
      for (const { result } of batch.results)
        for (const difference of [result.robots?.difference, result.difference])
          if (difference !== undefined)
            ports.incidents.note({
              ...difference,
              kind: "second-opinion",
              crawlerId: batch.crawlerId,
              remoteAddress: null,
              at: ports.now(),
            });
      // Its results may have ended leases, so that there may be new work on those hosts.
      ports.idle.note(batch.crawlerId);
      const own = withoutChecks(batch, taken);
      ports.counters.results(own, taken);
      for (const room of rooms) await room.onFetched?.(own);
      if (taken.posted !== undefined) for (const room of rooms) room.onPosted?.();
    },
    onMessage: async (crawlerId, message) => {
      const now = ports.now();
      switch (message.type) {
        case "crawler:ready": {
          const crawler = ports.state.crawler(crawlerId);
          const request = {
            crawlerId,
            freeHosts: message.freeHosts,
            draining: crawler?.state === "draining",
            mayCrawl: crawler?.measuresOnly !== true,
            pagesLeftToday: crawler === null ? 0 : ports.budget.left(crawler, now),
          };
          const fault = ports.clock?.fault ?? null;
          const tasks =
            (fault === null ? null : nothing(fault.words, whileWrongMs)) ??
            withoutWork(request) ??
            (await ports.idle.answer(
              crawlerId,
              async () =>
                await leases.run(async () => {
                  await arrivals.turn();
                  await afterResults(() => results.waiting);
                  return await handOutTasks(request, ports.frontier, handOut(), ports.now());
                }),
            ));
          ports.counters.leases("granted", tasks.leases.length);
          ports.send(crawlerId, tasks);
          return;
        }
        case "crawler:heartbeat":
          hear(crawlerId, message.time);
          ports.heartbeats.note(crawlerId, message, now);
          return;
        case "crawler:key-kept":
          await ports.identities.keyKept(crawlerId, now);
          ports.log.info({ crawlerId }, "a crawler has its new key");
          return;
        case "crawler:signing-key":
          ports.send(
            crawlerId,
            await signingKeys.take(crawlerId, message, { maxAgeDays: config.signingKeyDays, now }),
          );
          return;
        case "crawler:peer-rtts":
          await takePeerReport(crawlerId, message, ports, now);
          for (const room of rooms) room.onPeerReport?.(crawlerId);
          return;
        case "crawler:move":
          await ports.moves?.onMessage(crawlerId, message);
          return;
        case "crawler:release-report":
          for (const room of rooms) await room.onReleaseReport?.(crawlerId, message);
          return;
        case "crawler:lease-end":
          if (
            await ports.frontier.returnLease(
              { leaseId: asLeaseId(message.leaseId), crawlerId, hostWaitMs: message.hostWaitMs ?? 0 },
              now,
            )
          ) {
            ports.counters.leases("returned", 1);
          }
          return;
      }
    },
    onLeave: async (crawlerId, end, forGood) => {
      const { reason } = end;
      ports.idle.left(crawlerId);
      elsewhere.delete(crawlerId);
      ports.clock?.forgetCrawler(crawlerId);
      await ports.moves?.onLeave(crawlerId, reason);
      const isGone = await ports.crawlers.leave({ crawlerId, ...end, forGood, now: ports.now() });
      await refreshCrawlers(ports, [crawlerId]);
      if (!isGone) {
        ports.log.info(
          { crawlerId, reason },
          "a session has ended whose crawler is connected to another coordinator",
        );
        return;
      }
      for (const room of rooms) room.onLeft?.(crawlerId, forGood);
      ports.log.warn({ crawlerId, reason, forGood }, "crawler left");
    },
    onIncident: (incident) => ports.incidents.note({ ...incident, at: ports.now() }),
  };
}

/** How soon crawlers without work ask again while the clock is wrong. */
const whileWrongMs = 5000;

function wireBytesOf({ results }: ResultBatch): number {
  return results.reduce((sum, { result }) => sum + result.wireBytes, 0);
}

interface IntroductionSettings {
  readonly userAgent: string;
  readonly publicUrl: string | null;
  readonly signRequests: boolean;
}

/** How a crawler introduces itself to sites. Only a crawler with a key of its own can sign. */
export function introductionOf(
  { hello, publicKey }: Pick<Arrival, "hello" | "publicKey">,
  config: IntroductionSettings,
): Pick<WelcomeExtras, "userAgent" | "signatureAgent" | "signingKeys"> {
  const signatureAgent = publishedKeySet(config);
  const signs = config.signRequests && publicKey !== null;
  return {
    ...(hello.contact === undefined ? {} : { userAgent: userAgentOf(config.userAgent, hello.contact) }),
    ...(signs && signatureAgent !== null
      ? { signatureAgent, ...(hello.signingKeys && { signingKeys: true }) }
      : {}),
  };
}

/** Shows a partner the address at which others see the crawler. */
export function seenFrom({
  remoteAddress,
}: Pick<Arrival, "remoteAddress">): Pick<WelcomeExtras, "seenAddress"> {
  const address = parseAddress(remoteAddress);
  return address === null ? {} : { seenAddress: formatAddress(unmapAddress(address)) };
}
