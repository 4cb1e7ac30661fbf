/** Imports and rollbacks that remove many used subnets need confirmation; against a real Postgres. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ensureRootSubnets } from "#coordinator/place/subnets/subnet-store";
import { RemovesInUse } from "#core/errors";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { inUseOfRollbackWithin } from "#rir-import/database/subnets-in-use";
import { planImport } from "#rir-import/plan";
import { rollbackImport, rollForward } from "#rir-import/rollback";
import { testDatabase } from "../support/database.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";
import { delegate, delegationsInForce, treeInForce } from "./tree-in-force.ts";

let database: Database;
let folder: SourceFolder;
beforeEach(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterEach(async () => {
  folder.remove();
  await database.close();
});

const nets = (from: number, to: number) =>
  Array.from(
    { length: to - from },
    (_, n) => `inetnum: 45.10.${from + n}.0/24\nnetname: EX\ncountry: NL\nsource: RIPE\n\n`,
  ).join("");
const apply = async (text: string, removeInUse?: number) =>
  await applyImport(database, [folder.write("now.db", text)], { removeInUse: removeInUse ?? null });
const ranges = async () => (await treeInForce(database)).length;
/** Delegates the current subnets with these numbers. */
async function delegateAll(from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) await delegate(database, `45.10.${n}.0/24`, "amber");
}
async function hostIn(range: string): Promise<void> {
  await database.pool.query(
    `insert into frontier_host (host_hash, host, state, subnet_id)
     select subnet_id, 'h' || subnet_id || '.example', 'resolved', subnet_id from subnet
     where first_address = $1::inet and removed_in is null`,
    [range.split("/")[0]],
  );
}

describe("an import", () => {
  it("that removes one of twenty in use succeeds, and reports how many go", async () => {
    await apply(nets(0, 60));
    await delegateAll(0, 19);
    // Delegated or with hosts: twenty in all.
    await hostIn("45.10.18.0/24");
    await hostIn("45.10.19.0/24");

    const { plan } = await apply(nets(1, 20));

    expect(plan.inUse).toEqual({ total: 20, going: 1 });
    expect(await ranges()).toBe(19);
  });

  it("that removes more is refused with their number, changes nothing, and succeeds with that number alone", async () => {
    await apply(nets(0, 60));
    await delegateAll(0, 19);
    await hostIn("45.10.19.0/24");
    const file = folder.write("planned.db", nets(2, 60));

    const planned = await planImport(database, [file]);
    const refused = apply(nets(2, 60));
    await expect(refused).rejects.toBeInstanceOf(RemovesInUse);
    await expect(refused).rejects.toThrow(
      "this removes 2 of the 20 subnets in use (10.0 %), delegated or with hosts in the frontier. Nothing was changed; if that is meant, say --yes-remove 2",
    );
    for (const wrong of [1, 3, 20]) await expect(apply(nets(2, 60), wrong)).rejects.toThrow(`not ${wrong}`);
    const before = await ranges();
    const { generation } = await apply(nets(2, 60), 2);

    expect(planned.inUse).toEqual({ total: 20, going: 2 });
    expect([before, await ranges(), generation]).toEqual([60, 58, 2]);
    expect((await database.pool.query("select from registry_generation")).rowCount).toBe(2);
  });

  it("in place of the two placeholder roots is no loss", async () => {
    await ensureRootSubnets(database.pool);
    await delegate(database, "0.0.0.0/0", "amber");

    const { plan } = await apply(nets(0, 3));

    expect([plan.changes.removed, plan.inUse]).toEqual([2, { total: 0, going: 0 }]);
  });
});

describe("a rollback", () => {
  it("that removes many in use is refused, undoes nothing, and succeeds with their number", async () => {
    await apply(nets(0, 10));
    await apply(nets(0, 40));
    await delegateAll(8, 20);

    await expect(rollbackImport(database)).rejects.toThrow("removes 10 of the 12 subnets in use (83.3 %)");
    await expect(rollbackImport(database, 1, { removeInUse: 12 })).rejects.toThrow("not 12");
    const before = [await ranges(), await delegationsInForce(database)];
    const { rolledBack } = await rollbackImport(database, 1, { removeInUse: 10 });

    expect(before).toEqual([40, expect.objectContaining({ "45.10.19.0/24": "amber" })]);
    expect([rolledBack, await ranges()]).toEqual([[2], 10]);
  });

  it("counts what several imports added, and what one had restored", async () => {
    await apply(nets(0, 10));
    await apply(nets(2, 30));
    await delegateAll(2, 22);
    await apply(nets(0, 30));
    await delegateAll(0, 2);

    await expect(rollbackImport(database)).rejects.toThrow("removes 2 of the 22");
    await expect(rollbackImport(database, 2)).rejects.toThrow("removes 12 of the 22");
  });

  it("is counted for a caller that waits, within its time limit", async () => {
    await apply(nets(0, 10));
    await delegateAll(0, 4);
    const locked = await database.pool.connect();
    try {
      const soon = await inUseOfRollbackWithin(database.pool, 1, 10_000);
      await locked.query("begin; lock table delegation in access exclusive mode");
      const late = await inUseOfRollbackWithin(database.pool, 1, 50);
      await locked.query("rollback");

      expect([soon, late]).toEqual([{ total: 4, going: 4 }, null]);
      // Its connection is unchanged.
      expect((await database.pool.query("show statement_timeout")).rows).toEqual([
        { statement_timeout: "0" },
      ]);
    } finally {
      locked.release(true);
    }
  });

  it("to an empty tree needs both confirmations, and one step restores everything", async () => {
    await apply(nets(0, 10));
    await delegateAll(0, 4);
    const was = await delegationsInForce(database);

    await expect(rollbackImport(database, 1, { toEmpty: true })).rejects.toThrow("--yes-remove 4");
    await expect(rollbackImport(database, 1, { removeInUse: 4 })).rejects.toThrow("--to-empty");
    await rollbackImport(database, 1, { toEmpty: true, removeInUse: 4 });
    await ensureRootSubnets(database.pool);
    const emptied = await delegationsInForce(database);
    const { generation } = await rollForward(database);

    expect([emptied, generation]).toEqual([{}, 1]);
    expect(await delegationsInForce(database)).toEqual(was);
  });
});
