/** Partners' deny-lists and what crawlers refuse: who is no candidate, for how long, and what hellos and results change. */
import { beforeEach, describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { startProbing } from "#coordinator/place/delegation/start";
import { asCrawlerId, asLeaseId, asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import type { ProbeOutcome } from "#protocol/messages";
import { type Answer, flowWorld, hello, TableFleet } from "../support/flow-world.ts";
import { arrivedResult, noon, spoolId } from "../support/store-world.ts";
import { nearestRound, runRound } from "./round-world.ts";

const [one, two] = [asCrawlerId(1), asCrawlerId(2)];
const target = (address: string, host = "s.example") => ({ subnetId: asSubnetId(7), host, address });

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
  ])("with %s denies %s: %s", (network, address, expected) => {
    expect(listed([network]).denies(one, target(address), 0)).toBe(expected);
    expect(listed([network]).denies(two, target(address), 0)).toBe(false);
  });

  it.each([
    ["shop.example", true],
    ["www.shop.example", true],
    ["WWW.SHOP.example.", true],
    ["myshop.example", false],
    ["example", false],
  ])("of the domain shop.example includes %s: %s", (host, expected) => {
    expect(listed([], ["Shop.example"]).denies(one, target("192.0.2.1", host), 0)).toBe(expected);
  });

  it("is replaced by the next hello, and its invalid networks are ignored", () => {
    const denied = listed(["192.0.2.0/24"]);
    const denies = () =>
      ["192.0.2.1", "198.51.100.1"].map((address) => denied.denies(one, target(address), 0));

    denied.setList(one, { networks: ["nonsense", "1.2.3.4/99", "198.51.100.0/24"], domains: [] });
    expect(denies()).toEqual([false, true]);
    denied.setList(one, undefined);
    expect(denies()).toEqual([false, false]);
  });

  it("knows which ranges it denies as a whole", () => {
    const denied = listed(["192.0.2.0/23"]);

    expect(
      ["192.0.2.0/24", "192.0.0.0/16"].map((range) => denied.deniesWhole(one, parseRange(range)!)),
    ).toEqual([true, false]);
  });
});

it("a refusal counts for its crawler and subnet alone, and expires after six hours", () => {
  const denied = new DeniedTargets();
  const hours = 3_600_000;
  denied.noteRefusal(one, asSubnetId(7), 0);
  const at = target("192.0.2.1");

  expect([6 * hours - 1, 6 * hours].map((nowMs) => denied.denies(one, at, nowMs))).toEqual([true, false]);
  expect(denied.denies(one, { ...at, subnetId: asSubnetId(8) }, 0)).toBe(false);
  expect(denied.denies(two, at, 0)).toBe(false);
});

const world = flowWorld();
let [north, south] = [0, 0] as unknown as [CrawlerId, CrawlerId];
let subnetId: SubnetId;

beforeEach(async () => {
  north = await world.arrived("north");
  south = await world.arrived("south");
  subnetId = await world.site(1);
});

describe("a round", () => {
  const settings = { ...nearestRound, policy: "exhaustive" } as const;
  const refusal: ProbeOutcome = { type: "not-allowed", method: "connect", reason: "the partner's deny-list" };
  const answers = (northern: Answer) =>
    new TableFleet([north, south], {
      "5.1.1.7": new Map<CrawlerId, Answer>([
        [north, northern],
        [south, 50],
      ]),
    });
  const asked = (fleet: TableFleet) => fleet.asked.map(({ crawlerId }) => crawlerId);

  it("does not ask a crawler whose partner denies the target, and waits when everybody's does", async () => {
    const denied = new DeniedTargets();
    denied.setList(north, { networks: ["5.1.1.0/24"], domains: [] });
    const fleet = answers(1);
    const ports = { state: await world.state(), fleet, denied, settings };

    expect(await runRound(world, subnetId, ports)).toMatchObject({ crawlerId: south, runnerUpId: null });
    expect(asked(fleet)).not.toContain(north);
    denied.setList(south, { networks: [], domains: ["example"] });
    expect(await runRound(world, subnetId, { ...ports, settings: nearestRound })).toMatchObject({
      ...{ crawlerId: null, reason: { type: "no-candidates" } },
    });
  });

  it("remembers who refused, and does not ask it in the next one", async () => {
    const fleet = answers(refusal);
    const ports = { state: await world.state(), fleet, denied: new DeniedTargets(), settings };

    expect(await runRound(world, subnetId, ports)).toMatchObject({ crawlerId: south });
    const before = fleet.asked.length;
    await runRound(world, subnetId, { ...ports, cause: "denied" });

    expect(asked(fleet).slice(before)).not.toContain(north);
    expect(await world.rows(`select outcome from probe where crawler_id = ${north}`)).toEqual([
      { outcome: "not-allowed" },
    ]);
  });

  it("does not mistake the refusal of a method for that of the subnet", async () => {
    await world.pool.query("update crawler set probe_methods = '{head}' where crawler_id = $1", [north]);
    const denied = new DeniedTargets();
    const fleet = answers({ ...refusal, reason: "connect is not possible" });

    await runRound(world, subnetId, { state: await world.state(), fleet, denied, settings });

    const at = { subnetId, host: "s1.example", address: "5.1.1.7" };
    expect(denied.denies(north, at, noon.getTime())).toBe(false);
  });
});

describe("what hellos and results say", () => {
  async function probing() {
    const second = await world.site(2);
    for (const owned of [subnetId, second]) await world.delegations.delegateOwnSubnet(owned, north, noon);
    const state = await world.state();
    const requested: unknown[] = [];
    const denied = new DeniedTargets(null, state);
    const hooks = startProbing(
      {
        ...{ fleet: new TableFleet([north]), state, denied, anycast: new AnycastRanges() },
        ...{ delegations: world.delegations, now: () => noon },
        request: (subnetIds, cause) => void (subnetIds.length > 0 && requested.push([subnetIds, cause])),
      },
      readCoordinatorConfig({}),
    );
    return { hooks, requested, second, denied };
  }

  it("requests rounds of the subnets that a crawler's hello denies as a whole, and none without denials", async () => {
    const { hooks, requested, second } = await probing();

    hooks.onHello(north, hello("north"));
    expect(requested).toEqual([]);
    hooks.onHello(north, hello("north", { denies: { networks: ["5.1.2.0/23"], domains: [] } }));
    expect(requested).toEqual([[[second], "denied"]]);
  });

  it.each([
    ["not-allowed", true],
    ["proxy", false],
  ])("takes the failure %s for a denial: %s", async (code, isDenial) => {
    const { hooks, requested, denied } = await probing();
    const outcome = { type: "failed", blame: "crawler", code, reason: "so" } as const;
    const { result } = arrivedResult({ sequence: 1, leaseId: "1", url: "http://s1.example/", outcome });
    const results = [{ sequence: 1, leaseId: asLeaseId("1"), wireBytes: 100, result }];

    await hooks.onFetched({ crawlerId: north, spoolId, results });

    const at = { subnetId, host: "s1.example", address: "5.1.1.7" };
    expect(requested).toEqual(isDenial ? [[[subnetId], "denied"]] : []);
    expect(denied.denies(north, at, noon.getTime())).toBe(isDenial);
  });
});
