/** Partners' deny-lists, and what crawlers refuse: who is no candidate, and for how long. */
import { beforeEach, describe, expect, it } from "vitest";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { asCrawlerId, asSubnetId, type CrawlerId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import type { ProbeOutcome } from "#protocol/messages";
import { type Answer, flowWorld, TableFleet } from "../support/flow-world.ts";
import { noon } from "../support/store-world.ts";
import { nearestRound, runRound } from "./round-world.ts";

const one = asCrawlerId(1);
const two = asCrawlerId(2);
const target = (address: string, host = "s.example") => ({ subnetId: asSubnetId(7), host, address });
const hours = 3_600_000;

describe("a deny-list", () => {
  const listed = (networks: string[], domains: string[] = []) => {
    const denied = new DeniedTargets();
    denied.setList(one, { networks, domains });
    return denied;
  };

  it.each([
    ["192.0.2.0/24", "192.0.2.9", true],
    ["192.0.2.0/24", "192.0.3.9", false],
    ["192.0.2.7 - 192.0.2.9", "192.0.2.9", true],
    ["192.0.2.7", "192.0.2.8", false],
    ["2001:db8::/32", "2001:db8:5::1", true],
    ["192.0.2.0/24", "::ffff:192.0.2.9", true],
    ["::ffff:192.0.2.0/120", "192.0.2.9", true],
    ["::ffff:192.0.2.0/120", "::ffff:192.0.2.9", true],
    ["::ffff:192.0.2.0/120", "192.0.3.9", false],
  ])("with %s: %s is denied: %s", (network, address, expected) => {
    expect(listed([network]).denies(one, target(address), 0)).toBe(expected);
    expect(listed([network]).denies(two, target(address), 0)).toBe(false);
  });

  it.each([
    ["shop.example", true],
    ["www.shop.example", true],
    ["WWW.SHOP.example.", true],
    ["myshop.example", false],
    ["example", false],
  ])("of the domain shop.example holds %s: %s", (host, expected) => {
    expect(listed([], ["Shop.example"]).denies(one, target("192.0.2.1", host), 0)).toBe(expected);
  });

  it("is replaced by the next hello, and what is no network in it counts for nothing", () => {
    const denied = listed(["192.0.2.0/24"]);

    denied.setList(one, { networks: ["nonsense", "1.2.3.4/99", "198.51.100.0/24"], domains: [] });
    expect(denied.denies(one, target("192.0.2.1"), 0)).toBe(false);
    expect(denied.denies(one, target("198.51.100.1"), 0)).toBe(true);
    denied.setList(one, undefined);

    expect(denied.denies(one, target("198.51.100.1"), 0)).toBe(false);
  });

  it("knows which ranges it holds as a whole", () => {
    const denied = listed(["192.0.2.0/23"]);

    expect(denied.deniesWhole(one, parseRange("192.0.2.0/24")!)).toBe(true);
    expect(denied.deniesWhole(one, parseRange("192.0.0.0/16")!)).toBe(false);
  });
});

describe("a refusal", () => {
  it("counts for its subnet alone, and is forgotten after six hours", () => {
    const denied = new DeniedTargets();

    denied.noteRefusal(one, asSubnetId(7), 0);

    expect(denied.denies(one, target("192.0.2.1"), 6 * hours - 1)).toBe(true);
    expect(denied.denies(one, { ...target("192.0.2.1"), subnetId: asSubnetId(8) }, 0)).toBe(false);
    expect(denied.denies(two, target("192.0.2.1"), 0)).toBe(false);
    expect(denied.denies(one, target("192.0.2.1"), 6 * hours)).toBe(false);
  });
});

describe("a round", () => {
  const world = flowWorld();
  let north: CrawlerId;
  let south: CrawlerId;

  beforeEach(async () => {
    north = await world.arrived("north");
    south = await world.arrived("south");
  });

  const refusal: ProbeOutcome = { type: "not-allowed", method: "connect", reason: "the partner's deny-list" };
  const settings = { ...nearestRound, policy: "exhaustive" } as const;
  const answers = (northern: Answer) =>
    new TableFleet([north, south], {
      "5.1.1.7": new Map<CrawlerId, Answer>([
        [north, northern],
        [south, 50],
      ]),
    });

  it("does not ask a crawler whose partner denies the target", async () => {
    const subnetId = await world.site(1);
    const denied = new DeniedTargets();
    denied.setList(north, { networks: ["5.1.1.0/24"], domains: [] });
    const fleet = answers(1);

    const round = await runRound(world, subnetId, { state: await world.state(), fleet, denied, settings });

    expect(round).toMatchObject({ crawlerId: south, runnerUpId: null });
    expect(fleet.asked.map(({ crawlerId }) => crawlerId)).not.toContain(north);
  });

  it("remembers who refused, and does not ask it in the next one", async () => {
    const subnetId = await world.site(1);
    const denied = new DeniedTargets();
    const fleet = answers(refusal);
    const state = await world.state();

    const first = await runRound(world, subnetId, { state, fleet, denied, settings });
    const asked = fleet.asked.length;
    await runRound(world, subnetId, { state, fleet, denied, settings, cause: "denied" });

    expect(first).toMatchObject({ crawlerId: south });
    expect(fleet.asked.slice(asked).map(({ crawlerId }) => crawlerId)).not.toContain(north);
    expect(await world.rows(`select outcome from probe where crawler_id = ${north}`)).toEqual([
      { outcome: "not-allowed" },
    ]);
  });

  it("takes the refusal of a method for what it is: the crawler may still have the subnet", async () => {
    const subnetId = await world.site(1);
    await world.pool.query("update crawler set probe_methods = '{head}' where crawler_id = $1", [north]);
    const denied = new DeniedTargets();

    await runRound(world, subnetId, {
      state: await world.state(),
      fleet: answers({ ...refusal, reason: "connect is not possible" }),
      denied,
      settings,
    });

    const asTarget = { subnetId, host: "s1.example", address: "5.1.1.7" };
    expect(denied.denies(north, asTarget, noon.getTime())).toBe(false);
  });

  it("waits when everybody's partner denies the target", async () => {
    const subnetId = await world.site(1);
    const denied = new DeniedTargets();
    for (const crawlerId of [north, south]) denied.setList(crawlerId, { networks: [], domains: ["example"] });

    const round = await runRound(world, subnetId, { state: await world.state(), fleet: answers(1), denied });

    expect(round).toMatchObject({ crawlerId: null, reason: { type: "no-candidates" } });
  });
});
