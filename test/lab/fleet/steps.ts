/** What is done with the box, each step for itself: every one ends after its seconds at the latest. */
import { setTimeout as delay } from "node:timers/promises";
import type { FleetBox } from "./box.ts";
import { Change, type FigureList } from "./figures.ts";
import { PageWatch } from "./page-watch.ts";
import { addWork, putOff } from "./seed.ts";

export interface StepSettings {
  readonly stormSeconds: number;
  /** Over how long the crawlers come; 0: all at once. */
  readonly stormOverSeconds: number;
  readonly restSeconds: number;
  readonly idleSeconds: number;
  readonly workSeconds: number;
  /** Of the fleet, how many have due work. */
  readonly busyShare: number;
  readonly workHosts: number;
  readonly urlsPerHost: number;
  readonly roundsSeconds: number;
}

export type Step = (box: FleetBox, settings: StepSettings, figures: FigureList) => Promise<void>;

const healthEveryMs = 100;
const healthAimMs = 100;
const pageEveryMs = 1000;
/** Until nobody has a slice any more, at the end of a step. */
const endSeconds = 20;
/** Until due work is noticed by those that were idle. */
const noticeSeconds = 90;

/** All come. */
export const storm: Step = async (box, settings, list) => {
  const { stormSeconds, stormOverSeconds } = settings;
  const begin = async () => box.tellSessions({ type: "start", overMs: stormOverSeconds * 1000 });
  await full(await arrival(box, stormSeconds, begin), "storm", box, list);
};

/** The coordinator is killed and comes again. */
export const restart: Step = async (box, settings, list) => {
  const came = await arrival(box, settings.stormSeconds, async () => {
    await box.killCoordinator();
    const startMs = performance.now();
    await box.startCoordinator();
    list.add("restart", "it listens again after", (performance.now() - startMs) / 1000, "s");
  });
  await full(came, "restart", box, list);
};

interface Arrival {
  readonly change: Change;
  /** Seconds by the share of the fleet that was up. */
  readonly reached: ReadonlyMap<number, number>;
  readonly health: PageWatch;
  /** At the crawlers' port. */
  readonly healthInLine: PageWatch;
  readonly page: PageWatch;
}

const shares = [0.5, 0.9, 1];

/** From the event to the moment when all are up, or to the end of the time. */
async function arrival(box: FleetBox, seconds: number, begin: () => Promise<unknown>): Promise<Arrival> {
  const { crawlers } = box.settings;
  const { counts } = box.tally;
  const before = await box.standing();
  const startMs = performance.now();
  await begin();
  const health = new PageWatch(`${box.pagesUrl}/health`, healthEveryMs);
  const healthInLine = new PageWatch(`${box.webUrl}/health`, healthEveryMs);
  const page = new PageWatch(`${box.pagesUrl}/fleet`, pageEveryMs);
  const reached = new Map<number, number>();
  const isUp = () => {
    for (const share of shares)
      if (!reached.has(share) && counts.up >= share * crawlers)
        reached.set(share, (performance.now() - startMs) / 1000);
    return counts.up >= crawlers;
  };
  await box.until(isUp, seconds, () => {
    const attempts = counts.welcomes + counts.failedAttempts;
    return `${counts.up} up, ${attempts} attempts ended, ${counts.lost} sessions lost so far`;
  });
  await Promise.all([health.stop(), healthInLine.stop(), page.stop()]);
  return { change: new Change(before, await box.standing()), reached, health, healthInLine, page };
}

async function full(arrived: Arrival, step: string, box: FleetBox, list: FigureList): Promise<void> {
  const { change, health, healthInLine, page } = arrived;
  brief(arrived, step, box, list);
  list.times(step, "welcome", change.times("welcome"));
  list.add(step, `/health within ${healthAimMs} ms`, 100 * (health.times.within(healthAimMs) ?? 0), "%");
  list.times(step, "/health at the crawlers' port", healthInLine.times);
  list.times(step, "/fleet", page.times);
  list.add(step, "/health failed", health.failed);
  list.add(step, "coordinator's processor", change.of("coordinatorCpuMs") / 1000, "s");
  list.add(step, "Postgres' processor", change.of("postgresCpuMs") / 1000, "s");
  list.add(step, "sessions' processor", change.of("sessionsCpuMs") / 1000, "s");
  others(change, step, list);
  list.add(step, "entries of peers to measure", change.count("peersToMeasure"));
  await state(box, step, list);
}

