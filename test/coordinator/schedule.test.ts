/** What the coordinator does by the clock, each duty turned by hand over real stores. */
import { beforeEach, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type FrontierJobPorts, scheduleFrontier } from "#coordinator/crawl/frontier/start";
import { type BalanceJobPorts, scheduleBalance } from "#coordinator/place/balance/start";
import { recalibrationRule } from "#coordinator/place/delegation/delegation-settings";
import { FleetSettling } from "#coordinator/place/delegation/measure-peers";
import { RecalibrationQueue } from "#coordinator/place/delegation/recalibration/recalibrate";
import { scheduleDelegation } from "#coordinator/place/delegation/start";
import { type PolicyValue, withChanges } from "#coordinator/run/settings/catalogue";
import { liveConfig, policiesOf } from "#coordinator/run/settings/change";
import type { PolicyName } from "#coordinator/run/settings/schema";
import { Counters } from "#coordinator/tell/overview/metrics";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { newFlowWorld, TableFleet } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { noon, roundOf, scope, seeds } from "../support/store-world.ts";

const world = await forThisFile(newFlowWorld());
beforeEach(async () => await world.reset());

async function scheduled(fleet: TableFleet, settings: object = {}) {
  const file = readCoordinatorConfig(settings);
  const policies = { settings: policiesOf(file) };
  const config = liveConfig(file, policies);
  const state = await world.state();
  const clock = { ms: noon.getTime() };
  const now = () => new Date(clock.ms);
  const duties = new Map<string, () => Promise<unknown>>();
  const intervals = new Map<string, number | (() => number)>();
  const hurried: string[] = [];
  const warned: object[] = [];
  const sent: [CrawlerId, CoordinatorMessage][] = [];
  const requested: [readonly SubnetId[], RoundCause][] = [];
  const full = new Set<CrawlerId>();
  let fills = 0;
  let fill = async () => 1;
  const ports: FrontierJobPorts & BalanceJobPorts = {
    ...world,
    state,
    now,
    timekeeper: {
      every: (name, interval, work) => {
        duties.set(name, work);
        intervals.set(name, interval);
      },
      hurry: (name) => hurried.push(name),
    },
    gateway: {
      online: () => fleet.online(),
      probe: async (crawlerId, target) => await fleet.probe(crawlerId, target),
      send: (crawlerId, message) => sent.push([crawlerId, message]) > 0,
    },
    queue: {
      fill: async () => {
        fills += 1;
        return await fill();
      },
      isUnderWay: () => false,
      request: (subnetIds, cause) => {
        if (subnetIds.length > 0) requested.push([subnetIds, cause]);
      },
    },
    settling: new FleetSettling({ expectedCrawlers: 1, settleMs: 0 }),
    recalibration: new RecalibrationQueue({ ...world, state, now }, recalibrationRule(config)),
    resolver: { resolve: async () => ({ addresses: ["5.1.1.7"], ttlSeconds: 60 }) },
    counters: new Counters(),
    withoutRoom: () => full,
    log: { ...silentLog, warn: (fields) => warned.push(fields) },
  };
  for (const schedule of [scheduleFrontier, scheduleDelegation, scheduleBalance]) schedule(ports, config);
  const run = async (name: string) => await duties.get(name)!();
  const everyMs = (name: string) => {
    const interval = intervals.get(name)!;
    return typeof interval === "number" ? interval : interval();
  };
  return {
    run,
    everyMs,
    /** An operator changes this, as every running coordinator hears of it. */
    change: (name: PolicyName, value: PolicyValue) => {
      policies.settings = withChanges(policies.settings, new Map([[name, value]]));
    },
    state,
    clock,
    hurried,
    warned,
    sent,
    requested,
    full,
    filled: () => fills,
    fillWith: (other: () => Promise<number>) => {
      fill = other;
    },
    names: [...duties.keys()],
  };
}

/** Two subnets of a crawler that is offline: the other has measured the first and not the second. */
async function departure() {
  const gone = await world.arrived("gone");
  const heir = await world.arrived("heir");
  const known = await world.site(1);
  const unknown = await world.site(2);
  await world.delegations.saveRound(
    roundOf(known, [
      [gone, 5],
      [heir, 9],
    ]),
  );
  await world.delegations.delegateOwnSubnet(unknown, gone, noon);
  const duties = await scheduled(new TableFleet([heir]));
  duties.state.setCrawlers(
    duties.state.crawlers.map((crawler) =>
      crawler.crawlerId === heir ? { ...crawler, state: "online" as const } : crawler,
    ),
  );
  return { gone, heir, known, unknown, duties };
}

