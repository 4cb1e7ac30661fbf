/** What a coordinator reads at its start, and how it follows the registry, over a real database. */
import { rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { followRegistry, readWhatIsKnown } from "#coordinator/load-state";
import { DayBudget } from "#coordinator/place/crawlers/crawler";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { ensureRootSubnets } from "#coordinator/place/subnets/subnet-store";
import type { SubnetRows } from "#coordinator/place/subnets/tree-columns";
import { createTreeSnapshots } from "#coordinator/place/subnets/tree-snapshot-store";
import { silentLog } from "#core/log";
import { tell } from "#db/schema-channel";
import { newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { keyOf, noon, roundOf, scope, seeds } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const world = await forThisFile(newFlowWorld());
const following: { stop(): Promise<void> }[] = [];
beforeEach(async () => await world.reset());
afterEach(async () => {
  for (const { stop } of following.splice(0)) await stop();
});

const told = async () => await tell(world.pool, "nearcrawl_registry", ["{}"]);
const newGeneration = async () =>
  await world.pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");

type RegistryPorts = Parameters<typeof followRegistry>[0];
type GivenPorts = Omit<RegistryPorts, "ensureRoots"> & Partial<RegistryPorts>;

async function follow(ports: GivenPorts): Promise<{ stop(): Promise<void> }> {
  const registry = await followRegistry({ ensureRoots: async () => false, ...ports });
  following.push(registry);
  return registry;
}

describe("a coordinator that starts", () => {
  it("knows tree, crawlers, delegations, distances and today's pages, and nobody is online", async () => {
    const north = await world.arrived("north", 100);
    const south = await world.arrived("south");
    const subnetId = await world.site(1);
    await world.delegations.saveRound(roundOf(subnetId, [[north, 10]], { method: "connect" }));
    await world.crawlers.saveRtts([{ from: north, to: south, rttMs: 25, method: "connect" }], noon);
    const { hostHash, urlHash } = keyOf("http://s1.example/");
    const midnight = new Date("2030-01-01T00:00:00Z");
    for (const fetchedAt of [new Date(midnight.getTime() - 1), midnight, noon]) {
      await world.pool.query(
        `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes,
           body_bytes, shipped_bytes)
         values ($1, $2, $3, $4, 'fetched', 1, 1, 1, 1)`,
        [hostHash, urlHash, north, fetchedAt],
      );
    }
    const budget = new DayBudget();

    const state = await world.state(budget);

    expect(state.subnetOf("5.1.1.200")).toBe(subnetId);
    expect(state.delegationOf(subnetId)).toMatchObject({ crawlerId: north, rttMs: 10 });
    expect(state.knowledge.owners({ kind: "root", key: 0 })).toEqual([{ crawlerId: north, count: 1 }]);
    expect(state.peerRtts.rttMs(south, north)).toBe(25);
    const learned = state.learnedRtts("connect");
    expect(learned.figuresOf(learned.wonBy(north)[0]!, north)?.rttMs).toBe(10);
    expect(state.learnedRtts("head").size).toBe(0);
    expect(state.crawlers.map((crawler) => [crawler.name, crawler.state])).toEqual([
      ["north", "offline"],
      ["south", "offline"],
    ]);
    expect(budget.spent(north, noon)).toMatchObject({ pages: 2 });
  });
});

describe("a coordinator that keeps its tree on disk", () => {
  let folder: string;
  beforeEach(async () => {
    folder = temporaryFolder("nearcrawl-snapshot-");
  });
  afterEach(async () => await rm(folder, { recursive: true, force: true }));

  /** The state after a start, whether rows were read for it, and what the log said. */
  const start = async () => {
    const said: string[] = [];
    const log = {
      ...silentLog,
      info: (_: object, text: string) => said.push(text),
      warn: (_: object, text: string) => said.push(text),
    };
    const snapshots = createTreeSnapshots({ folder, schema: "world", log, fewestSubnets: 1 });
    let reads = 0;
    const readRows = async (into: SubnetRows) => {
      reads += 1;
      return await world.subnets.readRows(into);
    };
    const state = new CoordinatorState();
    const ports = { ...world, subnets: { ...world.subnets, readRows }, state, snapshots };
    await readWhatIsKnown({ ...ports, budget: new DayBudget() }, noon);
    await snapshots.idle();
    return { state, reads, said, ports, snapshots };
  };

  it("reads no rows when it starts again, and knows the same", async () => {
    const subnetId = await world.site(1);
    const first = await start();

    const second = await start();

    expect([first.reads, second.reads]).toEqual([1, 0]);
    expect(second.state.subnetOf("5.1.1.200")).toBe(subnetId);
    expect(second.state.generation).toBe(first.state.generation);
    expect(second.said).toEqual([]);
  });

  it("reads the rows again after an import, and the next start has them", async () => {
    await world.site(1);
    await start();
    const narrow = await world.subnet("5.1.1.0", "5.1.1.63");
    await newGeneration();

    const second = await start();
    const third = await start();

    expect([second.reads, third.reads]).toEqual([1, 0]);
    expect(second.said).toEqual([
      "the registry changed since the snapshot of the tree; the tree is built from the database",
    ]);
    expect(third.state.subnetOf("5.1.1.7")).toBe(narrow);
  });

  it("does not take the snapshot of another database for its own", async () => {
    await world.site(1);
    await start();
    await world.pool.query("update registry_generation set applied_at = now() + interval '1 second'");

    expect((await start()).reads).toBe(1);
  });

  it("reads the rows where the snapshot is damaged, says so, and writes a good one", async () => {
    await world.site(1);
    await start();
    await truncate(join(folder, "world.tree"), 1000);

    const second = await start();

    expect(second.reads).toBe(1);
    expect(second.said).toEqual(["snapshot of the tree is of no use; the tree is built from the database"]);
    expect((await start()).reads).toBe(0);
  });

  it("keeps the new tree when the registry changes while it runs", async () => {
    await world.site(1);
    const first = await start();
    const registry = await follow({ ...first.ports, log: silentLog });
    const narrow = await world.subnet("5.1.1.0", "5.1.1.63");
    await newGeneration();
    await told();
    await until(() => first.state.subnetOf("5.1.1.7") === narrow, 5000);
    await registry.stop();
    await first.snapshots.idle();

    const second = await start();

    expect([second.reads, second.state.subnetOf("5.1.1.7")]).toEqual([0, narrow]);
  });
});

describe("the registry in force", () => {
  it("replaces the old one after an import, and hosts move with it", async () => {
    const wide = await world.site(1);
    const state = await world.state();
    const registry = await follow({ ...world, state, log: silentLog });
    const narrow = await world.subnet("5.1.1.0", "5.1.1.63");
    await newGeneration();

    await told();
    await until(() => state.subnetOf("5.1.1.7") === narrow, 5000);
    await registry.stop();

    expect(state.subnetOf("5.1.1.99")).toBe(wide);
    expect(await world.rows("select subnet_id from frontier_host")).toEqual([{ subnet_id: narrow }]);
  });

  it("is read again when it changed between the start and the first notice", async () => {
    const state = await world.state();
    const subnetId = await world.subnet("5.1.1.0", "5.1.1.255");
    await newGeneration();

    await follow({ ...world, state, log: silentLog });

    await until(() => state.subnetOf("5.1.1.7") === subnetId, 5000);
  });

  it("keeps the old tree when the new one cannot be read, and says so", async () => {
    const subnetId = await world.site(1);
    const state = await world.state();
    const errors: string[] = [];
    const log = { ...silentLog, error: (_: object, message: string) => errors.push(message) };
    const subnets = {
      ...world.subnets,
      readRows: async () => {
        throw new Error("away");
      },
    };
    const registry = await follow({ ...world, subnets, state, log });

    await told();
    await until(() => errors.length > 0, 5000);
    await registry.stop();

    expect(errors[0]).toContain("the old one serves on");
    expect(state.subnetOf("5.1.1.7")).toBe(subnetId);
  });

  it("is no longer read after stopping", async () => {
    const state = await world.state();
    let reads = 0;
    const subnets = {
      ...world.subnets,
      readRows: async (into: SubnetRows) => {
        reads += 1;
        return await world.subnets.readRows(into);
      },
    };
    const registry = await follow({ ...world, subnets, state, log: silentLog });
    await told();
    await until(() => reads > 0, 5000);

    await registry.stop();
    const subnetId = await world.subnet("5.1.1.0", "5.1.1.255");
    await told();
    await world.rows("select pg_sleep(0.05)");

    expect(reads).toBe(1);
    expect(state.subnetOf("5.1.1.7")).not.toBe(subnetId);
  });
});

describe("the two roots", () => {
  beforeEach(async () => {
    await world.pool.query("delete from registry_generation");
  });

  it("hold every address where no registry is in force, so that one crawler can work", async () => {
    expect(await ensureRootSubnets(world.pool)).toBe(true);

    const state = await world.state();
    expect(state.tree.size).toBe(2);
    expect(state.subnetOf("5.1.1.7")).not.toBeNull();
    expect(state.subnetOf("2a00:1::1")).not.toBe(state.subnetOf("5.1.1.7"));
    await world.frontier.admit(seeds("http://a.example/"), scope, noon);
  });

  it("are added once, by the first of twenty coordinators", async () => {
    const added = await Promise.all(Array.from({ length: 20 }, () => ensureRootSubnets(world.pool)));

    expect(added.filter((one) => one)).toHaveLength(1);
    expect((await world.state()).tree.size).toBe(2);
  });

  it("are not awaited while a registry is in force, or the first one is being imported", async () => {
    const client = await world.pool.connect();
    await client.query("begin; lock table registry_generation in row exclusive mode");

    expect(await ensureRootSubnets(world.pool)).toBe(false);
    await client.query("commit");
    await newGeneration();
    await client.query("begin; lock table registry_generation in row exclusive mode");
    expect(await ensureRootSubnets(world.pool)).toBe(false);
    await client.query("rollback");
    client.release();
    expect((await world.state()).tree.size).toBe(0);
  });

  it("are added later where an import is running at the start and fails", async () => {
    const client = await world.pool.connect();
    await client.query("begin; lock table registry_generation in row exclusive mode");
    const state = await world.state();
    let tries = 0;
    const ensureRoots = async () => await ensureRootSubnets(world.pool).finally(() => tries++);

    await follow({ ...world, state, log: silentLog, ensureRoots });
    await until(() => tries > 0, 10_000);
    expect(state.tree.size).toBe(0);
    await client.query("rollback");
    client.release();

    await until(() => state.tree.size === 2, 20_000);
  });

  it("replace a missing registry: at a start, and once the last import was rolled back", async () => {
    const state = await world.state();

    await follow({ ...world, state, log: silentLog, ensureRoots: () => ensureRootSubnets(world.pool) });
    await until(() => state.tree.size === 2, 5000);
    const [generation, subnetId] = [state.generation, state.subnetOf("5.1.1.7")];
    await world.pool.query(
      "update subnet set removed_in = added_in; update registry_generation set state = 'rolled-back'",
    );
    await told();
    await until(() => state.generation !== generation, 5000);

    expect([state.tree.size, state.subnetOf("5.1.1.7")]).toEqual([2, subnetId]);
  });

  it("come back after they were rolled back or replaced", async () => {
    await ensureRootSubnets(world.pool);
    await world.pool.query(
      `update subnet set removed_in = added_in where family(first_address) = 4;
       update registry_generation set state = 'rolled-back'`,
    );

    expect(await ensureRootSubnets(world.pool)).toBe(true);
    expect((await world.state()).tree.size).toBe(2);
  });
});
