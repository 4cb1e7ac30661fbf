/** The API of registry data: what is in force, and how old it is. */
import { z } from "zod";
import { registries } from "../subnets/subnet.ts";
import { type ApiOperations, dateTime } from "../web/api-operation.ts";
import { registryCounts, registryJob, subnetsInUse } from "./job-api.ts";

const registrySource = z
  .strictObject({
    file: z.string(),
    format: z.string(),
    registry: z.string().nullable(),
    fileDate: z.string().meta({ format: "date" }).nullable().describe("Of its data."),
    ageDays: z.int().nullable(),
    kept: z.int().describe("Records."),
    malformed: z.int().describe("Records that were refused."),
    sha256: z.string(),
  })
  .meta({ id: "RegistrySource" });

const registryGeneration = z
  .strictObject({
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
  })
  .meta({ id: "RegistryGeneration" });

const registryRollback = z
  .strictObject({
    generation: z.int().describe("In force now."),
    becomes: z.int().nullable().describe("In force afterwards; null: no registry would be."),
    becomesAppliedAt: dateTime().nullable(),
    removed: z.int().describe("Subnets that would go."),
    broughtBack: z.int(),
    restored: z.int().describe("Subnets that would be what they were."),
    inUse: subnetsInUse
      .nullable()
      .describe("Null: not for this reader, or it takes longer than a page waits."),
  })
  .meta({ id: "RegistryRollback", description: "What rolling back the generation in force would do." });

const registryCachedSource = z
  .strictObject({
    name: z.string(),
    registry: z.enum(registries).nullable().describe("Null: what networks publish themselves."),
    kind: z.string(),
    access: z.strictObject({ type: z.enum(["public", "on-request"]), how: z.string().optional() }),
    url: z.string().nullable(),
    mirrors: z.array(z.string()),
    file: z.string(),
    state: z.enum([
      "fresh",
      "stale",
      "old at its source",
      "missing",
      "changed on disk",
      "not set up",
      "off",
      "not in the list",
    ]),
    bytes: z.int().nullable(),
    sha256: z.string().nullable(),
    checksumAgreed: z.boolean().nullable(),
    dataDate: dateTime().nullable(),
    dataAgeDays: z.int().nullable(),
    fetchedAt: dateTime().nullable(),
    checkedDaysAgo: z.int().nullable(),
  })
  .meta({ id: "RegistryCachedSource" });

const registryCache = z
  .strictObject({
    folder: z.string(),
    contact: z.string().nullable().describe("Told to the registries with each request."),
    sources: z.array(registryCachedSource),
    fault: z.string().nullable().describe("Why it cannot be read."),
  })
  .meta({ id: "RegistryCache" });

const registryPublisher = z
  .strictObject({
    registry: z.enum(registries),
    name: z.string(),
    region: z.string(),
    publishes: z.string(),
    terms: z.string().describe("A hint; the terms are what counts."),
    termsUrl: z.string(),
  })
  .meta({ id: "RegistryPublisher" });

const registryOverview = z
  .strictObject({
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
    filesFolder: z.strictObject({ path: z.string(), names: z.array(z.string()) }).nullable(),
    publishers: z.array(registryPublisher),
    jobs: z.array(registryJob).describe("The latest first, at most eight."),
    runningJob: registryJob.nullable(),
    canStartJobs: z.boolean(),
  })
  .meta({ id: "RegistryOverview" });

export const registryApi = {
  registry: {
    method: "get",
    path: "/api/registry",
    needs: "read",
    summary: "The generation in force, its age and make-up, generations before, the download cache, the jobs",
    answers: {
      200: {
        description: "The same as its page",
        schema: registryOverview,
        example: {
          now: "2026-03-01T12:00:00.000Z",
          generation: 12,
          appliedAt: "2026-02-28T00:00:00.000Z",
          ageDays: 1,
          warnings: [],
          counted: {
            generation: 12,
            crossings: 40,
            registries: [
              {
                registry: "ripencc",
                subnets: 4200000,
                ipv4Subnets: 4000000,
                ipv6Subnets: 200000,
                holders: 31000,
                crossing: 12,
                ipv4Addresses: 850000000,
                ipv6Slash48s: 9100000000,
              },
            ],
          },
          sources: [
            {
              file: "/var/lib/nearcrawl/registry-cache/ripe.db.inetnum.gz",
              format: "rpsl",
              registry: "ripencc",
              fileDate: "2026-02-27",
              ageDays: 2,
              kept: 4000000,
              malformed: 3,
              sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            },
          ],
          outdated: [],
          unfinished: null,
          isImportRunning: false,
          rollback: {
            generation: 12,
            becomes: 11,
            becomesAppliedAt: "2025-11-29T00:00:00.000Z",
            removed: 40000,
            broughtBack: 12000,
            restored: 90000,
            inUse: { total: 120000, going: 310 },
          },
          history: [
            {
              generation: 12,
              state: "applied",
              appliedAt: "2026-02-28T00:00:00.000Z",
              changes: {
                added: 40000,
                returned: 0,
                removed: 12000,
                changed: 80000,
                moved: 10000,
                unchanged: 9870000,
              },
              appliedBy: "anna",
              canRollForward: false,
              rolledBackBy: null,
            },
          ],
          cache: {
            folder: "/var/lib/nearcrawl/registry-cache",
            contact: "noc@example.org",
            sources: [
              {
                name: "ripencc-inetnum",
                registry: "ripencc",
                kind: "rpsl-split",
                access: { type: "public" },
                url: "https://ftp.ripe.net/ripe/dbase/split/ripe.db.inetnum.gz",
                mirrors: [],
                file: "ripe.db.inetnum.gz",
                state: "fresh",
                bytes: 310000000,
                sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                checksumAgreed: false,
                dataDate: "2026-02-27T00:00:00.000Z",
                dataAgeDays: 2,
                fetchedAt: "2026-02-28T00:00:00.000Z",
                checkedDaysAgo: 1,
              },
            ],
            fault: null,
          },
          filesFolder: { path: "/srv/registries", names: ["2026-q1"] },
          publishers: [
            {
              registry: "iana",
              name: "IANA",
              region: "the whole address space",
              publishes: "which registry has which block",
              terms: "Free for any purpose (CC0).",
              termsUrl: "https://www.iana.org/help/licensing-terms",
            },
          ],
          jobs: [
            {
              jobId: 12,
              order: { type: "plan", files: { from: "cache" } },
              askedBy: "anna",
              via: "page",
              state: "running",
              startedAt: "2026-03-01T12:00:00.000Z",
              endedAt: null,
              progress: {
                text: "reading 43 % · 120,000 records · 51,000/s · 12 s left · ripe.db.inetnum.gz",
                share: 0.43,
                lines: [],
              },
              cancelAskedBy: null,
              exitCode: null,
              words: null,
            },
          ],
          runningJob: {
            jobId: 12,
            order: { type: "plan", files: { from: "cache" } },
            askedBy: "anna",
            via: "page",
            state: "running",
            startedAt: "2026-03-01T12:00:00.000Z",
            endedAt: null,
            progress: {
              text: "reading 43 % · 120,000 records · 51,000/s · 12 s left · ripe.db.inetnum.gz",
              share: 0.43,
              lines: [],
            },
            cancelAskedBy: null,
            exitCode: null,
            words: null,
          },
          canStartJobs: true,
        },
      },
    },
  },
} satisfies ApiOperations;
