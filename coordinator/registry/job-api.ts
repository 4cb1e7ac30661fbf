/** The API of registry jobs: what is fetched, planned, applied and taken back. */
import { z } from "zod";
import type { ImportPlan } from "#rir-import/plan";
import { registries } from "../subnets/subnet.ts";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";
import { typedConfirmation } from "../web/form-fields.ts";

export const registryCounts = z
  .strictObject({
    registry: z.enum(registries),
    subnets: z.int(),
    ipv4Subnets: z.int(),
    ipv6Subnets: z.int(),
    holders: z.int(),
    crossing: z.int().describe("Subnets that cross another, of whichever registry."),
    ipv4Addresses: z.int().describe("Addresses that lie in a subnet of it; each counts once."),
    ipv6Slash48s: z.int().describe("Blocks of a /48 that a subnet of it touches."),
  })
  .meta({ id: "RegistryCounts" });

export const registryFilesPlace = z
  .discriminatedUnion("from", [
    z.strictObject({ from: z.literal("cache") }),
    z.strictObject({
      from: z.literal("folder"),
      name: z.string().describe("Of a folder in the one that the settings allow; empty: that one itself."),
    }),
  ])
  .meta({ id: "RegistryFilesPlace" });

const meantToGo = z.int().optional().describe("So many subnets in use are meant to go.");

export const registryOrder = z
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
        .describe("So many holders, countries and published ranges in all are meant to be lost."),
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

export const registryJobProgress = z
  .strictObject({
    text: z.string().describe("How far, how fast, how long still."),
    share: z.number().nullable().describe("0 to 1 of the present step; null: not known."),
    lines: z.array(z.string()).describe("Steps behind it, the first one first, at most 60."),
  })
  .meta({ id: "RegistryJobProgress" });

export const registryJob = z
  .strictObject({
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
  })
  .meta({ id: "RegistryJob" });

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

const registryJobShown = registryJob
  .extend({ report: registryJobReport.nullable() })
  .meta({ id: "RegistryJobShown" });

const registrySubnetWords = z
  .strictObject({
    holder: z.string().nullable(),
    country: z.string().nullable(),
    registry: z.string(),
    name: z.string(),
    under: z.string().nullable().describe("The next less specific range."),
  })
  .meta({ id: "RegistrySubnetWords" });

const registryDifference = z
  .strictObject({
    kind: z.enum(["added", "returned", "changed", "moved", "removed"]),
    range: z.string(),
    before: registrySubnetWords.nullable(),
    after: registrySubnetWords.nullable(),
  })
  .meta({ id: "RegistryDifference" });

export const subnetsInUse = z
  .strictObject({
    total: z.int().describe("Delegated, or with hosts in the frontier."),
    going: z
      .int()
      .describe("Of those, the ones that go; where they are more than 5 %, removeInUse has to name them."),
  })
  .meta({ id: "SubnetsInUse" });

/** Of a body. */
const removeInUse = z
  .int()
  .min(1)
  .max(2_147_483_647)
  .optional()
  .describe("Needed where more than 5 % of the subnets in use go: how many.");

const registryChange = z
  .strictObject({
    registry: z.enum(registries),
    before: registryCounts.nullable(),
    after: registryCounts.nullable(),
    added: z.int(),
    removed: z.int(),
    changed: z.int(),
    moved: z.int(),
  })
  .meta({ id: "RegistryChange" });

const registryShrinkage = z
  .strictObject({
    registry: z.enum(registries),
    lostSubnetsShare: z.number().describe("0 to 1 of what it has in the tree in force."),
    lostIpv4Share: z.number(),
    lostIpv6Share: z.number(),
  })
  .meta({ id: "RegistryShrinkage" });

/** As the command prints it, which is not described here. */
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
      .array(
        z.strictObject({
          what: z.enum(["holders", "countries", "published places"]),
          of: z.string().describe("A registry, or a list's source."),
          before: z.int(),
          lost: z.int(),
        }),
      )
      .optional()
      .describe(
        "What subnets that stay, and published lists, lose suspiciously much of: confirmShrinkage is needed.",
      ),
    outdated: z
      .array(z.strictObject({ file: z.string(), fileDate: z.string(), ageDays: z.int() }))
      .optional()
      .describe("Files older than a quarter."),
    registries: z.array(registryChange),
    largest: z.array(registryDifference).describe("By size: twenty of IPv4, twenty of IPv6."),
  })
  .meta({
    id: "RegistryImportPlan",
    description: "As nearcrawl rir plan --json prints it, with at most 300 samples of each kind of change.",
  });

export const registryPlan = z
  .strictObject({
    jobId: z.int(),
    madeAt: dateTime(),
    plan: registryImportPlan,
    files: registryFilesPlace,
    outdated: z.string().nullable().describe("Why it cannot be applied any more."),
    shrunk: z
      .array(registryShrinkage)
      .describe("Registries that would lose suspiciously much: confirmShrinkage is needed."),
    appliedBy: z.strictObject({ jobId: z.int(), state: z.string() }).nullable(),
  })
  .meta({ id: "RegistryPlan" });

const startedRegistryJob = z
  .strictObject({
    jobId: z.int().describe("Follow it at /api/registry/jobs/{jobId}."),
    kind: z.enum(["fetch", "plan", "apply", "rollback", "rollforward"]),
  })
  .meta({ id: "StartedRegistryJob" });

