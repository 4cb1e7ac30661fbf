/** The registry's pages and their API: what is in force, the jobs, and the plans that jobs made. */

import { mayDo } from "#core/actor";
import type { AppliedImport } from "#rir-import/apply";
import type { Visit } from "../web/access.ts";
import type { WebPart } from "../web/actions.ts";
import { html } from "../web/html.ts";
import { type AskedView, numberIn, type Views } from "../web/views.ts";
import { addRegistryActions } from "./action-routes.ts";
import { registryJobApi, registryJobReport } from "./job-api.ts";
import { type JobReport, jobPage, jobsPage } from "./job-page.ts";
import type { RegistryJobWithResult } from "./jobs.ts";
import { registryPage } from "./page.ts";
import { differenceKinds, planPage } from "./plan-page.ts";
import { registryApi } from "./registry-api.ts";
import { knownPlan, type RegistryPorts, registryValue, seenJob } from "./registry-view.ts";

const jobsListed = 100;
const mayAct = (visit: Visit) => visit.formToken !== null && mayDo(visit.actor, "registry-write");
export function registryRoutes(ports: RegistryPorts): WebPart {
  return ({ app, views, actions }) => {
    addViews(views, ports);
    addRegistryActions(actions, ports);
    // Before connections are closed: a job that is broken off is written down.
    app.addHook("preClose", async () => await ports.runner?.jobs.stop());
  };
}

function addViews(views: Views, ports: RegistryPorts): void {
  views.describe({
    path: "/registry",
    operation: registryApi.registry,
    view: async ({ visit, now }) => {
      const value = await registryValue(ports, visit.actor, now);
      const body = (viewer: Visit) => registryPage(value, viewer, mayAct(viewer));
      return { status: 200, value, title: "Registry", body };
    },
  });
  views.describe({
    path: "/registry/jobs",
    operation: registryJobApi.registryJobs,
    view: async ({ visit }) => {
      const jobs = (await ports.store.list(jobsListed)).map((job) => seenJob(job, visit.actor));
      return { status: 200, value: { jobs }, title: "Registry jobs", body: () => jobsPage(jobs) };
    },
  });
  views.describe({
    path: "/registry/jobs/:jobId",
    operation: registryJobApi.registryJob,
    view: async (asked) => await showJob(asked, ports),
  });
  views.describe({
    path: "/registry/plans/:jobId",
    operation: registryJobApi.registryPlan,
    view: async (asked) => await showPlan(asked, ports),
  });
}

async function showJob({ visit, param, now }: AskedView, ports: RegistryPorts) {
  const found = await ports.store.find(numberIn(param("jobId"), 0));
  if (found === null) return null;
  const { result: _, ...job } = seenJob(found, visit.actor);
  const { generation } = await ports.overview(now);
  const report = reportOf(found, generation);
  return {
    status: 200,
    value: { ...job, report },
    title: `Registry job ${job.jobId}`,
    body: (viewer: Visit) => jobPage({ job, report }, viewer, mayAct(viewer)),
  };
}

/** From what the command printed. */
function reportOf({ order, state, result }: RegistryJobWithResult, inForce: number | null): JobReport | null {
  const { type } = order;
  if (type === "plan") return state === "done" ? { type } : null;
  const printed = typeof result === "object" && result !== null ? result : {};
  const facts = type === "apply" ? appliedFacts(printed, inForce) : printed;
  return registryJobReport.safeParse({ ...facts, type }).data ?? null;
}

function appliedFacts(printed: Partial<AppliedImport>, inForce: number | null) {
  const { generation, isNew, plan, seconds } = printed;
  const isInForce = generation === inForce;
  return { generation, isNew, changes: plan?.changes, seconds: seconds?.total, isInForce };
}

async function showPlan(asked: AskedView, ports: RegistryPorts) {
  const { param, query, now } = asked;
  const job = await ports.store.find(numberIn(param("jobId"), 0));
  if (job === null || job.order.type !== "plan") return null;
  if (job.state === "running") return await showJob(asked, ports);
  const known = await knownPlan(job, ports, now);
  if (known === null) return notAPlan(job);
  const kind =
    differenceKinds.find((one) => one === query("kind")) ??
    differenceKinds.find((one) => known.plan.changes[one] > 0) ??
    "added";
  const from = numberIn(query("from"), 0);
  return {
    status: 200,
    value: known,
    title: `Registry plan ${job.jobId}`,
    body: (viewer: Visit) => planPage(known, { kind, from }, { viewer, mayAct: mayAct(viewer) }),
  };
}

function notAPlan({ jobId, state, words }: RegistryJobWithResult) {
  const said =
    state === "done"
      ? "It was made by another version of this software; make a new one."
      : `The job ended without one: ${words ?? state}`;
  return {
    status: 404,
    value: { error: { status: 404, message: said } },
    title: `Registry plan ${jobId}`,
    body: () =>
      html`<h1>No plan</h1><p>${said}</p><p><a href="/registry/jobs/${jobId}">Job ${jobId}</a> · <a href="/registry">Registry</a></p>`,
  };
}
