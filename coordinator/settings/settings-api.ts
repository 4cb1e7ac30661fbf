/** The API of policy settings: what it takes and answers. */
import { z } from "zod";
import { type ApiOperations, answer, errorAnswer, type ToldOf } from "../web/api-operation.ts";
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

const policies = z
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

const mostVersion = 2 ** 31 - 1;
const version = z.int().min(0).max(mostVersion);

const wanted = {
  values: z
    .record(z.string().max(60), z.union([z.number(), z.boolean(), z.string().max(60), z.null()]))
    .default({})
    .describe("By the policy's name; null: back to the file's value."),
  takeBack: version
    .nullable()
    .default(null)
    .describe("What this version changed goes back to what it was before."),
};

const policyPreviewRequest = z
  .strictObject({ ...wanted, basedOn: version.nullable().default(null) })
  .meta({ id: "PolicyPreviewRequest" });

const policyChange = z
  .strictObject({
    ...wanted,
    basedOn: version
      .nullable()
      .describe(
        "Of the policies or of their preview: refused when somebody has changed something since. Null: on whatever is in force.",
      ),
    words: z.string().trim().max(300).default("").describe("Why, for the history; 300 characters at most."),
  })
  .meta({ id: "PolicyChange" });

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

const policyPreview = z
  .strictObject({
    basedOn: z.int(),
    takesBack: z.int().nullable(),
    changes: z.array(policyStep),
    effects: z.array(policyEffect),
  })
  .meta({ id: "PolicyPreview" });

const savedPolicies = z
  .strictObject({ version: z.int(), changes: z.array(policyStep) })
  .meta({ id: "SavedPolicies" });

export const settingsApi = {
  policies: {
    method: "get",
    path: "/api/policies",
    needs: "read",
    summary: "The policies: what is in force, defaults, changes and the latest 50 versions",
    parameters: {
      query: {
        show: z.enum(["basic", "all", "changed"]).optional().meta({
          description:
            "basic: the dozen that are usually changed; changed: those that differ from the default; omitted: all.",
          example: "changed",
        }),
        q: z.string().optional().meta({
          description: "Words that stand in the name, title, help or group of a policy.",
          example: "probe",
        }),
      },
    },
    description:
      "Scope read, where reading needs one. A value is that of the coordinator's file unless an " +
      "operator has changed it; running coordinators follow changes at once.",
    answers: {
      200: answer(policies),
    },
  },
  changePolicies: {
    method: "post",
    path: "/api/policies",
    needs: "policy-write",
    summary: "Change policies, all of them or none",
    description:
      "basedOn is the version of GET /api/policies or of the preview: if somebody has changed " +
      "something since, nothing is changed (409). The change is in the audit log and can be " +
      "reverted.",
    body: {
      schema: policyChange,
      example: { values: { "delegation.lambdaMs": 5 }, basedOn: 3, words: "fewer probes over the holidays" },
    },
    answers: {
      200: answer(savedPolicies, "Saved"),
      400: errorAnswer("The body is not of the stated form"),
      404: errorAnswer("There is no such version to revert"),
      409: errorAnswer("Somebody has changed something since basedOn; nothing is changed"),
      422: errorAnswer("An invalid value, or values that contradict each other; nothing is changed"),
    },
  },
  previewPolicies: {
    method: "post",
    path: "/api/policies/preview",
    needs: "policy-write",
    summary: "Preview a change; nothing is saved",
    description:
      "Computed within two seconds from samples of what the crawl has done; each effect says what it was computed from and what it does not cover.",
    body: { schema: policyPreviewRequest, example: { values: { "delegation.lambdaMs": 5 } } },
    answers: {
      200: answer(policyPreview, "What would change"),
      400: errorAnswer("The body is not of the stated form"),
      404: errorAnswer("There is no such version to revert"),
      409: errorAnswer("Somebody has changed something since basedOn; nothing is changed"),
      422: errorAnswer("An invalid value, or values that contradict each other; nothing is changed"),
    },
  },
} satisfies ApiOperations;

export type PoliciesAnswer = ToldOf<typeof policies>;
export type ShownPolicy = ToldOf<typeof policy>;
export type ShownVersion = ToldOf<typeof policyVersion>;
export type PreviewAnswer = ToldOf<typeof policyPreview>;
export type PolicyEffect = ToldOf<typeof policyEffect>;
export type PolicyFigure = PolicyEffect["figures"][number];