const registryCancelled = z
  .strictObject({ jobId: z.int(), cancelAsked: z.boolean() })
  .meta({ id: "RegistryCancelled" });

const registryJobs = z.strictObject({ jobs: z.array(registryJob) }).meta({ id: "RegistryJobs" });

const number = z.int().min(1).max(2_147_483_647);

const begun = { description: "Begun; it goes on in a process of its own", schema: startedRegistryJob };

const startsNone = errorAnswer("This coordinator starts no jobs");

/** What is asked for is in the audit log, and so is what it changes. */
export const registryJobApi = {
  registryJobs: {
    method: "get",
    path: "/api/registry/jobs",
    needs: "read",
    summary: "Jobs, the latest first, at most a hundred",
    answers: {
      200: answer(registryJobs, "The same as its page"),
    },
  },
  registryJob: {
    method: "get",
    path: "/api/registry/jobs/{jobId}",
    needs: "read",
    summary: "A job: how far it is, or what came of it",
    parameters: { path: { jobId: z.int().min(1).meta({ description: "Of the job.", example: 12 }) } },
    answers: {
      200: answer(registryJobShown, "The same as its page"),
      404: errorAnswer("There is no such job"),
    },
  },
  registryPlan: {
    method: "get",
    path: "/api/registry/plans/{jobId}",
    needs: "read",
    summary: "What a plan would change, and whether it can still be applied. While its job runs: the job",
    parameters: { path: { jobId: z.int().min(1).meta({ description: "Of the job.", example: 12 }) } },
    answers: {
      200: answer(z.union([registryPlan, registryJobShown]), "The same as its page"),
      404: errorAnswer("There is no such job"),
    },
  },
  fetchRegistry: {
    method: "post",
    path: "/api/registry/fetch",
    needs: "registry-write",
    summary: "Fetch what the registries have published since",
    body: {
      schema: z.strictObject({
        acceptSmaller: z
          .boolean()
          .default(false)
          .describe("Take a file also when it is much smaller than the last one."),
      }),
      example: { acceptSmaller: false },
    },
    answers: {
      202: begun,
      409: errorAnswer("Another job runs"),
      503: startsNone,
    },
  },
  planRegistry: {
    method: "post",
    path: "/api/registry/plan",
    needs: "registry-write",
    summary: "Say what an import would change, and change nothing",
    body: {
      schema: z.strictObject({
        from: z.enum(["cache", "folder"]).default("cache"),
        folder: z
          .string()
          .max(255)
          .default("")
          .describe("One of those that GET /api/registry lists; empty: the folder that holds them."),
      }),
      example: { from: "cache" },
    },
    answers: {
      202: begun,
      404: errorAnswer("No such folder"),
      409: errorAnswer("Another job runs"),
      503: startsNone,
    },
  },
  applyRegistry: {
    method: "post",
    path: "/api/registry/apply",
    needs: "registry-write",
    summary: "Apply exactly what a plan has shown",
    body: {
      schema: z.strictObject({
        planId: number.describe("The job that made the plan."),
        confirmShrinkage: z
          .boolean()
          .default(false)
          .describe("Needed where a registry would lose suspiciously much."),
        removeInUse,
      }),
      example: { planId: 12 },
    },
    answers: {
      202: begun,
      404: errorAnswer("No such plan"),
      409: errorAnswer("The plan is outdated, or another job runs"),
      422: errorAnswer("To be confirmed"),
      503: startsNone,
    },
  },
  rollBackRegistry: {
    method: "post",
    path: "/api/registry/rollback",
    needs: "registry-write",
    summary: "Undo the generation in force: tree and delegations are as before it",
    body: {
      schema: z.strictObject({
        generation: number.describe("The one in force: asked twice, it is done once."),
        toEmpty: z
          .boolean()
          .default(false)
          .describe(
            "Needed for the first import: without it no registry is in force, and no subnet but the two roots of the address space.",
          ),
        removeInUse,
        confirmation: typedConfirmation("What the page asks for, such as “roll back 12”"),
      }),
      example: { generation: 12 },
    },
    answers: {
      202: begun,
      409: errorAnswer("Another one is in force, or another job runs"),
      422: errorAnswer(
        "It is the first import, and toEmpty was not said; or the confirmation is not what was asked for",
      ),
      503: startsNone,
    },
  },
  rollForwardRegistry: {
    method: "post",
    path: "/api/registry/rollforward",
    needs: "registry-write",
    summary: "Put a generation that was rolled back in force again, with its delegations",
    body: {
      schema: z.strictObject({
        generation: number.describe(
          "One that the registry's history says canRollForward of: it follows the generation in force.",
        ),
      }),
      example: { generation: 12 },
    },
    answers: {
      202: begun,
      409: errorAnswer(
        "It does not follow the generation in force, nothing of it was kept, or another job runs",
      ),
      503: startsNone,
    },
  },
  cancelRegistryJob: {
    method: "post",
    path: "/api/registry/cancel",
    needs: "registry-write",
    summary: "Ask a job to end; an import that is broken off leaves the tree as it was",
    body: {
      schema: z.strictObject({ jobId: number.describe("That runs.") }),
      example: { jobId: 12 },
    },
    answers: {
      202: answer(registryCancelled, "Asked for"),
      409: errorAnswer("It does not run"),
    },
  },
} satisfies ApiOperations;
