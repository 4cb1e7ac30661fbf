/** One crawler of the fleet: its shape in the API, and how it stands, in words. */
import { z } from "zod";
import { howMany } from "#core/format";
import { keyScopes } from "#protocol/identity";
import { trustStandings } from "../../crawl/trust/trust-api.ts";
import { adviceOnEnd } from "../../place/crawlers/session-ends.ts";
import { dateTime, orNull, type ReadOf, record } from "../../web/api-operation.ts";
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
  /** The operators' limit, and the partner's as it last stated it. */
  granted: budgetSchema,
  partnerAllows: budgetSchema,
  draining: drainingSchema.nullable(),
  joiningSince: orNull(dateTime(), "Since when it waits to be given what is nearest to it; null: it has it."),
  trust: z.enum(trustStandings),
  /** What its supervisor runs, and its partner's policy on releases, in words; null: no supervisor runs it. */
  release: crawlerReleaseSchema.nullable(),
  incidents: z.int().describe("In the last seven days."),
  standing: stateWordsSchema,
  identity: fleetIdentitySchema.optional(),
});

/** As it is read; the API adds how it stands. */
export type FleetEntry = Omit<ReadOf<typeof fleetEntrySchema>, "standing" | "identity"> & {
  readonly identity: FleetIdentity;
};

export type FleetIdentity = ReadOf<typeof fleetIdentitySchema>;

/** What its dock runs, or what it says itself. */
export function versionOf({
  release,
  softwareVersion,
}: Pick<FleetEntry, "release" | "softwareVersion">): string | null {
  return release?.version ?? softwareVersion;
}

// How a crawler stands, in plain words: since when, why, and what there is to do about it.

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
