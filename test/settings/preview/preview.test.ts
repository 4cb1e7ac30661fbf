/** The preview of a policy change over a world with one decided round: athens was probed, berlin is offline. */
import { beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type PolicyValue, withChanges } from "#coordinator/run/settings/catalogue";
import { type PreviewPorts, policiesOf } from "#coordinator/run/settings/change";
import { previewPolicies } from "#coordinator/run/settings/preview/preview";
import type { PolicyName } from "#coordinator/run/settings/schema";
import { previewPorts } from "#coordinator/run/settings/start";
import { systemClock } from "#core/clock";
import { silentLog } from "#core/log";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { seedWorld } from "../../support/seed-world.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  await seedWorld(database.pool);
  await database.pool.query(whatHappened);
});

const whatHappened = "update probe_round set method = 'head' where round_id = 1";

type Changes = Partial<Record<PolicyName, PolicyValue>>;

async function preview(changes: Changes, base: object = {}, changed: Partial<PreviewPorts> = {}) {
  const before = policiesOf(readCoordinatorConfig(base));
  const entries = Object.entries(changes) as [PolicyName, PolicyValue][];
  const after = withChanges(before, new Map(entries));
  const names = new Set(entries.map(([name]) => name));
  const ports = previewPorts(database.pool, silentLog);
  return await previewPolicies({ before, after, names }, { ...ports, ...changed });
}

/** By name: before and after. */
async function figures(changes: Changes, base?: object) {
  const effects = await preview(changes, base);
  const all = effects.flatMap((effect) => effect.figures);
  return Object.fromEntries(all.map(({ name, before, after }) => [name, [before, after]]));
}

it("replays the stored round for a policy, predicts tokyo's answer, and says so", async () => {
  const base = { delegation: { policy: "ipmicra" }, trust: { witnesses: false } };
  const witnessed = await figures({ "trust.witnesses": true }, base);

  expect(witnessed.probesPerRound).toEqual([1, 2]);
  const [effect, ...others] = await preview({ "delegation.policy": "exhaustive" }, base);

  expect(others).toEqual([]);
  expect(effect?.figures.map(({ name, before, after }) => [name, before, after])).toEqual([
    ["probesPerRound", 1, 3],
    ["changedDelegations", 0, 0],
    ["extraRttMs", 0, 0],
  ]);
  expect(effect?.basis).toContain("1 decided round (the latest) and 3 crawlers");
  expect(effect?.basis).toContain("25 % went to crawlers that were not asked then");
  expect(effect?.limits[0]).toContain("as they were run, they took 2.0 probes each");
});

it("reports an unknown effect when the computation takes too long, fails, or has no stored data", async () => {
  const noWaiting = {
    ...systemClock,
    wake: (_: number, callback: () => void) => systemClock.wake(0, callback),
  };
  const never = async () => await new Promise<never>(() => {});
  const broken = async () => await Promise.reject(new Error("no"));

  const [late] = await preview({ "trust.witnesses": false }, {}, { samples: never, clock: noWaiting });
  const [failed] = await preview({ "trust.witnesses": false }, {}, { samples: broken });
  const [untold] = await preview({ "probe.pace.perTargetPerSecond": 2 });

  expect(late?.basis).toContain("took longer than 2 s");
  expect(failed?.basis).toContain("Not told: the database");
  expect(untold?.basis).toContain("Nothing that is stored tells what probe.pace.perTargetPerSecond");
});
