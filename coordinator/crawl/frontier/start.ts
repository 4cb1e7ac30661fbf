/** Periodic work of the frontier: worth of hosts, pace, wake-ups, the outbox, DNS look-ups and expired leases. */
import type { Pool } from "pg";
import { howMany } from "#core/format";
import type { CrawlerId } from "#core/ids";
import type { IncidentNotes } from "#core/incidents";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import { jobs, type Timekeeper } from "#core/scheduler";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { DomainFlood } from "./domain-store.ts";
import type { DueWorkReads } from "./due-work-store.ts";
import type { PaceSettings } from "./frontier-settings.ts";
import type { FrontierStore } from "./frontier-store.ts";
import { IdleCrawlers } from "./idle-crawlers.ts";
import { type AppliedLinks, applyLinks, type OutboxSettings } from "./link-outbox-store.ts";
import {
  forgetShortlists,
  forgetWorths,
  type ReckonedUntil,
  reckonFromStart,
  reckonWorths,
} from "./order/order-sql.ts";
import { type FrontierOrder, worthShareOf } from "./order/strategies.ts";
import { PaceOfFleet, type PacePorts } from "./pace.ts";
import { resolveHosts } from "./resolve-hosts.ts";

interface HostWorthDuty {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly order: () => FrontierOrder;
  readonly now: () => Date;
  readonly nowMs: () => number;
}

const everyMs = 5000;

/** Working time per run, to spare the database. */
const busyMs = 500;

/**
 * Recomputes hosts' worth under the frontier's order in short runs, so that every due host is updated within minutes. Clears
 * it if the order does not use it.
 */
export function scheduleHostWorths(duty: HostWorthDuty): void {
  let after: ReckonedUntil = reckonFromStart;
  duty.timekeeper.every("reckon-host-worths", everyMs, async () => {
    const order = duty.order();
    const untilMs = duty.nowMs() + busyMs;
    let isMore = true;
    while (isMore && duty.nowMs() < untilMs) isMore = await forgetShortlists(duty.pool, duty.now());
    isMore = true;
    while (isMore && duty.nowMs() < untilMs) {
      if (worthShareOf(order) === 0) {
        isMore = await forgetWorths(duty.pool);
        continue;
      }
      const reached = await reckonWorths(duty.pool, order.name, { after, now: duty.now() });
      after = reached ?? reckonFromStart;
      isMore = reached !== null;
    }
  });
}

export function paceDuties(
  ports: Omit<PacePorts, "rule"> & {
    readonly timekeeper: Pick<Timekeeper, "every">;
    readonly log: Log;
  },
  config: { readonly pace: PaceSettings },
) {
  const fleet = new PaceOfFleet({ ...ports, rule: () => config.pace });
  const everyMs = () => config.pace.everySeconds * 1000;
  const pass = async () => {
    const crawlers = await fleet.pass();
    if (crawlers > 0) ports.log.debug({ crawlers }, "crawlers were told their pace");
  };
  return {
    /** Begins a session. The crawler uses its host's limits until it is sent a pace. */
    onWelcome: (crawlerId: CrawlerId) => fleet.forget(crawlerId),
    start: () => ports.timekeeper.every("pace-crawlers", everyMs, pass, { onEach: true }),
  };
}

const wakeDuty = "wake-idle-crawlers";
const wakeEveryMs = 1000;
/** Time for which news are collected, since they arrive in bursts. */
const newsMs = 100;

export function idleCrawlers(
  ports: Pick<PacePorts, "send" | "now"> & {
    readonly reads: DueWorkReads;
    readonly timekeeper: Pick<Timekeeper, "hurry">;
    readonly state: Pick<CoordinatorState, "ownerOf" | "watch">;
  },
): IdleCrawlers {
  const { reads, timekeeper, state, send, now } = ports;
  const onNews = () => timekeeper.hurry(wakeDuty, newsMs);
  const idle = new IdleCrawlers({
    reads,
    now,
    nowMs: () => performance.now(),
    random: Math.random,
    onNews,
    ownerOf: (subnetId) => state.ownerOf(subnetId),
    wake: (crawlerId) => send(crawlerId, { type: "coordinator:wake" }),
  });
  state.watch((subnetId) => {
    const owner = subnetId === null ? null : state.ownerOf(subnetId);
    if (owner !== null) idle.noteLater(owner);
  });
  return idle;
}

export function scheduleWakeUps(timekeeper: Pick<Timekeeper, "every">, idle: IdleCrawlers): void {
  timekeeper.every(wakeDuty, wakeEveryMs, async () => await idle.turn(), { onEach: true });
}

