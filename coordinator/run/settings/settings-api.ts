/** API schemas of policy settings. */
import { z } from "zod";
import type { ToldOf } from "../../web/api-operation.ts";
import type { PolicyName } from "./schema.ts";

const policyKind = z
  .union([
    z.strictObject({
      type: z.enum(["number"]),
      whole: z.boolean(),
      least: z.number(),
      above: z.boolean().describe("True: it must be more than least."),
      most: z.number(),
    }),
    z.strictObject({ type: z.enum(["choice"]), options: z.array(z.string()) }),
    z.strictObject({ type: z.enum(["yes-no"]) }),
  ])
  .meta({ id: "PolicyKind" });

const policyName = z.string() as z.ZodType<PolicyName>;
const policyValue = z.union([z.number(), z.string(), z.boolean()]);

const policy = z
  .strictObject({
    name: policyName,
    title: z.string(),
    help: z.string(),
    unit: z.string().nullable(),
    origin: z.string().describe("Where the default comes from."),
    basic: z.boolean().describe("One of the dozen that are usually changed."),
    kind: policyKind,
    value: policyValue.describe("In force."),
    default: policyValue,
    fileValue: z
      .union([z.number(), z.string(), z.boolean()])
      .describe("From the coordinator's file; else the default."),
    changedAt: z.string().nullable().describe("Null: nobody has changed it."),
    changedBy: z.string().nullable(),
  })
  .meta({ id: "Policy" });

const policyVersion = z
  .strictObject({
    version: z.int(),
    changedAt: z.string(),
    changedBy: z.string(),
    words: z.string(),
    takesBack: z.int().nullable(),
    changes: z.array(
      z.strictObject({
        name: policyName,
        before: policyValue.nullable().describe("Null: the file's value."),
        after: policyValue.nullable(),
      }),
    ),
  })
  .meta({ id: "PolicyVersion" });

export const policies = z
  .strictObject({
    version: z.int().describe("The version that a change must be based on; 0: nothing has been changed."),
    groups: z.array(z.strictObject({ name: z.string(), title: z.string(), policies: z.array(policy) })),
    setAtStart: z
      .array(z.strictObject({ names: z.array(z.string()), why: z.string() }))
      .describe("Settings that a coordinator reads from its file at startup."),
    history: z.array(policyVersion).describe("The latest first."),
    ignored: z.array(z.string()).describe("Stored values that are ignored, and why; the file's values hold."),
  })
  .meta({ id: "Policies" });

const policyStep = z
  .strictObject({
    name: policyName,
    before: policyValue.describe("In force now."),
    after: policyValue,
    toFile: z.boolean().describe("True: from then on the value of the coordinator's file holds."),
  })
  .meta({ id: "PolicyStep" });

const policyEffect = z
  .strictObject({
    title: z.string(),
    figures: z.array(
      z.strictObject({
        name: z.string(),
        words: z.string(),
        unit: z.string(),
        before: z.number().nullable().describe("Null: it cannot be computed."),
        after: z.number().nullable(),
      }),
    ),
    basis: z.string().describe("What it was computed from."),
    limits: z.array(z.string()).describe("What it does not cover."),
  })
  .meta({ id: "PolicyEffect" });

export const policyPreview = z
  .strictObject({
    basedOn: z.int(),
    takesBack: z.int().nullable(),
    changes: z.array(policyStep),
    effects: z.array(policyEffect),
  })
  .meta({ id: "PolicyPreview" });

export const savedPolicies = z
  .strictObject({ version: z.int(), changes: z.array(policyStep) })
  .meta({ id: "SavedPolicies" });

export type PoliciesAnswer = ToldOf<typeof policies>;
export type ShownPolicy = ToldOf<typeof policy>;
export type ShownVersion = ToldOf<typeof policyVersion>;
export type PreviewAnswer = ToldOf<typeof policyPreview>;
export type PolicyEffect = ToldOf<typeof policyEffect>;
export type PolicyFigure = PolicyEffect["figures"][number];
