/** Tables published_list, published_range and published_list_in: the locations that networks publish for their ranges. */
import type { Pool, PoolClient } from "pg";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress, rangeBetween, rangeOfPrefix } from "#core/ip/range";
import { type CopiedRow, readCopy } from "#db/copy";
import {
  nothingPublished,
  type PublishedList,
  type PublishedRanges,
  PublishedRangesBuilder,
  type PublishedWord,
} from "./published-ranges.ts";

/** Lists of the latest full import in force. Earlier versions made generations without lists for subnets fetched by RDAP. */
export const listsInForceSql = `
  select i.list_id, i.list_date, i.version
  from published_list_in i
  where i.generation = (
    select max(generation) from registry_generation where state = 'applied' and counts ? 'state'
  )`;

interface ListRow extends PublishedList {
  readonly listId: number;
}

async function readListsInForce(on: Pool | PoolClient): Promise<readonly ListRow[]> {
  const { rows } = await on.query<ListRow>(
    `select l.list_id as "listId", l.source, l.kind, l.is_named_by_objects as "isNamedByObjects",
       i.list_date::text as "listDate", i.version
     from (${listsInForceSql}) i
     join published_list l using (list_id)
     order by l.list_id`,
  );
  return rows;
}

/** Reads everything in force in one snapshot. This takes milliseconds if nothing is published. */
export async function readPublishedRanges(pool: Pool): Promise<PublishedRanges> {
  const client = await pool.connect();
  let isUsable = false;
  try {
    await client.query("begin isolation level repeatable read read only");
    const published = await readInForce(client);
    await client.query("commit");
    isUsable = true;
    return published;
  } finally {
    client.release(!isUsable);
  }
}

async function readInForce(client: PoolClient): Promise<PublishedRanges> {
  const lists = await readListsInForce(client);
  if (lists.length === 0) return nothingPublished;
  const builder = new PublishedRangesBuilder();
  const indexes = new Map(lists.map(({ listId, ...list }) => [listId, builder.addList(list)]));
  await readRangesOf(client, [...indexes.keys()], (listId, row) => {
    builder.addWords(indexes.get(listId) as number, row, row);
  });
  return builder.build();
}

interface RangeWords {
  readonly family: 4 | 6;
  readonly words: 1 | 4;
  readonly first: Uint32Array;
  readonly last: Uint32Array;
  readonly place: string | null;
  readonly within: string | null;
}

/** Visits every range of the lists. The columns are valid only during the call. */
export async function readRangesOf(
  client: PoolClient,
  listIds: readonly number[],
  onRow: (listId: number, row: RangeWords) => void,
): Promise<void> {
  const first = new Uint32Array(4);
  const last = new Uint32Array(4);
  // COPY takes no parameters, but these numbers are our own.
  const select = `select list_id, first_address, last_address, place, within_range
    from published_range where list_id in (${listIds.map(Number).join(", ")})`;
  if (listIds.length === 0) return;
  await readCopy(client, select, (row: CopiedRow) => {
    const family = row.family(1);
    const words = family === 4 ? 1 : 4;
    for (let word = 0; word < words; word += 1) {
      first[word] = row.word(1, word);
      last[word] = row.word(2, word);
    }
    const [place, within] = [textOf(row, 3), textOf(row, 4)];
    onRow(row.int32(0), { family, words, first, last, place, within });
  });
}

const textOf = (row: CopiedRow, column: number) => (row.isNull(column) ? null : row.text(column));

const mostInside = 5000;

interface SaidRow extends ListRow {
  readonly firstAddress: string;
  readonly lastAddress: string;
  readonly place: string | null;
  readonly within: string | null;
}

/** The answer for one range as the coordinator has it in memory, read from the database. */
export async function publishedOf(
  pool: Pool,
  first: string,
  last: string,
): Promise<readonly PublishedWord[]> {
  const range = rangeOf(first, last);
  if (range === null) return [];
  const holding = prefixesOver(range);
  const said = `r.list_id as "listId", host(r.first_address) as "firstAddress", host(r.last_address) as "lastAddress",
    r.place, r.within_range as within, l.source, l.kind, l.is_named_by_objects as "isNamedByObjects",
    i.list_date::text as "listDate", i.version`;
  const { rows } = await pool.query<SaidRow>(
    `with in_force as (${listsInForceSql})
     (select ${said}
      from unnest($1::inet[], $2::inet[]) p (first_address, last_address)
      join published_range r using (first_address, last_address)
      join in_force i using (list_id)
      join published_list l using (list_id))
     union all
     (select ${said}
      from published_range r
      join in_force i using (list_id)
      join published_list l using (list_id)
      where r.first_address between $3 and $4 and r.last_address <= $4 and not (r.first_address = $3 and r.last_address = $4)
      limit ${mostInside + 1})`,
    [holding.map(([from]) => from), holding.map(([, to]) => to), first, last],
  );
  return buildOf(rows, range).of(range);
}

function buildOf(rows: readonly SaidRow[], asked: IpRange): PublishedRanges {
  const builder = new PublishedRangesBuilder();
  const lists = new Map<number, number>();
  const found = rows.map((row) => ({ ...row, range: rangeOf(row.firstAddress, row.lastAddress) as IpRange }));
  const isSmaller = ({ range }: (typeof found)[number]) => sizeOf(range) < sizeOf(asked);
  const tooMany = found.filter(isSmaller).length > mostInside;
  for (const row of found) {
    if (tooMany && isSmaller(row)) continue;
    const { source, kind, isNamedByObjects, listDate, version } = row;
    const list =
      lists.get(row.listId) ?? builder.addList({ source, kind, isNamedByObjects, listDate, version });
    lists.set(row.listId, list);
    builder.add(list, row.range, row);
  }
  return builder.build();
}

const sizeOf = ({ first, last }: IpRange) => Number(last) - Number(first);

function rangeOf(first: string, last: string): IpRange | null {
  const [from, to] = [parseAddress(first), parseAddress(last)];
  return from && to && rangeBetween(from, to);
}

function prefixesOver(range: IpRange): readonly (readonly [first: string, last: string])[] {
  const from = firstAddress(range);
  const longest = from.family === 4 ? 32 : 128;
  return Array.from({ length: longest + 1 }, (_, length) => rangeOfPrefix(from, length))
    .filter((prefix) => prefix !== null && lastAddress(prefix).value >= lastAddress(range).value)
    .map((prefix) => [
      formatAddress(firstAddress(prefix as IpRange)),
      formatAddress(lastAddress(prefix as IpRange)),
    ]);
}
