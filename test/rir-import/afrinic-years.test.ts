/**
 * AFRINIC's statistics of 2019 and 2026, planned, applied and rolled back with delegations. The expected results are
 * counted independently from the files' lines.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatAddress, parseAddress } from "#core/ip/address";
import { formatRange, parseRange } from "#core/ip/range";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { planImport } from "#rir-import/plan";
import { rollbackImport, rollForward } from "#rir-import/rollback";
import { testDatabase } from "../support/database.ts";
import { sharedData } from "../support/shared-data.ts";
import { chainAt, delegationsInForce, type StoredSubnet, treeInForce } from "./tree-in-force.ts";

const earlier = sharedData("rir/delegated/delegated-afrinic-extended-20190912.txt.gz");
const later = sharedData("rir/delegated/delegated-afrinic-extended-20260821.txt.gz");

/** Maps allocated or assigned ranges to country and opaque-id. */
function linesOf(file: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const line of gunzipSync(readFileSync(file)).toString().split("\n")) {
    const [registry, country, type, start, value, , status, id] = line.split("|");
    if (
      registry !== "afrinic" ||
      !/^ipv[46]$/.test(type ?? "") ||
      !/^(allocated|assigned)$/.test(status ?? "")
    )
      continue;
    const range = type === "ipv6" ? `${start}/${value}` : `${start} - ${endOf(start!, Number(value))}`;
    const key = formatRange(parseRange(range)!);
    if (!found.has(key)) found.set(key, `${country} ${id}`);
  }
  return found;
}

const endOf = (start: string, count: number) =>
  formatAddress({ family: 4, value: (parseAddress(start) as { value: number }).value + count - 1 });

describe.skipIf(earlier === null || later === null)("from 2019 to 2026 and back", () => {
  let database: Database;
  let before: readonly StoredSubnet[];
  let delegations: Readonly<Record<string, string>>;
  beforeAll(async () => {
    database = await testDatabase();
    await applyImport(database, [earlier!]);
    await database.pool.query(
      `with k as (
         insert into crawler (name)
         select 'crawler ' || n from generate_series(0, 6) n
         returning crawler_id, name)
       insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
       select subnet_id, crawler_id, 'operator', true, now()
       from subnet
       join k on k.name = 'crawler ' || subnet_id % 7
       where subnet_id % 3 = 0`,
    );
    before = await treeInForce(database);
    delegations = await delegationsInForce(database);
  });
  afterAll(() => database?.close());

  it("the plan counts what the files' lines say, for subnets and for delegations", async () => {
    const [old, now] = [linesOf(earlier!), linesOf(later!)];
    const kept = [...old.keys()].filter((range) => now.has(range));
    const changed = kept.filter((range) => old.get(range) !== now.get(range));

    const { changes, delegations: planned } = await planImport(database, [later!]);

    expect(before).toHaveLength(old.size);
    expect(changes).toMatchObject({
      added: now.size - kept.length,
      removed: old.size - kept.length,
      changed: changed.length,
    });
    const delegated = Object.keys(delegations);
    expect(planned.kept).toBe(delegated.filter((range) => now.has(range)).length);
    expect(planned.inherited + planned.lost).toBe(delegated.filter((range) => !now.has(range)).length);
    expect(await treeInForce(database)).toEqual(before);
  });

  it("the import keeps ids and delegations of what stays, and its undoing restores everything", async () => {
    // Seven years remove more used subnets than the accident limit.
    const { inUse } = await planImport(database, [later!]);
    const { plan } = await applyImport(database, [later!], { removeInUse: inUse.going });
    const after = await treeInForce(database);
    const stayed = await delegationsInForce(database);
    const some = after.filter((_, index) => index % 500 === 0);

    const idBefore = new Map(before.map(({ range, id }) => [range, id]));
    expect(after.filter(({ range, id }) => (idBefore.get(range) ?? id) !== id)).toEqual([]);
    expect(after).toHaveLength(plan.state.subnets);
    expect(Object.keys(stayed)).toHaveLength(plan.delegations.kept);
    for (const [range, crawler] of Object.entries(stayed)) expect(delegations[range]).toBe(crawler);
    for (const { range } of some) expect((await chainAt(database, range)).at(-1)?.range).toBe(range);

    await rollbackImport(database);

    expect(await treeInForce(database)).toEqual(before);
    expect(await delegationsInForce(database)).toEqual(delegations);
    await rollForward(database);
    expect(await treeInForce(database)).toEqual(after);
  });
});