interface OutboxPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry" | "stopping">;
  readonly counters: {
    linksApplied(applied: AppliedLinks): void;
    refusedResults(count: number): void;
  };
  readonly incidents: IncidentNotes;
  readonly log: Log;
  readonly now: () => Date;
}

/** Summing more effects is cheaper, so under load the outbox is applied at this interval. */
const applyEveryMs = 1000;

/** In a small crawl, where the next work depends on such a link, the outbox is applied this soon. */
const applySoonMs = 100;

/** Effects, in URLs, from which the load counts as high. */
const busyFrom = 2000;

export function outboxDuties(ports: OutboxPorts, settings: OutboxSettings) {
  const { pool, timekeeper, now } = ports;
  let isBusy = false;
  const apply = async () => {
    let effects = 0;
    let isFull = true;
    while (isFull && !timekeeper.stopping.aborted) {
      const applied = await applyLinks(pool, settings, now(), timekeeper.stopping);
      effects += applied?.effects ?? 0;
      isFull = applied?.isFull ?? false;
      if (applied !== null) note(applied);
    }
    isBusy = effects >= busyFrom;
  };
  const note = (applied: AppliedLinks) => {
    ports.counters.linksApplied(applied);
    if (applied.newHosts > 0) timekeeper.hurry(jobs.resolveHosts);
    if (applied.newUrls > 0) timekeeper.hurry(wakeDuty, newsMs);
    for (const fault of applied.faults) ports.log.error({ fault }, "a link was left out: no row can hold it");
    if (applied.domains.length > 0)
      ports.incidents.note({
        kind: "domain-flood",
        words: floodWords(applied.domains),
        count: applied.domains.length,
        crawlerId: null,
        remoteAddress: null,
        at: now(),
      });
    for (const crawlerId of applied.floods) {
      ports.counters.refusedResults(1);
      ports.incidents.note({
        kind: "link-flood",
        words: `pages that it fetched named ${settings.newHosts?.perDay} hosts today that nobody knew; further ones are left out until midnight (UTC)`,
        count: 1,
        crawlerId,
        remoteAddress: null,
        at: now(),
      });
    }
  };
  return {
    onPosted: () => {
      if (!isBusy) timekeeper.hurry(jobs.applyLinks, applySoonMs);
    },
    start: () => timekeeper.every(jobs.applyLinks, applyEveryMs, apply),
  };
}

/** Names the worst ones. The crawlers of their pages are not at fault. */
function floodWords(domains: readonly DomainFlood[]): string {
  const weight = ({ waiting, leftOut }: DomainFlood) => waiting + leftOut;
  const [worst, ...others] = domains.toSorted((a, b) => weight(b) - weight(a));
  const { domain, as, waiting, leftOut } = worst!;
  const whose = as === "domain" ? "has more new hosts" : "links to more new hosts";
  const rest =
    others.length > 0 ? `; so ${others.length === 1 ? "has one other" : `have ${others.length} others`}` : "";
  return `${domain} ${whose} than are let in a day: ${howMany(waiting, "URL")} on them wait for later days, ${leftOut} are left out${rest}`;
}

const resolveBatch = 200;

export interface FrontierJobPorts {
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly state: Pick<CoordinatorState, "subnetOf">;
  readonly frontier: FrontierStore;
  readonly resolver: NameResolver;
  readonly counters: { leases(event: "expired", count: number): void };
  readonly log: Log;
  readonly now: () => Date;
}

export function scheduleFrontier(
  ports: FrontierJobPorts,
  config: { readonly allowSpecialPurpose: AllowedSpecialPurpose },
): void {
  const { timekeeper } = ports;
  timekeeper.every(
    jobs.resolveHosts,
    500,
    async () => {
      const settings = { batch: resolveBatch, allowSpecialPurpose: config.allowSpecialPurpose };
      const subnetOf = (address: string) => ports.state.subnetOf(address);
      const settled = await resolveHosts({ ...ports, subnetOf }, settings, ports.now);
      if (settled > 0) timekeeper.hurry(jobs.delegate);
      if (settled === resolveBatch) timekeeper.hurry(jobs.resolveHosts);
    },
    { onEach: true },
  );
  timekeeper.every("return-expired-leases", 5000, async () => {
    const leases = await ports.frontier.returnExpired(ports.now());
    ports.counters.leases("expired", leases);
    if (leases > 0) ports.log.warn({ leases }, "leases ran out and returned");
  });
  timekeeper.every("reopen-refused", 60_000, async () => await ports.frontier.reopenRefused(ports.now()));
}
