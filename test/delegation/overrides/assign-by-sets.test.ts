/** Hosts that the domain sets of their subnet's crawler exclude are delegated by themselves. */
import { expect, it } from "vitest";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import {
  delegateBySets,
  HostLanguages,
  heldHosts,
  partitionsOfFleet,
} from "#coordinator/place/delegation/overrides/assign-by-sets";
import { createMisplacedHostStore } from "#coordinator/place/delegation/overrides/misplaced-host-store";
import { createDomainSetStore } from "#coordinator/place/domain-sets/domain-set-store";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { type Answer, flowWorld, TableFleet } from "../../support/flow-world.ts";
import { noon } from "../../support/store-world.ts";
import { finerWorld } from "./override-world.ts";

const world = flowWorld();

/** near (10 ms), middle (20 ms) and far (30 ms) from a.com, b.gr and c.org, which are in one subnet: near's. */
async function threeCrawlers(answered = true) {
  const { host, delegated, leased, ports, rounds } = await finerWorld(world);
  const crawlers = await Promise.all(
    ["near", "middle", "far"].map(async (name) => await world.arrived(name)),
  );
  const [near, middle, far] = crawlers as [CrawlerId, CrawlerId, CrawlerId];
  const answers = (): ReadonlyMap<CrawlerId, Answer> =>
    new Map(answered ? crawlers.map((crawlerId, at) => [crawlerId, 10 * (at + 1)]) : []);
  const hosts = ["a.com", "b.gr", "c.org"];
  const fleet = new TableFleet(
    crawlers,
    Object.fromEntries(hosts.map((_, at) => [`5.1.1.${at + 1}`, answers()])),
  );
  for (const [at, name] of hosts.entries()) await delegated(await host(name, `5.1.1.${at + 1}`), near, 10);
  const domainSets = createDomainSetStore(world.pool);
  const misplacedHosts = createMisplacedHostStore(world.pool);
  const requested: string[] = [];
  const pass = async (own: readonly string[] = []) => {
    const finer = await ports(fleet);
    const partitionOf = partitionsOfFleet(finer.state, { domainSets: own });
    const request = (subnetIds: readonly SubnetId[], cause: string) =>
      void requested.push(`${cause} ${subnetIds.length}`);
    return await delegateBySets({ ...finer, misplacedHosts, partitionOf, request });
  };
  return { near, middle, far, fleet, leased, pass, rounds, requested, give: domainSets.give };
}

it("without domain sets, nothing is probed or moved", async () => {
  const { fleet, pass } = await threeCrawlers();

  expect(await pass()).toEqual({ moved: 0, ended: 0 });
  expect(fleet.asked).toEqual([]);
});

it("hosts that the subnet's crawler may not have go to the nearest whose sets hold them", async () => {
  const { near, middle, far, fleet, leased, pass, give } = await threeCrawlers();
  await give("near", [".com"]);
  await give("middle", [".org"]);

  const passed = await pass();

  expect(passed).toEqual({ moved: 2, ended: 0 });
  expect(await leased(near)).toEqual(["a.com"]);
  expect(await leased(middle)).toEqual(["c.org"]);
  expect(await leased(far)).toEqual(["b.gr"]);
  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).not.toContain(near);
});

it("a host that is in nobody's sets stays where it is and is leased to nobody", async () => {
  const { near, middle, far, leased, pass, give } = await threeCrawlers();
  for (const name of ["near", "middle", "far"]) await give(name, [".com .org"]);

  expect(await pass()).toEqual({ moved: 0, ended: 0 });
  const hosts = [await leased(near), await leased(middle), await leased(far)];

  expect(hosts).toEqual([["a.com", "c.org"], [], []]);
});

it("hosts outside the coordinator's own sets wait, whoever could have them", async () => {
  const { pass, give } = await threeCrawlers();
  await give("near", [".com"]);

  expect(await pass([".com", ".gr"])).toEqual({ moved: 1, ended: 0 });
});

it("hosts return to their subnet when its crawler may have them, and move when their own crawler may not", async () => {
  const { near, middle, far, leased, pass, give } = await threeCrawlers();
  await give("near", ["not .gr"]);
  await pass();
  await give("middle", [".com"]);
  const away = await pass();
  await give("near", []);
  const back = await pass();

  expect([away, back]).toEqual([
    { moved: 1, ended: 0 },
    { moved: 0, ended: 1 },
  ]);
  expect(await leased(near)).toEqual(["a.com", "b.gr", "c.org"]);
  expect([await leased(middle), await leased(far)]).toEqual([[], []]);
});

it("unmeasured hosts go to a crawler whose sets hold them, with one round for all of a subnet", async () => {
  const { middle, far, leased, pass, give, rounds } = await threeCrawlers(false);
  await give("near", [".com"]);
  await give("middle", [".gr .org"]);
  await give("far", [".net"]);

  expect(await pass()).toEqual({ moved: 2, ended: 0 });
  expect(await leased(middle)).toEqual(["b.gr", "c.org"]);
  expect(await leased(far)).toEqual([]);
  expect(rounds.map(({ cause }) => cause)).toEqual(["domain-set"]);
});

it("a subnet with no host that its crawler may have is probed again as a whole", async () => {
  const { pass, give, requested, rounds } = await threeCrawlers();
  await give("near", [".net"]);
  await give("middle", [".com"]);

  expect(await pass()).toEqual({ moved: 0, ended: 0 });
  expect(requested).toEqual(["domain-set 1"]);
  expect(rounds).toEqual([]);
});

it("a crawler whose sets hold none of a subnet's hosts is no candidate for it", async () => {
  const { near, middle, give } = await threeCrawlers();
  await give("near", [".com"]);
  const state = await world.state();
  const denied = new DeniedTargets(heldHosts(state, { domainSets: [] }));
  const [subnetId] = state.subnetsOf(near);
  const target = { subnetId: subnetId!, host: "b.gr", address: "5.1.1.2" };

  expect(denied.deniesAnything).toBe(true);
  expect(denied.denies(near, target, noon.getTime())).toBe(true);
  expect(denied.denies(middle, target, noon.getTime())).toBe(false);
  expect(denied.denies(near, { ...target, host: "a.com" }, noon.getTime())).toBe(false);
  const hosts = ["b.gr", "a.com"].map((host) => ({ host, language: null }));
  expect(denied.denies(near, { ...target, hosts }, noon.getTime())).toBe(false);
});

it("languages are updated for hosts with new pages, and once for hosts with earlier pages", async () => {
  const asked: string[][] = [];
  const store = {
    refreshLanguages: async (hosts: readonly HostHash[]) => asked.push(hosts.map(String)),
    hostsWithPages: async (after: HostHash | null) => (after === null ? (["7", "8"] as HostHash[]) : []),
    hostsWithoutLanguage: async (hosts: readonly HostHash[]) => hosts.filter((host) => host === "99"),
  };
  const languages = new HostLanguages(store);

  languages.note(["8", "9"] as HostHash[]);
  for (let pass = 0; pass < 3; pass++) await languages.pass({ all: true });

  expect(asked).toEqual([["8", "9", "7"], [], []]);
  // No set depends on languages: hosts without one, and twenty others.
  languages.note(Array.from({ length: 100 }, (_, host) => String(host) as HostHash));
  await languages.pass({ all: false });

  expect(asked.at(-1)).toEqual(["99", ...Array.from({ length: 20 }, (_, host) => String(host))]);
});
