/** The operators' forms that start and end registry jobs. The audit log has who asked, and the change. */
import { z } from "zod";
import { goingWords, isMuchInUse } from "#rir-import/database/subnets-in-use";
import type { SubnetsInUse } from "#rir-import/read/status-api";
import { lostSum } from "#rir-import/shrinkage";
import { type Asked, Fault, operationsOf } from "../../ask/operation.ts";
import { record, typedConfirmation } from "../../web/api-operation.ts";
import { orderWords, type RegistryOrder } from "./jobs.ts";
import {
  emptyConfirmation,
  knownPlan,
  losingIn,
  type RegistryPorts,
  rollbackConfirmation,
  rollbackPreview,
} from "./registry-view.ts";

const { post } = operationsOf<RegistryPorts>();

const number = z.int().min(1).max(2_147_483_647);

const removeInUse = number.optional().meta({
  title: "Subnets in use that go",
  description: "Needed where more than 5 % of the subnets in use go: how many.",
});

interface Started {
  readonly jobId: number;
  readonly kind: RegistryOrder["type"];
  readonly order: RegistryOrder;
}

const starts = {
  needs: "registry-write",
  output: record("StartedRegistryJob", {
    jobId: z.int().describe("Follow it at /api/registry/jobs/{jobId}."),
    kind: z.enum(["fetch", "plan", "apply", "rollback", "rollforward"]),
  }),
  answer: { status: 202, description: "Begun; it goes on in a process of its own" },
  told: ({ jobId, kind }: Started) => ({ jobId, kind }),
  said: ({ jobId }: Started) => `Job ${jobId} is started.`,
  goTo: ({ jobId }: Started) => `/registry/jobs/${jobId}`,
  change: ({ jobId, kind, order }: Started) => ({
    ...{ action: `registry-${kind}-started`, target: `registry job ${jobId}` },
    ...{ words: `job ${jobId}: ${orderWords(order)}`, after: order },
  }),
} as const;

const faults = { 409: "Another job runs", 503: "This coordinator starts no jobs" };

async function start(
  { ports: { runner }, actor, via }: Asked<RegistryPorts, unknown>,
  order: RegistryOrder,
): Promise<Started> {
  if (runner === null)
    throw new Fault(
      503,
      "This coordinator cannot start jobs. On its machine: nearcrawl rir fetch, plan, apply, rollback, rollforward.",
      "Not from here",
    );
  const started = await runner.jobs.start(order, { by: actor.name, via });
  if ("jobId" in started) return { jobId: started.jobId, kind: order.type, order };
  const { jobId, order: other } = started.running;
  throw new Fault(
    409,
    `Job ${jobId} (${other.type}) is at work. Wait for its end, or cancel it.`,
    "Another job runs",
  );
}

export const fetchRegistry = post({
  ...{ path: "/api/registry/fetch", ...starts, faults, example: { acceptSmaller: false } },
  summary: "Fetch what the registries have published since",
  input: z.object({
    acceptSmaller: z
      .boolean()
      .default(false)
      .describe("Take a file also when it is much smaller than the last one."),
  }),
  run: async (asked) => await start(asked, { type: "fetch", ...asked.input }),
});

/** The form's value for the parent folder. No folder name equals it. */
export const holdingFolder = ".";

export const planRegistry = post({
  ...{ path: "/api/registry/plan", ...starts, example: { from: "cache" } },
  summary: "Say what an import would change, and change nothing",
  description:
    "`folder` is one of those that GET /api/registry lists; empty, or a full stop: the folder that holds them.",
  input: z.object({
    from: z
      .enum(["cache", "folder"])
      .optional()
      .describe("Left out: the folder where one is named, and else the cache."),
    folder: z.string().max(255).default("").meta({ title: "Files" }),
  }),
  faults: { ...faults, 404: "No such folder" },
  run: async (asked) => {
    const { folder, from = folder === "" ? "cache" : "folder" } = asked.input;
    if (from === "cache") return await start(asked, { type: "plan", files: { from } });
    const name = folder === holdingFolder ? "" : folder;
    const allowed = await asked.ports.runner?.host.filesFolder();
    if (allowed && (name === "" || allowed.names.includes(name)))
      return await start(asked, { type: "plan", files: { from, name } });
    const words =
      name === ""
        ? "No folder of files is allowed: set registry.filesFolder in the coordinator's settings."
        : `"${name.slice(0, 80)}" is none of the folders that the setting registry.filesFolder allows.`;
    throw new Fault(404, words, "No such folder");
  },
});

export const applyRegistry = post({
  ...{ path: "/api/registry/apply", ...starts, example: { planId: 12 } },
  summary: "Apply exactly what a plan has shown",
  input: z.object({
    planId: number.describe("The job that made the plan."),
    confirmShrinkage: z.boolean().default(false).meta({
      title: "They may lose that much: I have checked it",
      description: "Needed where a registry would lose suspiciously much.",
    }),
    removeInUse,
  }),
  faults: {
    ...{ 404: "No such plan", 409: "The plan is outdated, or another job runs", 422: "To be confirmed" },
    503: faults[503],
  },
  run: async (asked) => {
    const { input, ports, now } = asked;
    const { planId, confirmShrinkage, removeInUse } = input;
    const job = await ports.store.find(planId);
    const known = job && (await knownPlan(job, ports, now));
    if (!known)
      throw new Fault(404, `Job ${planId} made no plan that can be applied. Make a new one.`, "No such plan");
    if (known.outdated !== null) {
      const words = `Plan ${planId} cannot be applied any more. ${known.outdated} Make a new one.`;
      throw new Fault(409, words, "The plan is outdated");
    }
    const { files, plan } = known;
    const losing = losingIn(known);
    if (losing.length > 0 && !confirmShrinkage)
      throw toBeConfirmed(
        `${losing.join(", ")} would lose suspiciously much. Look at the plan; if it is right, confirm it (confirmShrinkage).`,
      );
    requireMeant(plan.inUse ?? null, removeInUse);
    const { fingerprint, losses = [] } = plan;
    return await start(asked, {
      ...{ type: "apply", planId, fingerprint, files },
      ...(removeInUse !== undefined && { removeInUse }),
      ...(losses.length > 0 && { loseFacts: lostSum(losses) }),
    });
  },
});

