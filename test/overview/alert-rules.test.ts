/** A crawl that needs no attention, and what the rules say as soon as one fact differs. */
import { describe, expect, it } from "vitest";
import type {
  AlertChannel,
  AlertFacts,
  JobFacts,
  OwnFacts,
  RelativeFacts,
} from "#coordinator/tell/overview/alert-facts";
import {
  type AlertName,
  alertRules,
  alertsOf,
  mutedAlertsOf,
  ownAlertsOf,
} from "#coordinator/tell/overview/alert-rules";
import {
  athens,
  dayMs,
  fault,
  healthy,
  hourMs,
  job,
  minuteMs,
  nowMs,
  well,
  withCrawler,
  withOwn,
} from "./alert-world.ts";

const nothingWrong = { emptiedFrom: null, noneInUse: false, refusedWords: null };
const withAccident = (more: Partial<typeof nothingWrong> | object): Partial<AlertFacts> => ({
  registryAccident: { ...nothingWrong, ...more },
});
const withRelative = (more: Partial<RelativeFacts>): Partial<AlertFacts> => ({
  relatives: [
    {
      ...{ kind: "parent", name: "https://top.example", contactedMs: nowMs, failingSinceMs: null },
      ...{ failure: null, droppedMs: null, ...more },
    },
  ],
});
const release: AlertFacts["releases"][number] = {
  ...{ version: "1.2.0", stage: "all", wasOffered: true, revoked: false, mayRun: true },
  ...{ words: "", turnedDown: 0 },
};
const withRelease = (more: Partial<AlertFacts["releases"][number]>): Partial<AlertFacts> => ({
  releases: [{ ...release, ...more }],
});
const withChannel = (failures: number): { readonly channels: readonly AlertChannel[] } => ({
  channels: [
    {
      ...{ name: "pager", kind: "webhook", place: "hooks.example", least: "warning", deliveredAt: null },
      ...{ failingSince: new Date(nowMs - hourMs), failures, failure: "status 500", waiting: 0 },
    },
  ],
});
const copy = { kind: "copy", lastMs: nowMs, isFailing: false, warnAfterHours: 48 } as const;
const failing = (failures: number): JobFacts => ({
  ...{ ...job, failures, failingSinceMs: nowMs - 5000, words: 'relation "link_outbox" is gone, 42P01' },
});
const running = (name: string, everyMs: number, minutes: number): JobFacts => ({
  ...{ ...job, name, everyMs, runningSinceMs: nowMs - minutes * minuteMs },
});
const withCertificate = (differences: Partial<NonNullable<OwnFacts["certificate"]>>) =>
  withOwn({ certificate: { file: "c.pem", endsMs: nowMs + 21 * dayMs, notTaken: null, ...differences } });
const withOurs = (us: number): Partial<AlertFacts> => ({
  hour: { ...well.hour, failures: { ...well.hour.failures, us } },
});
const withGates = (newHosts: number): Partial<AlertFacts> => ({
  botGates: { asked: 1000, providers: [{ provider: "cloudflare", hosts: newHosts + 5, newHosts }] },
});
const withQueue = (p95Seconds: number | null, unplacedSeconds: number | null): Partial<AlertFacts> => ({
  queue: { p95Seconds, unplacedSeconds },
});
const withDisk = (freeBytes: number, lostBytesPerDay: number | null): Partial<AlertFacts> => ({
  disk: { freeBytes, lostBytesPerDay },
});
const offlineFor = (ms: number) => withCrawler({ state: "offline", lastSeenMs: nowMs - ms });
const joinedFor = (minutes: number): Partial<AlertFacts> => ({
  ...withCrawler({
    state: "offline",
    neverRan: true,
    joinedMs: nowMs - minutes * minuteMs,
    lastSeenMs: nowMs,
  }),
  releases: [release],
});
const idleFor = (ms: number) =>
  withCrawler({ fetches: 0, idleWhy: "no subnet is its own", connectedMs: nowMs - ms });
