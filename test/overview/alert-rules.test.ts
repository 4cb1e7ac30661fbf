/** A crawl where nothing needs attention, and what is said as soon as one thing is otherwise. */
import { describe, expect, it } from "vitest";
import type {
  AlertChannel,
  AlertFacts,
  CrawlerFacts,
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

const nowMs = Date.parse("2026-03-01T12:00:00Z");
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const athens: CrawlerFacts = {
  name: "athens",
  state: "online",
  lastSeenMs: nowMs,
  drainingSinceMs: null,
  distrusted: false,
  waitingResults: 12,
  fetches: 1000,
  ownFailures: 0,
  copiedFolder: false,
  neverRan: false,
  waits: false,
  joinedMs: null,
  connectedMs: nowMs - dayMs,
  idleWhy: null,
};

const well: AlertFacts = {
  nowMs,
  crawlers: [athens, { ...athens, name: "berlin" }],
  queue: { p95Seconds: 300, unplacedSeconds: 20 },
  linkOutbox: { effects: 900, ageSeconds: 0.4 },
  hour: { fetches: 2000, failures: { target: 0, network: 0, crawler: 0, us: 0 } },
  day: { fetchedBytes: 1.6e9, shippedBytes: 6e7 },
  figuresAtMs: nowMs - minuteMs,
  statedUntilMs: null,
  registryAppliedMs: nowMs - 20 * dayMs,
  incidents: [],
  openInvitations: 0,
  releases: [],
  databaseMs: 1.5,
  accuracy: { samples: 400, share: 0.96 },
};

const nothingWrong = { emptiedFrom: null, noneInUse: false, refusedWords: null };

const parent: RelativeFacts = {
  kind: "parent",
  name: "https://top.example",
  contactedMs: nowMs,
  failingSinceMs: null,
  failure: null,
  droppedMs: null,
};

const release = {
  version: "1.2.0",
  stage: "all",
  wasOffered: true,
  revoked: false,
  mayRun: true,
  words: "",
  turnedDown: 0,
} as const;
const pager: AlertChannel = {
  name: "pager",
  kind: "webhook",
  place: "hooks.example",
  least: "warning",
  deliveredAt: null,
  failingSince: new Date(nowMs - hourMs),
  failures: 0,
  failure: "status 500",
  waiting: 0,
};
const copy = { kind: "copy", lastMs: nowMs, isFailing: false, warnAfterHours: 48 } as const;
const withCrawler = (differences: Partial<CrawlerFacts>): Partial<AlertFacts> => ({
  crawlers: [athens, { ...athens, name: "berlin", ...differences }],
});

const healthy: OwnFacts = {
  clock: null,
  silent: null,
  unwritable: null,
  journal: null,
  eventLoop: { p99Ms: 12, mostMs: 180 },
  jobs: [],
  leaderlessSinceMs: null,
  silentCoordinators: [],
};
const withOwn = (differences: Partial<OwnFacts>): Partial<AlertFacts> => ({
  own: { ...healthy, ...differences },
});
const job: JobFacts = {
  name: "apply-links",
  everyMs: 1000,
  runningSinceMs: null,
  succeededMs: nowMs - 500,
  failures: 0,
  failingSinceMs: null,
  words: null,
};
const failing = (failures: number): JobFacts => ({
  ...{ ...job, failures, failingSinceMs: nowMs - 5000, words: 'relation "link_outbox" is gone, 42P01' },
});
const fault = (words: string, seconds: number) => ({ words, sinceMs: nowMs - seconds * 1000 });

const withCertificate = (differences: Partial<NonNullable<OwnFacts["certificate"]>>) =>
  withOwn({ certificate: { file: "c.pem", endsMs: nowMs + 21 * dayMs, notTaken: null, ...differences } });

const withOurs = (us: number): Partial<AlertFacts> => ({
  hour: { ...well.hour, failures: { ...well.hour.failures, us } },
});

const withGates = (asked: number, newHosts: number): Partial<AlertFacts> => ({
  botGates: { asked, providers: [{ provider: "cloudflare", hosts: newHosts + 5, newHosts }] },
});

/** What differs; the last value where nothing is said yet, and the first where something is. */
const rules: Readonly<Record<AlertName, readonly [not: Partial<AlertFacts>, found: Partial<AlertFacts>]>> = {
  "data-folder-gone": [
    // Of a folder that is gone, nothing else is said.
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
  "clock-wrong": [
    withOwn({}),
    withOwn({ clock: fault("this coordinator's own clock jumped ahead by 24 hours", 0) }),
  ],
  "database-cannot-write": [
    withOwn({}),
    withOwn({ unwritable: fault("the database cannot be written: its disk is full", 0) }),
  ],
  "journal-cannot-write": [
    withOwn({}),
    withOwn({ journal: fault("the journal beside the database cannot be written", 0) }),
  ],
  "journal-differs": [
    { wentBack: { atMs: nowMs - 1, failed: 0 } },
    { wentBack: { atMs: nowMs - 29 * dayMs, failed: null } },
  ],
  "bot-gates-grow": [withGates(1000, 10), withGates(1000, 11)],
  "nobody-leads": [
    withOwn({ leaderlessSinceMs: nowMs - 59_999 }),
    withOwn({ leaderlessSinceMs: nowMs - minuteMs }),
  ],
  "job-failing": [withOwn({ jobs: [failing(2)] }), withOwn({ jobs: [job, failing(3)] })],
  "job-overdue": [
    withOwn({ jobs: [{ ...job, runningSinceMs: nowMs - 10 * minuteMs }] }),
    withOwn({ jobs: [{ ...job, runningSinceMs: nowMs - 10 * minuteMs - 1 }] }),
  ],
  "event-loop-late": [
    withOwn({ eventLoop: { p99Ms: 500, mostMs: 5000 } }),
    withOwn({ eventLoop: { p99Ms: 20, mostMs: 5001 } }),
  ],
  "dns-does-not-answer": [
    withOwn({ dns: fault("the name servers did not answer in time", 29.9) }),
    withOwn({ dns: fault("the name servers did not answer in time", 30) }),
  ],
  "crawler-network": [
    {
      crawlers: [athens, { ...athens, name: "berlin" }].map((one) => ({
        ...one,
        fetches: 100,
        networkFailures: 40,
      })),
    },
    withCrawler({ fetches: 100, networkFailures: 21 }),
  ],
  "certificate-ending": [withCertificate({}), withCertificate({ endsMs: nowMs + 3 * dayMs - 1 })],
  "certificate-left": [withCertificate({}), withCertificate({ endsMs: nowMs + 21 * dayMs - 1 })],
  "crawler-disk": [
    withCrawler({ diskFreeBytes: 250e6 }),
    withCrawler({ diskFault: "the disk is full (ENOSPC)", diskFreeBytes: 0 }),
  ],
  "disk-full": [
    { disk: { freeBytes: 2e9, lostBytesPerDay: null } },
    { disk: { freeBytes: 1.99e9, lostBytesPerDay: null } },
  ],
  "disk-left": [
    { disk: { freeBytes: 14e9, lostBytesPerDay: 1e9 } },
    { disk: { freeBytes: 14e9, lostBytesPerDay: 1.01e9 } },
  ],
  "coordinator-silent": [{ figuresAtMs: nowMs - 6 * minuteMs }, { figuresAtMs: nowMs - 6 * minuteMs - 1 }],
  "no-crawler-connected": [withCrawler({ state: "offline" }), { crawlers: [] }],
  "errors-by-us": [withOurs(20), withOurs(21)],
  "copied-folder": [{}, withCrawler({ copiedFolder: true })],
  "crawler-offline": [
    withCrawler({ state: "offline", lastSeenMs: nowMs - hourMs }),
    withCrawler({ state: "offline", lastSeenMs: nowMs - hourMs - 1 }),
  ],
  "crawler-draining": [
    withCrawler({ state: "draining", drainingSinceMs: nowMs - dayMs }),
    withCrawler({ state: "draining", drainingSinceMs: nowMs - dayMs - 1 }),
  ],
  "crawler-distrusted": [{}, withCrawler({ distrusted: true })],
  "crawler-errors": [withCrawler({ ownFailures: 100 }), withCrawler({ ownFailures: 101 })],
  "results-wait": [withCrawler({ waitingResults: 5000 }), withCrawler({ waitingResults: 5001 })],
  "subnets-wait": [
    { queue: { p95Seconds: 1, unplacedSeconds: 3600 } },
    { queue: { p95Seconds: 1, unplacedSeconds: 3601 } },
  ],
  "queue-age": [
    { queue: { p95Seconds: 86_400, unplacedSeconds: null } },
    { queue: { p95Seconds: 86_401, unplacedSeconds: null } },
  ],
  "link-outbox-late": [
    { linkOutbox: { effects: 1_000_000, ageSeconds: 300 } },
    { linkOutbox: { effects: 1, ageSeconds: 301 } },
  ],
  "compression-poor": [
    { day: { ...well.day, shippedBytes: 8e7 } },
    { day: { ...well.day, shippedBytes: 8.1e7 } },
  ],
  "registry-old": [{ registryAppliedMs: nowMs - 100 * dayMs }, { registryAppliedMs: nowMs - 101 * dayMs }],
  "backup-too-old": [
    { backup: { ...copy, lastMs: nowMs - 48 * hourMs } },
    { backup: { ...copy, lastMs: nowMs - 48 * hourMs - 1 } },
  ],
  "registry-empty": [
    { registryAccident: nothingWrong },
    { registryAccident: { ...nothingWrong, emptiedFrom: 12 } },
  ],
  "registry-refused": [
    { registryAccident: nothingWrong },
    { registryAccident: { ...nothingWrong, refusedWords: "an import was refused: too many" } },
  ],
  incidents: [{}, { incidents: [{ kind: "flood", crawler: "berlin", count: 3 }] }],
  "release-missing": [
    { openInvitations: 1, releases: [{ ...release, version: "1.3.0", stage: "one" }, release] },
    { openInvitations: 1, releases: [{ ...release, mayRun: false }] },
  ],
  "crawler-never-ran": [
    {
      ...withCrawler({
        state: "offline",
        neverRan: true,
        joinedMs: nowMs - 15 * minuteMs,
        lastSeenMs: nowMs,
      }),
      releases: [release],
    },
    {
      ...withCrawler({
        state: "offline",
        neverRan: true,
        joinedMs: nowMs - 16 * minuteMs,
        lastSeenMs: nowMs,
      }),
      releases: [release],
    },
  ],
  "crawler-without-work": [
    withCrawler({ fetches: 0, idleWhy: "no subnet is its own", connectedMs: nowMs - hourMs }),
    withCrawler({ fetches: 0, idleWhy: "no subnet is its own", connectedMs: nowMs - hourMs - 1 }),
  ],
  "crawler-waits": [
    withCrawler({ state: "offline", waits: false }),
    withCrawler({ state: "offline", waits: true, lastSeenMs: nowMs - 20 * dayMs }),
  ],
  "release-unstated": [{ statedUntilMs: nowMs + 3 * dayMs }, { statedUntilMs: nowMs + 3 * dayMs - 1 }],
  "release-held": [
    { releases: [{ ...release, stage: "none", wasOffered: false }] },
    { releases: [{ ...release, stage: "none", words: "it hangs" }] },
  ],
  "release-failing": [{ releases: [release] }, { releases: [{ ...release, turnedDown: 1 }] }],
  "database-slow": [{ databaseMs: 250 }, { databaseMs: 251 }],
  "parent-away": [
    { relatives: [{ ...parent, failingSinceMs: nowMs - 15 * minuteMs, failure: "it is not reached" }] },
    { relatives: [{ ...parent, failingSinceMs: nowMs - 15 * minuteMs - 1, failure: "it is not reached" }] },
  ],
  "child-silent": [
    { relatives: [{ ...parent, kind: "child", contactedMs: null }] },
    { relatives: [{ ...parent, kind: "child", contactedMs: nowMs - 15 * minuteMs - 1 }] },
  ],
  "foreign-urls-dropped": [
    { relatives: [{ ...parent, droppedMs: nowMs - dayMs }] },
    { relatives: [{ ...parent, droppedMs: nowMs - dayMs + 1 }] },
  ],
  "alert-delivery-failing": [
    { channels: [{ ...pager, failures: 2 }] },
    { channels: [{ ...pager, failures: 3 }] },
  ],
  "accuracy-low": [{ accuracy: { samples: 29, share: 0.5 } }, { accuracy: { samples: 30, share: 0.899 } }],
};

it("nothing is said while all is well", () => {
  expect(alertsOf(well)).toEqual([]);
});

describe.each(Object.entries(rules))("%s", (name, [not, found]) => {
  it("is said from its threshold on, alone, with what to do and where to look", () => {
    const before = alertsOf({ ...well, ...not });
    const after = alertsOf({ ...well, ...found });

    expect(before).toEqual([]);
    expect(after.map((alert) => alert.name)).toEqual([name]);
    expect(after[0]).toMatchObject({ severity: alertRules.find((rule) => rule.name === name)?.severity });
    expect(after[0]?.words).toMatch(/^[A-Z1-9].*\.$/);
    expect(after[0]?.advice).toMatch(/\.$/);
    expect(after[0]?.link).toMatch(/^\//);
  });
});

it("jobs are named with what they said last, and are nobody's fault while the database is", () => {
  const own = { ...healthy, jobs: [failing(7)] };
  const full = fault("the database cannot be written: its disk is full", 1);

  expect(alertsOf({ ...well, own })[0]).toMatchObject({
    words: 'Jobs that keep failing: apply-links (7 times: relation "link_outbox" is gone, 42P01).',
    targets: [expect.stringMatching(/^apply-links /)],
  });
  expect(alertsOf({ ...well, own: { ...own, unwritable: full } }).map(({ name }) => name)).toEqual([
    "database-cannot-write",
  ]);
});

it("a job may take as long as is usual for it, or many times its interval", () => {
  const running = (name: string, everyMs: number, minutes: number): JobFacts => ({
    ...{ ...job, name, everyMs, runningSinceMs: nowMs - minutes * minuteMs },
  });
  const jobs = [running("rank-pages", 600_000, 700), running("keep-search", minuteMs, 20)];
  const late = [running("rank-pages", 600_000, 721), running("keep-search", minuteMs, 21)];

  expect(alertsOf({ ...well, own: { ...healthy, jobs } })).toEqual([]);
  expect(alertsOf({ ...well, own: { ...healthy, jobs: late } })[0]?.words).toBe(
    "Jobs that do not finish: rank-pages (for 12 hours), keep-search (for 21 minutes).",
  );
});

it("a coordinator that has just started has its minutes to write figures, however old the last ones are", () => {
  const figuresAtMs = nowMs - 60 * minuteMs;
  const of = (startedAtMs: number) => alertsOf({ ...well, figuresAtMs, ...withOwn({ startedAtMs }) });

  expect(of(nowMs - 6 * minuteMs)).toEqual([]);
  expect(of(nowMs - 6 * minuteMs - 1)[0]?.words).toBe(
    "No coordinator has written its figures for 60 minutes.",
  );
  expect(alertsOf({ ...well, figuresAtMs })[0]?.name).toBe("coordinator-silent");
});

it("a coordinator that went silent is named, after the time in which it may come back", () => {
  const silent = (seconds: number): Partial<OwnFacts> => ({
    silentCoordinators: [{ name: "web-2:7411", sinceMs: nowMs - seconds * 1000 }],
  });

  expect(alertsOf({ ...well, ...withOwn(silent(29)) })).toEqual([]);
  expect(alertsOf({ ...well, ...withOwn(silent(30)) })[0]).toMatchObject({
    name: "coordinator-silent",
    targets: ["web-2:7411"],
  });
});

it("without the database a coordinator tells what it knows of itself, and what is muted stays so", () => {
  const own = {
    ...healthy,
    silent: fault("the database does not answer within 1 s", 60),
    eventLoop: { p99Ms: 900, mostMs: 7000 },
  };
  const until = new Date(nowMs + 1);
  const mute = { name: "event-loop-late", target: null, until, reason: "known", mutedBy: "anna" };

  expect(ownAlertsOf(own, nowMs).map(({ name }) => name)).toEqual([
    "database-does-not-answer",
    "event-loop-late",
  ]);
  expect(ownAlertsOf(own, nowMs, [mute]).map(({ name }) => name)).toEqual(["database-does-not-answer"]);
});

it("a disk that is nearly full is told however slowly it fills, one that empties is not", () => {
  expect(alertsOf({ ...well, disk: { freeBytes: 1.9e9, lostBytesPerDay: null } })[0]?.words).toBe(
    "1.90 GB left for the database.",
  );
  expect(alertsOf({ ...well, disk: { freeBytes: 3e9, lostBytesPerDay: 2e9 } })[0]?.words).toBe(
    "3.00 GB left for the database; at the pace of the last day (2.00 GB per day) it is full in 36 hours.",
  );
  expect(alertsOf({ ...well, disk: { freeBytes: 3e9, lostBytesPerDay: -1e9 } })).toEqual([]);
});

it("one alert names the crawlers it is about, the longest gone first, and only the first few", () => {
  const gone = Array.from({ length: 200 }, (_, index) => ({
    ...athens,
    name: `c${String(index).padStart(3, "0")}`,
    state: "offline" as const,
    lastSeenMs: nowMs - 2 * hourMs - index * minuteMs,
  }));

  const alerts = alertsOf({ ...well, crawlers: [athens, ...gone] });

  expect(alerts).toHaveLength(1);
  expect(alerts[0]).toMatchObject({ count: 200, targets: ["c199", "c198", "c197", "c196", "c195"] });
  expect(alerts[0]?.words).toBe(
    "Offline for more than 60 minutes: c199, c198, c197, c196, c195 and 195 more.",
  );
});

it("what says nothing of a fault is none: little fetched, nobody came yet, who drains and leaves, a release passed over", () => {
  const little = {
    hour: { fetches: 49, failures: { ...well.hour.failures, us: 49 } },
    day: { ...well.day, fetchedBytes: 9e6, shippedBytes: 9e6 },
    figuresAtMs: null,
    releases: [release, { ...release, version: "1.1.0", stage: "none" as const }],
    ...withCrawler({
      state: "offline",
      lastSeenMs: nowMs - dayMs,
      drainingSinceMs: nowMs - hourMs,
      fetches: 49,
      ownFailures: 49,
    }),
  };

  expect(alertsOf({ ...well, ...little })).toEqual([]);
});

// Issue 41: the alert asked its partner to start what had run, and had left for good.
it("a crawler that has left for good is not expected to run", () => {
  const joined = { state: "offline" as const, neverRan: true, joinedMs: nowMs - hourMs, lastSeenMs: nowMs };
  const alertsOn = (drainingSinceMs: number | null) =>
    alertsOf({ ...well, ...withCrawler({ ...joined, drainingSinceMs }), releases: [release] }).map(
      ({ name }) => name,
    );

  expect([alertsOn(null), alertsOn(nowMs)]).toEqual([["crawler-never-ran"], []]);
});

it("the critical stand first", () => {
  const alerts = alertsOf({ ...well, databaseMs: 9000, crawlers: [] });

  expect(alerts.map(({ severity }) => severity)).toEqual(["critical", "warning"]);
});

it("an archive that fails is told at once, and a backup that is gone as such", () => {
  const words = (backup: AlertFacts["backup"]) => alertsOf({ ...well, ...(backup && { backup }) })[0]?.words;

  expect(words({ ...copy, lastMs: null })).toBe("No backup of the database is left.");
  expect(words({ ...copy, warnAfterHours: 24 * 7, lastMs: nowMs - 3 * dayMs })).toBeUndefined();
  expect(words({ ...copy, kind: "archive", isFailing: true })).toMatch(/fails to archive its log/);
  expect(words({ ...copy, kind: "archive", lastMs: null })).toMatch(/has archived none of its log yet/);
  expect(words(undefined)).toBeUndefined();
});

it("what is muted is told to nobody until its hour, target by target or all of a rule", () => {
  const gone = ["athens", "berlin"].map((name) => ({
    ...athens,
    name,
    state: "offline" as const,
    lastSeenMs: nowMs - 2 * hourMs,
  }));
  const facts = { ...well, crawlers: [...gone, { ...athens, name: "chania" }] };
  const mute = { name: "crawler-offline", target: "athens", reason: "it moves", mutedBy: "anna" };
  const until = (ms: number) => new Date(nowMs + ms);
  const one = { ...facts, mutes: [{ ...mute, until: until(hourMs) }] };
  const all = { ...facts, mutes: [{ ...mute, target: null, until: until(hourMs) }] };
  const ended = { ...facts, mutes: [{ ...mute, target: null, until: until(0) }] };

  expect(alertsOf(facts)[0]).toMatchObject({ targets: ["athens", "berlin"] });
  expect(alertsOf(one)[0]).toMatchObject({ targets: ["berlin"], count: 1 });
  expect(alertsOf(all)).toEqual([]);
  expect(mutedAlertsOf(all)).toMatchObject([
    { name: "crawler-offline", mutedBy: "anna", reason: "it moves" },
  ]);
  expect(alertsOf(ended)).toHaveLength(1);
});

it("of counted targets the name alone is muted", () => {
  const incidents = [{ kind: "flood", crawler: "berlin", count: 3 }];
  const mute = {
    name: "incidents",
    target: "flood",
    until: new Date(nowMs + 1),
    reason: "known",
    mutedBy: "anna",
  };

  expect(alertsOf({ ...well, incidents, mutes: [mute] })).toEqual([]);
});
