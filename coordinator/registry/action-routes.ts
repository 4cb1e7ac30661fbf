/** What operators start and stop on the registry's pages and over the API: each is a job (registry/jobs). */

import { goingWords, isMuchInUse, type SubnetsInUse } from "#rir-import/database/subnets-in-use";
import { lossText, lostSum } from "#rir-import/shrinkage";
import type { ActionFault, Actions, AskedAction, Outcome } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { confirmationOf, numberOrNull, unconfirmed } from "../web/form-fields.ts";
import { registryJobApi } from "./job-api.ts";
import { orderWords, type RegistryOrder } from "./jobs.ts";
import {
  emptyConfirmation,
  knownPlan,
  type RegistryPorts,
  rollbackConfirmation,
  rollbackPreview,
} from "./registry-view.ts";

const ticked = (value: string | undefined) => value !== undefined;
/** What is no number stays as it is, to be refused by its name. */
const typedNumber = (text: string | undefined) => {
  const value = numberOrNull(text);
  return value === null ? {} : { removeInUse: value };
};

export function addRegistryActions(actions: Actions, ports: RegistryPorts): void {
  actions.describe({
    path: "/registry/fetch",
    operation: registryJobApi.fetchRegistry,
    fromForm: ({ acceptSmaller }) => ({ acceptSmaller: ticked(acceptSmaller) }),
    act: async (asked) =>
      await start(asked, ports, { type: "fetch", acceptSmaller: asked.body.acceptSmaller }),
  });
  actions.describe({
    path: "/registry/plan",
    operation: registryJobApi.planRegistry,
    fromForm: ({ from = "cache" }) =>
      from.startsWith("folder:") ? { from: "folder", folder: from.slice("folder:".length) } : { from },
    act: async (asked) => await plan(asked, ports),
  });
  actions.describe({
    path: "/registry/apply",
    operation: registryJobApi.applyRegistry,
    fromForm: ({ planId, confirmShrinkage, removeInUse }) => ({
      planId: Number(planId),
      confirmShrinkage: ticked(confirmShrinkage),
      ...typedNumber(removeInUse),
    }),
    act: async (asked) => await apply(asked, ports),
  });
  actions.describe({
    path: "/registry/rollback",
    operation: registryJobApi.rollBackRegistry,
    fromForm: (values) => {
      const { confirmation } = confirmationOf(values);
      const toEmpty = confirmation === emptyConfirmation;
      const meant = typedNumber(values.removeInUse);
      const typed = toEmpty || "removeInUse" in meant ? meant : { confirmation };
      return { generation: Number(values.generation), toEmpty, ...typed };
    },
    act: async (asked) => await rollBack(asked, ports),
  });
  actions.describe({
    path: "/registry/rollforward",
    operation: registryJobApi.rollForwardRegistry,
    fromForm: ({ generation }) => ({ generation: Number(generation) }),
    act: async (asked) => await goForward(asked, ports),
  });
  actions.describe({
    path: "/registry/cancel",
    operation: registryJobApi.cancelRegistryJob,
    fromForm: ({ jobId }) => ({ jobId: Number(jobId) }),
    act: async (asked) => await cancel(asked, ports),
  });
}

async function start(
  { actor, via }: Pick<AskedAction<unknown>, "actor" | "via">,
  { runner }: RegistryPorts,
  order: RegistryOrder,
): Promise<Outcome> {
  if (runner === null) return notHere;
  const started = await runner.jobs.start(order, { by: actor.name, via });
  if ("running" in started) return busy(started.running.jobId, started.running.order.type);
  const { jobId } = started;
  return {
    type: "done",
    status: 202,
    value: { jobId, kind: order.type },
    goTo: `/registry/jobs/${jobId}`,
    said: `Job ${jobId} is started.`,
    change: {
      action: `registry-${order.type}-started`,
      target: `registry job ${jobId}`,
      words: `job ${jobId}: ${orderWords(order)}`,
      after: order,
    },
  };
}

async function plan(
  asked: AskedAction<BodyOf<typeof registryJobApi.planRegistry>>,
  ports: RegistryPorts,
): Promise<Outcome> {
  const { from, folder } = asked.body;
  if (from === "cache") return await start(asked, ports, { type: "plan", files: { from } });
  const allowed = await ports.runner?.host.filesFolder();
  if (!allowed || (folder !== "" && !allowed.names.includes(folder))) return noSuchFolder(folder);
  return await start(asked, ports, { type: "plan", files: { from, name: folder } });
}

async function apply(
  asked: AskedAction<BodyOf<typeof registryJobApi.applyRegistry>>,
  ports: RegistryPorts,
): Promise<Outcome> {
  const { planId, confirmShrinkage, removeInUse } = asked.body;
  const job = await ports.store.find(planId);
  const known = job && (await knownPlan(job, ports, asked.now));
  if (!known) return noSuchPlan(planId);
  if (known.outdated !== null) return outdated(planId, known.outdated);
  const { files, plan } = known;
  const losses = plan.losses ?? [];
  const shrunk = [...known.shrunk.map(({ registry }) => registry), ...losses.map(lossText)];
  if (shrunk.length > 0 && !confirmShrinkage) return shrinkageUnconfirmed(shrunk);
  const unmeant = notMeant(plan.inUse ?? null, removeInUse);
  if (unmeant !== null) return unmeant;
  const { fingerprint } = plan;
  return await start(asked, ports, {
    ...{ type: "apply", planId, fingerprint, files },
    ...(removeInUse !== undefined && { removeInUse }),
    ...(losses.length > 0 && { loseFacts: lostSum(losses) }),
  });
}

