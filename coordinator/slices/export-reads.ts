/**
 * What an export reads of all slices. Pages are read from the slice that holds their host at that moment, by what it says itself:
 * the catalogue may be some seconds old, and the rows of hosts that move are in two slices for a while. For the moments in which
 * no slice holds them, the export waits.
 */
import type { Pool } from "pg";
import { ExportError } from "#core/errors";
import { howMany } from "#core/format";
import type { HostHash } from "#core/ids";
import type { UrlAddress } from "#core/url-key";
import { isConnectionLost } from "#db/server-database";
import { createChangeFeed } from "../changes/change-feed-reads.ts";
import { byHash, firstOf, OverSlices } from "../database/over-slices.ts";
import {
  bucketCount,
  bucketOf,
  bySlice,
  hashesOf,
  type OpenSlice,
  type Slices,
  upOf,
} from "../database/slices.ts";
import { type ExportReads, SliceIsAway } from "../search/export/export-index.ts";
import type { PageNow } from "../search/export/export-operation.ts";
import {
  createExportReads,
  hostsInShort,
  type SliceExportReads,
  sliceExportReads,
} from "../search/export/export-reads.ts";
import { bucketsIn } from "./slice-reads.ts";

export interface SlicedExportPorts {
  readonly slices: Slices;
  /** Which slices there are by now, and which of them answer. */
  readonly refresh: () => Promise<void>;
  /** Rejects when the export is to end. */
  readonly pause: (ms: number) => Promise<void>;
}

const pauseMs = 500;
/** Rows of 50,000 hosts are copied in less. */
const mostPauses = 1200;

