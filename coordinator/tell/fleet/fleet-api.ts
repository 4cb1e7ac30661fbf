/**
 * The API of the fleet: a crawler in the list, its state in words, the list's filters and order, failures, incidents and
 * moves.
 */
import { z } from "zod";
import { howMany } from "#core/format";
import { keyScopes } from "#protocol/identity";
import { blames } from "#protocol/result";
import { trustStandings } from "../../crawl/trust/trust-api.ts";
import { moveSteps } from "../../place/crawlers/crawler.ts";
import { adviceOnEnd } from "../../place/crawlers/sessions.ts";
import { dateTime, orNull, type ReadOf, record, type ToldOf } from "../../web/api-operation.ts";
import { crawlerReport } from "../who/who-api.ts";

export const budgetSchema = record(
  "Budget",
  { pagesPerDay: z.int().nullable(), bytesPerDay: z.number().nullable() },
  "The most per day; null: as the other side allows, or not told.",
);

const stateWordsSchema = record("StateWords", {
  state: z.enum(["online", "offline", "draining", "revoked", "never"]),
  since: z.string().meta({ format: "date-time" }).nullable(),
  why: z.string().nullable().describe("In plain words, without an end; null: nothing has to be said."),
  advice: z.string().nullable().describe("What there is to do, in sentences; null: nothing."),
});

const drainingSchema = record("Draining", {
  since: dateTime(),
  askedBy: z.enum(["operator", "crawler", "trust", "partner"]).describe("trust: it is not trusted."),
  subnets: z.int().describe("That it had when the draining began."),
});

const crawlerReleaseSchema = record("CrawlerRelease", {
  version: z.string(),
  dockVersion: z.string(),
  policy: z.string(),
});

export const fleetIdentitySchema = record("FleetIdentity", {
  publicKey: orNull(
    z.string(),
    "Ed25519, 32 bytes in base64url; null: it has none, and its key is all that it shows.",
  ),
  keySince: dateTime().nullable().describe("Of the newest key that it has; null: none is good."),
  scopes: z.array(z.enum(keyScopes)),
  signingKey: orNull(
    z.strictObject({
      publicKey: z.string(),
      keyId: z.string().describe("As signatures and the key set name it: the JWK thumbprint."),
      since: dateTime(),
      until: dateTime().describe("No signature is good for longer."),
    }),
    "The newest that is published; null: its requests are signed with its identity, or not at all.",
  ),
  seenAddress: z.string().nullable().describe("Where its last connection came from."),
  addressBefore: orNull(z.string(), "Where those before it came from, when that was elsewhere."),
  addressChangedAt: dateTime().nullable(),
  lastAway: orNull(
    z.strictObject({ since: dateTime(), reason: z.string() }),
    "Why it was away the last time, by the coordinator's own record; of now there is offlineReason.",
  ),
  lastEnd: orNull(
    z.strictObject({ at: dateTime(), reason: z.string() }),
    "How its process before this one ended, in its own words.",
  ),
  copiedAt: orNull(
    dateTime(),
    "When the folder of this identity was last seen on two machines, within the last week.",
  ),
  contact: z.string().nullable().describe("Whom to reach at its partner."),
  isListed: z.boolean().describe("False: its partner wants it in no public list."),
});

