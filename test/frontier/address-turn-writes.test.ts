/** Turns at addresses where they are in another database than leases, as in the same: what is taken is given back or runs out. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { forgetTurns } from "#coordinator/frontier/address-turn-writes";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { createResultStore } from "#coordinator/results/result-store";
import { asLeaseId, asSubnetId, type CrawlerId } from "#core/ids";
import type { Database } from "#db/server-database";
import type { Lease } from "#protocol/lease";
import { testDatabase } from "../support/database.ts";
import {
  arrivedResult,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
  type World,
} from "../support/store-world.ts";

let slices: World[];
let shared: Database;
beforeAll(async () => {
  slices = [await newWorld(), await newWorld()];
  shared = await testDatabase({ maxConnections: 25 });
});
beforeEach(async () => {
  for (const slice of slices) await slice.reset();
  await shared.pool.query("delete from address_turn");
});
afterAll(async () => {
  for (const slice of slices ?? []) await slice.close();
  await shared?.close();
});

/** North and south have a subnet each, the same in both slices; `turns` is their own slice's, or is shared by both. */
async function fleet(turnsOf: (slice: World) => Pool = () => shared.pool) {
  const crawlers = new Map<string, CrawlerId>();
  for (const slice of slices)
    for (const [n, name] of ["north", "south"].entries()) {
      const crawlerId = await slice.crawler(name);
      const subnetId = await slice.subnet(`198.51.${n}.0`, `198.51.${n}.255`);
      await slice.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
      if (crawlers.has(name)) expect(crawlerId).toBe(crawlers.get(name));
      crawlers.set(name, crawlerId);
    }
  const frontiers = slices.map((slice) =>
    createFrontierStore(slice.pool, () => {}, { turns: turnsOf(slice) }),
  );
  const host = async (slice: number, name: string, of: "north" | "south", ...addresses: string[]) => {
    const world = slices[slice]!;
    await world.frontier.admit(seeds(`http://${name}.example/`, `http://${name}.example/2`), scope, noon);
    const [row] = await world.rows<{ subnet_id: number }>(
      `select d.subnet_id from delegation d where d.crawler_id = ${crawlers.get(of)}`,
    );
    const subnetId = asSubnetId(row!.subnet_id);
    await world.frontier.saveResolutions(
      [{ type: "resolved", host: `${name}.example`, addresses, subnetId, ttlSeconds: 3600 }],
      noon,
    );
  };
  const ask = async (slice: number, name: "north" | "south", seconds = 0): Promise<Lease[]> =>
    await frontiers[slice]!.leaseHosts({
      ...{ crawlerId: crawlers.get(name)!, hosts: 10, urlsPerHost: 1, leaseSeconds: 60 },
      ...{ addressRestSeconds: 5, now: secondsAfterNoon(seconds) },
    });
  return { ask, frontiers, host, north: crawlers.get("north")!, south: crawlers.get("south")! };
}

const hostsOf = (leases: readonly Lease[]) => leases.map(({ host }) => host.replace(".example", "")).sort();
const turns = async (pool: Pool = shared.pool) =>
  (await pool.query("select host(address) as address, crawler_id, leases from address_turn order by address"))
    .rows;