const networkFailures = (...failures: readonly number[]): Partial<AlertFacts> => ({
  crawlers: failures.map((one, at) => ({ ...athens, name: `c${at}`, fetches: 100, networkFailures: one })),
});

/** For each rule the last value that raises no alert, and the first that raises this one alone. */
const rules: Readonly<Record<AlertName, readonly [not: Partial<AlertFacts>, found: Partial<AlertFacts>]>> = {
  // A folder that is gone is the only alert, although the database is silent, too.
  "data-folder-gone": [
    withOwn({ gone: null }),
    withOwn({ gone: fault("the data folder is gone", 0), silent: fault("the database does not answer", 9) }),
  ],
  "database-does-not-answer": [
    withOwn({ silent: fault("the database does not answer within 1 s", 3.9) }),
    withOwn({ silent: fault("the database does not answer within 1 s", 4) }),
  ],
  "connections-used-up": [
    withOwn({ jobs: [failing(2)] }),
    withOwn({ usedUp: fault("the database has no connection left", 0), jobs: [failing(9)] }),
  ],
  "clock-wrong": [withOwn({}), withOwn({ clock: fault("this coordinator's own clock jumped ahead", 0) })],
  "database-cannot-write": [withOwn({}), withOwn({ unwritable: fault("its disk is full", 0) })],
  "journal-cannot-write": [withOwn({}), withOwn({ journal: fault("the journal cannot be written", 0) })],
  "journal-differs": [
    { wentBack: { atMs: nowMs - 1, failed: 0 } },
    { wentBack: { atMs: nowMs - 29 * dayMs, failed: null } },
  ],
  "bot-gates-grow": [withGates(10), withGates(11)],
  "nobody-leads": [
    withOwn({ leaderlessSinceMs: nowMs - 59_999 }),
    withOwn({ leaderlessSinceMs: nowMs - minuteMs }),
  ],
  "job-failing": [withOwn({ jobs: [failing(2)] }), withOwn({ jobs: [job, failing(3)] })],
  "job-overdue": [
    withOwn({ jobs: [running("apply-links", 1000, 10)] }),
    withOwn({ jobs: [running("apply-links", 1000, 10.001)] }),
  ],
  "event-loop-late": [
    withOwn({ eventLoop: { p99Ms: 500, mostMs: 5000 } }),
    withOwn({ eventLoop: { p99Ms: 20, mostMs: 5001 } }),
  ],
  "dns-does-not-answer": [
    withOwn({ dns: fault("the name servers did not answer in time", 29.9) }),
    withOwn({ dns: fault("the name servers did not answer in time", 30) }),
  ],
  "search-behind": [
    withOwn({ search: fault("2 changes wait for the search engine", 599) }),
    withOwn({ search: fault("2 changes wait for the search engine", 600) }),
  ],
  "certificate-ending": [withCertificate({}), withCertificate({ endsMs: nowMs + 3 * dayMs - 1 })],
  "certificate-left": [withCertificate({}), withCertificate({ endsMs: nowMs + 21 * dayMs - 1 })],
  "disk-full": [withDisk(2e9, null), withDisk(1.99e9, null)],
  "disk-left": [withDisk(14e9, 1e9), withDisk(14e9, 1.01e9)],
  "coordinator-silent": [{ figuresAtMs: nowMs - 6 * minuteMs }, { figuresAtMs: nowMs - 6 * minuteMs - 1 }],
  "database-slow": [{ databaseMs: 250 }, { databaseMs: 251 }],
  "registry-old": [{ registryAppliedMs: nowMs - 100 * dayMs }, { registryAppliedMs: nowMs - 101 * dayMs }],
  "backup-too-old": [
    { backup: { ...copy, lastMs: nowMs - 48 * hourMs } },
    { backup: { ...copy, lastMs: nowMs - 48 * hourMs - 1 } },
  ],
  "registry-empty": [withAccident({}), withAccident({ emptiedFrom: 12 })],
  "registry-refused": [withAccident({}), withAccident({ refusedWords: "an import was refused: too many" })],
  "release-missing": [
    { openInvitations: 1, releases: [{ ...release, version: "1.3.0", stage: "one" }, release] },
    { openInvitations: 1, ...withRelease({ mayRun: false }) },
  ],
  "release-unstated": [{ statedUntilMs: nowMs + 3 * dayMs }, { statedUntilMs: nowMs + 3 * dayMs - 1 }],
  "release-held": [
    withRelease({ stage: "none", wasOffered: false }),
    withRelease({ stage: "none", words: "it hangs" }),
  ],
  "release-failing": [withRelease({}), withRelease({ turnedDown: 1 })],
  "crawler-disk": [
    withCrawler({ diskFreeBytes: 250e6 }),
    withCrawler({ diskFault: "the disk is full (ENOSPC)", diskFreeBytes: 0 }),
  ],
  incidents: [{}, { incidents: [{ kind: "flood", crawler: "berlin", count: 3 }] }],
  "no-crawler-connected": [withCrawler({ state: "offline" }), { crawlers: [] }],
  "copied-folder": [{}, withCrawler({ copiedFolder: true })],
  "crawler-offline": [offlineFor(hourMs), offlineFor(hourMs + 1)],
  "crawler-never-ran": [joinedFor(15), joinedFor(16)],
  "crawler-without-work": [idleFor(hourMs), idleFor(hourMs + 1)],
  "crawler-waits": [
    withCrawler({ state: "offline", waits: false }),
    withCrawler({ state: "offline", waits: true, lastSeenMs: nowMs - 20 * dayMs }),
  ],
  "crawler-draining": [
    withCrawler({ state: "draining", drainingSinceMs: nowMs - dayMs }),
    withCrawler({ state: "draining", drainingSinceMs: nowMs - dayMs - 1 }),
  ],
  "crawler-distrusted": [{}, withCrawler({ distrusted: true })],
  "crawler-errors": [withCrawler({ ownFailures: 100 }), withCrawler({ ownFailures: 101 })],
  // Failures that all crawlers share are the web's.
  "crawler-network": [networkFailures(40, 40), networkFailures(0, 21)],
  "results-wait": [withCrawler({ waitingResults: 5000 }), withCrawler({ waitingResults: 5001 })],
  "errors-by-us": [withOurs(20), withOurs(21)],
  "subnets-wait": [withQueue(1, 3600), withQueue(1, 3601)],
  "queue-age": [withQueue(86_400, null), withQueue(86_401, null)],
  "link-outbox-late": [
    { linkOutbox: { effects: 1_000_000, ageSeconds: 300 } },
    { linkOutbox: { effects: 1, ageSeconds: 301 } },
  ],
  "compression-poor": [
    { day: { ...well.day, shippedBytes: 8e7 } },
    { day: { ...well.day, shippedBytes: 8.1e7 } },
  ],
  "accuracy-low": [{ accuracy: { samples: 30, share: 0.9 } }, { accuracy: { samples: 30, share: 0.899 } }],
  "parent-away": [
    withRelative({ failingSinceMs: nowMs - 15 * minuteMs, failure: "it is not reached" }),
    withRelative({ failingSinceMs: nowMs - 15 * minuteMs - 1, failure: "it is not reached" }),
  ],
  "child-silent": [
    withRelative({ kind: "child", contactedMs: null }),
    withRelative({ kind: "child", contactedMs: nowMs - 15 * minuteMs - 1 }),
  ],
  "foreign-urls-dropped": [
    withRelative({ droppedMs: nowMs - dayMs }),
    withRelative({ droppedMs: nowMs - dayMs + 1 }),
  ],
  "alert-delivery-failing": [withChannel(2), withChannel(3)],
};