export const fleetEntrySchema = record("FleetEntry", {
  ...crawlerReport.pick({
    ...({ crawlerId: true, name: true, place: true, country: true, state: true, revoked: true } as const),
    ...({ offlineReason: true, lastSeenAt: true, connectedAt: true } as const),
    ...({ softwareVersion: true, pagesPerDay: true } as const),
  }).shape,
  offlineCode: orNull(
    z.string(),
    "The code of the reason; null when only its words are known. More codes may follow.",
  ),
  subnets: z.int(),
  unmeasured: z
    .int()
    .describe("Subnets of these for which no crawlers have been compared yet, or none had an answer."),
  meanRttMs: orNull(z.number(), "The mean of the measured RTTs to its subnets; null when none was measured."),
  openLeases: z.int(),
  pagesToday: z.int().describe("Fetches since midnight (UTC)."),
  bytesToday: z.number().describe("Bytes on the wire of these fetches."),
  bodyBytesToday: z.number().describe("Decoded bytes of the bodies of these fetches."),
  shippedBytesToday: z.number().describe("Compressed bytes of their results, as sent to the coordinator."),
  bytesPerDay: z.number(),
  /** The operators' limit, and the partner's as last stated. */
  granted: budgetSchema,
  partnerAllows: budgetSchema,
  draining: drainingSchema.nullable(),
  joiningSince: orNull(dateTime(), "Since when it waits to be given what is nearest to it; null: it has it."),
  trust: z.enum(trustStandings),
  /** The release that its supervisor runs and its partner's policy on releases; null if it has none. */
  release: crawlerReleaseSchema.nullable(),
  incidents: z.int().describe("In the last seven days."),
  standing: stateWordsSchema,
  identity: fleetIdentitySchema.optional(),
});

/** An entry as read. The API adds the standing. */
export type FleetEntry = Omit<ReadOf<typeof fleetEntrySchema>, "standing" | "identity"> & {
  readonly identity: FleetIdentity;
};

export type FleetIdentity = ReadOf<typeof fleetIdentitySchema>;

/** Returns the version that its dock runs, or that the crawler reports itself. */
export function versionOf({
  release,
  softwareVersion,
}: Pick<FleetEntry, "release" | "softwareVersion">): string | null {
  return release?.version ?? softwareVersion;
}

// A crawler's state in plain words: since when, why, and what to do.

type StateWords = ReadOf<typeof stateWordsSchema>;

type Standing = Pick<
  FleetEntry,
  | "state"
  | "revoked"
  | "lastSeenAt"
  | "connectedAt"
  | "offlineReason"
  | "offlineCode"
  | "draining"
  | "subnets"
  | "openLeases"
  | "joiningSince"
> & { readonly identity: Pick<FleetEntry["identity"], "copiedAt"> };

export function stateWords(entry: Standing): StateWords {
  if (entry.revoked) {
    return {
      state: "revoked",
      since: iso(entry.lastSeenAt),
      why: "its access was revoked: none of its keys is accepted",
      advice: "Give it a new identity to take it back.",
    };
  }
  if (entry.lastSeenAt === null && entry.state === "offline") {
    return {
      state: "never",
      since: null,
      why: "it has never connected",
      advice:
        "Its partner has to run the command of the invitation. If that was lost, invite the crawler again.",
    };
  }
  if (entry.state === "offline") return offlineWords(entry);
  if (entry.draining !== null) return drainingWords(entry, entry.draining);
  const joins = entry.joiningSince === null ? null : "joining: it is being assigned the nearest subnets";
  return { state: "online", since: iso(entry.connectedAt), why: joins, advice: null };
}

function offlineWords(entry: Standing): StateWords {
  const why = entry.offlineReason ?? "no reason was recorded";
  const copied =
    entry.identity.copiedAt === null
      ? null
      : "Its folder was seen on two machines: have one of them stopped, or give it a new identity.";
  const advice = copied ?? adviceOnEnd(entry.offlineCode);
  return { state: "offline", since: iso(entry.lastSeenAt), why, advice };
}

const askers = {
  operator: "an operator",
  crawler: "its host, for good",
  trust: "the comparison of its pages with others'",
  partner: "its partner",
} as const;

function drainingWords(
  { subnets, openLeases }: Standing,
  { since, askedBy, subnets: had }: NonNullable<Standing["draining"]>,
): StateWords {
  const handed = Math.max(0, had - subnets);
  const isDone = subnets === 0 && openLeases === 0;
  const how = isDone
    ? `all ${howMany(had, "subnet")} handed over`
    : `${handed.toLocaleString("en-GB")} of ${howMany(had, "subnet")} handed over, ${howMany(openLeases, "lease")} open`;
  return {
    state: "draining",
    since: since.toISOString(),
    why: `draining, as ${askers[askedBy]} asked: ${how}`,
    advice: askedBy === "trust" ? "Look at the evidence, then trust it again or revoke its access." : null,
  };
}

