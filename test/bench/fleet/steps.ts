/** What is done with the box, each step for itself: every one ends after its seconds at the latest. */
import { setTimeout as delay } from "node:timers/promises";
import type { FleetBox } from "./box.ts";
import { Change, type FigureList } from "./figures.ts";
import { PageWatch } from "./page-watch.ts";
import { addWork } from "./seed.ts";
import type { SessionSettings } from "./session.ts";

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
}

export type Step = (box: FleetBox, settings: StepSettings, figures: FigureList) => Promise<void>;

const healthEveryMs = 100;
const pageEveryMs = 1000;
/** Until due work is noticed by those that were idle. */
const noticeSeconds = 90;

/** All come. */
export const storm: Step = async (box, settings, list) => {
  await arrival(box, "storm", settings.stormSeconds, list, async () =>
    box.tellSessions({ type: "start", overMs: settings.stormOverSeconds * 1000 }),
  );
};

/** From the event to the moment when all are up: what a storm and a restart have in common. */
async function arrival(
  box: FleetBox,
  step: string,
  seconds: number,
  list: FigureList,
  begin: () => Promise<unknown>,
): Promise<void> {
  const { crawlers } = box.settings;
  const { counts } = box.tally;
  const before = await box.standing();
  const [health, page] = [
    new PageWatch(`${box.webUrl}/health`, healthEveryMs),
    new PageWatch(`${box.webUrl}/fleet`, pageEveryMs),
  ];
  const startMs = performance.now();
  await begin();
  const reached = new Map<number, number>();
  const shares = [0.5, 0.9, 1];
  const isUp = () => {
    for (const share of shares)
      if (!reached.has(share) && counts.up >= share * crawlers)
        reached.set(share, (performance.now() - startMs) / 1000);
    return counts.up >= crawlers;
  };
  await box.until(isUp, seconds, () => {
    const attempts = counts.welcomes + counts.failedAttempts;
    return `${counts.up} up, ${attempts} attempts ended, ${counts.lost} sessions lost`;
  });
  await Promise.all([health.stop(), page.stop()]);
  const change = new Change(before, await box.standing());
  for (const share of shares) list.add(step, `${100 * share} % up after`, reached.get(share) ?? null, "s");
  list.add(step, "up at the end", counts.up);
  list.add(step, "attempts", change.count("welcomes") + change.count("failedAttempts"));
  list.add(step, "sessions lost", change.count("lost"));
  const codes = new Map(change.each("codes"));
  for (const code of new Set(["internal-error", "HTTP 503", "HTTP 429", ...codes.keys()]))
    list.add(step, `ended by ${code}`, codes.get(code) ?? 0);
  list.times(step, "welcome", change.times("welcome"));
  list.times(step, "/health", health.times);
  list.add(step, "/health failed", health.failed);
  list.times(step, "/fleet", page.times);
  list.add(step, "coordinator's processor", change.of("coordinatorCpuMs") / 1000, "s");
  list.add(step, "Postgres' processor", change.of("postgresCpuMs") / 1000, "s");
  list.add(step, "sessions' processor", change.of("sessionsCpuMs") / 1000, "s");
  others(change, step, list);
  list.add(step, "entries of peers to measure", change.count("peersToMeasure"));
  await state(box, step, list);
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
export const work: Step = async (box, settings, list) => {
  await working(box, "work", "results", settings, list);
};

/** The same, but that slices go back as they came: what handing out alone costs. */
export const slices: Step = async (box, settings, list) => {
  await working(box, "slices", "returns", settings, list);
};

async function working(
  box: FleetBox,
  step: string,
  answer: SessionSettings["answer"],
  settings: StepSettings,
  list: FigureList,
): Promise<void> {
  const { crawlers, subnetsPerCrawler } = box.settings;
  const { counts } = box.tally;
  box.tellSessions({ type: "set", settings: { answer } });
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
  const isDone = () => answer === "results" && counts.acknowledged - resultsBefore >= urls;
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
  if (answer === "results") list.times(step, "acknowledgement", change.times("acknowledge"));
  cores(change, step, list);
  const done = answer === "results" ? delivered : taken;
  const [unit, what] = ["ms", answer === "results" ? "result" : "slice"];
  list.add(
    step,
    `coordinator's processor a ${what}`,
    done ? change.of("coordinatorCpuMs") / done : null,
    unit,
  );
  list.add(step, `Postgres' processor a ${what}`, done ? change.of("postgresCpuMs") / done : null, unit);
  list.add(step, "up at the end", counts.up);
  list.add(step, "sessions lost", change.count("lost"));
  await state(box, step, list);
  for (const [reason, count] of change.each("reasons").slice(0, 6)) list.note(step, `${count} × ${reason}`);
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

export const steps = { storm, idle, work, slices } as const;