it("replaces a crawler after the departure time: what is known moves, the rest is measured again", async () => {
  const { gone, heir, known, unknown, duties } = await departure();

  await duties.run("hand-over-subnets");
  expect(duties.state.subnetsOf(gone)).toEqual([known, unknown]);
  duties.clock.ms += 121_000;
  await duties.run("hand-over-subnets");

  expect(duties.state.subnetsOf(heir)).toEqual([known]);
  expect(duties.requested).toEqual([[[unknown], "crawler-left"]]);
});

it("moves nothing from a departed crawler to one whose daily limit is used up", async () => {
  const { gone, heir, known, unknown, duties } = await departure();
  duties.full.add(heir);
  duties.clock.ms += 121_000;

  await duties.run("hand-over-subnets");

  expect(duties.state.subnetsOf(heir)).toEqual([]);
  expect(duties.state.subnetsOf(gone)).toEqual([known, unknown]);
});

it("reports once that a crawler is gone, however long a subnet of it has no successor", async () => {
  const { gone, duties } = await departure();
  duties.clock.ms += 121_000;

  await duties.run("hand-over-subnets");
  await duties.run("hand-over-subnets");
  duties.clock.ms += 60_000;
  await duties.run("hand-over-subnets");

  expect(duties.warned).toEqual([{ crawlerId: gone, moved: 1, orphans: 1, returnedLeases: 0 }]);
  expect(duties.requested).toHaveLength(2);
});

it("waits for a connected crawler before it replaces any", async () => {
  const gone = await world.arrived("gone");
  const subnetId = await world.site(1);
  await world.delegations.saveRound(roundOf(subnetId, [[gone, 5]]));
  const duties = await scheduled(new TableFleet([]));
  duties.clock.ms += 121_000;

  await duties.run("hand-over-subnets");

  expect(duties.state.subnetsOf(gone)).toEqual([subnetId]);
  expect(duties.warned).toEqual([]);
});

it("resolves new hosts and hurries the rounds", async () => {
  await world.subnet("5.1.1.0", "5.1.1.255");
  await world.frontier.admit(seeds("http://new.example/"), scope, noon);
  const duties = await scheduled(new TableFleet([]));

  await duties.run("resolve-hosts");
  await duties.run("resolve-hosts");

  expect(duties.hurried).toEqual(["delegate-subnets"]);
  expect(await world.rows("select state, host(addresses[1]) as address from frontier_host")).toEqual([
    { state: "resolved", address: "5.1.1.7" },
  ]);
});

it("starts rounds only when the fleet has settled", async () => {
  const fleet = new TableFleet([]);
  const duties = await scheduled(fleet);

  await duties.run("delegate-subnets");
  expect(duties.filled()).toBe(0);
  fleet.goOnline(await world.arrived("north"));
  await duties.run("delegate-subnets");

  expect(duties.filled()).toBe(1);
});

it("looks for waiting subnets less often the longer an empty search takes", async () => {
  const duties = await scheduled(new TableFleet([await world.arrived("north")]));
  const slowly = (started: number) => async () => {
    await world.rows("select pg_sleep(0.1)");
    return started;
  };
  const afterLook = async (look: () => Promise<number>) => {
    duties.fillWith(look);
    await duties.run("delegate-subnets");
    return duties.everyMs("delegate-subnets");
  };

  expect(duties.everyMs("delegate-subnets")).toBe(250);
  expect(await afterLook(slowly(0))).toBeGreaterThanOrEqual(2000);
  expect(await afterLook(slowly(3))).toBe(250);
  expect(await afterLook(async () => 0)).toBe(250);
});

it("tells the crawlers which peers to measure", async () => {
  const [north, south] = [await world.arrived("north"), await world.arrived("south")];
  const duties = await scheduled(new TableFleet([north, south]));
  const placed = { [north]: "5.1.1.1", [south]: "5.1.2.1" };
  duties.state.setCrawlers(
    duties.state.crawlers.map((crawler) => ({ ...crawler, address: placed[crawler.crawlerId] ?? null })),
  );

  await duties.run("measure-crawlers");

  expect(duties.sent).toEqual([
    [north, { type: "coordinator:peers", peers: [{ crawlerId: south, address: "5.1.2.1", port: 443 }] }],
    [south, { type: "coordinator:peers", peers: [{ crawlerId: north, address: "5.1.1.1", port: 443 }] }],
  ]);
});

