/** The registry as the coordinator reads it, and the notice of a change. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createSubnetStore } from "#coordinator/place/subnets/subnet-store";
import { type SubnetTree, treeOfRows } from "#coordinator/place/subnets/subnet-tree";
import { SubnetRows } from "#coordinator/place/subnets/tree-columns";
import { type IpAddress, parseAddress } from "#core/ip/address";
import { formatRange } from "#core/ip/range";
import { tell } from "#db/schema-channel";
import { newWorld, type World } from "../support/store-world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

const readTree = async () => {
  const rows = new SubnetRows();
  const registry = await createSubnetStore(world.pool).readRows(rows);
  return { registry, tree: treeOfRows(rows) };
};
const subnetAt = (tree: SubnetTree, address: string) => tree.mostSpecific(parseAddress(address) as IpAddress);

test("subnets of both families come with all that is known of them, without those that are removed", async () => {
  await world.subnet("192.0.2.0", "192.0.2.127");
  await world.subnet("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
  const wide = await world.subnet("192.0.2.0", "192.0.2.255");
  await world.subnet("9.0.0.0", "9.0.0.5");
  await world.subnet("10.0.0.0", "10.0.0.255");
  await world.rows("update subnet set removed_in = 1 where first_address = '10.0.0.0'");
  await world.rows(
    `with h as (insert into holder (holder_key, name) values ('name:éxample', 'Éxample') returning holder_id)
     update subnet set holder_id = h.holder_id, country = 'GR', registry = 'apnic', name = 'NÉT-1'
     from h where last_address = '192.0.2.127'`,
  );

  const { tree } = await readTree();

  expect(tree.size).toBe(4);
  expect(formatRange(subnetAt(tree, "9.0.0.2")!.range)).toBe("9.0.0.0 - 9.0.0.5");
  expect(formatRange(subnetAt(tree, "2001:db8::7")!.range)).toBe("2001:db8::/32");
  expect(subnetAt(tree, "192.0.2.7")).toMatchObject({
    parentId: wide,
    holderId: expect.any(Number),
    country: "GR",
    registry: "apnic",
    name: "NÉT-1",
  });
  expect(subnetAt(tree, "192.0.2.200")).toMatchObject({ id: wide, holderId: null, country: null, name: "" });
  expect(subnetAt(tree, "10.0.0.1")).toBeNull();
});

test("rows say which registry they are of, to the microsecond: the newest that was applied and not rolled back", async () => {
  const store = createSubnetStore(world.pool);
  await world.rows(
    `insert into registry_generation (state, applied_at)
     values ('applied', '2026-03-01T12:00:00.000001+02'), ('rolled-back', now()), ('staged', now())`,
  );

  const { registry } = await readTree();

  expect(registry).toEqual({ generation: 2, appliedAt: "2026-03-01T10:00:00.000001Z" });
  expect(await store.registryInForce()).toEqual(registry);
  expect(await store.currentGeneration()).toBe(2);
  await world.rows("delete from registry_generation");
  const none = await readTree();
  expect([none.registry, none.tree.size]).toEqual([null, 0]);
});

test("a subnet that the tree cannot take ends the read, and the store serves on", async () => {
  await world.subnet("192.0.2.0", "192.0.2.127");
  await world.rows("update subnet set country = 'xx'");

  await expect(readTree()).rejects.toThrow(/not a country code.*xx/);

  expect(await createSubnetStore(world.pool).currentGeneration()).toBe(1);
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
  await tell(world.pool, "nearcrawl_registry", [""]);
  await first;
  const afterLoss = nextNotice();
  await world.rows(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where query like 'listen nearcrawl_registry%' and datname = current_database() and pid <> pg_backend_pid()`,
  );
  await afterLoss; // it listens again, and counts that as a change
  const second = nextNotice();
  await tell(world.pool, "nearcrawl_registry", [""]);
  await second;
  await listener.stop();
  await tell(world.pool, "nearcrawl_registry", [""]);

  expect(heard).toBe(3);
});
