/** One probe round against the real store: what is asked, what is stored, and what memory says afterwards. */
import { beforeEach, expect, it } from "vitest";
import { crawlersWithoutRoom, DayBudget } from "#coordinator/place/crawlers/crawler";
import type { RoundSettings } from "#coordinator/place/delegation/round-questions";
import { delegateSubnet } from "#coordinator/place/delegation/probe-round";
import { originOf } from "#coordinator/place/delegation/round-questions";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type Answer, flowWorld, TableFleet } from "../support/flow-world.ts";
import { eachMs, noon, secondsAfterNoon } from "../support/store-world.ts";
import { nearestRound, runRound as runOver } from "./round-world.ts";

const world = flowWorld();
let north: CrawlerId;
let south: CrawlerId;
let east: CrawlerId;

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
  east = await world.arrived("east");
});

const settings: RoundSettings = { ...nearestRound, policy: "exhaustive" };

const runRound = async (
  subnetId: SubnetId,
  fleet: TableFleet,
  differences: Partial<Parameters<typeof runOver>[2]> = {},
) => await runOver(world, subnetId, { state: await world.state(), fleet, settings, ...differences });

it("asks about the URL's own address, host and port, by the settings' method", async () => {
  const subnetId = await world.site(1);
  const fleet = new TableFleet([north, south], { "5.1.1.7": new Map([[north, 10]]) });

  await runRound(subnetId, fleet);

  expect(fleet.targets[0]).toEqual({
    host: "s1.example",
    address: "5.1.1.7",
    port: 80,
    secure: false,
    method: "connect",
    tries: 3,
    deadlineMs: 3000,
  });
});

it("finds host and port of http, https and of a URL that names its port", () => {
  const target = { subnetId: 1 as SubnetId, host: "a.example", address: "5.1.1.7" };

  expect(originOf({ ...target, url: "http://a.example/x" })).toEqual({
    host: "a.example",
    port: 80,
    secure: false,
  });
  expect(originOf({ ...target, url: "https://a.example/" })).toMatchObject({ port: 443, secure: true });
  expect(originOf({ ...target, url: "https://a.example:8443/" })).toMatchObject({ port: 8443, secure: true });
});

it("stores every probe in order, what failed with its reason, the decision and the runner-up", async () => {
  const subnetId = await world.site(1);
  const fleet = new TableFleet([north, south, east], {
    "5.1.1.7": new Map(eachMs([north, 30], [south, 12])),
  });

  const round = await runRound(subnetId, fleet);

  expect(round).toMatchObject({ crawlerId: south, rttMs: 12, runnerUpId: north, runnerUpRttMs: 30 });
  expect(
    await world.rows("select crawler_id, method, outcome, rtt_ms, detail from probe order by ordinal"),
  ).toEqual([
    { crawler_id: north, method: "connect", outcome: "measured", rtt_ms: 30, detail: "" },
    { crawler_id: south, method: "connect", outcome: "measured", rtt_ms: 12, detail: "" },
    { crawler_id: east, method: "connect", outcome: "timed-out", rtt_ms: null, detail: "3000 ms" },
  ]);
  expect(
    await world.rows(
      "select policy, cause, target_url, crawler_id, runner_up_id, reason->>'type' as reason from probe_round",
    ),
  ).toEqual([
    {
      policy: "exhaustive",
      cause: "new-subnet",
      target_url: "http://s1.example/",
      crawler_id: south,
      runner_up_id: north,
      reason: "fastest-of-all",
    },
  ]);
  expect(await world.delegations.readAll()).toMatchObject([
    { subnetId, crawlerId: south, measured: true, rttMs: 12, runnerUpId: north, runnerUpRttMs: 30 },
  ]);
});

