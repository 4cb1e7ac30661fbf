/** The list of sites: its filter and order, and the state of a host in words. */
import type { z } from "zod";
import { UsageError } from "#core/errors";
import { howMany, spanWords, whenWords } from "#core/format";
import type { Direction } from "../../ask/operation.ts";
import type { ListedSite, SiteFilter, SiteSort, SiteState, SitesAnswer, sitesInput } from "./sites-api.ts";

/** As in table site (migration 0078). */
export type Standing =
  | "ready"
  | "nothing-due"
  | "unresolved"
  | "unresolvable"
  | "opted-out"
  | "bot-gate"
  | "robots"
  | "payment"
  | "address";

export function siteState(
  {
    standing,
    isLeased,
    dueAt,
  }: { readonly standing: Standing; readonly isLeased: boolean; readonly dueAt: Date | null },
  now: Date,
): SiteState {
  if (isLeased) return "in-progress";
  if (standing === "ready") return dueAt !== null && dueAt <= now ? "due" : "scheduled";
  if (standing === "nothing-due") return "left-out";
  return standing === "unresolved" || standing === "unresolvable" ? "unresolved" : "blocked";
}

/** The direction in which people usually want an order. */
export const usualDirection: Readonly<Record<SiteSort, Direction>> = {
  host: "up",
  pages: "down",
  due: "down",
  failures: "down",
  fetched: "up",
  added: "down",
  rtt: "down",
  bytes: "down",
};

/** The end of a page, after which the next one begins. */
export interface SitePlace {
  /** The value of the order's column as text; null when the host has none and is listed last. */
  readonly value: string | null;
  readonly hostHash: string;
}

export interface SitesQuestion {
  readonly filter: SiteFilter;
  readonly sort: SiteSort;
  readonly direction: Direction;
  readonly after: SitePlace | null;
  readonly limit: number;
}

/** Throws a UsageError. */
export function sitesQuestion(asked: z.output<typeof sitesInput>): SitesQuestion {
  const { sort, order, after: place, limit, ...filter } = asked;
  const after = place === undefined ? null : readPlace(place, sort);
  if (place !== undefined && after === null)
    throw new UsageError(`after: this is no place in the order by ${sort}; begin without it.`);
  return { filter, sort, direction: order ?? usualDirection[sort], after, limit };
}

const wholeNumber = /^\d{1,16}$/;
const valueForms: Readonly<Record<SiteSort, RegExp>> = {
  host: /^[\w.:[\]-]{1,255}$/,
  pages: wholeNumber,
  due: wholeNumber,
  failures: wholeNumber,
  bytes: wholeNumber,
  // Microseconds.
  fetched: /^-?\d{1,17}$/,
  added: /^-?\d{1,17}$/,
  rtt: /^\d{1,9}(\.\d{1,9})?(e-\d{1,2})?$/,
};

/** The optional value, `~`, and the host's key. */
function readPlace(text: string, sort: SiteSort): SitePlace | null {
  const [, value = "", hostHash = ""] = /^(.*)~(-?\d{1,19})$/.exec(text) ?? [];
  const isKey = hostHash !== "" && BigInt.asIntN(64, BigInt(hostHash)) === BigInt(hostHash);
  if (!isKey || (value !== "" && !valueForms[sort].test(value))) return null;
  return { value: value === "" ? null : value, hostHash };
}

export function placeText({ value, hostHash }: SitePlace): string {
  return `${value ?? ""}~${hostHash}`;
}

export const isUnfiltered = (filter: SiteFilter | SitesAnswer["filter"]): boolean =>
  Object.values(filter).every((value) => value === undefined);

export const stateNames: Readonly<Record<SiteState, string>> = {
  scheduled: "scheduled",
  due: "due",
  "in-progress": "in progress",
  blocked: "blocked",
  unresolved: "unresolved",
  "left-out": "skipped",
};

export const reasonWords: Readonly<Partial<Record<Standing, string>>> = {
  "opted-out": "the site opted out",
  robots: "robots.txt could not be read, or answered with an error: everything is disallowed",
  "bot-gate": "it is behind a bot gate, and rests",
  payment: "it asks to be paid",
  address: "its address is not public",
  unresolved: "not looked up yet",
  unresolvable: "its name does not resolve",
  "nothing-due": "all its known URLs are gone, refused or outside what is crawled",
};

export function countWords({ count, isWholeCount, estimate }: SitesAnswer): string {
  if (isWholeCount) return howMany(count, "site");
  return estimate === null ? `More than ${howMany(count, "site")}` : `About ${howMany(estimate, "site")}`;
}

/** The state and an additional remark, or null. */
export function stateWords(
  { state, reason, dueAt, crawler, inProgressBy }: ListedSite,
  now: Date,
): [string, string | null] {
  const when = dueAt === null ? null : whenWords(dueAt.toISOString(), now);
  const words = stateNames[state];
  switch (state) {
    case "scheduled":
      return [words, when];
    case "due":
      return [
        words,
        dueAt === null ? null : `for ${spanWords(Math.max(0, now.getTime() - dueAt.getTime()) / 1000)}`,
      ];
    case "in-progress":
      // After an override or move, the current crawler is not the next one.
      return [words, inProgressBy === crawler || inProgressBy === "" ? null : `by ${inProgressBy}`];
    case "blocked":
    case "unresolved":
    case "left-out":
      return [words, reason];
  }
}

/** "5 min ago"; for a time in the future, that a clock is wrong. */
export function sinceWords(date: Date, now: Date, whose: string): string {
  const ahead = date.getTime() - now.getTime() >= 1000;
  return ahead ? `in the future by ${whose} clock` : whenWords(date.toISOString(), now);
}

const languageNames = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** Returns the code itself when it is unknown. */
export function languageName(code: string): string {
  return /^[a-z]{2,3}$/.test(code) ? (languageNames.of(code) ?? code) : code;
}