const iso = (date: Date | null): string | null => date?.toISOString() ?? null;

interface FleetView extends Pick<FleetAnswer, "totals" | "countries" | "versions" | "found" | "more"> {
  readonly crawlers: readonly FleetEntry[];
}

const fleetPageSize = 50;

/** If `pageSize` is infinite, all crawlers are returned, for CSV. */
export function fleetView(
  fleet: readonly FleetEntry[],
  query: FleetQuery,
  pageSize: number = fleetPageSize,
): FleetView {
  const found = fleet.filter((entry) => fits(entry, query)).sort(order(query.sort));
  const start = Number.isFinite(pageSize) ? (query.page - 1) * pageSize : 0;
  return {
    totals: totalsOf(fleet),
    countries: distinct(fleet.map(({ country }) => country)),
    versions: distinct(fleet.map(versionOf)),
    found: found.length,
    crawlers: found.slice(start, start + pageSize),
    more: found.length > start + pageSize,
  };
}

export function isTrusted({ trust }: Pick<FleetEntry, "trust">): boolean {
  return trust !== "distrusted" && trust !== "probes-doubted";
}

function fits(entry: FleetEntry, { q, state, country, version }: FleetQuery): boolean {
  const wanted = q.toLowerCase();
  if (!entry.name.includes(wanted) && !(entry.place ?? "").toLowerCase().includes(wanted)) return false;
  if (country !== undefined && entry.country !== country) return false;
  if (version !== undefined && versionOf(entry) !== version) return false;
  if (state === undefined) return true;
  return state === "distrusted" ? !isTrusted(entry) : stateWords(entry).state === state;
}

const stateOrder = { offline: 0, never: 1, draining: 2, online: 3, revoked: 4 } as const;
const trustOrder = {
  distrusted: 0,
  "probes-doubted": 1,
  watched: 2,
  unproven: 3,
  "not-compared": 4,
  trusted: 5,
} as const;

/** What needs attention comes first; equal crawlers are ordered by name. */
function order(sort: FleetQuery["sort"]): (a: FleetEntry, b: FleetEntry) => number {
  const by: Readonly<Record<FleetQuery["sort"], (entry: FleetEntry) => number>> = {
    name: () => 0,
    state: (entry) => stateOrder[stateWords(entry).state],
    subnets: ({ subnets }) => -subnets,
    pages: ({ pagesToday }) => -pagesToday,
    rtt: ({ meanRttMs }) => -(meanRttMs ?? -1),
    incidents: ({ incidents }) => -incidents,
    trust: ({ trust }) => trustOrder[trust],
    seen: ({ lastSeenAt }) => lastSeenAt?.getTime() ?? 0,
  };
  return (a, b) => by[sort](a) - by[sort](b) || (a.name < b.name ? -1 : 1);
}

function totalsOf(fleet: readonly FleetEntry[]): FleetAnswer["totals"] {
  const totals = {
    ...{ crawlers: fleet.length, connected: 0, offline: 0, draining: 0, distrusted: 0 },
    ...{ subnets: 0, pagesToday: 0, pagesPerDay: 0, incidents: 0 },
  };
  for (const entry of fleet) {
    const isConnected = entry.state !== "offline";
    if (isConnected) {
      totals.connected += 1;
      totals.pagesPerDay += entry.pagesPerDay;
    } else if (!entry.revoked) totals.offline += 1;
    if (entry.draining !== null && !entry.revoked) totals.draining += 1;
    if (!isTrusted(entry)) totals.distrusted += 1;
    totals.subnets += entry.subnets;
    totals.pagesToday += entry.pagesToday;
    totals.incidents += entry.incidents;
  }
  return totals;
}

function distinct(values: readonly (string | null)[]): string[] {
  return [...new Set(values.filter((value): value is string => value !== null))].sort();
}

