/**
 * Imports lists of published places. Each list is compared with the one in force, written beside it and put in force
 * with the generation. An unchanged list is not rewritten. Earlier lists are kept for a rollback as long as they belong
 * to a recent import.
 *
 * A list that moves more than 30 % of its ranges is held back, because half a continent does not move in a week. The
 * old list stays until somebody confirms the new one or the old one expires.
 */
import { createHash } from "node:crypto";
import type { PoolClient } from "pg";
import type {
  PublishedFamily,
  PublishedList,
  PublishedRanges,
} from "#coordinator/place/subnets/published-ranges";
import { listsInForceSql, readRangesOf } from "#coordinator/place/subnets/published-reads";
import { rangeAt } from "#coordinator/place/subnets/range-columns";
import { formatRange } from "#core/ip/range";
import { writeCopy } from "#db/copy";
import { keptDays } from "../formats/published.ts";

const importsKept = 8;

/** A list that moves more than this share of its ranges is held back. */
const mostMovedShare = 0.3;
const fewestRanges = 20;

const samplesShown = 5;
const geofeedsShown = 20;
const dayMs = 86_400_000;

/** `all` names every source. */
export type AcceptedMoves = readonly string[];

interface PublishedChange extends PublishedList {
  readonly ranges: number;
  readonly places: number;
  /** Ranges that the list names without a place. */
  readonly withoutPlace: number;
  readonly rangesBefore: number;
  readonly added: number;
  readonly removed: number;
  readonly moved: number;
  readonly movedSamples: readonly {
    readonly range: string;
    readonly before: string | null;
    readonly after: string | null;
  }[];
  /** True when the list moves too many ranges, so the current list stays. */
  readonly isHeldBack: boolean;
}

export interface PublishedPlan {
  readonly lists: number;
  readonly ranges: number;
  readonly added: number;
  readonly removed: number;
  readonly moved: number;
  readonly changedLists: number;
  /** Every list. Of the geofeeds that registry objects name, only those with the most changes. */
  readonly sources: readonly PublishedChange[];
  readonly geofeeds: {
    readonly lists: number;
    readonly ranges: number;
    readonly rangesBefore: number;
    readonly removed: number;
  };
  readonly heldBack: readonly string[];
}

export interface PublishedDifference {
  readonly plan: PublishedPlan;
  /** The generation's lists: current ones that stay, and lists of the files by index. */
  readonly lists: readonly (ListInForce | { readonly index: number; readonly digest: string })[];
}

interface ListInForce extends PublishedList {
  readonly listId: number;
  readonly digest: string;
  readonly ranges: number;
}

export async function comparePublished(
  client: PoolClient,
  published: PublishedRanges,
  accepted: AcceptedMoves,
): Promise<PublishedDifference> {
  const before = new Map((await readInForce(client)).map((list) => [list.source, list]));
  const wanted = wantedLists(published);
  const gone = new Map(before);
  for (const { list } of wanted) gone.delete(list.source);
  const current = await readCurrent(client, [
    ...gone.values(),
    ...wanted.flatMap(({ list, digest }) => {
      const known = before.get(list.source);
      return known && known.digest !== digest ? [known] : [];
    }),
  ]);
  const lists: PublishedDifference["lists"][number][] = [];
  const changes: PublishedChange[] = [];
  let changedLists = gone.size;
  for (const one of wanted) {
    const known = before.get(one.list.source) ?? null;
    const isSame = known?.digest === one.digest;
    const compared = isSame
      ? { ...nothingChanged, rangesBefore: one.ranges }
      : compareList(published, one, current.get(known?.listId ?? -1) ?? new Map());
    const isHeldBack = known !== null && isTooMuch(compared) && !isAccepted(one.list, known, accepted);
    const { ranges, places, withoutPlace } = one;
    changes.push({ ...one.list, ranges, places, withoutPlace, ...compared, isHeldBack });
    if (isHeldBack) lists.push(known);
    else if (isSame && known !== null) lists.push({ ...known, ...one.list });
    else lists.push({ index: one.index, digest: one.digest });
    if (!isSame && !isHeldBack) changedLists += 1;
  }
  for (const { listId, digest: _, ranges, ...list } of gone.values()) {
    const sums = { ...nothingChanged, rangesBefore: ranges, removed: current.get(listId)?.size ?? 0 };
    changes.push({ ...list, ranges: 0, places: 0, withoutPlace: 0, ...sums, isHeldBack: false });
  }
  return { plan: planOf(changes, { published, changedLists }), lists };
}