describe.each(Object.entries(rules))("%s", (name, [not, found]) => {
  it("is raised from its threshold on, alone, with what to do and where to look", () => {
    const [alert, ...others] = alertsOf({ ...well, ...found });

    expect(alertsOf({ ...well, ...not })).toEqual([]);
    expect([alert?.name, others]).toEqual([name, []]);
    expect(alert?.severity).toBe(alertRules.find((rule) => rule.name === name)?.severity);
    expect(alert?.words).toMatch(/^[A-Z1-9].*\.$/);
    expect(alert?.advice).toMatch(/\.$/);
    expect(alert?.link).toMatch(/^\//);
  });
});

const silentOther = (seconds: number) =>
  withOwn({ silentCoordinators: [{ name: "web-2:7411", sinceMs: nowMs - seconds * 1000 }] });
const staleFigures = (startedAtMs: number): Partial<AlertFacts> => ({
  figuresAtMs: nowMs - hourMs,
  ...withOwn({ startedAtMs }),
});
const leftForGood = (drainingSinceMs: number | null): Partial<AlertFacts> => ({
  ...withCrawler({
    ...{ state: "offline", neverRan: true, joinedMs: nowMs - hourMs, lastSeenMs: nowMs, drainingSinceMs },
  }),
  releases: [release],
});
const silentFor = "No coordinator has written its figures for 60 minutes.";
const goneCrawlers = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...{ ...athens, name: `c${String(index).padStart(3, "0")}`, state: "offline" as const },
    lastSeenMs: nowMs - 2 * hourMs - index * minuteMs,
  }));