it("does not compare a measurement by another method than the round's first", async () => {
  const subnetId = await world.site(1);
  const byHead = { type: "measured", method: "head", rttMs: 1, tries: 3 } as const;
  const fleet = new TableFleet([north, south, east], {
    "5.1.1.7": new Map<CrawlerId, Answer>([
      [north, 30],
      [south, byHead],
      [east, 20],
    ]),
  });

  const round = await runRound(subnetId, fleet);

  expect(round).toMatchObject({ crawlerId: east, rttMs: 20, runnerUpId: north });
  expect(round?.reason).toMatchObject({
    asked: [{}, { crawlerId: south, rttMs: null, failed: expect.stringContaining("not comparable") }, {}],
  });
  expect(await world.rows(`select method, rtt_ms from probe where crawler_id = ${south}`)).toEqual([
    { method: "head", rtt_ms: 1 },
  ]);
});

it("never probes a special-purpose address, and stores no round of it", async () => {
  const subnetId = await world.subnet("10.0.0.0", "10.0.0.255");
  const fleet = new TableFleet([north], { "10.0.0.7": new Map([[north, 1]]) });
  const target = { subnetId, url: "http://in.example/", host: "in.example", address: "10.0.0.7" };
  const ports = {
    state: await world.state(),
    fleet,
    delegations: world.delegations,
    random: () => 0,
    now: () => noon,
    excluded: () => new Set<CrawlerId>(),
  };

  expect(await delegateSubnet(target, "new-subnet", { ...ports, settings })).toBeNull();
  expect(fleet.asked).toEqual([]);
  expect(await world.rows("select from probe_round")).toEqual([]);

  const allowed = { ...settings, allowSpecialPurpose: true };
  expect(await delegateSubnet(target, "new-subnet", { ...ports, settings: allowed })).not.toBeNull();
});

it("runs no round for a subnet that is no longer in the tree", async () => {
  const subnetId = await world.site(1);
  const state = await world.state();
  await world.pool.query("update subnet set removed_in = 1");
  const fleet = new TableFleet([north], { "5.1.1.7": new Map([[north, 1]]) });

  expect(await runRound(subnetId, fleet, { state: await world.state() })).toBeNull();
  expect(await runRound(subnetId, fleet, { state })).not.toBeNull();
});

it("gives nothing to draining, full and offline crawlers, and does not ask them", async () => {
  const west = await world.arrived("west");
  const subnetId = await world.site(1);
  await world.pool.query("update crawler set state = 'draining' where crawler_id = $1", [north]);
  const state = await world.state();
  // Reading what is known marks everybody offline; these three are connected again.
  state.setCrawlers(
    state.crawlers.map((crawler) => ({
      ...crawler,
      state: crawler.crawlerId === north ? "draining" : "online",
    })),
  );
  const budget = new DayBudget();
  budget.spend(south, { pages: 1000, bytes: 0 }, noon);
  const fleet = new TableFleet([north, south, west], {
    "5.1.1.7": new Map([north, south, east, west].map((crawlerId, place) => [crawlerId, place + 1])),
  });

  const round = await runRound(subnetId, fleet, {
    state,
    excluded: () => crawlersWithoutRoom(state, budget, noon),
  });

  expect(round).toMatchObject({ crawlerId: west, reason: { type: "only-candidate" } });
  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).not.toContain(north);
  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).not.toContain(east);
});

it("stores a round that nobody could take, and delegates nothing", async () => {
  const subnetId = await world.site(1);

  const round = await runRound(subnetId, new TableFleet([north]), { excluded: () => new Set([north]) });

  expect(round).toMatchObject({ crawlerId: null, measured: false, probes: [] });
  expect(await world.rows("select crawler_id from probe_round")).toEqual([{ crawler_id: null }]);
  expect(await world.delegations.readAll()).toEqual([]);
});

it("calls a decision without any answer unmeasured, so that it is tried again and teaches nothing", async () => {
  const subnetId = await world.site(1);
  const sibling = await world.site(2);
  const state = await world.state();

  const round = await runRound(subnetId, new TableFleet([north, south]), { state });

  expect(round).toMatchObject({ measured: false, rttMs: null });
  expect(round?.crawlerId).not.toBeNull();
  expect(await world.delegations.unmeasuredBy(secondsAfterNoon(300))).toEqual([subnetId]);
  expect(state.knowledge.owners({ kind: "root", key: 0 })).toEqual([]);
  expect(state.placementOf(sibling)).not.toBeNull();
});
