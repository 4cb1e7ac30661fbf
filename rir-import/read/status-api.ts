/** The schema of the registry status: what is in force, how old it is, and what the download folder contains. */
import { z } from "zod";
import { registries } from "#coordinator/place/subnets/subnet";
import type { ToldOf } from "#coordinator/web/api-operation";
import { dateTime, record } from "#coordinator/web/api-operation";

const registryCounts = record("RegistryCounts", {
  registry: z.enum(registries),
  subnets: z.int(),
  ipv4Subnets: z.int(),
  ipv6Subnets: z.int(),
  holders: z.int(),
  crossing: z.int().describe("Subnets that cross another, of whichever registry."),
  ipv4Addresses: z.int().describe("Addresses that lie in a subnet of it; each counts once."),
  ipv6Slash48s: z.int().describe("Blocks of a /48 that a subnet of it touches."),
});

export const subnetsInUse = record("SubnetsInUse", {
  total: z.int().describe("Delegated, or with hosts in the frontier."),
  going: z
    .int()
    .describe("Of those, the ones that go; where they are more than 5 %, removeInUse has to name them."),
});

const registrySubnetWords = record("RegistrySubnetWords", {
  holder: z.string().nullable(),
  country: z.string().nullable(),
  registry: z.string(),
  name: z.string(),
  under: z.string().nullable().describe("The next less specific range."),
});

export const registryDifference = record("RegistryDifference", {
  kind: z.enum(["added", "returned", "changed", "moved", "removed"]),
  range: z.string(),
  before: registrySubnetWords.nullable(),
  after: registrySubnetWords.nullable(),
});

export const registryChange = record("RegistryChange", {
  registry: z.enum(registries),
  before: registryCounts.nullable(),
  after: registryCounts.nullable(),
  added: z.int(),
  removed: z.int(),
  changed: z.int(),
  moved: z.int(),
});

export const registryShrinkage = record("RegistryShrinkage", {
  registry: z.enum(registries),
  lostSubnetsShare: z.number().describe("0 to 1 of what it has in the tree in force."),
  lostIpv4Share: z.number(),
  lostIpv6Share: z.number(),
});

export const registryLoss = z.strictObject({
  what: z.enum(["holders", "countries", "published places"]),
  of: z.string().describe("A registry, or a list's source."),
  before: z.int(),
  lost: z.int(),
});

export const outdatedFile = z.strictObject({ file: z.string(), fileDate: z.string(), ageDays: z.int() });

const registrySource = record("RegistrySource", {
  file: z.string(),
  format: z.string(),
  registry: z.string().nullable(),
  fileDate: z.string().meta({ format: "date" }).nullable().describe("Of its data."),
  ageDays: z.int().nullable(),
  kept: z.int().describe("Records."),
  malformed: z.int().describe("Records that were refused."),
  sha256: z.string(),
});

const registryGeneration = record("RegistryGeneration", {
  generation: z.int(),
  state: z.enum(["applied", "rolled-back"]),
  appliedAt: dateTime().nullable(),
  changes: z
    .record(z.string(), z.int())
    .describe("Subnets added, returned, removed, changed, moved, unchanged."),
  appliedBy: z
    .string()
    .nullable()
    .describe("As the audit log has it; null: not known, or not for this reader."),
  canRollForward: z.boolean().describe("It was rolled back, and can be put in force again as things are."),
  rolledBackBy: z.string().nullable(),
});

const registryRollback = record(
  "RegistryRollback",
  {
    generation: z.int().describe("In force now."),
    becomes: z.int().nullable().describe("In force afterwards; null: no registry would be."),
    becomesAppliedAt: dateTime().nullable(),
    removed: z.int().describe("Subnets that would go."),
    broughtBack: z.int(),
    restored: z.int().describe("Subnets that would be what they were."),
    inUse: subnetsInUse
      .nullable()
      .describe("Null: not for this reader, or it takes longer than a page waits."),
  },
  "What rolling back the generation in force would do.",
);

const registryCachedSource = record("RegistryCachedSource", {
  name: z.string(),
  registry: z.enum(registries).nullable().describe("Null: what networks publish themselves."),
  kind: z.string(),
  access: z.strictObject({ type: z.enum(["public", "on-request"]), how: z.string().optional() }),
  url: z.string().nullable(),
  mirrors: z.array(z.string()),
  file: z.string(),
  state: z
    .enum([
      "fresh",
      "stale",
      "old at its source",
      "missing",
      "changed on disk",
      "not set up",
      "off",
      "not in the list",
    ])
    .describe(
      "stale: a quarter has passed since we last asked. old at its source: its publisher has had " +
        "nothing newer for a quarter. not in the list: the settings name it no more.",
    ),
  bytes: z.int().nullable().describe("Of our copy; null without one, as are the others below."),
  sha256: z.string().nullable(),
  checksumAgreed: z.boolean().nullable(),
  dataDate: dateTime().nullable().describe("The server's Last-Modified, else when we fetched it."),
  dataAgeDays: z.int().nullable(),
  fetchedAt: dateTime().nullable(),
  checkedDaysAgo: z.int().nullable().describe("Since the server last said that ours is its newest."),
});

const registryCache = record("RegistryCache", {
  folder: z.string(),
  contact: z.string().nullable().describe("Told to the registries with each request."),
  sources: z.array(registryCachedSource),
  fault: z.string().nullable().describe("Why it cannot be read."),
});

const registryPublisher = record("RegistryPublisher", {
  registry: z.enum(registries),
  name: z.string(),
  region: z.string(),
  publishes: z.string(),
  terms: z.string().describe("A hint; the terms are what counts."),
  termsUrl: z.string(),
});

/** What the pages and the command show about registries, except jobs. */
export const registryFacts = {
  now: dateTime(),
  generation: z.int().nullable().describe("In force; null before the first import."),
  appliedAt: dateTime().nullable(),
  ageDays: z.int().nullable(),
  warnings: z.array(z.string()).describe("Plain sentences: what is old, unfinished or missing."),
  counted: z
    .strictObject({
      generation: z.int(),
      crossings: z.int().describe("Pairs of ranges that cross."),
      registries: z.array(registryCounts),
    })
    .nullable(),
  sources: z.array(registrySource),
  outdated: z.array(z.string()).describe("Registries whose data are older than 92 days."),
  unfinished: z.strictObject({ begunAt: dateTime(), isRunning: z.boolean() }).nullable(),
  isImportRunning: z.boolean().describe("Whoever started it."),
  rollback: registryRollback.nullable(),
  history: z.array(registryGeneration).describe("The newest first, at most twenty."),
  cache: registryCache.nullable(),
  publishers: z.array(registryPublisher),
} as const;

export type CachedSource = ToldOf<typeof registryCachedSource>;
export type RegistryFacts = ToldOf<z.ZodObject<typeof registryFacts>>;
export type RegistryCounts = ToldOf<typeof registryCounts>;
export type RegistryChange = ToldOf<typeof registryChange>;
export type SubnetWords = ToldOf<typeof registrySubnetWords>;
export type Difference = ToldOf<typeof registryDifference>;
export type Shrinkage = ToldOf<typeof registryShrinkage>;
export type Loss = ToldOf<typeof registryLoss>;
export type OutdatedFile = ToldOf<typeof outdatedFile>;
export type SubnetsInUse = ToldOf<typeof subnetsInUse>;