const reports: readonly (readonly [string, Partial<AlertFacts>, ...(string | RegExp)[]])[] = [
  ["nothing while all is well", {}],
  ["no accuracy of fewer than 30 samples", { accuracy: { samples: 29, share: 0.5 } }],
  [
    "the time of day since when the DNS servers have not answered",
    withOwn({ dns: fault("no answer", 60) }),
    /have not answered since \d\d:\d\d:\d\d UTC: no answer/,
  ],
  [
    "jobs with their last error",
    withOwn({ jobs: [failing(7)] }),
    'Jobs that keep failing: apply-links (7 times: relation "link_outbox" is gone, 42P01).',
  ],
  [
    "an unwritable database instead of the jobs that fail for it",
    withOwn({ jobs: [failing(7)], unwritable: fault("the disk is full", 1) }),
    /^The disk is full/,
  ],
  [
    "no job within the time that is usual for it",
    withOwn({ jobs: [running("rank-pages", 600_000, 700), running("keep-search", minuteMs, 20)] }),
  ],
  [
    "jobs that take longer",
    withOwn({ jobs: [running("rank-pages", 600_000, 721), running("keep-search", minuteMs, 21)] }),
    "Jobs that do not finish: rank-pages (for 12 hours), keep-search (for 21 minutes).",
  ],
  ["no old figures while a coordinator has just started", staleFigures(nowMs - 6 * minuteMs)],
  ["old figures after that", staleFigures(nowMs - 6 * minuteMs - 1), silentFor],
  ["old figures when no coordinator runs", { figuresAtMs: nowMs - hourMs }, silentFor],
  ["no silent coordinator that may still come back", silentOther(29)],
  ["a silent coordinator by its name", silentOther(30), /without shutting down: web-2:7411\.$/],
  ["a nearly full disk however slowly it fills", withDisk(1.9e9, null), "1.90 GB left for the database."],
  [
    "when a disk is full",
    withDisk(3e9, 2e9),
    "3.00 GB left for the database; at the pace of the last day (2.00 GB per day) it is full in 36 hours.",
  ],
  ["no disk that empties", withDisk(3e9, -1e9)],
  [
    "the crawlers of one alert, longest gone first, and only the first few",
    { crawlers: [athens, ...goneCrawlers(200)] },
    "Offline for more than 60 minutes: c199, c198, c197, c196, c195 and 195 more.",
  ],
  // Issue 41: the alert asked the partner to start a crawler that had run, and had left for good.
  ["a crawler that never ran", leftForGood(null), /never ran: berlin\.$/],
  ["no crawler that left for good", leftForGood(nowMs)],
  ["critical alerts first", { databaseMs: 9000, crawlers: [] }, /^No crawler/, /^The database takes/],
  ["a backup that is gone", { backup: { ...copy, lastMs: null } }, "No backup of the database is left."],
  ["no backup within its time", { backup: { ...copy, warnAfterHours: 168, lastMs: nowMs - 3 * dayMs } }],
  [
    "an archive that fails",
    { backup: { ...copy, kind: "archive", isFailing: true } },
    /fails to archive its log/,
  ],
  [
    "an archive that never worked",
    { backup: { ...copy, kind: "archive", lastMs: null } },
    /has archived none of its log yet/,
  ],
  [
    "nothing from too few fetches, before any figures, about crawlers that drain, or about older releases",
    {
      ...{ hour: { fetches: 49, failures: { ...well.hour.failures, us: 49 } }, figuresAtMs: null },
      day: { ...well.day, fetchedBytes: 9e6, shippedBytes: 9e6 },
      releases: [release, { ...release, version: "1.1.0", stage: "none" }],
      ...withCrawler({
        ...{ state: "offline", lastSeenMs: nowMs - dayMs, drainingSinceMs: nowMs - hourMs },
        ...{ fetches: 49, ownFailures: 49 },
      }),
    },
  ],
];

