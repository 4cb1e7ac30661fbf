/**
 * The change feeds of all slices as one: each is in the order of its numbers, and they are merged by when changes were noted.
 * A reader's cursor is kept for each slice by itself, so that no change is read twice and none is lost, whatever the clocks of
 * the slices say and however long one of them does not answer.
 */
import { OverSlices } from "../database/over-slices.ts";
import { partialOf, type Slices } from "../database/slices.ts";
import { type ChangeCursor, cursorOf, firstNumberOf } from "./change-cursor.ts";
import {
  type ChangeFeed,
  type ChangeQuery,
  type ChangesRead,
  type CursorFault,
  createChangeFeed,
  cursorFault,
} from "./change-feed-reads.ts";
import type { PageChange } from "./page-change.ts";

/** Of several slices, with the cursor after it. */
export interface FedChange extends PageChange {
  readonly cursor?: ChangeCursor;
}

export interface FeedRead {
  readonly type: "read";
  /** In the order of their times. */
  readonly changes: readonly FedChange[];
  readonly next: ChangeCursor;
  /** There may be more behind `next` already. */
  readonly more: boolean;
  /** Slices that did not answer; they are read from where the cursor is once they do. Absent: all did. */
  readonly partial?: readonly number[];
}

/** Of one slice's cursor, which stands for all. */
export interface FeedFault {
  readonly type: "fault";
  readonly cursor: ChangeCursor;
  /** Null: there is one slice. */
  readonly slice: number | null;
  readonly fault: CursorFault;
  /** Where to go on. */
  readonly goOnFrom: ChangeCursor;
}

export type FeedAnswer = FeedRead | FeedFault;

/** What one slice gave, from its part of the cursor on. */
export interface SliceRead {
  readonly slice: number;
  readonly from: number;
  readonly read: ChangesRead;
}

export class ChangeFeeds {
  readonly over: OverSlices<ChangeFeed>;

  constructor(over: OverSlices<ChangeFeed>) {
    this.over = over;
  }

  /** The cursor of the earliest changes that are kept, or of the latest. */
  async start(at: "earliest" | "now"): Promise<ChangeCursor> {
    const { answers } = await this.over.ask(async (feed, { number }) => {
      const { last, removedThrough } = await feed.state();
      return [
        number,
        at === "now" ? Math.max(last, firstNumberOf(number)) : beginningOf(number, removedThrough),
      ] as const;
    });
    return Object.fromEntries(answers);
  }

  async after(since: number | ChangeCursor, query: ChangeQuery): Promise<FeedAnswer> {
    const cursor = cursorOf(since);
    const { answers, partial } = await this.over.ask(async (feed, { number: slice }) => {
      const from = cursor[slice] ?? (await beginning(feed, slice));
      return { slice, from, read: await feed.after(from, query) };
    });
    return mergedReads(answers, { cursor, partial, limit: query.limit });
  }

  /** The latest ones that fit; `next` is the end of the feed. */
  async latest(query: ChangeQuery): Promise<FeedRead> {
    const { answers, partial } = await this.over.ask(async (feed, { number }) => ({
      number,
      read: await feed.latest(query),
    }));
    const lists = answers.map(({ read }) => read.changes.toReversed());
    const changes = mergedLists(lists, (a, b) => b.notedAt.getTime() - a.notedAt.getTime(), query.limit);
    return {
      type: "read",
      changes: changes.map(({ value }) => value).reverse(),
      next: Object.fromEntries(
        answers.map(({ number, read }) => [number, Math.max(read.next, firstNumberOf(number))]),
      ),
      more: false,
      ...partialOf(partial),
    };
  }

  /** Why nothing can be read from the cursor; null: it can. */
  async fault(since: number | ChangeCursor): Promise<FeedFault | null> {
    const cursor = cursorOf(since);
    const { answers } = await this.over.ask(async (feed, { number: slice }) => {
      const from = cursor[slice];
      return { slice, fault: from === undefined ? null : cursorFault(from, await feed.state()) };
    });
    for (const { slice, fault } of answers)
      if (fault !== null) return faultOf({ slice, fault }, cursor, answers.length === 1);
    return null;
  }
}