function brief(arrived: Arrival, step: string, box: FleetBox, list: FigureList): void {
  const { change, reached, health } = arrived;
  for (const share of shares) list.add(step, `${100 * share} % up after`, reached.get(share) ?? null, "s");
  list.add(step, "up at the end", box.tally.counts.up);
  list.add(step, "attempts", change.count("welcomes") + change.count("failedAttempts"));
  list.add(step, "sessions lost", change.count("lost"));
  list.add(step, "gave up for good", change.count("gaveUp"));
  const codes = new Map(change.each("codes"));
  for (const code of new Set(["internal-error", "HTTP 503", "HTTP 429", ...codes.keys()]))
    list.add(step, `ended by ${code}`, codes.get(code) ?? 0);
  list.times(step, "/health", health.times);
  for (const [reason, count] of change.each("reasons").slice(0, 6)) list.note(step, `${count} × ${reason}`);
}

/** Nobody has anything to do. */
export const idle: Step = async (box, settings, list) => {
  const beforeRest = await box.standing();
  box.settings.say(`  ${settings.restSeconds} s of rest before it`);
  await delay(settings.restSeconds * 1000);
  await box.coordinatorState();
  const change = await watched(box, settings.idleSeconds);
  const withRest = new Change(beforeRest, await box.standing());
  const { crawlers } = box.settings;
  cores(change, "idle", list);
  await state(box, "idle", list);
  list.add("idle", "up at the end", box.tally.counts.up);
  list.add("idle", "sessions lost, rest included", withRest.count("lost"));
  list.add("idle", "entries of peers to measure, rest included", withRest.count("peersToMeasure"));
  list.add("idle", "requests for work a second", change.count("requests") / change.seconds);
  list.times("idle", "request for work", change.times("request"));
  list.add("idle", "messages a crawler and minute", (60 * messages(change)) / change.seconds / crawlers);
  for (const name of ["sent", "received"] as const)
    for (const [type, count] of change.each(name))
      list.add("idle", `${type} a second`, count / change.seconds);
  list.add("idle", "sessions' memory", box.sessionsBytes / 1e6, "MB");
};

function messages(change: Change): number {
  return [...change.each("sent"), ...change.each("received")].reduce((sum, [, count]) => sum + count, 0);
}

async function watched(box: FleetBox, seconds: number): Promise<Change> {
  const before = await box.standing();
  await box.until(
    () => false,
    seconds,
    () => `${box.tally.counts.up} up, ${box.tally.counts.requests} requests for work so far`,
  );
  return new Change(before, await box.standing());
}

/** A share of the fleet has due URLs: a page is delivered for each. */
const work: Step = async (box, settings, list) => {
  const step = "work";
  const { crawlers, subnetsPerCrawler } = box.settings;
  const { counts } = box.tally;
  const busy = Math.max(1, Math.round(settings.busyShare * crawlers));
  const hosts = await addWork(box.pool, {
    name: step,
    hosts: settings.workHosts,
    urlsPerHost: settings.urlsPerHost,
    // The first crawlers' subnets.
    ...{ firstTarget: 0, targets: busy * subnetsPerCrawler, apart: 1 },
  });
  const urls = hosts * settings.urlsPerHost;
  box.settings.say(`  ${hosts} hosts with ${settings.urlsPerHost} URLs are due for ${busy} crawlers`);
  const [slicesBefore, resultsBefore] = [counts.slices, counts.acknowledged];
  const dueMs = performance.now();
  const noticed = await box.until(
    () => counts.slices > slicesBefore,
    noticeSeconds,
    () => "nobody has noticed yet",
  );
  list.add(step, "first slice after", noticed ? (performance.now() - dueMs) / 1000 : null, "s");
  await box.coordinatorState();
  const before = await box.standing();
  const isDone = () => counts.acknowledged - resultsBefore >= urls;
  await box.until(isDone, settings.workSeconds, () => {
    const [taken, delivered] = [counts.slices - slicesBefore, counts.acknowledged - resultsBefore];
    return `${taken} slices, ${delivered} results acknowledged, ${counts.up} up, ${counts.lost} lost so far`;
  });
  const change = new Change(before, await box.standing());
  const [taken, delivered] = [change.count("slices"), change.count("acknowledged")];
  list.add(step, "hosts due", hosts);
  list.add(step, "slices a second", taken / change.seconds);
  list.add(step, "results a second", delivered / change.seconds);
  list.times(step, "request for work", change.times("request"));
  list.times(step, "acknowledgement", change.times("acknowledge"));
  cores(change, step, list);
  const each = (ms: number) => (delivered ? ms / delivered : null);
  list.add(step, "coordinator's processor a result", each(change.of("coordinatorCpuMs")), "ms");
  list.add(step, "Postgres' processor a result", each(change.of("postgresCpuMs")), "ms");
  list.add(step, "up at the end", counts.up);
  list.add(step, "sessions lost", change.count("lost"));
  await state(box, step, list);
  for (const [reason, count] of change.each("reasons").slice(0, 6)) list.note(step, `${count} × ${reason}`);
  await endWork(box, step);
};

