/** Coordinators on one database follow the operators' changes, whatever else is stored. */
import { beforeEach, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { KnownUrls } from "#coordinator/crawl/frontier/known-urls";
import { outboxSettings } from "#coordinator/crawl/frontier/link-outbox-store";
import { takeResultsSettings } from "#coordinator/crawl/results/take-results";
import { queueSettings } from "#coordinator/place/delegation/delegation-settings";
import { createPolicyStore, type NewPolicyVersion } from "#coordinator/run/settings/settings-store";
import { policyDuties } from "#coordinator/run/settings/start";
import { asCrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import { following } from "#core/policy";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";

const noon = new Date("2026-03-01T12:00:00.000Z");

const database = await forThisFile(testDatabase());
beforeEach(async () => {
  await database.pool.query("truncate setting, policy_version, policy_file");
});

const versionOf = (changes: NewPolicyVersion["changes"]): NewPolicyVersion => ({
  changedAt: noon,
  changedBy: "anna",
  words: "",
  takesBack: null,
  changes,
});

async function coordinator(settings: object = {}) {
  const warned: { readonly fault: string }[] = [];
  let retimed = 0;
  const duties = await policyDuties({
    pool: database.pool,
    config: readCoordinatorConfig(settings),
    timekeeper: {
      retime: () => {
        retimed += 1;
      },
    },
    log: { ...silentLog, warn: (fields) => void warned.push(fields as { fault: string }) },
    now: () => noon,
  });
  return { ...duties, warned, retimed: () => retimed };
}

it("two running coordinators follow a change, and return to their own files when it is reverted", async () => {
  const store = createPolicyStore(database.pool);
  const [first, second] = [await coordinator(), await coordinator({ delegation: { lambdaMs: 5 } })];
  await Promise.all([first.start(), second.start()]);
  const lambdas = () => [first, second].map(({ config }) => config.delegation.lambdaMs);

  expect(lambdas()).toEqual([2, 5]);
  await store.save(versionOf([{ name: "delegation.lambdaMs", before: null, after: 0.5 }]), 0);
  await until(() => lambdas().join() === "0.5,0.5", 10_000);
  expect([first.retimed(), second.retimed()]).toEqual([1, 1]);
  await store.save(versionOf([{ name: "delegation.lambdaMs", before: 0.5, after: null }]), 1);
  await until(() => lambdas().join() === "2,5", 10_000);

  await Promise.all([first.stop(), second.stop()]);
});

it("parts that keep their settings object read the current values", async () => {
  const { config, start, stop } = await coordinator();
  await start();
  const queue = following(() => queueSettings(config));
  const taking = takeResultsSettings(config);
  const outbox = outboxSettings(config, { known: new KnownUrls(16) });
  const changes = [
    { name: "delegation.policy", before: null, after: "ipmicra" },
    { name: "probe.pace.perSecond", before: null, after: 700 },
    { name: "probe.method", before: null, after: "head" },
    { name: "recrawl.intervalHours", before: null, after: 24 },
    { name: "scope.newHostsPerCrawlerAndDay", before: null, after: 7 },
    { name: "trust.witnesses", before: null, after: false },
  ] as const;

  expect(queue.round.hasWitnesses).toBe(true);
  // A copy would not follow changes.
  for (const followed of [config, queue, taking, outbox])
    expect(() => ({ ...followed })).toThrow("never copied");
  await createPolicyStore(database.pool).save(versionOf(changes), 0);
  await until(() => config.delegation.policy === "ipmicra", 10_000);

  expect(queue.round).toMatchObject({
    policy: "ipmicra",
    hasWitnesses: false,
    probe: { method: "head", pace: { perSecond: 700 } },
  });
  expect(taking.recrawl.intervalSeconds).toBe(86_400);
  expect(outbox.newHosts?.left(asCrawlerId(1), noon)).toBe(7);
  await stop();
});

it("ignores invalid rows, names them, and starts", async () => {
  await database.pool.query(
    `insert into setting (name, value, changed_by) values
       ('delegation.lambdaMs', '-1', 'psql'), ('delegation.moon', '1', 'psql'),
       ('lease.seconds', '600', 'psql'), ('recrawl.intervalHours', 'null', 'psql'), ('trust.share', '0.2', 'psql')`,
  );

  const { config, warned } = await coordinator({ delegation: { lambdaMs: 5 } });

  expect(warned.map(({ fault }) => fault)).toEqual([
    "delegation.lambdaMs: -1 is not a number from 0 to 1,000",
    "delegation.moon: there is no such policy; 1 was stored",
    "lease.seconds: it is read at the start, from the coordinator's file; 600 was stored",
    "recrawl.intervalHours: null is not a number above 0, 87,600 at most",
  ]);
  expect([config.delegation.lambdaMs, config.recrawl.intervalHours, config.trust.share]).toEqual([
    5, 168, 0.2,
  ]);
});

it("of twenty who save at once on the same version one succeeds, and the others are refused with the reason", async () => {
  const store = createPolicyStore(database.pool);
  const change = (after: number) => [{ name: "delegation.lambdaMs", before: null, after }] as const;

  const saved = await Promise.all(
    Array.from({ length: 20 }, async (_, at) => await store.save(versionOf(change(at)), 0)),
  );

  expect(saved.filter((version) => version !== null)).toEqual([1]);
  const [kept] = await store.history(10);
  expect((await store.read()).settings).toMatchObject([
    { name: "delegation.lambdaMs", value: kept?.changes[0]?.after, changedBy: "anna", changedAt: noon },
  ]);
});
