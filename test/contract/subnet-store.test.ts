/** The registry as the coordinator reads it, and the notice of a change. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createSubnetStore } from "#coordinator/postgres/subnet-store";
import { formatRange } from "#core/ip/range";
import { newWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

const readAll = async () => {
  const ranges: string[] = [];
  for await (const subnet of createSubnetStore(world.pool).readAll()) ranges.push(formatRange(subnet.range));
  return ranges;
};

test("subnets come parents before children, IPv4 before IPv6, without those that are removed", async () => {
  await world.subnet("192.0.2.0", "192.0.2.127");
  await world.subnet("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
  await world.subnet("192.0.2.0", "192.0.2.255");
  await world.subnet("9.0.0.0", "9.0.0.5");
  await world.subnet("10.0.0.0", "10.0.0.255");
  await world.rows("update subnet set removed_in = 1 where first_address = '10.0.0.0'");

  expect(await readAll()).toEqual(["9.0.0.0 - 9.0.0.5", "192.0.2.0/24", "192.0.2.0/25", "2001:db8::/32"]);
});

test("more subnets than one fetch are all read", async () => {
  await world.rows(
    `insert into subnet (first_address, last_address, registry, added_in)
     select '10.0.0.0'::inet + n * 4, '10.0.0.3'::inet + n * 4, 'arin', 1 from generate_series(0, 10001) n`,
  );

  expect((await readAll()).length).toBe(10_002);
});

test("the generation in force is the newest that was applied and not rolled back", async () => {
  const store = createSubnetStore(world.pool);
  await world.rows("insert into registry_generation (state) values ('applied'), ('rolled-back'), ('staged')");

  expect(await store.currentGeneration()).toBe(2);
});

test("a notice is heard, also after the listening connection was lost, and not after stop", async () => {
  let heard = 0;
  let wake: () => void = () => {};
  const nextNotice = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  const listener = await createSubnetStore(world.pool).onChange(() => {
    heard++;
    wake();
  });

  const first = nextNotice();
  await world.rows("notify nearcrawl_registry");
  await first;
  const afterLoss = nextNotice();
  await world.rows(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where query = 'listen nearcrawl_registry' and pid <> pg_backend_pid()`,
  );
  await afterLoss; // it listens again, and counts that as a change
  const second = nextNotice();
  await world.rows("notify nearcrawl_registry");
  await second;
  await listener.stop();
  await world.rows("notify nearcrawl_registry");

  expect(heard).toBe(3);
});