/** With one slice, what it reads is all. */
export function exportReads(ports: SlicedExportPorts): ExportReads {
  const { slices, refresh, pause } = ports;
  const over = new OverSlices(slices, ({ pool }) => ({
    feed: createChangeFeed(pool),
    of: sliceExportReads(pool),
    whole: createExportReads(pool),
  }));
  const from = async <T>(slice: OpenSlice, ask: (of: SliceExportReads) => Promise<T>): Promise<T> => {
    if (slices.down.includes(slice.number)) throw new SliceIsAway(slice.number);
    try {
      return await ask(over.of(slice).of);
    } catch (error) {
      if (slice.number === 0 || !isConnectionLost(error)) throw error;
      throw new SliceIsAway(slice.number, { cause: error });
    }
  };
  const untilHeld = async (pauses: number, words: string) => {
    if (pauses === mostPauses)
      throw new ExportError(
        `no slice has held ${words} for ${(pauses * pauseMs) / 60_000} min (nearcrawl slices list says what moves)`,
      );
    await pause(pauseMs);
    await refresh();
  };

  /** Neighbours that one slice owns, as far as is known here, from that bucket on. */
  const endOfOwn = (bucket: number): number => {
    const { number } = slices.ofHost(firstHashes[bucket]!);
    let end = bucket + 1;
    while (end < bucketCount && slices.ofHost(firstHashes[end]!).number === number) end += 1;
    return end;
  };

  const walk = async (begin: UrlAddress | null, most: number): Promise<PageNow[]> => {
    const found: PageNow[] = [];
    let after = begin;
    let bucket = begin === null ? 0 : bucketOf(begin.hostHash);
    for (let pauses = 0; bucket < bucketCount && found.length < most; ) {
      const end = endOfOwn(bucket);
      const through = hashesOf({ first: bucket, end })[1];
      const wanted = most - found.length;
      const { held, pages } = await from(slices.ofHost(firstHashes[bucket]!), (of) =>
        of.walk(after, through, wanted),
      );
      const holds = new Set(bucketsIn(held));
      let heldEnd = bucket;
      while (heldEnd < end && holds.has(heldEnd)) heldEnd += 1;
      const own = pages.filter(({ hostHash }) => bucketOf(hostHash) < heldEnd);
      found.push(...own);
      if (pages.length === wanted && own.length === wanted) break;
      if (heldEnd > bucket) [bucket, pauses] = [heldEnd, 0];
      else {
        pauses += 1;
        await untilHeld(pauses, `bucket ${bucket}`);
      }
      // Behind all of the buckets before.
      after = found.at(-1) ?? begin;
    }
    return found;
  };

  const pages = async (keys: readonly UrlAddress[]): Promise<(PageNow | SliceIsAway)[]> => {
    const found: (PageNow | SliceIsAway)[] = [];
    let left = keys.map((key, place) => ({ key, place }));
    for (let pauses = 1; ; pauses++) {
      const groups = bySlice(left, ({ key }) => slices.ofHost(key.hostHash));
      left = (
        await Promise.all(
          groups.map(async ({ slice, values }) => {
            const answers = await from(slice, (of) => of.pages(values.map(({ key }) => key))).catch(asAway);
            if (answers instanceof SliceIsAway) {
              for (const { place } of values) found[place] = answers;
              return [];
            }
            return values.filter(({ place }, index) => {
              const { isHeld, ...page } = answers[index]!;
              if (isHeld) found[place] = page;
              return !isHeld;
            });
          }),
        )
      ).flat();
      if (left.length === 0) return found;
      await untilHeld(pauses, howMany(left.length, "page"));
    }
  };

  const sliceOf = (number: number): OpenSlice => {
    const slice = slices.open.find((one) => one.number === number);
    if (slice === undefined) throw new SliceIsAway(number);
    return slice;
  };

  return {
    database: async () => await over.shared.whole.database(),
    feeds: async () => {
      await refresh();
      const { answers, partial } = await over.ask(
        async ({ feed }, { number }) => [number, await feed.state()] as const,
      );
      return { states: new Map(answers), away: partial, ended: await endedFeeds(slices.shared) };
    },
    changed: async (number, since, most) => {
      const slice = sliceOf(number);
      return await from(slice, async () => await over.of(slice).whole.changed(number, since, most));
    },
    expectedPages: async () => {
      const { answers } = await over.ask(async ({ whole }) => await whole.expectedPages());
      return answers.reduce((sum, one) => sum + one, 0);
    },
    walk: async (after, most) =>
      over.isOne ? await over.shared.whole.walk(after, most) : await walk(after, most),
    pages: async (keys) => (over.isOne ? await over.shared.whole.pages(keys) : await pages(keys)),
    optOuts: async () => {
      const { answers } = await over.ask(async ({ of }) => await of.optOuts());
      const ids = new Set(answers.flatMap(({ optOuts }) => optOuts.map(({ id }) => id)));
      const all = answers.flatMap(({ optOuts }) => optOuts);
      const inOrder = [...ids].sort((a, b) => a - b);
      return {
        hosts: new Map(inOrder.map((id) => [id, hostsInShort(all.filter((one) => one.id === id))])),
        isWhole: answers.reduce((sum, { buckets }) => sum + buckets, 0) === bucketCount,
      };
    },
    urlsOfOptOut: async (optOutId, after, most) => {
      const { answers } = await over.ask(async ({ of }) => await of.urlsOfOptOut(optOutId, after, most));
      return firstOf(answers, byAddress, most);
    },
    pagesOnceCovered: async function* (optOutId) {
      for (const slice of upOf(slices)) yield* over.of(slice).of.pagesOnceCovered(optOutId);
    },
  };
}

function asAway(error: unknown): SliceIsAway {
  if (error instanceof SliceIsAway) return error;
  throw error;
}

/** Of slices that are removed, or are being removed. */
async function endedFeeds(shared: Pool): Promise<Map<number, number>> {
  const { rows } = await shared.query<{ slice: number; last: number }>(
    `select slice_number as slice, coalesce(feed_last::float8, 'infinity') as last
     from web_slice where state in ('removing', 'removed')`,
  );
  return new Map(rows.map(({ slice, last }) => [slice, last]));
}

/** Of each bucket. */
const firstHashes = Array.from(
  { length: bucketCount },
  (_, first) => hashesOf({ first, end: first + 1 })[0] as HostHash,
);

const byAddress = (a: UrlAddress, b: UrlAddress): number =>
  byHash(a.hostHash, b.hostHash) || byHash(a.urlHash, b.urlHash);
