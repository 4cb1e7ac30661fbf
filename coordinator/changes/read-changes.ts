/** What the change feed is asked for, as texts of an address or of a command, and its answer. */

import { UsageError } from "#core/errors";
import { urlKeyOf } from "#core/url-key";
import { domainSetHolds, parseDomainSet } from "../domain-sets/domain-set.ts";
import { type ChangeCursor, cursorValue, parseCursor } from "./change-cursor.ts";
import type { ChangeQuery } from "./change-feed-reads.ts";
import type { ChangeFeeds, FeedAnswer, FeedFault } from "./change-feeds-reads.ts";
import { type ChangeKind, changeKinds } from "./page-change.ts";

/** All as typed; an empty text asks for nothing. */
export interface ChangesAsked {
  /** A cursor (`next` of an answer, `id` of an event), `earliest` or `now`. */
  readonly since: string;
  readonly host: string;
  /** A domain set: `.gr`, `example.org lang:el`. */
  readonly dset: string;
  /** The beginning of URLs, with scheme and host. */
  readonly prefix: string;
  /** Kinds with commas between them. */
  readonly kind: string;
  readonly limit: string;
}

export const changesLimit = { usual: 100, most: 1000 } as const;

export type Since = number | ChangeCursor | "latest" | "earliest" | "now";

/** Throws a UsageError that names what is wrong. */
export function readChangeQuery(asked: ChangesAsked): ChangeQuery {
  const prefix = prefixOf(asked.prefix.trim());
  const host = hostOf(asked.host.trim());
  if (prefix !== null && host !== null && prefix.host !== host)
    throw new UsageError(`prefix: "${short(asked.prefix)}" is not of the host ${host}; nothing matches both`);
  return {
    filter: {
      kinds: kindsOf(asked.kind),
      host: host ?? prefix?.host ?? null,
      prefix: prefix?.url ?? null,
      domains: domainsOf(asked.dset.trim()),
    },
    limit: limitOf(asked.limit.trim()),
  };
}

/** An empty text: the latest changes, whatever their numbers. Throws a UsageError. */
export function readSince(text: string): Since {
  const since = text.trim();
  if (since === "") return "latest";
  if (since === "earliest" || since === "now") return since;
  const cursor = parseCursor(since);
  if (cursor === null)
    throw new UsageError(
      `since: "${short(text)}" is not a cursor; it must be a whole number from the feed (of several slices, as the feed gives it: 0:4712,1:1099511627999), earliest, or now`,
    );
  return cursor;
}

export async function readChanges(feeds: ChangeFeeds, since: Since, query: ChangeQuery): Promise<FeedAnswer> {
  if (since === "latest") return await feeds.latest(query);
  return await feeds.after(await startOf(since, feeds), query);
}

/** The cursor to begin with. */
export async function startOf(since: Since, feeds: ChangeFeeds): Promise<number | ChangeCursor> {
  if (typeof since !== "string") return since;
  return await feeds.start(since === "earliest" ? "earliest" : "now");
}

/** Why nothing is read from a cursor, and the status that goes with it. */
export function cursorWords({ cursor, slice, fault, goOnFrom }: FeedFault): {
  readonly status: 400 | 410;
  readonly words: string;
} {
  const since = cursorValue(cursor);
  const of = slice === null ? "" : ` of slice ${slice}`;
  switch (fault.type) {
    case "too-old":
      return {
        status: 410,
        words: `The cursor ${since} is too old: changes${of} through number ${fault.removedThrough} are no longer kept (policy changes.keepDays), so some were missed. Check what you follow again, and continue with since=earliest, or with since=now for new changes only.`,
      };
    case "lost":
      return {
        status: 410,
        words: `The cursor ${since} is of lost changes${of}: on ${fault.wentBackAt.toISOString()} the database went back to an earlier state, which does not have what you read after number ${fault.goOnFrom}. Those pages are fetched again; check what you follow again, and continue with since=${cursorValue(goOnFrom)}.`,
      };
    case "unknown":
      return {
        status: 400,
        words: `since: there is no change${of} with number ${slice === null ? since : cursor[slice]} yet; the latest is ${fault.last}. Use cursors that this feed returned.`,
      };
  }
}

function kindsOf(text: string): ChangeKind[] {
  const names = text.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
  const unknown = names.find((name) => !isKind(name));
  if (unknown !== undefined)
    throw new UsageError(`kind: "${short(unknown)}" is none of ${changeKinds.join(", ")}`);
  return [...new Set(names.filter(isKind))];
}

const isKind = (name: string): name is ChangeKind => (changeKinds as readonly string[]).includes(name);

function hostOf(text: string): string | null {
  if (text === "") return null;
  const key = urlKeyOf(`http://${text.includes(":") && !text.startsWith("[") ? `[${text}]` : text}/`);
  if (typeof key === "string" || /[/?#@\s]/.test(text))
    throw new UsageError(`host: "${short(text)}" is not a host name, such as www.example.org`);
  return key.host;
}

function prefixOf(text: string): { readonly url: string; readonly host: string } | null {
  if (text === "") return null;
  const key = urlKeyOf(text);
  if (typeof key === "string")
    throw new UsageError(
      `prefix: "${short(text)}" is not a URL prefix, such as https://www.example.org/docs/`,
    );
  return key;
}

function domainsOf(text: string): ChangeQuery["filter"]["domains"] {
  if (text === "") return null;
  const set = parseDomainSet(text);
  if (typeof set === "string") throw new UsageError(`dset: ${set}`);
  return (page) => domainSetHolds(set, page);
}

function limitOf(text: string): number {
  if (text === "") return changesLimit.usual;
  const limit = Number(text);
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > changesLimit.most)
    throw new UsageError(`limit: "${short(text)}" is not a whole number from 1 to ${changesLimit.most}`);
  return limit;
}

const short = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
