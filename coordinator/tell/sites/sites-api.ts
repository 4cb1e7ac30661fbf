/** The questions of the list of sites, and its answers. */
import { domainToASCII } from "node:url";
import { z } from "zod";
import { UsageError } from "#core/errors";
import { howMany, spanWords, whenWords } from "#core/format";
import type { Direction } from "../../ask/operation.ts";
import { dateTime, orNull, type ReadOf, record } from "../../web/api-operation.ts";

/**
 * `scheduled`: URLs are scheduled, but none is due. `due`: some are due now. `in-progress`: leased to a crawler. `blocked`:
 * nothing may be fetched. `unresolved`: no known address. `left-out`: all its known URLs are gone, refused or outside the
 * crawl.
 */
export const siteStates = ["scheduled", "due", "in-progress", "blocked", "unresolved", "left-out"] as const;
export const siteSorts = ["host", "pages", "due", "failures", "fetched", "added", "rtt", "bytes"] as const;
/** Default and maximum number of sites per page. */
const [usualSites, mostSites] = [50, 1000];

const site = record("ListedSite", {
  host: z.string(),
  name: z.string().describe("As people read it: another than host where that is Punycode."),
  state: z.enum(siteStates),
  reason: z.string().nullable().describe("Why it is blocked, unresolved or left out."),
  dueAt: dateTime().nullable().describe("When something of it is next to be fetched; null: nothing is."),
  crawler: z.string().nullable().describe("By its subnet's delegation or an override; null: not assigned."),
  inProgressBy: z.string().nullable().describe("The crawler that has it in hand now."),
  subnet: z.string().nullable(),
  language: z.string().nullable().describe("Of most of its pages."),
  country: z.string().nullable().describe("In which its subnet is registered."),
  organisation: z.string().nullable().describe("That holds its subnet."),
  tld: z.string().nullable(),
  channels: z.int(),
  pages: z.int().describe("With a text of their own, or nearly that of another."),
  urls: z.int(),
  dueUrls: z.int(),
  moreDueUrls: z.boolean().describe("There are more than dueUrls."),
  failures: z.int().describe("Fetches without a usable answer, of the last seven days."),
  fetches: z.int().describe("Of the last seven days."),
  fetchedAt: dateTime().nullable().describe("When one of its URLs was last fetched."),
  addedAt: dateTime(),
  rttMs: z.number().nullable().describe("Measured when its crawler was chosen."),
  bytes: z.number().describe("Fetched of it, ever."),
});

export const sites = record("Sites", {
  at: dateTime(),
  filter: z.record(z.string(), z.string()).describe("What was asked for, as it was understood."),
  sort: z.enum(siteSorts),
  order: z.enum(["up", "down"]),
  sites: z.array(site),
  count: z.int().describe("Of all that match, as far as they were counted."),
  isWholeCount: z.boolean().describe("False: there are more than count."),
  estimate: z.number().nullable().describe("Where there are more, about how many; null: not known."),
  next: z.string().nullable().describe("Where the next page goes on: its parameter after."),
  progress: z.strictObject({
    isFirstRound: z.boolean().describe("The list is being filled: hosts are missing."),
    roundSeconds: orNull(z.number(), "How long one round over all hosts takes; null: not completed yet."),
    knownHosts: z.number().describe("While it is being filled: hosts that the crawl knows, about."),
  }),
});

const text = z.string().max(300);
/** Converts names to their stored form: `*.Bücher.example.` becomes `xn--bcher-kva.example`. */
const inAscii = text.overwrite((value) => domainToASCII(value.replace(/^(\*?\.)|\.$/g, "")));

const filterParameters = {
  host: text
    .toLowerCase()
    .optional()
    .meta({
      ...{ title: "Host begins with", description: "What the host's name begins with.", example: "www." },
    }),
  under: inAscii
    .regex(/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/, "no domain, such as example.org")
    .optional()
    .meta({
      title: "In the domain",
      description: "A domain: its host and all below it.",
      example: "example.org",
    }),
  state: z.enum(siteStates).optional().meta({ title: "State", example: "due" }),
  crawler: text.optional().meta({ title: "Crawler", description: "By name.", example: "athens" }),
  language: z
    .string()
    .max(3, "no language code, such as el")
    .regex(/^[a-z]{2,3}$/i, "no language code, such as el")
    .toLowerCase()
    .optional()
    .meta({ title: "Language", description: "ISO 639 code.", example: "el" }),
  country: z
    .string()
    .max(2, "no country code of two letters")
    .regex(/^[a-z]{2}$/i, "no country code of two letters")
    .toUpperCase()
    .optional()
    .meta({ title: "Country", description: "ISO 3166 code.", example: "CY" }),
  tld: inAscii
    .regex(/^[a-z_-][a-z0-9_-]*$/, "no top-level domain, such as gr")
    .optional()
    .meta({ title: "TLD", example: "gr" }),
  organisation: text.optional().meta({
    ...{ title: "Organisation", description: "A handle, or a name in full.", example: "Example Networks" },
  }),
  channel: z.enum(["with", "without"]).optional().meta({ title: "Channel", example: "with" }),
};

export const sitesInput = z.object({
  ...filterParameters,
  sort: z.enum(siteSorts).default("host").meta({ example: "failures" }),
  order: z.enum(["up", "down"]).optional().meta({
    description: "Left out: names from a, the longest not fetched first, all else the most first.",
    example: "down",
  }),
  after: text.optional().meta({ description: "The next of the page before.", example: "17~-42" }),
  limit: z.coerce.number().int().min(1).max(mostSites).default(usualSites).meta({ example: usualSites }),
});

export type ListedSite = ReadOf<typeof site>;
export type SiteState = ListedSite["state"];
export type SiteSort = (typeof siteSorts)[number];
export type SiteFilter = z.output<z.ZodObject<typeof filterParameters>>;
export type SitesAnswer = ReadOf<typeof sites>;

// The list of sites: its filter and order, and the state of a host in words.

/** The standing as in table site (migration 0078). */
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
  /** The value of the order's column as text; null if the host has none and is listed last. */
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
  // The number is in microseconds.
  fetched: /^-?\d{1,17}$/,
  added: /^-?\d{1,17}$/,
  rtt: /^\d{1,9}(\.\d{1,9})?(e-\d{1,2})?$/,
};

/** A place is the optional value, `~`, and the host's key. */
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

/** Returns the state and an additional remark, or null. */
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
      // An override or move may make the current crawler differ from the next one.
      return [words, inProgressBy === crawler || inProgressBy === "" ? null : `by ${inProgressBy}`];
    case "blocked":
    case "unresolved":
    case "left-out":
      return [words, reason];
  }
}

/** Returns words like "5 min ago" or, for a time in the future, that a clock is wrong. */
export function sinceWords(date: Date, now: Date, whose: string): string {
  const ahead = date.getTime() - now.getTime() >= 1000;
  return ahead ? `in the future by ${whose} clock` : whenWords(date.toISOString(), now);
}

const languageNames = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** Returns the code itself if it is unknown. */
export function languageName(code: string): string {
  return /^[a-z]{2,3}$/.test(code) ? (languageNames.of(code) ?? code) : code;
}
