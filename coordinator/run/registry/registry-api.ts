/** API schemas of the registry: what is in force, the jobs that change it, and their plans and results. */

import { z } from "zod";
import type { ImportPlan } from "#rir-import/plan";
import {
  outdatedFile,
  registryChange,
  registryDifference,
  registryFacts,
  registryLoss,
  registryShrinkage,
  subnetsInUse,
} from "#rir-import/read/status-api";
import { dateTime, record } from "../../web/api-operation.ts";

const registryFilesPlace = z
  .discriminatedUnion("from", [
    z.strictObject({ from: z.literal("cache") }),
    z.strictObject({
      from: z.literal("folder"),
      name: z.string().describe("Of a folder in the one that the settings allow; empty: that one itself."),
    }),
  ])
  .meta({ id: "RegistryFilesPlace" });

const meantToGo = z.int().optional().describe("The number of subnets in use that are meant to go.");

const registryOrder = z
  .discriminatedUnion("type", [
    z.strictObject({ type: z.literal("fetch"), acceptSmaller: z.boolean() }),
    z.strictObject({ type: z.literal("plan"), files: registryFilesPlace }),
    z.strictObject({
      type: z.literal("apply"),
      planId: z.int(),
      fingerprint: z.string().describe("The plan's: files or a tree that changed since stop the job."),
      files: registryFilesPlace,
      removeInUse: meantToGo,
      loseFacts: z
        .int()
        .optional()
        .describe("The total of holders, countries and published ranges that are meant to be lost."),
    }),
    z.strictObject({
      type: z.literal("rollback"),
      generation: z.int().describe("In force when it was asked for: it stops when another one is by then."),
      toEmpty: z.boolean().describe("The tree may be empty afterwards."),
      removeInUse: meantToGo,
    }),
    z.strictObject({
      type: z.literal("rollforward"),
      generation: z
        .int()
        .describe("It stops when another one is in force by then than the one that it follows."),
    }),
  ])
  .meta({ id: "RegistryOrder", description: "What was asked for." });

const registryJobProgress = record("RegistryJobProgress", {
  text: z.string().describe("How far, how fast, how long still."),
  share: z.number().nullable().describe("0 to 1 of the present step; null: not known."),
  lines: z.array(z.string()).describe("Steps behind it, the first one first, at most 60."),
});

export const registryJob = record("RegistryJob", {
  jobId: z.int(),
  order: registryOrder,
  askedBy: z.string().nullable().describe("Null: not for this reader."),
  via: z.enum(["page", "api"]),
  state: z.enum(["running", "done", "failed", "cancelled", "broken-off"]),
  startedAt: dateTime(),
  endedAt: dateTime().nullable(),
  progress: registryJobProgress,
  cancelAskedBy: z.string().nullable(),
  exitCode: z.int().nullable().describe("Of its process; null: it runs, or was ended by a signal."),
  words: z.string().nullable().describe("Why it failed."),
});

const changesMade = z.record(z.string(), z.int());

export const registryJobReport = z
  .discriminatedUnion("type", [
    z.object({
      type: z.literal("fetch"),
      results: z.array(
        z.object({
          source: z.string(),
          type: z.enum(["fetched", "unchanged", "left out", "failed"]),
          bytes: z.int().optional(),
          note: z.string().optional(),
          reason: z.string().optional(),
        }),
      ),
    }),
    z.object({ type: z.literal("plan") }),
    z.object({
      type: z.literal("apply"),
      generation: z.int(),
      isNew: z.boolean().describe("False: the same files again, and nothing to do."),
      changes: changesMade,
      seconds: z.number(),
      isInForce: z.boolean().describe("False: another has taken its place since."),
    }),
    z.object({
      type: z.literal("rollback"),
      rolledBack: z.array(z.int()),
      generation: z.int().nullable().describe("In force afterwards."),
      undone: changesMade,
    }),
    z.object({ type: z.literal("rollforward"), generation: z.int(), redone: changesMade }),
  ])
  .meta({ id: "RegistryJobReport", description: "What came of it." });

export const registryJobShown = registryJob
  .extend({ report: registryJobReport.nullable() })
  .meta({ id: "RegistryJobShown" });

/** The command's own output, which the API does not describe. */
const printed = <Shape>(schema: z.ZodType = z.looseObject({})) => schema as unknown as z.ZodType<Shape>;

const registryImportPlan = z
  .strictObject({
    fingerprint: z.string(),
    generation: z.int().nullable(),
    files: z.array(
      z
        .object({
          file: z.string(),
          sha256: z.string(),
          read: z.int(),
          kept: z.int(),
          malformed: z.int(),
          malformedSamples: z
            .array(z.strictObject({ file: z.string(), line: z.int(), reason: z.string(), value: z.string() }))
            .describe("Refused records, at most twenty of a file."),
        })
        .describe("As nearcrawl rir plan --json prints it."),
    ),
    state: printed<ImportPlan["state"]>(),
    changes: printed<ImportPlan["changes"]>(z.record(z.string(), z.int())),
    samples: z.record(z.string(), z.array(registryDifference)),
    holders: printed<ImportPlan["holders"]>(),
    delegations: printed<ImportPlan["delegations"]>(),
    inUse: subnetsInUse.optional(),
    published: printed<ImportPlan["published"]>()
      .optional()
      .describe(
        "What changes of where networks publish that their ranges lie: by source, and what is held back.",
      ),
    losses: z
      .array(registryLoss)
      .optional()
      .describe(
        "What subnets that stay, and published lists, lose suspiciously much of: confirmShrinkage is needed.",
      ),
    outdated: z.array(outdatedFile).optional().describe("Files older than a quarter."),
    registries: z.array(registryChange),
    largest: z.array(registryDifference).describe("By size: twenty of IPv4, twenty of IPv6."),
  })
  .meta({
    id: "RegistryImportPlan",
    description: "As nearcrawl rir plan --json prints it, with at most 300 samples of each kind of change.",
  });

export const registryPlan = record("RegistryPlan", {
  jobId: z.int(),
  madeAt: dateTime(),
  plan: registryImportPlan,
  files: registryFilesPlace,
  outdated: z.string().nullable().describe("Why it cannot be applied any more."),
  shrunk: z
    .array(registryShrinkage)
    .describe("Registries that would lose suspiciously much: confirmShrinkage is needed."),
  appliedBy: z.strictObject({ jobId: z.int(), state: z.string() }).nullable(),
});

export const registryOverview = record("RegistryOverview", {
  ...registryFacts,
  filesFolder: z.strictObject({ path: z.string(), names: z.array(z.string()) }).nullable(),
  jobs: z.array(registryJob).describe("The latest first, at most eight."),
  runningJob: registryJob.nullable(),
  canStartJobs: z.boolean(),
});