async function rollBack(
  asked: AskedAction<BodyOf<typeof registryJobApi.rollBackRegistry>>,
  ports: RegistryPorts,
): Promise<Outcome> {
  const { generation, toEmpty, removeInUse } = asked.body;
  const overview = await ports.overview(asked.now);
  if (overview.generation !== generation) return notInForce(generation, overview.generation);
  const isFirst = rollbackPreview(overview.history)?.becomes === null;
  if (isFirst && !toEmpty) return unconfirmedEmpty(generation);
  const text = rollbackConfirmation(generation);
  const unmeant =
    notMeant(await ports.inUseOfRollback(), removeInUse) ??
    unconfirmed(asked.body, { text, words: "what the page asks for" });
  if (unmeant !== null) return unmeant;
  return await start(asked, ports, {
    ...{ type: "rollback", generation, toEmpty },
    ...(removeInUse !== undefined && { removeInUse }),
  });
}

async function goForward(
  asked: AskedAction<BodyOf<typeof registryJobApi.rollForwardRegistry>>,
  ports: RegistryPorts,
): Promise<Outcome> {
  const { generation } = asked.body;
  const { history, generation: inForce } = await ports.overview(asked.now);
  const isNext = history.some((one) => one.generation === generation && one.canRollForward);
  if (!isNext) return notForward(generation, inForce);
  return await start(asked, ports, { type: "rollforward", generation });
}

async function cancel(
  asked: AskedAction<BodyOf<typeof registryJobApi.cancelRegistryJob>>,
  { store }: RegistryPorts,
): Promise<Outcome> {
  const { jobId } = asked.body;
  if (!(await store.askCancel(jobId, asked.actor.name))) return notRunning(jobId);
  return {
    type: "done",
    status: 202,
    value: { jobId, cancelAsked: true },
    goTo: `/registry/jobs/${jobId}`,
    said: `Job ${jobId} is asked to end.`,
    change: {
      action: "registry-job-cancelled",
      target: `registry job ${jobId}`,
      words: `job ${jobId} is asked to end`,
    },
  };
}

/** Null: few of the subnets in use go, or as many as was said; or nobody has counted them, which the import does itself. */
function notMeant(inUse: SubnetsInUse | null, removeInUse: number | undefined): ActionFault | null {
  if (inUse === null || removeInUse === inUse.going) return null;
  if (removeInUse === undefined && !isMuchInUse(inUse)) return null;
  const said = removeInUse === undefined ? "" : `, and not ${removeInUse}`;
  return fault(
    422,
    "To be confirmed",
    `This removes ${goingWords(inUse)}, delegated or with hosts in the frontier${said}. If that ` +
      `is meant, type their number, ${inUse.going} (API: "removeInUse": ${inUse.going}).`,
  );
}

const fault = (status: ActionFault["status"], title: string, words: string): ActionFault => ({
  type: "fault",
  status,
  title,
  words,
});

const notHere = fault(
  503,
  "Not from here",
  "This coordinator cannot start jobs. On its machine: nearcrawl rir fetch, plan, apply, rollback, rollforward.",
);
const busy = (jobId: number, kind: string) =>
  fault(409, "Another job runs", `Job ${jobId} (${kind}) is at work. Wait for its end, or cancel it.`);
const noSuchFolder = (name: string) =>
  fault(
    404,
    "No such folder",
    name === ""
      ? "No folder of files is allowed: set registry.filesFolder in the coordinator's settings."
      : `"${name.slice(0, 80)}" is none of the folders that the setting registry.filesFolder allows.`,
  );
const noSuchPlan = (planId: number) =>
  fault(404, "No such plan", `Job ${planId} made no plan that can be applied. Make a new one.`);
const outdated = (planId: number, words: string) =>
  fault(409, "The plan is outdated", `Plan ${planId} cannot be applied any more. ${words} Make a new one.`);
const shrinkageUnconfirmed = (registries: readonly string[]) =>
  fault(
    422,
    "To be confirmed",
    `${registries.join(", ")} would lose suspiciously much. Look at the plan; if it is right, confirm it (confirmShrinkage).`,
  );
const notInForce = (asked: number, current: number | null) =>
  fault(
    409,
    "Not in force",
    `Generation ${asked} is not in force, ${current === null ? "none is" : `generation ${current} is`}: nothing is rolled back.`,
  );
const unconfirmedEmpty = (generation: number) =>
  fault(
    422,
    "To be confirmed",
    `Generation ${generation} is the first import: without it no registry is in force, and no ` +
      "subnet but the two roots of the address space. If that is meant, type " +
      `“${emptyConfirmation}” (API: "toEmpty": true).`,
  );
const notForward = (asked: number, current: number | null) =>
  fault(
    409,
    "Not from here",
    `Generation ${asked} cannot be put in force again as things are ` +
      `(${current === null ? "no generation" : `generation ${current}`} is in force): it was not ` +
      "rolled back from here, or nothing of it was kept.",
  );
const notRunning = (jobId: number) =>
  fault(409, "It does not run", `There is no job ${jobId} at work: it has ended, or never was.`);