function planOf(
  changes: readonly PublishedChange[],
  { published, changedLists }: { readonly published: PublishedRanges; readonly changedLists: number },
): PublishedPlan {
  const sum = (figure: "added" | "removed" | "moved", of = changes) =>
    of.reduce((total, change) => total + change[figure], 0);
  const geofeeds = changes.filter(({ isNamedByObjects }) => isNamedByObjects);
  const changed = (one: PublishedChange) => one.added + one.removed + one.moved;
  const most = geofeeds
    .filter((one) => changed(one) > 0)
    .sort((a, b) => Number(b.isHeldBack) - Number(a.isHeldBack) || changed(b) - changed(a));
  return {
    lists: published.lists.length,
    ranges: published.count,
    ...{ added: sum("added"), removed: sum("removed"), moved: sum("moved") },
    changedLists,
    sources: [
      ...changes.filter(({ isNamedByObjects }) => !isNamedByObjects),
      ...most.slice(0, geofeedsShown),
    ],
    geofeeds: {
      lists: geofeeds.filter(({ ranges }) => ranges > 0).length,
      ranges: geofeeds.reduce((total, { ranges }) => total + ranges, 0),
      rangesBefore: geofeeds.reduce((total, { rangesBefore }) => total + rangesBefore, 0),
      removed: sum("removed", geofeeds),
    },
    heldBack: changes.flatMap(({ source, isHeldBack }) => (isHeldBack ? [source] : [])).slice(0, 100),
  };
}

type Compared = Pick<PublishedChange, "rangesBefore" | "added" | "removed" | "moved" | "movedSamples">;
const nothingChanged: Compared = { rangesBefore: 0, added: 0, removed: 0, moved: 0, movedSamples: [] };

const isTooMuch = ({ rangesBefore, moved }: Compared) =>
  rangesBefore >= fewestRanges && moved > mostMovedShare * rangesBefore;

function isAccepted(wanted: PublishedList, known: PublishedList, accepted: AcceptedMoves): boolean {
  if (accepted.includes("all") || accepted.includes(wanted.source)) return true;
  if (wanted.listDate === null || known.listDate === null) return false;
  return Date.parse(wanted.listDate) - Date.parse(known.listDate) > keptDays * dayMs;
}

interface WantedList {
  readonly index: number;
  readonly list: PublishedList;
  readonly digest: string;
  readonly ranges: number;
  readonly places: number;
  readonly withoutPlace: number;
  readonly rows: readonly (readonly [family: PublishedFamily, rows: Int32Array])[];
}

function wantedLists(published: PublishedRanges): readonly WantedList[] {
  const [ipv4, ipv6] = [published.ipv4, published.ipv6].map((family) =>
    rowsByList(family, published.lists.length),
  );
  return published.lists.map((list, index) => {
    const rows = [
      [published.ipv4, ipv4![index]!],
      [published.ipv6, ipv6![index]!],
    ] as const;
    const hash = createHash("sha256").update(`${list.kind} ${list.isNamedByObjects}\n`);
    const places = new Set<number>();
    let withoutPlace = 0;
    for (const [family, own] of rows) {
      for (const row of own) {
        const place = family.places[row] as number;
        if (place === 0) withoutPlace += 1;
        else places.add(place);
        const within = published.texts[family.withins[row] as number];
        hash.update(`${keyOf(family, row)} ${published.texts[place]}\t${within}\n`);
      }
    }
    const ranges = rows.reduce((sum, [, own]) => sum + own.length, 0);
    return { index, list, digest: hash.digest("hex"), ranges, places: places.size, withoutPlace, rows };
  });
}

function rowsByList({ lists }: PublishedFamily, count: number): readonly Int32Array[] {
  const sizes = new Int32Array(count);
  for (const list of lists) sizes[list] = (sizes[list] as number) + 1;
  const rows = Array.from(sizes, (size) => new Int32Array(size));
  const filled = new Int32Array(count);
  lists.forEach((list, row) => {
    (rows[list] as Int32Array)[filled[list] as number] = row;
    filled[list] = (filled[list] as number) + 1;
  });
  return rows;
}

function keyOf({ columns: { words, first, last } }: PublishedFamily, row: number): string {
  return keyOfWords(words, first.subarray(row * words, (row + 1) * words), last.subarray(row * words));
}

function keyOfWords(words: 1 | 4, first: Uint32Array, last: Uint32Array): string {
  if (words === 1) return `${first[0]}-${last[0]}`;
  return `${first[0]}.${first[1]}.${first[2]}.${first[3]}-${last[0]}.${last[1]}.${last[2]}.${last[3]}`;
}

async function readCurrent(
  client: PoolClient,
  lists: readonly ListInForce[],
): Promise<ReadonlyMap<number, ReadonlyMap<string, string | null>>> {
  const places = new Map(lists.map(({ listId }) => [listId, new Map<string, string | null>()]));
  await readRangesOf(client, [...places.keys()], (listId, { words, first, last, place }) => {
    places.get(listId)?.set(keyOfWords(words, first, last), place);
  });
  return places;
}