describe("turns that two slices share", () => {
  it("let one crawler have an address, whichever slice its hosts are in, and the other after a rest", async () => {
    const { ask, frontiers, host, north } = await fleet();
    await host(0, "a", "north", "192.0.2.1");
    await host(0, "b", "north", "192.0.2.1", "192.0.2.2");
    await host(1, "c", "south", "192.0.2.2");

    const first = hostsOf(await ask(0, "north"));
    const meanwhile = hostsOf(await ask(1, "south", 1));
    await frontiers[0]!.returnLeasesOf(north, secondsAfterNoon(10));
    const resting = hostsOf(await ask(1, "south", 14));
    const rested = hostsOf(await ask(1, "south", 15));

    expect([first, meanwhile, resting, rested]).toEqual([["a", "b"], [], [], ["c"]]);
  });

  it("are one crawler's even when twenty ask at once", async () => {
    const { ask, host } = await fleet();
    for (const [n, name] of ["a", "b", "c", "d"].entries())
      await host(n % 2, name, "north", "192.0.2.1", `192.0.2.${10 + n}`);
    for (const [n, name] of ["s", "t", "u", "v"].entries())
      await host(n % 2, name, "south", `192.0.2.${20 + n}`, "192.0.2.1");

    const asked = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => await ask((n >> 1) % 2, n % 2 === 0 ? "north" : "south")),
    );

    const [ofNorth, ofSouth] = [0, 1].map((side) => asked.flatMap((got, n) => (n % 2 === side ? got : [])));
    expect(Math.min(ofNorth!.length, ofSouth!.length)).toBe(0);
    expect(Math.max(ofNorth!.length, ofSouth!.length)).toBe(4);
    // And those who got nothing have left nothing behind.
    expect((await turns()).reduce((sum, { leases }) => sum + leases, 0)).toBe(8);
  });

  it("end with the results that complete a lease", async () => {
    const { ask, host, north } = await fleet();
    await host(0, "a", "north", "192.0.2.1");
    await host(1, "b", "south", "192.0.2.1");
    const [lease] = await ask(0, "north");

    const arrived = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: lease!.urls[0]!.url });
    const batch = { crawlerId: north, spoolId, results: [arrived], lastSequence: 1, scope };
    const results = createResultStore(slices[0]!.pool, null, { turns: shared.pool });
    const taken = await results.take({ ...batch, now: secondsAfterNoon(2) });

    expect(taken.stored).toBe(1);
    expect([hostsOf(await ask(1, "south", 6)), hostsOf(await ask(1, "south", 7))]).toEqual([[], ["b"]]);
  });
});

describe.each([
  ["another database", () => shared.pool],
  ["the leases' own", (slice: World) => slice.pool],
] as const)("with turns in %s", (_where, turnsOf) => {
  it("what was taken for a host that gets no lease is given back", async () => {
    const { ask, host, north } = await fleet(turnsOf);
    await host(0, "a", "north", "192.0.2.1");
    await host(0, "b", "north", "192.0.2.1", "192.0.2.2");
    // As its host has it, something of b is due.
    await slices[0]!.rows("update frontier_url set next_fetch_at = 'infinity' where url like 'http://b.%'");

    const got = hostsOf(await ask(0, "north"));

    expect(got).toEqual(["a"]);
    expect(await turns(turnsOf(slices[0]!))).toEqual([
      { address: "192.0.2.1", crawler_id: north, leases: 1 },
      { address: "192.0.2.2", crawler_id: north, leases: 0 },
    ]);
  });

  it("all is given back when leases cannot be written", async () => {
    const { ask, host } = await fleet(turnsOf);
    await host(0, "a", "north", "192.0.2.1");
    await slices[0]!.rows("alter table lease add constraint none_of_a check (host <> 'a.example')");

    try {
      await expect(ask(0, "north")).rejects.toThrow("none_of_a");
    } finally {
      await slices[0]!.rows("alter table lease drop constraint none_of_a");
    }

    expect((await turns(turnsOf(slices[0]!))).filter(({ leases }) => leases > 0)).toEqual([]);
    expect(hostsOf(await ask(0, "north"))).toEqual(["a"]);
  });

  it("the end of an old lease takes nothing off a turn that began after it had run out", async () => {
    const { ask, frontiers, host, north, south } = await fleet(turnsOf);
    await host(0, "a", "north", "192.0.2.1");
    await host(0, "b", "south", "192.0.2.1");
    await host(0, "c", "north", "192.0.2.1");
    await ask(0, "north");

    // The leases of north run out after 60 s, and the address rests for 30 s more; nobody has closed them.
    const early = hostsOf(await ask(0, "south", 89));
    const late = hostsOf(await ask(0, "south", 90));
    await frontiers[0]!.returnLeasesOf(north, secondsAfterNoon(91));
    const others = hostsOf(await ask(0, "north", 100));

    expect([early, late, others]).toEqual([[], ["b"], []]);
    expect(await turns(turnsOf(slices[0]!))).toEqual([
      { address: "192.0.2.1", crawler_id: south, leases: 1 },
    ]);
  });

  it("nor off a new turn of the same crawler", async () => {
    const { ask, frontiers, host, north } = await fleet(turnsOf);
    await host(0, "a", "north", "192.0.2.1");
    const [old] = await ask(0, "north");
    await host(0, "b", "north", "192.0.2.1");
    await host(0, "c", "south", "192.0.2.1");

    const again = hostsOf(await ask(0, "north", 90));
    await frontiers[0]!.returnLease(
      { leaseId: asLeaseId(old!.leaseId), crawlerId: north },
      secondsAfterNoon(91),
    );

    expect(again).toEqual(["b"]);
    expect(await turns(turnsOf(slices[0]!))).toEqual([
      { address: "192.0.2.1", crawler_id: north, leases: 1 },
    ]);
    expect(hostsOf(await ask(0, "south", 100))).toEqual([]);
  });

  it("no more statements are needed for many leases than for one", async () => {
    const { host, north } = await fleet();
    const slice = slices[0]!;
    let sequence = 0;
    const counted = async (names: readonly string[]) => {
      for (const name of names) {
        const address = `192.0.2.${10 + name.charCodeAt(0) - 97}`;
        await host(0, name, "north", "192.0.2.1", address);
      }
      const statements: string[] = [];
      const pool = counting(slice.pool, statements);
      const turnsPool = turnsOf(slice) === slice.pool ? pool : counting(shared.pool, statements);
      const frontier = createFrontierStore(pool, () => {}, { turns: turnsPool });
      const terms = { urlsPerHost: 1, leaseSeconds: 60, addressRestSeconds: 0, now: noon };
      const numbers: number[] = [];
      const since = () => numbers.push(statements.splice(0).length);
      const leases = await frontier.leaseHosts({ crawlerId: north, hosts: names.length, ...terms });
      expect(leases).toHaveLength(names.length);
      since();
      await Promise.all(
        leases.slice(1).map(async ({ leaseId }) => {
          await frontier.returnLease({ leaseId: asLeaseId(leaseId), crawlerId: north }, noon);
        }),
      );
      since();
      const [{ leaseId, urls }] = leases as [Lease];
      sequence += 1;
      const arrived = arrivedResult({ sequence, leaseId, url: urls[0]!.url });
      const batch = { crawlerId: north, spoolId, results: [arrived], lastSequence: sequence, scope };
      await createResultStore(pool, null, { turns: turnsPool }).take({ ...batch, now: noon });
      since();
      await slice.rows("update frontier_host set not_before = 'infinity'");
      return numbers;
    };
    // The first lease that is given back goes alone, the others together.
    const [few, many] = [await counted([..."abc"]), await counted([..."defghijklmnopqrst"])];

    expect(many).toEqual(few);
    expect(Math.max(...many)).toBeLessThan(60);
  });
});

