/** The pages /registry/jobs and below: each job's order, progress, end and result. */
import { z } from "zod";
import { spanWords } from "#core/format";
import type { AppliedImport } from "#rir-import/apply";
import { actions, column, list, note, picture, plain, present, section, table } from "../../ask/document.ts";
import { nodesHtml } from "../../ask/html-rendering.ts";
import { type Asked, type Document, type Node, operationsOf, type Seen } from "../../ask/operation.ts";
import type { Visit } from "../../web/access.ts";
import { record, type ToldOf } from "../../web/api-operation.ts";
import { pageScript } from "../../web/assets.ts";
import { countText, instant } from "../../web/format.ts";
import { type Html, html, nothing } from "../../web/html.ts";
import type { RegistryJobWithResult } from "./job-store.ts";
import { orderWords } from "./jobs.ts";
import { cancelRegistryJob } from "./orders-ask.ts";
import { registryJob as job, registryJobReport, registryJobShown } from "./registry-api.ts";
import { type RegistryPorts, type SeenJob, seenJob } from "./registry-view.ts";

const { get } = operationsOf<RegistryPorts>();

const jobsListed = 100;

const registryJobs = get({
  ...{ path: "/api/registry/jobs", needs: "read" },
  summary: "Jobs, the latest first, at most a hundred",
  input: z.object({}),
  output: record("RegistryJobs", { jobs: z.array(job) }),
  run: async ({ ports, actor }) => ({
    jobs: (await ports.store.list(jobsListed)).map((one) => seenJob(one, actor)),
  }),
  view: ({ jobs }) => ({
    ...{ title: "Registry jobs", above: [["Registry", "/registry"]] },
    nodes: [jobTable(jobs), note("The latest hundred are kept.")],
  }),
});

export const jobNumber = z.int().min(1).max(2_147_483_647).meta({ description: "Of the job.", example: 12 });

const registryJob = get({
  ...{ path: "/api/registry/jobs/{jobId}", needs: "read" },
  summary: "A job: how far it is, or what came of it",
  input: z.object({ jobId: jobNumber }),
  output: registryJobShown,
  faults: { 404: "There is no such job" },
  run: async (asked) => {
    const found = await asked.ports.store.find(asked.input.jobId);
    return found && (await jobShown(found, asked));
  },
  view: jobDocument,
});

export const jobOperations = { registryJobs, registryJob };

type JobReport = ToldOf<typeof registryJobReport>;
type ShownJob = ToldOf<typeof registryJobShown>;

export async function jobShown(
  found: RegistryJobWithResult,
  { ports, actor, now }: Pick<Asked<RegistryPorts, unknown>, "ports" | "actor" | "now">,
): Promise<ShownJob> {
  const { result: _, ...seen } = seenJob(found, actor);
  const { generation } = await ports.overview(now);
  return { ...seen, report: reportOf(found, generation) };
}

/** Null while the job runs, or if it failed without a result or is from an older version. */
function reportOf({ order, state, result }: RegistryJobWithResult, inForce: number | null): JobReport | null {
  const { type } = order;
  if (type === "plan") return state === "done" ? { type } : null;
  const printed: Partial<AppliedImport> = typeof result === "object" && result !== null ? result : {};
  const { generation, plan, seconds } = printed;
  const applied = { changes: plan?.changes, seconds: seconds?.total, isInForce: generation === inForce };
  return registryJobReport.safeParse({ ...printed, ...(type === "apply" && applied), type }).data ?? null;
}

export const aboveJobs = [
  ["Registry", "/registry"],
  ["Jobs", "/registry/jobs"],
] as const;

export function jobDocument(shown: ShownJob, { viewer }: Pick<Seen<unknown>, "viewer">): Document {
  const { jobId, order, state, startedAt, askedBy, words, report, progress } = shown;
  const above = aboveJobs;
  if (state === "running") return { title: "A job at work", above, nodes: [jobPanel(shown, viewer)] };
  const by = askedBy === null ? "" : ` by ${askedBy}`;
  return {
    ...{ title: `Job ${jobId}: ${orderWords(order)}`, above, beside: jobState(state) },
    nodes: present([
      note(html`Started ${instant(startedAt)}${by}; took ${tookWords(shown)}.`),
      words !== null && picture(html`<pre class="fault" role="alert">${words}</pre>`, words),
      ...(report === null ? [] : reportNodes(report, jobId)),
      progress.lines.length > 0 &&
        section("On its way", [list([...progress.lines, progress.text], "job-lines small")]),
    ]),
  };
}

function reportNodes(report: JobReport, jobId: number): Node[] {
  const button = (kind: string, to: string, label: string) =>
    picture(html`<p class="actions"><a class="button ${kind}" href="${to}">${label}</a></p>`);
  if (report.type === "plan") return [button("", `/registry/plans/${jobId}`, "Look at the plan")];
  if (report.type === "fetch") {
    const next = note(html`Next: <a href="/registry">plan the import</a>.`);
    return [section("Sources", [fetchedTable(report.results), next])];
  }
  const isLast = report.type === "apply" && report.isNew && report.isInForce;
  const [to, label] = isLast ? ["/registry#rollback", "Roll it back"] : ["/registry", "To the registry"];
  return [plain(reportWords(report)), button("quiet", to!, label!)];
}