export const changeFeeds = (slices: Slices): ChangeFeeds =>
  new ChangeFeeds(new OverSlices(slices, ({ pool }) => createChangeFeed(pool)));

/** Where a slice begins that a cursor does not name. */
export const beginning = async (feed: ChangeFeed, slice: number): Promise<number> =>
  beginningOf(slice, (await feed.state()).removedThrough);

const beginningOf = (slice: number, removedThrough: number) => Math.max(removedThrough, firstNumberOf(slice));

export interface Merging {
  readonly cursor: ChangeCursor;
  readonly partial: readonly number[];
  readonly limit: number;
}

/** The first so many of what slices gave, by their times; the cursor goes on in each slice behind what was taken of it. */
export function mergedReads(reads: readonly SliceRead[], { cursor, partial, limit }: Merging): FeedAnswer {
  const isOne = reads.length === 1 && partial.length === 0;
  const read: { readonly slice: number; readonly from: number; readonly read: Read }[] = [];
  for (const one of reads) {
    if (one.read.type !== "read") return faultOf({ slice: one.slice, fault: one.read }, cursor, isOne);
    read.push({ ...one, read: one.read });
  }
  if (isOne) {
    const [{ slice, read: only }] = read as [(typeof read)[number]];
    return { ...only, next: { [slice]: only.next } };
  }
  const at = new Map<number, number>(
    partial.flatMap((slice) => (cursor[slice] === undefined ? [] : [[slice, cursor[slice]] as const])),
  );
  for (const { slice, from } of read) at.set(slice, from);
  const taken = mergedLists(
    read.map((one) => one.read.changes),
    (a, b) => a.notedAt.getTime() - b.notedAt.getTime(),
    limit,
  );
  const changes = taken.map(({ value, list }): FedChange => {
    at.set(read[list]!.slice, value.number);
    return { ...value, cursor: written(at) };
  });
  let more = false;
  for (const [index, one] of read.entries()) {
    const isAll = taken.filter(({ list }) => list === index).length === one.read.changes.length;
    if (isAll) at.set(one.slice, one.read.next);
    more ||= !isAll || one.read.more;
  }
  return { type: "read", changes, next: written(at), more, ...partialOf(partial) };
}

type Read = Extract<ChangesRead, { readonly type: "read" }>;

const written = (at: ReadonlyMap<number, number>): ChangeCursor => Object.fromEntries(at);

/** Each list in its own order, whatever the other says: the first of the heads each time. */
function mergedLists<T>(
  lists: readonly (readonly T[])[],
  order: (a: T, b: T) => number,
  most: number,
): { readonly value: T; readonly list: number }[] {
  const heads = lists.map(() => 0);
  const merged: { readonly value: T; readonly list: number }[] = [];
  while (merged.length < most) {
    let first: number | null = null;
    for (const [list, values] of lists.entries()) {
      const head = values[heads[list]!];
      if (head === undefined) continue;
      if (first === null || order(head, lists[first]![heads[first]!]!) < 0) first = list;
    }
    if (first === null) break;
    merged.push({ value: lists[first]![heads[first]!]!, list: first });
    heads[first]! += 1;
  }
  return merged;
}

function faultOf(
  { slice, fault }: { readonly slice: number; readonly fault: CursorFault },
  cursor: ChangeCursor,
  isOne: boolean,
): FeedFault {
  return {
    type: "fault",
    cursor: isOne ? { 0: cursor[slice] ?? 0 } : cursor,
    slice: isOne ? null : slice,
    fault,
    goOnFrom: { ...(isOne ? {} : cursor), [slice]: endOf(fault) },
  };
}

function endOf(fault: CursorFault): number {
  switch (fault.type) {
    case "too-old":
      return fault.removedThrough;
    case "lost":
      return fault.goOnFrom;
    case "unknown":
      return fault.last;
  }
}
