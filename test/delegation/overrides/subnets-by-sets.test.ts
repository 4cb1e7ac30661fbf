/** A subnet's crawler is the nearest whose domain sets hold any of its hosts, by name or language. */
import { describe, expect, it } from "vitest";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import {
  delegateBySets,
  heldBySomebody,
  heldHosts,
  partitionsOfFleet,
} from "#coordinator/place/delegation/overrides/assign-by-sets";
import { createMisplacedHostStore } from "#coordinator/place/delegation/overrides/misplaced-host-store";
import { delegateSubnet } from "#coordinator/place/delegation/probe-round";
import { createDelegationStore } from "#coordinator/place/delegation/store";
import { createDomainSetStore } from "#coordinator/place/domain-sets/domain-set-store";
import type { CrawlerId, SubnetId } from "#core/ids";
import { flowWorld, TableFleet } from "../../support/flow-world.ts";
import { finerWorld } from "./override-world.ts";

const world = flowWorld();

/** near (10 ms), middle (20 ms) and far (30 ms) from the hosts, which are in one undelegated subnet. */
async function openSubnet(hosts: readonly string[], sets: Readonly<Record<string, readonly string[]>>) {
  const { host, leased, ports } = await finerWorld(world);
  const names = ["near", "middle", "far"];
  const crawlers = await Promise.all(names.map(async (name) => await world.arrived(name)));
  const rtts = new Map(crawlers.map((crawlerId, at) => [crawlerId, 10 * (at + 1)]));
  const addresses = hosts.map((_, at) => `5.1.1.${at + 1}`);
  const fleet = new TableFleet(crawlers, Object.fromEntries(addresses.map((address) => [address, rtts])));
  for (const [at, name] of hosts.entries()) await host(name, addresses[at]!);
  const domainSets = createDomainSetStore(world.pool);
  const misplacedHosts = createMisplacedHostStore(world.pool);
  for (const [name, given] of Object.entries(sets)) await domainSets.give(name, given);

  /** Runs rounds for waiting and requested subnets, and then the domain sets' pass, until nothing changes. */
  const settle = async () => {
    const asked: SubnetId[] = [];
    const finer = await ports(fleet);
    const { state } = finer;
    const config = { domainSets: [] };
    const delegations = createDelegationStore(world.pool, () => heldBySomebody(fleet, state, config));
    const denied = new DeniedTargets(heldHosts(state, config));
    const round = { ...finer, delegations, denied };
    const bySets = {
      ...{ ...finer, misplacedHosts, partitionOf: partitionsOfFleet(state, config) },
      request: (subnetIds: readonly SubnetId[]) => void asked.push(...subnetIds),
    };
    for (let pass = 0; pass < 3; pass++) {
      for (const target of await delegations.waiting(10, []))
        await delegateSubnet(target, "new-subnet", round);
      for (const target of await delegations.targetsFor(asked.splice(0)))
        await delegateSubnet(target, "domain-set", round);
      await delegateBySets(bySets);
    }
  };
  const has = async () =>
    Object.fromEntries(
      await Promise.all(crawlers.map(async (id, at) => [names[at]!, await leased(id as CrawlerId)] as const)),
    );
  const speaks = async (name: string, language: string) =>
    await world.pool.query("update frontier_host set language = $2 where host = $1", [name, language]);
  return { settle, has, speaks };
}

describe("a subnet with hosts of several crawlers' sets", () => {
  it("has each host crawled by the nearest crawler whose sets hold it", async () => {
    const { settle, has } = await openSubnet(["a.com", "b.gr", "c.org"], {
      near: [".gr"],
      middle: [".org .gr"],
      far: [".com .gr .org"],
    });

    await settle();

    expect(await has()).toEqual({ near: ["b.gr"], middle: ["c.org"], far: ["a.com"] });
  });

  it("is delegated even if its first host is in nobody's sets", async () => {
    const { settle, has } = await openSubnet(["a.com", "b.gr"], {
      near: [".net"],
      middle: [".gr"],
      far: [".gr"],
    });

    await settle();

    expect(await has()).toEqual({ near: [], middle: ["b.gr"], far: [] });
    expect(await world.rows("select target_url from probe_round")).toEqual([{ target_url: "http://b.gr/" }]);
  });
});

describe("a subnet in one language", () => {
  it("goes to the nearest crawler before any page was read, and then to the nearest for its language", async () => {
    const hosts = ["a.com", "b.com"];
    const { settle, has, speaks } = await openSubnet(hosts, {
      near: ["lang:en"],
      middle: ["lang:el"],
      far: ["lang:el"],
    });

    await settle();
    const unread = (await world.delegations.readAll()).length;
    const [first] = await world.rows<{ name: string }>(
      "select name from delegation join crawler using (crawler_id)",
    );
    for (const host of hosts) await speaks(host, "el");
    await settle();

    expect([unread, first]).toEqual([1, { name: "near" }]);
    expect(await has()).toEqual({ near: [], middle: hosts, far: [] });
    expect(await world.rows("select name from delegation join crawler using (crawler_id)")).toEqual([
      { name: "middle" },
    ]);
    expect(await world.rows("select from finer_delegation")).toEqual([]);
  });

  it("that is known is delegated among the crawlers for its language", async () => {
    const { settle, has, speaks } = await openSubnet(["a.com"], { near: ["lang:en"], middle: ["lang:el"] });
    await speaks("a.com", "el");

    await settle();

    expect(await has()).toEqual({ near: [], middle: ["a.com"], far: [] });
  });
});