it("probes decisions again that are a month old, or older than the current policy allows", async () => {
  const north = await world.arrived("north");
  const old = await world.site(1);
  const young = await world.site(2);
  await world.delegations.saveRound(roundOf(old, [[north, 5]]));
  await world.delegations.saveRound(
    roundOf(young, [[north, 5]], { decidedAt: new Date(noon.getTime() + 86_400_000) }),
  );
  const duties = await scheduled(new TableFleet([north]));

  await duties.run("refresh-delegations");
  expect(duties.requested).toEqual([]);
  duties.clock.ms += 30 * 86_400_000 + 1;
  await duties.run("refresh-delegations");

  expect(duties.requested.splice(0)).toEqual([[[old], "refresh"]]);
  duties.change("recalibration.refreshDays", 29);
  await duties.run("refresh-delegations");

  expect(duties.requested[0]?.[0]).toContain(young);
});

it("returns leases that ran out", async () => {
  const crawlerId = await world.delegatedHost("north", "http://a.example/");
  const duties = await scheduled(new TableFleet([]));
  await world.lease(crawlerId);

  duties.clock.ms += 59_000;
  await duties.run("return-expired-leases");
  expect(duties.warned).toEqual([]);
  duties.clock.ms += 2000;
  await duties.run("return-expired-leases");

  expect(duties.warned).toEqual([{ leases: 1 }]);
  expect(await world.rows("select ending from lease")).toEqual([{ ending: "expired" }]);
});

it("measures an unmeasured subnet once in five minutes, and at once where it was measured in between", async () => {
  const [north, south] = [await world.arrived("north"), await world.arrived("south")];
  const subnetId = await world.site(1);
  const alone = { crawlerId: north, measured: false };
  await world.delegations.saveRound(roundOf(subnetId, [], alone));
  const duties = await scheduled(new TableFleet([north, south]));
  const asked = async (afterSeconds: number) => {
    duties.clock.ms += afterSeconds * 1000;
    duties.requested.length = 0;
    await duties.run("retry-unmeasured");
    return duties.requested;
  };

  expect(await asked(10)).toEqual([[[subnetId], "retry"]]);
  expect(await asked(10)).toEqual([]);
  const unknown = duties.state.delegationOf(subnetId)!;
  duties.state.setDelegation({ ...unknown, measured: true, rttMs: 3 });
  duties.state.setDelegation(unknown);
  expect(await asked(10)).toEqual([[[subnetId], "retry"]]);
  expect(await asked(290)).toEqual([]);
  expect(await asked(10)).toEqual([[[subnetId], "retry"]]);
});

it("does not measure unmeasured subnets while there is a single crawler", async () => {
  const north = await world.arrived("north");
  const subnetId = await world.site(1);
  await world.delegations.saveRound(roundOf(subnetId, [], { crawlerId: north, measured: false }));
  const duties = await scheduled(new TableFleet([north]));

  await duties.run("retry-unmeasured");

  expect(duties.requested).toEqual([]);
});

it("measures again for the subnets that were delegated without any answer", async () => {
  const [north, south] = [await world.arrived("north"), await world.arrived("south")];
  const subnetId = await world.site(1);
  const outcome = { type: "timed-out", method: "connect", reason: "3000 ms" } as const;
  const silent = { crawlerId: north, measured: false, probes: [{ crawlerId: north, outcome }] };
  await world.delegations.saveRound(roundOf(subnetId, [], silent));
  const duties = await scheduled(new TableFleet([north, south]));

  await duties.run("retry-unmeasured");
  expect(duties.requested).toEqual([]);
  duties.clock.ms += 300_000;
  await duties.run("retry-unmeasured");

  expect(duties.requested).toEqual([[[subnetId], "retry"]]);
});

it("gives every duty that can be hurried a turn of its own", async () => {
  const { names } = await scheduled(new TableFleet([]));

  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(
    expect.arrayContaining(["resolve-hosts", "delegate-subnets", "measure-crawlers", "rebalance-load"]),
  );
});
