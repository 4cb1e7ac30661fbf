/** Reads the database's tree in the form in which test/rir-import/source-folder.ts shows a wanted one. */

import type { ChainSubnet } from "#coordinator/place/subnets/subnets-api";
import { chainOf } from "#coordinator/tell/who/subnet-reads";
import { formatAddress } from "#core/ip/address";
import { firstAddress, lastAddress, parseRange } from "#core/ip/range";
import { rangeText } from "#db/range-text";
import type { Database } from "#db/server-database";
import type { ShownSubnet } from "./source-folder.ts";

export interface StoredSubnet extends ShownSubnet {
  readonly id: number;
  readonly holderName: string | null;
}

export async function treeInForce(database: Database): Promise<readonly StoredSubnet[]> {
  const { rows } = await database.pool.query<{
    id: number;
    first: string;
    last: string;
    parentFirst: string | null;
    parentLast: string | null;
    holder: string | null;
    holderName: string | null;
    country: string | null;
    registry: string;
    name: string;
  }>(`
    select c.subnet_id as id, host(c.first_address) as first, host(c.last_address) as last,
      host(p.first_address) as "parentFirst", host(p.last_address) as "parentLast",
      h.holder_key as holder, h.name as "holderName", c.country, c.registry, c.name
    from subnet c
    left join subnet p on p.subnet_id = c.parent_id
    left join holder h on h.holder_id = c.holder_id
    where c.removed_in is null
    order by c.first_address, c.last_address desc`);
  return rows.map(({ id, first, last, parentFirst, parentLast, ...fields }) => ({
    id,
    range: rangeText(first, last),
    parent: parentFirst && parentLast ? rangeText(parentFirst, parentLast) : null,
    ...fields,
  }));
}

/** Delegates this subnet itself to a crawler. */
export async function delegate(database: Database, range: string, crawler: string): Promise<number> {
  const tree = await treeInForce(database);
  const subnet = tree.find((candidate) => candidate.range === range);
  if (!subnet) throw new Error(`${range} is not in the tree`);
  await database.pool.query(
    `with k as (
       insert into crawler (name) values ($2)
       on conflict (name) do update set name = excluded.name
       returning crawler_id)
     insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
     select $1, crawler_id, 'operator', true, now() from k`,
    [subnet.id, crawler],
  );
  return subnet.id;
}

/** Maps the ranges of current subnets to their crawlers. */
export async function delegationsInForce(database: Database): Promise<Readonly<Record<string, string>>> {
  const { rows } = await database.pool.query<{ first: string; last: string; crawler: string }>(`
    select host(c.first_address) as first, host(c.last_address) as last, k.name as crawler
    from delegation
    join subnet c using (subnet_id)
    join crawler k using (crawler_id)
    where c.removed_in is null
    order by c.first_address`);
  return Object.fromEntries(rows.map(({ first, last, crawler }) => [rangeText(first, last), crawler]));
}

/** Returns the least specific first. */
export async function chainAt({ pool }: Database, text: string): Promise<readonly ChainSubnet[]> {
  const range = parseRange(text)!;
  const [first, last] = [firstAddress(range), lastAddress(range)].map(formatAddress);
  return (await chainOf(pool, first!, last!)).reverse();
}