/** The next step is not to find this one's work. */
async function endWork(box: FleetBox, step: string): Promise<void> {
  const isOver = async () => {
    await putOff(box.pool, step);
    return box.tally.counts.openSlices === 0;
  };
  await box.until(isOver, endSeconds, () => `${box.tally.counts.openSlices} slices are not back yet`);
}

function cores(change: Change, step: string, list: FigureList): void {
  const part = (ms: number) => ms / 1000 / change.seconds;
  list.add(step, "coordinator", part(change.of("coordinatorCpuMs")), "cores");
  list.add(step, "Postgres", part(change.of("postgresCpuMs")), "cores");
  list.add(step, "sessions", part(change.of("sessionsCpuMs")), "cores");
  others(change, step, list);
  list.add(step, "commits a second", change.of("commits") / change.seconds);
  list.add(step, "write-ahead log", change.of("walBytes") / 1e6 / change.seconds, "MB/s");
}

/** What took processors from the box: with much of it, times say little. */
function others(change: Change, step: string, list: FigureList): void {
  const own = change.of("coordinatorCpuMs") + change.of("postgresCpuMs") + change.of("sessionsCpuMs");
  const strange = Math.max(0, change.of("machineCpuMs") - own) / 1000 / change.seconds;
  list.add(step, "others on the machine", strange, "cores");
}

/** How the coordinator is now, and what its event loop suffered since the last time. */
async function state(box: FleetBox, step: string, list: FigureList): Promise<void> {
  const told = await box.coordinatorState();
  list.add(step, "coordinator resident", box.coordinatorBytes / 1e6, "MB");
  list.add(step, "its heap", told && told.heapBytes / 1e6, "MB");
  list.add(step, "its buffers and arrays", told && told.externalBytes / 1e6, "MB");
  list.add(step, "loop delay, median", told?.delayMs.p50 ?? null, "ms");
  list.add(step, "loop delay, 99 %", told?.delayMs.p99 ?? null, "ms");
  list.add(step, "loop delay, longest", told?.delayMs.max ?? null, "ms");
  if (told === null) list.note(step, "the coordinator was too busy to tell of itself");
  for (const [line, count] of Object.entries(told?.logged ?? {})
    .sort(([, a], [, b]) => b - a)
    .slice(0, 5))
    list.note(step, `logged so far ${count} × ${line}`);
}

/** Hosts come in subnets that nobody has: rounds decide whose they are. */
export const rounds: Step = async (box, settings, list) => {
  const { crawlers, subnetsPerCrawler, freeSubnets } = box.settings;
  const firstTarget = crawlers * subnetsPerCrawler;
  await box.coordinatorState();
  const before = await box.standing();
  const place = { firstTarget, targets: freeSubnets, apart: 1 };
  await addWork(box.pool, { name: "rounds", hosts: freeSubnets, urlsPerHost: 1, ...place });
  let ended = 0;
  const isDone = async () => {
    const { rows } = await box.pool.query<{ ended: number }>(
      "select count(*)::int as ended from probe_round",
    );
    ended = rows[0]!.ended;
    return ended >= freeSubnets;
  };
  const words = () => `${ended} of ${freeSubnets} rounds, ${box.tally.counts.up} up`;
  await box.until(isDone, settings.roundsSeconds, words);
  const change = new Change(before, await box.standing());
  const { rows } = await box.pool.query<{ decided: number; probes: number }>(
    `select (select count(crawler_id)::int from probe_round) as decided, (select count(*)::int from probe) as probes`,
  );
  const [{ decided, probes } = { decided: 0, probes: 0 }] = rows;
  list.add("rounds", "subnets that wait", freeSubnets);
  list.add("rounds", "rounds a second", ended / change.seconds);
  list.add("rounds", "decided", ended ? decided / ended : null, "of 1");
  list.add("rounds", "probes a round", ended ? probes / ended : null);
  list.add(
    "rounds",
    "coordinator's processor a round",
    ended ? change.of("coordinatorCpuMs") / ended : null,
    "ms",
  );
  list.add("rounds", "Postgres' processor a round", ended ? change.of("postgresCpuMs") / ended : null, "ms");
  cores(change, "rounds", list);
  list.add("rounds", "sessions lost", change.count("lost"));
  await state(box, "rounds", list);
};

export const steps = { storm, idle, work, rounds, restart } as const;