/** Describes the result of an import, a rollback or its undoing. The command shows it, too. */
export function reportWords(report: Exclude<JobReport, { type: "fetch" | "plan" }>): Html {
  switch (report.type) {
    case "apply": {
      const { generation, isNew, changes, seconds, isInForce } = report;
      if (!isNew) return html`Nothing to do: generation ${generation} was made from the same files.`;
      return html`<strong>Generation ${generation}</strong>
${isInForce ? "is in force" : "was in force, and is no more"}; ${changeWords(changes)}, in ${seconds.toFixed(1)} s.
Coordinators took the new tree by themselves.`;
    }
    case "rollback": {
      const { rolledBack, generation, undone } = report;
      const now = generation === null ? "no registry" : `generation ${generation}`;
      const again = generation === null ? "" : " again";
      return html`Rolled back: generation ${rolledBack.join(", ")} (${changeWords(undone)}). <strong>Now ${now} is in
force${again}</strong>; what was rolled back can be put in force again, too.`;
    }
    case "rollforward":
      return html`<strong>Generation ${report.generation} is in force again</strong> (${changeWords(report.redone)}).`;
  }
}

function changeWords(changes: Readonly<Record<string, number>>): string {
  const words = Object.entries(changes)
    .filter(([name, count]) => count > 0 && name !== "unchanged")
    .map(([name, count]) => `${countText(count)} ${name}`);
  return words.length === 0 ? "no changes" : words.join(", ");
}

type Fetched = Extract<JobReport, { type: "fetch" }>["results"];

export const fetchedTable = (results: Fetched): Node =>
  table<Fetched[number]>({
    ...{ label: "Sources fetched", rows: results, empty: ["No source is switched on.", ""] },
    columns: [
      column("source", "Source", ({ source }) => source),
      column("outcome", "Outcome", ({ type }) => type),
      column("bytes", "Size", ({ bytes }) => bytes, { unit: "bytes" }),
      column("remark", "Remark", ({ reason, note: remark }) => reason ?? remark, { kind: "break" }),
    ],
  });

/** Shows a running job's progress with the button that ends it. The script polls every two seconds. */
export function jobPanel(one: SeenJob, viewer: Visit): Node {
  const { jobId, startedAt, askedBy, cancelAskedBy, progress, order, state } = one;
  const { text, share, lines } = progress;
  const value = share === null ? nothing : html` value="${share.toFixed(3)}"`;
  const cancel = actions({ operation: cancelRegistryJob, values: { jobId }, label: "Cancel" });
  return picture(
    html`<section class="job" data-job="${jobId}" aria-label="The job that runs">
<h2><a href="/registry/jobs/${jobId}">Job ${jobId}: ${orderWords(order)}</a> ${jobState(state)}</h2>
<p class="small">Started ${instant(startedAt)}${askedBy === null ? nothing : ` by ${askedBy}`}.${
      cancelAskedBy === null ? nothing : ` Asked to end by ${cancelAskedBy}.`
    }
<span class="without-script"><a href="">Reload</a> to see how far it is.</span></p>
<p class="job-text" role="status">${text}</p>
<progress max="1"${value} aria-label="Progress of this step"></progress>
<ol class="job-lines small">${lines.map((line) => html`<li>${line}</li>`)}</ol>
${nodesHtml([cancel], viewer)}</section>${pageScript("registry.js")}`,
    `Job ${jobId}, ${orderWords(order)}: ${text}`,
  );
}

const looks: Readonly<Record<SeenJob["state"], string>> = {
  ...{ running: "good", done: "good", failed: "bad", cancelled: "none", "broken-off": "warm" },
};

const jobState = (state: SeenJob["state"]): Html => stateLook(looks[state], state.replace("-", " "));

export const stateLook = (look: string, words: string): Html =>
  html`<span class="state look-${look} nowrap">${words}</span>`;

export const jobTable = (jobs: readonly SeenJob[]): Node =>
  table<SeenJob>({
    ...{ label: "Jobs", rows: jobs },
    empty: [
      "No job was started yet.",
      html`Operators start them on <a href="/registry">the registry’s page</a>; commands of <code>nearcrawl rir</code> are none.`,
    ],
    columns: [
      column("job_id", "Job", ({ jobId }) => jobId, {
        ...{ kind: "number", link: ({ jobId }) => `/registry/jobs/${jobId}` },
      }),
      column("what", "What", ({ order }) => orderWords(order)),
      column("state", "State", ({ state }) => jobState(state)),
      column("started_at", "Started", ({ startedAt }) => new Date(startedAt)),
      column("took", "Took", tookWords, { kind: "number" }),
      column("asked_by", "By", ({ askedBy }) => askedBy),
      column("words", "Words", ({ words }) => words ?? nothing, { kind: "break" }),
    ],
  });

function tookWords({ startedAt, endedAt }: SeenJob): string | null {
  if (endedAt === null) return null;
  return spanWords(Math.max(0, (Date.parse(endedAt) - Date.parse(startedAt)) / 1000));
}
