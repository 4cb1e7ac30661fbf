/** What of hellos and results concerns the rounds: who may no longer have what. */
import { beforeEach, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { AnycastRanges } from "#coordinator/place/delegation/anycast";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { type Probing, startProbing } from "#coordinator/place/delegation/start";
import type { RoundCause } from "#core/delegation-cause";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import type { FetchOutcome } from "#protocol/result";
import { flowWorld, hello, TableFleet } from "../support/flow-world.ts";
import { arrivedResult, noon } from "../support/store-world.ts";

const world = flowWorld();
let north: CrawlerId;
let first: SubnetId;
let second: SubnetId;
let probing: Probing;
let requested: [readonly SubnetId[], RoundCause][];

beforeEach(async () => {
  north = await world.arrived("north");
  first = await world.site(1);
  second = await world.site(2);
  for (const subnetId of [first, second]) await world.delegations.delegateOwnSubnet(subnetId, north, noon);
  requested = [];
  const state = await world.state();
  probing = startProbing(
    {
      fleet: new TableFleet([north]),
      state,
      ...{ denied: new DeniedTargets(null, state), anycast: new AnycastRanges() },
      delegations: world.delegations,
      now: () => noon,
      request: (subnetIds, cause) => {
        if (subnetIds.length > 0) requested.push([subnetIds, cause]);
      },
    },
    readCoordinatorConfig({}),
  );
});

const resultOf = (url: string, outcome: FetchOutcome) => {
  const { result } = arrivedResult({ sequence: 1, leaseId: "1", url, outcome });
  return { sequence: 1, leaseId: asLeaseId("1"), wireBytes: 100, result };
};
const batchOf = (url: string, outcome: FetchOutcome) => ({
  crawlerId: north,
  spoolId: "00000000-0000-4000-8000-000000000001",
  results: [resultOf(url, outcome)],
});
const failed = (code: string): FetchOutcome => ({ type: "failed", blame: "crawler", code, reason: "so" });
const inFirst = () => ({ subnetId: first, host: "s1.example", address: "5.1.1.7" });

it("asks for rounds of the subnets that a crawler's partner denies as a whole, as soon as it says so", () => {
  probing.onHello(north, hello("north", { denies: { networks: ["5.1.2.0/23"], domains: [] } }));

  expect(requested).toEqual([[[second], "denied"]]);
});

it("asks for nothing when a crawler of another version says nothing of denials", () => {
  probing.onHello(north, hello("north"));

  expect(requested).toEqual([]);
});

it("asks for a round of the subnet in which a crawler may not fetch, without that crawler", async () => {
  await probing.onFetched(batchOf("http://s1.example/", failed("not-allowed")));

  expect(requested).toEqual([[[first], "denied"]]);
  expect(probing.denied.denies(north, inFirst(), noon.getTime())).toBe(true);
});

it("takes no other failure for a denial", async () => {
  await probing.onFetched(batchOf("http://s1.example/", failed("proxy")));

  expect(requested).toEqual([]);
  expect(probing.denied.denies(north, inFirst(), noon.getTime())).toBe(false);
});