function compareList(
  { texts }: PublishedRanges,
  wanted: WantedList,
  current: ReadonlyMap<string, string | null>,
): Compared {
  let [added, moved] = [0, 0];
  const movedSamples: { range: string; before: string | null; after: string | null }[] = [];
  for (const [family, rows] of wanted.rows) {
    for (const row of rows) {
      const before = current.get(keyOf(family, row));
      const after = texts[family.places[row] as number] || null;
      if (before === undefined) added += 1;
      else if (before !== after) {
        moved += 1;
        if (movedSamples.length < samplesShown)
          movedSamples.push({ range: formatRange(rangeAt(family.columns, row)), before, after });
      }
    }
  }
  const removed = current.size - (wanted.ranges - added);
  return { rangesBefore: current.size, added, removed, moved, movedSamples };
}

async function readInForce(client: PoolClient): Promise<readonly ListInForce[]> {
  const { rows } = await client.query<ListInForce>(
    `select l.list_id as "listId", l.source, l.kind, l.is_named_by_objects as "isNamedByObjects", l.digest, l.ranges,
       i.list_date::text as "listDate", i.version
     from (${listsInForceSql}) i
     join published_list l using (list_id)`,
  );
  return rows;
}

export async function writePublished(
  client: PoolClient,
  generation: number,
  {
    published,
    difference,
  }: { readonly published: PublishedRanges; readonly difference: PublishedDifference },
): Promise<void> {
  const fresh = difference.lists.flatMap((list) => ("index" in list ? [list] : []));
  const listIds = await insertLists(client, published, fresh);
  await writeRanges(client, published, listIds);
  const inForce = difference.lists.map((list) => {
    if ("listId" in list) return list;
    return { ...(published.lists[list.index] as PublishedList), listId: listIds.get(list.index) as number };
  });
  await client.query(
    `insert into published_list_in (generation, list_id, list_date, version)
     select $1, list_id, list_date, version
     from unnest($2::int[], $3::date[], $4::text[]) l (list_id, list_date, version)`,
    [
      generation,
      inForce.map(({ listId }) => listId),
      inForce.map(({ listDate }) => listDate),
      inForce.map(({ version }) => version),
    ],
  );
  await dropOld(client, generation);
}

async function insertLists(
  client: PoolClient,
  published: PublishedRanges,
  fresh: readonly { readonly index: number; readonly digest: string }[],
): Promise<ReadonlyMap<number, number>> {
  if (fresh.length === 0) return new Map();
  const lists = fresh.map(({ index }) => published.lists[index] as PublishedList);
  const counts = new Map<number, number>();
  for (const family of [published.ipv4, published.ipv6])
    for (const list of family.lists) counts.set(list, (counts.get(list) ?? 0) + 1);
  const { rows } = await client.query<{ source: string; listId: number }>(
    `insert into published_list (source, kind, is_named_by_objects, digest, ranges)
     select * from unnest($1::text[], $2::text[], $3::boolean[], $4::text[], $5::int[])
     returning source, list_id as "listId"`,
    [
      lists.map(({ source }) => source),
      lists.map(({ kind }) => kind),
      lists.map(({ isNamedByObjects }) => isNamedByObjects),
      fresh.map(({ digest }) => digest),
      fresh.map(({ index }) => counts.get(index) ?? 0),
    ],
  );
  const ids = new Map(rows.map(({ source, listId }) => [source, listId]));
  return new Map(fresh.map(({ index }) => [index, ids.get(published.lists[index]!.source) as number]));
}

async function writeRanges(
  client: PoolClient,
  { ipv4, ipv6, texts }: PublishedRanges,
  listIds: ReadonlyMap<number, number>,
): Promise<void> {
  if (listIds.size === 0) return;
  const columns = ["list_id", "first_address", "last_address", "place", "within_range"];
  await writeCopy(client, { table: "published_range", columns }, async (out) => {
    for (const family of [ipv4, ipv6]) {
      const { words, first, last } = family.columns;
      for (const [row, list] of family.lists.entries()) {
        const listId = listIds.get(list);
        if (listId === undefined) continue;
        out.row();
        out.int32(listId);
        out.inet(first, row * words, words);
        out.inet(last, row * words, words);
        for (const text of [family.places[row] as number, family.withins[row] as number]) {
          if (text === 0) out.null();
          else out.text(texts[text] as string);
        }
        if (out.isFull) await out.flush();
      }
    }
  });
}

/** Removes lists of old imports, and lists that belong to no remaining import. */
async function dropOld(client: PoolClient, generation: number): Promise<void> {
  await client.query(
    `delete from published_list_in
     where generation not in (
       select g.generation
       from registry_generation g
       where g.generation = $1 or (g.state in ('applied', 'rolled-back') and g.counts ? 'state')
       order by g.generation desc
       limit ${importsKept}
     )`,
    [generation],
  );
  await client.query(
    `delete from published_list l
     where not exists (select from published_list_in i where i.list_id = l.list_id)`,
  );
}