for (const [title, facts, ...words] of reports)
  it(`reports ${title}`, () => {
    expect(alertsOf({ ...well, ...facts }).map((alert) => alert.words)).toEqual(
      words.map((one) => (typeof one === "string" ? one : expect.stringMatching(one))),
    );
  });

it("counts all targets of an alert", () => {
  expect(alertsOf({ ...well, crawlers: [athens, ...goneCrawlers(200)] })).toMatchObject([{ count: 200 }]);
});

it("reports what a coordinator knows of itself without the database, except for muted rules", () => {
  const silent = fault("the database does not answer within 1 s", 60);
  const own = { ...healthy, silent, eventLoop: { p99Ms: 900, mostMs: 7000 } };
  const until = new Date(nowMs + 1);
  const mute = { name: "event-loop-late", target: null, until, reason: "known", mutedBy: "anna" };
  const names = (...mutes: (typeof mute)[]) => ownAlertsOf(own, nowMs, mutes).map(({ name }) => name);

  expect(names()).toEqual(["database-does-not-answer", "event-loop-late"]);
  expect(names(mute)).toEqual(["database-does-not-answer"]);
});

it("hides muted targets, or a whole rule, until the mute ends", () => {
  const crawlers = [...goneCrawlers(2), { ...athens, name: "chania" }];
  const mute = { name: "crawler-offline", target: "c000", reason: "it moves", mutedBy: "anna" };
  const muted = (ms: number, target: string | null) => ({
    ...{ ...well, crawlers, mutes: [{ ...mute, target, until: new Date(nowMs + ms) }] },
  });

  expect(alertsOf(muted(hourMs, "c000"))).toMatchObject([{ targets: ["c001"], count: 1 }]);
  expect(alertsOf(muted(hourMs, null))).toEqual([]);
  expect(mutedAlertsOf(muted(hourMs, null))).toMatchObject([
    { name: "crawler-offline", mutedBy: "anna", reason: "it moves" },
  ]);
  expect(alertsOf(muted(0, null))).toMatchObject([{ targets: ["c001", "c000"] }]);
});

it("mutes a counted target by its name alone", () => {
  const incidents = [{ kind: "flood", crawler: "berlin", count: 3 }];
  const until = new Date(nowMs + 1);
  const mute = { name: "incidents", target: "flood", until, reason: "known", mutedBy: "anna" };

  expect(alertsOf({ ...well, incidents, mutes: [mute] })).toEqual([]);
});
