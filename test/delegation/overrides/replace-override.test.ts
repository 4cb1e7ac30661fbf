/** Departed and drained crawlers pass on their hosts and parts; and rounds for these ask no crawler whose partner denies the target. */
import { beforeAll, beforeEach, expect, it } from "vitest";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { reviewTimes } from "#coordinator/place/delegation/overrides/override";
import {
  createFinerDelegationStore,
  type FinerDelegationStore,
} from "#coordinator/place/delegation/overrides/override-store";
import { replaceFiner } from "#coordinator/place/delegation/overrides/review";
import { finerRound } from "#coordinator/place/delegation/overrides/round";
import type { CrawlerId } from "#core/ids";
import { flowWorld, TableFleet } from "../../support/flow-world.ts";
import { noon, roundOf, secondsAfterNoon } from "../../support/store-world.ts";
import { finerWorld } from "./override-world.ts";

const world = flowWorld();
let finer: FinerDelegationStore;
const ids = {} as Record<"owner" | "near" | "third", CrawlerId>;
type Name = keyof typeof ids;

beforeAll(async () => {
  finer = createFinerDelegationStore(world.pool);
});
beforeEach(async () => {
  for (const name of ["owner", "near", "third"] as const) ids[name] = await world.arrived(name);
  const { owner, near, third } = ids;
  const leaf = await world.site(1);
  await world.delegations.delegateOwnSubnet(leaf, owner, noon);
  const probes = [[near, 10] as const, [third, 30] as const];
  const { subnetId, ...round } = roundOf(leaf, probes, { targetAddress: "5.1.1.7" });
  const roundId = await finer.saveRound({ ...round, withinSubnetId: subnetId });
  const measured = { rttMs: 10, runnerUpId: third, runnerUpRttMs: 30, subnetRttMs: null };
  const part = { first: "5.1.1.0", last: "5.1.1.127", crawlerId: near, roundId, reason: "", ...measured };
  await finer.setParts({ subnetId: leaf, subnetCrawlerId: owner, parts: [part] }, reviewTimes(noon));
});

const left = async () => await world.crawlers.leave({ crawlerId: ids.near, reason: "gone", now: noon });
const drained = async () => await world.crawlers.drain("near", noon);
const others = ["owner", "third"] as const;

it.each<[string, () => Promise<unknown>, number, readonly Name[], Name | null, Name | null]>([
  ["stays while its crawler may return", left, 119, others, null, "near"],
  ["goes to the next best of its latest round after the departure time", left, 121, others, null, "third"],
  ["goes at once when its crawler is drained", drained, 1, ["owner", "near", "third"], null, "third"],
  ["goes to the subnet's crawler where the next best is denied it", left, 121, others, "third", "owner"],
  ["returns to its subnet where no near crawler is allowed it", left, 121, ["third"], "third", null],
  ["waits while no crawler can take it", left, 121, [], null, "near"],
])("a part of a crawler that leaves %s", async (_, leave, seconds, online, denying, then) => {
  await leave();
  const denied = new DeniedTargets();
  if (denying !== null) denied.setList(ids[denying], { networks: ["5.1.1.0/24"], domains: [] });
  const ports = { finer, state: await world.state(), denied, online: () => online.map((name) => ids[name]) };

  const moved = await replaceFiner(ports, {
    departureMs: 120_000,
    since: noon,
    now: secondsAfterNoon(seconds),
  });

  expect(moved).toBe(then === null || then === "near" ? 0 : 1);
  const [part] = await world.rows<{ crawler_id: number }>("select crawler_id from finer_delegation");
  expect(part?.crawler_id).toBe(then === null ? undefined : ids[then]);
});

it("a round asks no crawler whose partner denies the target, not even one to compare with", async () => {
  const { owner, near, third } = ids;
  const west = await world.arrived("west");
  const crawlers = [owner, near, third, west];
  const address = "5.1.1.7";
  const answers = new Map(crawlers.map((crawlerId, at) => [crawlerId, 10 + at] as const));
  const fleet = new TableFleet(crawlers, { [address]: answers });
  const state = await world.state();
  const withinSubnetId = state.subnetOf(address)!;
  const denied = new DeniedTargets();
  denied.noteRefusal(owner, withinSubnetId, noon.getTime());
  denied.setList(near, { networks: ["5.1.1.0/24"], domains: [] });
  const target = { url: "http://s1.example/", host: "s1.example", address };
  const { ports } = await finerWorld(world);

  const outcome = await finerRound(
    { target, withinSubnetId, cause: "measures-apart", first: [owner] },
    { ...(await ports(fleet)), denied },
  );

  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toEqual([third, west]);
  expect(outcome?.decision?.crawlerId).toBe(third);
});

it("a round for a special-purpose address asks nobody", async () => {
  const { owner, near } = ids;
  const address = "10.0.0.7";
  const fleet = new TableFleet([owner, near], { [address]: new Map([[near, 10]]) });
  const withinSubnetId = (await world.state()).subnetOf("5.1.1.7")!;
  const { ports } = await finerWorld(world);

  const errand = { target: { url: "http://s1.example/", host: "s1.example", address }, withinSubnetId };
  const outcome = await finerRound({ ...errand, cause: "measures-apart", first: [] }, await ports(fleet));

  expect(outcome).toBeNull();
  expect(fleet.asked).toEqual([]);
});