it("leases end although their turns cannot be told, which is said", async () => {
  const { ask, host, north } = await fleet();
  await host(0, "a", "north", "192.0.2.1");
  await ask(0, "north");
  const gone = await testDatabase();
  await gone.close();
  const errors: unknown[] = [];
  const turnsKept = { turns: gone.pool, onTurnsKept: (error: unknown) => errors.push(error) };

  const ended = await createFrontierStore(slices[0]!.pool, () => {}, turnsKept).returnLeasesOf(
    north,
    secondsAfterNoon(10),
  );

  expect(ended).toBe(1);
  expect(errors).toHaveLength(1);
  expect(await slices[0]!.rows("select ending from lease")).toEqual([{ ending: "returned" }]);
});

/** The same pool; what it is asked is noted, without looks for hosts, of which there are more where few subnets have many. */
function counting(pool: Pool, statements: string[]): Pool {
  const connect = async () => {
    const client = await pool.connect();
    const query = (first: unknown, ...more: unknown[]) => {
      const text = typeof first === "string" ? first : (first as { text: string }).text;
      if (!/ as asked \(/.test(text)) statements.push(text);
      return (client.query as (...all: unknown[]) => unknown).call(client, first, ...more);
    };
    return Object.assign(Object.create(client) as PoolClient, {
      query,
      release: (broken?: boolean) => client.release(broken),
    });
  };
  return Object.assign(Object.create(pool) as Pool, { connect });
}

describe("a process that is killed", () => {
  /** Kills a process that leases or gives back at the moment when it waits for a lock, which is let go after that. */
  async function killed(
    deed: "lease" | "return",
    { crawlerId, seconds, at, lock }: { crawlerId: CrawlerId; seconds: number; at: Pool; lock: string },
  ): Promise<void> {
    const client = await at.connect();
    try {
      await client.query("begin");
      await client.query(lock);
      const of = (database: { url: string; schema: string }) => [database.url, database.schema];
      const script = join(import.meta.dirname, "lease-process.ts");
      const child = spawn(
        process.execPath,
        [
          ...["--conditions=nearcrawl-source", "--import", "tsx", script, deed],
          ...[...of(slices[0]!.database), ...of(shared)],
          ...[String(crawlerId), String(secondsAfterNoon(seconds).getTime())],
        ],
        { stdio: ["ignore", "inherit", "inherit"] },
      );
      const ended = new Promise((resolve) => child.once("exit", resolve));
      const isWaiting = async () => {
        const { rows } = await at.query<{ waits: boolean }>(
          `select exists (
             select from pg_stat_activity
             where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0) as waits`,
        );
        return rows[0]!.waits;
      };
      while (!(await isWaiting())) expect(child.exitCode).toBeNull();
      child.kill("SIGKILL");
      await ended;
      // Its server process notices when it would answer.
      await at.query(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity
         where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
      );
    } finally {
      await client.query("rollback");
      client.release();
    }
  }

  it("after it took a turn and before it wrote the lease keeps others away for no longer than the lease", async () => {
    const { ask, host, north } = await fleet();
    await host(0, "a", "north", "192.0.2.1");
    await host(1, "b", "south", "192.0.2.1");

    const lock = "lock table lease in share mode";
    await killed("lease", { crawlerId: north, seconds: 0, at: slices[0]!.pool, lock });

    expect(await slices[0]!.rows("select from lease")).toEqual([]);
    expect(await turns()).toEqual([{ address: "192.0.2.1", crawler_id: north, leases: 1 }]);
    expect(hostsOf(await ask(1, "south", 89))).toEqual([]);
    expect(hostsOf(await ask(1, "south", 90))).toEqual(["b"]);
  });

  it("after it gave a lease back and before it said so of the turn keeps others away for no longer", async () => {
    const { ask, host, north } = await fleet();
    await host(0, "a", "north", "192.0.2.1");
    await host(1, "b", "south", "192.0.2.1");
    await ask(0, "north");

    const lock = "select from address_turn for update";
    await killed("return", { crawlerId: north, seconds: 10, at: shared.pool, lock });

    expect(await slices[0]!.rows("select ending from lease")).toEqual([{ ending: "returned" }]);
    expect(await turns()).toEqual([{ address: "192.0.2.1", crawler_id: north, leases: 1 }]);
    // Its own crawler begins nothing there that would keep the turn going for ever.
    expect(hostsOf(await ask(0, "north", 40))).toEqual([]);
    expect(hostsOf(await ask(1, "south", 89))).toEqual([]);
    await forgetTurns(shared.pool, secondsAfterNoon(90));
    expect(await turns()).toEqual([{ address: "192.0.2.1", crawler_id: north, leases: 0 }]);
    expect(hostsOf(await ask(1, "south", 90))).toEqual(["b"]);
  });
});

it("a turn of a clock that went back since is over after a rest", async () => {
  const { ask, frontiers, host } = await fleet();
  const day = 86_400;
  await host(0, "a", "north", "192.0.2.1");
  await host(0, "b", "north", "192.0.2.2");
  await host(1, "c", "south", "192.0.2.1");
  await host(1, "d", "south", "192.0.2.2");
  const leases = await ask(0, "north", day);
  const b = leases.find((lease) => lease.host === "b.example")!;
  await frontiers[0]!.returnLease(
    { leaseId: asLeaseId(b.leaseId), crawlerId: (await turns())[0]!.crawler_id },
    secondsAfterNoon(day + 1),
  );

  await forgetTurns(shared.pool, noon);

  expect([hostsOf(await ask(1, "south", 29)), hostsOf(await ask(1, "south", 30))]).toEqual([[], ["c", "d"]]);
});

it("whoever writes leases tells of their turns, and nobody else writes table address_turn", () => {
  const root = join(import.meta.dirname, "../..");
  const sources = ["coordinator", "rir-import", "ops", "db"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(folder, name)),
  );
  const writing = (table: string) =>
    sources.filter((name) =>
      new RegExp(`\\b(insert into|update|delete from) ${table}\\b`).test(
        readFileSync(join(root, name), "utf8"),
      ),
    );

  expect(writing("address_turn")).toEqual(["coordinator/frontier/address-turn-writes.ts"]);
  // Two are parts of statements: of those in host-lease-writes and cross-fetch-store, and of closed leases alone. One sets
  // times right that a wrong clock wrote, and ends no lease.
  expect(writing("lease").toSorted()).toEqual([
    "coordinator/frontier/closed-lease-store.ts",
    "coordinator/frontier/lease-end-writes.ts",
    "coordinator/frontier/of-the-future-writes.ts",
    "coordinator/frontier/open-lease-reads.ts",
    "coordinator/results/result-writes.ts",
    "coordinator/trust/cross-fetch-verdict-store.ts",
  ]);
});