export const fleetSorts = ["name", "state", "subnets", "pages", "rtt", "incidents", "trust", "seen"] as const;
export const fleetStates = ["online", "draining", "offline", "never", "revoked", "distrusted"] as const;

export const fleet = record("Fleet", {
  totals: z.strictObject({
    crawlers: z.int(),
    connected: z.int(),
    offline: z.int(),
    draining: z.int(),
    distrusted: z.int(),
    subnets: z.int(),
    pagesToday: z.int(),
    pagesPerDay: z.int().describe("Of those that are connected."),
    incidents: z.int(),
  }),
  countries: z.array(z.string()),
  versions: z.array(z.string()),
  found: z.int().describe("That fit the filters."),
  page: z.int(),
  more: z.boolean(),
  crawlers: z.array(fleetEntrySchema),
});

const byBlame = z
  .strictObject({ target: z.int(), network: z.int(), crawler: z.int(), us: z.int() })
  .describe("Failures by whose fault they were.");

export const failureShare = record("FailureShare", {
  crawler: z.string(),
  fetches: z.int(),
  failures: byBlame,
});

export const incident = record("Incident", {
  crawlerId: z.int().nullable(),
  crawler: z.string().nullable(),
  kind: z.string(),
  count: z.int(),
  firstAt: dateTime(),
  lastAt: dateTime(),
  words: z.string(),
  remoteAddress: z.string().nullable(),
  file: z.string().nullable().describe("A document that it is about, or its beginning."),
});

export const move = record("Move", {
  moveId: z.int(),
  name: z.string(),
  otherName: z.string(),
  step: z.enum(moveSteps),
  words: z.string().describe("Why it failed."),
  askedAt: dateTime(),
  changedAt: dateTime(),
  bytes: z.number(),
  sentBytes: z.number(),
});

export const failureShares = z.strictObject({
  since: dateTime().describe("Later than asked when more than 200,000 fetches were made since."),
  fetches: z.int(),
  failures: byBlame,
  byCrawler: z.array(failureShare),
});

export const failureLine = z.strictObject({
  at: dateTime(),
  crawler: z.string().nullable(),
  blame: z.enum(blames),
  status: z.int().nullable(),
  url: z.string().nullable().describe("Null: the frontier knows it no more."),
  host: z.string().nullable(),
  words: z.string().nullable().describe("Null: it was fetched again since."),
});

/** The cause of a failed fetch. */
export type Blame = (typeof blames)[number];

export const blameNames: Readonly<Record<Blame, string>> = {
  target: "the site",
  network: "the network",
  crawler: "the crawler",
  us: "our software",
};
export type FailureShares = ReadOf<typeof failureShares>;
export type FailureLine = ReadOf<typeof failureLine>;

export const fleetLine = crawlerReport
  .extend({
    ...fleetEntrySchema.pick({ subnets: true, meanRttMs: true, openLeases: true }).shape,
    pages: z.int(),
    bodyBytes: z.number().describe("Decoded bytes of its pages that are stored."),
    shippedBytes: z.number().describe("What the results of these pages took on the wire, compressed."),
  })
  .meta({ id: "FleetLine" });

export type FleetLine = ToldOf<typeof fleetLine>;

export const fleetParameters = {
  q: z
    .string()
    .max(63)
    .default("")
    .meta({ title: "Name or place", description: "Part of a name or a place." }),
  state: z
    .enum(fleetStates)
    .optional()
    .meta({ title: "State", description: "Only those; distrusted: results or probes not trusted." }),
  country: z.string().max(2).optional().meta({ title: "Country", description: "ISO 3166 code." }),
  version: z
    .string()
    .max(63)
    .optional()
    .meta({ title: "Version", description: "As its supervisor or the crawler says." }),
  sort: z
    .enum(fleetSorts)
    .default("name")
    .meta({ title: "Sorted by", description: "What needs a look first." }),
  page: z.int().min(1).default(1).describe("Of 50 each, from 1."),
};

export type FleetAnswer = ReadOf<typeof fleet>;
type FleetQuery = z.output<z.ZodObject<typeof fleetParameters>>;