export const rollBackRegistry = post({
  ...{ path: "/api/registry/rollback", ...starts, example: { generation: 12 } },
  summary: "Undo the generation in force: tree and delegations are as before it",
  input: z.object({
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
  faults: {
    409: "Another one is in force, or another job runs",
    422: "It is the first import, and toEmpty was not said; or the confirmation is not what was asked for",
    503: faults[503],
  },
  run: async (asked) => {
    const { input, ports, via, now } = asked;
    const { generation, removeInUse, confirmation } = input;
    const overview = await ports.overview(now);
    const current = overview.generation;
    if (current !== generation) {
      const inForce = current === null ? "none is" : `generation ${current} is`;
      const words = `Generation ${generation} is not in force, ${inForce}: nothing is rolled back.`;
      throw new Fault(409, words, "Not in force");
    }
    const isFirst = rollbackPreview(overview.history)?.becomes === null;
    const typed = confirmation?.trim();
    const isEmptied = isFirst && typed === emptyConfirmation;
    const toEmpty = input.toEmpty || isEmptied;
    if (isFirst && !toEmpty)
      throw toBeConfirmed(
        `Generation ${generation} is the first import: without it no registry is in force, and no subnet but the two ` +
          `roots of the address space. If that is meant, type “${emptyConfirmation}” (API: "toEmpty": true).`,
      );
    const inUse = await ports.inUseOfRollback();
    requireMeant(inUse, removeInUse);
    // From a program, the request is enough. On a page, words must be typed, or the number of subnets if many in use
    // are removed and a tree remains.
    const isEnough = via === "api" || (!isFirst && isMuchInUse(inUse));
    const isOfPage = isFirst && (via === "page" || isEmptied);
    const meant = isOfPage ? emptyConfirmation : rollbackConfirmation(generation);
    if (typed === undefined ? !isEnough : typed !== meant)
      throw new Fault(
        422,
        `Nothing was done: to confirm, type what the page asks for, ${meant}.`,
        "Not confirmed",
      );
    return await start(asked, {
      ...{ type: "rollback", generation, toEmpty },
      ...(removeInUse !== undefined && { removeInUse }),
    });
  },
});

export const rollForwardRegistry = post({
  ...{ path: "/api/registry/rollforward", ...starts, example: { generation: 12 } },
  summary: "Put a generation that was rolled back in force again, with its delegations",
  input: z.object({
    generation: number.describe(
      "One that the registry's history says canRollForward of: it follows the generation in force.",
    ),
  }),
  faults: {
    409: "It does not follow the generation in force, nothing of it was kept, or another job runs",
    503: faults[503],
  },
  run: async (asked) => {
    const { generation } = asked.input;
    const { history, generation: current } = await asked.ports.overview(asked.now);
    if (history.some((one) => one.generation === generation && one.canRollForward))
      return await start(asked, { type: "rollforward", generation });
    const inForce = current === null ? "no generation" : `generation ${current}`;
    throw new Fault(
      409,
      `Generation ${generation} cannot be put in force again as things are (${inForce} is in force): it was not rolled ` +
        "back from here, or nothing of it was kept.",
      "Not from here",
    );
  },
});

export const cancelRegistryJob = post({
  ...{ path: "/api/registry/cancel", needs: "registry-write" },
  summary: "Ask a job to end; an import that is broken off leaves the tree as it was",
  input: z.object({ jobId: number.describe("That runs.") }),
  output: record("RegistryCancelled", { jobId: z.int(), cancelAsked: z.boolean() }),
  example: { jobId: 12 },
  answer: { status: 202, description: "Asked for" },
  faults: { 409: "It does not run" },
  run: async ({ input: { jobId }, ports, actor }) => {
    if (await ports.store.askCancel(jobId, actor.name)) return { jobId, cancelAsked: true };
    const words = `There is no job ${jobId} at work: it has ended, or never was.`;
    throw new Fault(409, words, "It does not run");
  },
  said: ({ jobId }) => `Job ${jobId} is asked to end.`,
  goTo: ({ jobId }) => `/registry/jobs/${jobId}`,
  change: ({ jobId }) => ({
    ...{ action: "registry-job-cancelled", target: `registry job ${jobId}` },
    words: `job ${jobId} is asked to end`,
  }),
});

const toBeConfirmed = (words: string) => new Fault(422, words, "To be confirmed");

/** `null` means that nobody counted them here, so the import does. */
function requireMeant(inUse: SubnetsInUse | null, removeInUse: number | undefined): void {
  if (inUse === null || removeInUse === inUse.going) return;
  if (removeInUse === undefined && !isMuchInUse(inUse)) return;
  const said = removeInUse === undefined ? "" : `, and not ${removeInUse}`;
  throw toBeConfirmed(
    `This removes ${goingWords(inUse)}, delegated or with hosts in the frontier${said}. If that is meant, type their ` +
      `number, ${inUse.going} (API: "removeInUse": ${inUse.going}).`,
  );
}
