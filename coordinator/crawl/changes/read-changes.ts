/** Parses a request for the change feed from an address or a command, and reads the answer. */

import { UsageError } from "#core/errors";
import { urlKeyOf } from "#core/url-key";
import { domainSetHolds, parseDomainSet } from "../../place/domain-sets/domain-set.ts";
import type { ChangeFeed, ChangeQuery, ChangesRead, CursorFault } from "./change-feed-reads.ts";
import { changeKinds } from "./changes-api.ts";
import type { ChangeKind } from "./page-change.ts";

/** Texts as typed; omitted ones do not filter. */
interface ChangesAsked {
  readonly host?: string | undefined;
  /** A domain set: `.gr`, `example.org lang:el`. */
  readonly dset?: string | undefined;
  /** Beginning of URLs, with scheme and host. */
  readonly prefix?: string | undefined;
  /** Separated by commas. */
  readonly kind?: string | undefined;
  readonly limit: number;
}

type Since = number | "latest" | "earliest" | "now";

/** Throws a UsageError that names what is wrong. */
export function readChangeQuery({
  host: ofHost = "",
  dset = "",
  kind = "",
  limit,
  ...asked
}: ChangesAsked): ChangeQuery {
  const prefix = prefixOf(asked.prefix ?? "");
  const host = hostOf(ofHost);
  if (prefix !== null && host !== null && prefix.host !== host)
    throw new UsageError(
      `prefix: "${short(asked.prefix ?? "")}" is not of the host ${host}; nothing matches both`,
    );
  return {
    filter: {
      kinds: kindsOf(kind),
      host: host ?? prefix?.host ?? null,
      prefix: prefix?.url ?? null,
      domains: domainsOf(dset),
    },
    limit,
  };
}

/** Without a text, the latest changes. Throws a UsageError. */
export function readSince(text = ""): Since {
  const since = text.trim();
  if (since === "") return "latest";
  if (since === "earliest" || since === "now") return since;
  if (!/^\d{1,16}$/.test(since) || !Number.isSafeInteger(Number(since)))
    throw new UsageError(
      `since: "${short(text)}" is not a cursor; it must be a whole number from the feed, earliest, or now`,
    );
  return Number(since);
}

export async function readChanges(feed: ChangeFeed, since: Since, query: ChangeQuery): Promise<ChangesRead> {
  if (since === "latest") return await feed.latest(query);
  return await feed.after(await startOf(since, feed), query);
}

/** The first cursor. */
async function startOf(since: Since, feed: ChangeFeed): Promise<number> {
  if (typeof since === "number") return since;
  const { last, removedThrough } = await feed.state();
  return since === "earliest" ? removedThrough : last;
}

/** Where to continue after an unreadable cursor. */
export function goOnFrom(fault: CursorFault): number {
  switch (fault.type) {
    case "too-old":
      return fault.removedThrough;
    case "lost":
      return fault.goOnFrom;
    case "unknown":
      return fault.last;
  }
}

/** Explains why a cursor is unreadable. */
export function cursorWords(since: number, fault: CursorFault): string {
  switch (fault.type) {
    case "too-old":
      return (
        `The cursor ${since} is too old: changes through number ${fault.removedThrough} are no longer kept ` +
        "(policy changes.keepDays), so some were missed. Check what you follow again, and continue with " +
        "since=earliest, or with since=now for new changes only."
      );
    case "lost":
      return (
        `The cursor ${since} is of lost changes: on ${fault.wentBackAt.toISOString()} the database went back to an ` +
        `earlier state, which does not have what you read after number ${fault.goOnFrom}. Those pages are fetched ` +
        `again; check what you follow again, and continue with since=${fault.goOnFrom}.`
      );
    case "unknown":
      return (
        `since: there is no change with number ${since} yet; the latest is ${fault.last}. ` +
        "Use cursors that this feed returned."
      );
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

const short = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
