/** /registry/jobs and /registry/jobs/:id: what was asked for, how far it is, how it ended and what came of it. */

import { bytesText, spanWords } from "#core/format";
import type { ToldOf } from "../web/api-operation.ts";
import { pageScript } from "../web/assets.ts";
import { column, dataTable, numberColumn, type TableColumn } from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { registryJobReport } from "./job-api.ts";
import { orderWords } from "./jobs.ts";
import type { SeenJob } from "./registry-view.ts";

/** What a job's command printed, as far as the pages show it. */
export type JobReport = ToldOf<typeof registryJobReport>;

export interface JobPage {
  readonly job: SeenJob;
  /** Null: it runs, failed without one, or is of an older version. */
  readonly report: JobReport | null;
}

export function jobsPage(jobs: readonly SeenJob[]): Html {
  return html`<p class="registry-path"><a href="/registry">Registry</a></p><h1>Jobs</h1>
${
  jobs.length === 0
    ? html`<div class="empty"><p>No job was started yet. Operators start them on <a
href="/registry">the registry’s page</a>; commands of <code>nearcrawl rir</code> are none.</p></div>`
    : jobTable(jobs)
}
<p class="small">The latest hundred are kept.</p>`;
}

export function jobPage({ job, report }: JobPage, viewer: PageViewer, mayAct: boolean): Html {
  const head = html`<p class="registry-path"><a href="/registry">Registry</a> · <a href="/registry/jobs">Jobs</a></p>`;
  if (job.state === "running") {
    return html`${head}<h1>A job at work</h1>${jobPanel(job, viewer, mayAct)}${pageScript("registry.js")}`;
  }
  return html`${head}<div class="title-row"><h1>Job ${job.jobId}: ${orderWords(job.order)}</h1>${jobState(job.state)}</div>
<p class="small">Started ${instant(job.startedAt)}${job.askedBy === null ? nothing : ` by ${job.askedBy}`}; took ${tookWords(job)}.</p>
${job.words === null ? nothing : html`<pre class="fault" role="alert">${job.words}</pre>`}
${report === null ? nothing : reportSection(report, job)}
${job.progress.lines.length === 0 ? nothing : html`<section><h2>On its way</h2>${lines([...job.progress.lines, job.progress.text])}</section>`}`;
}

function reportSection(report: JobReport, job: SeenJob): Html {
  switch (report.type) {
    case "fetch":
      return fetchReport(report.results);
    case "plan":
      return html`<p class="actions"><a class="button" href="/registry/plans/${job.jobId}">Look at the plan</a></p>`;
    case "apply":
      return applyReport(report);
    case "rollback":
      return rollbackReport(report);
    case "rollforward":
      return html`<p><strong>Generation ${report.generation} is in force again</strong>
(${changeWords(report.redone)}).</p><p class="actions"><a class="button quiet" href="/registry">To the registry</a></p>`;
  }
}

type Fetched = Extract<JobReport, { type: "fetch" }>["results"];

const fetchColumns: readonly TableColumn<Fetched[number]>[] = [
  column("Source", ({ source }) => source),
  column("Outcome", ({ type }) => type),
  numberColumn("Size", ({ bytes }) => (bytes === undefined ? "–" : bytesText(bytes))),
  column("Remark", ({ reason, note = "" }) => html`<span class="break">${reason ?? note}</span>`),
];

function fetchReport(results: Fetched): Html {
  return html`<section><h2>Sources</h2>${dataTable("Sources fetched", fetchColumns, results)}
<p class="below">Next: <a href="/registry">plan the import</a>.</p></section>`;
}

function applyReport(report: Extract<JobReport, { type: "apply" }>): Html {
  const { generation, isNew, changes, seconds, isInForce } = report;
  if (!isNew) {
    return html`<p>Nothing to do: generation ${generation} was made from the same files.</p>`;
  }
  return html`<p><strong>Generation ${generation}</strong>
${isInForce ? "is in force" : "was in force, and is no more"}; ${changeWords(changes)}, in ${seconds.toFixed(1)} s.
Coordinators took the new tree by themselves.</p>
<p class="actions"><a class="button quiet" href="/registry">To the registry</a>${
    isInForce
      ? html` <a
href="/registry#rollback">Roll it back</a>`
      : nothing
  }</p>`;
}

function rollbackReport({ rolledBack, generation, undone }: Extract<JobReport, { type: "rollback" }>): Html {
  const now =
    generation === null ? "no registry is in force now" : `generation ${generation} is in force again`;
  return html`<p>Rolled back: generation ${rolledBack.join(", ")} (${changeWords(undone)}); <strong>${now}</strong>.
<a href="/registry">The registry’s page</a> can put it in force again.</p>`;
}

function changeWords(changes: Readonly<Record<string, number>>): string {
  const words = Object.entries(changes)
    .filter(([name, count]) => count > 0 && name !== "unchanged")
    .map(([name, count]) => `${countText(count)} ${name}`);
  return words.length === 0 ? "no changes" : words.join(", ");
}

// A job as a panel that is alive while it runs (registry.js asks every two seconds), and jobs as a table.

/** Where a job that runs is, with the button that ends it. */
export function jobPanel(job: SeenJob, viewer: PageViewer, mayAct: boolean): Html {
  const { jobId, startedAt, askedBy, cancelAskedBy, progress } = job;
  const cancel = html`<form method="post" action="/registry/cancel">${formToken(viewer)}<input type="hidden"
name="jobId" value="${jobId}"><button class="quiet slim">Cancel</button></form>`;
  return html`<section class="job" data-job="${jobId}" aria-label="The job that runs">
<h2><a href="/registry/jobs/${jobId}">Job ${jobId}: ${orderWords(job.order)}</a> ${jobState(job.state)}</h2>
<p class="small">Started ${instant(startedAt)}${askedBy === null ? nothing : ` by ${askedBy}`}.${
    cancelAskedBy === null ? nothing : ` Asked to end by ${cancelAskedBy}.`
  }
<span class="without-script"><a href="">Reload</a> to see how far it is.</span></p>
<p class="job-text" role="status">${progress.text}</p>
${bar(progress.share)}
${lines(progress.lines)}
${mayAct ? html`<div class="actions">${cancel}</div>` : nothing}</section>`;
}

/** A share that is not known has no value: the bar then says that something goes on. */
function bar(share: number | null): Html {
  return html`<progress max="1"${share === null ? nothing : html` value="${share.toFixed(3)}"`} aria-label="Progress of this step"></progress>`;
}

function lines(texts: readonly string[]): Html {
  return html`<ol class="job-lines small">${texts.map((text) => html`<li>${text}</li>`)}</ol>`;
}

const looks: Readonly<Record<SeenJob["state"], string>> = {
  running: "good",
  done: "good",
  failed: "bad",
  cancelled: "none",
  "broken-off": "warm",
};

function jobState(state: SeenJob["state"]): Html {
  return html`<span class="state look-${looks[state]} nowrap">${state.replace("-", " ")}</span>`;
}

const jobColumns: readonly TableColumn<SeenJob>[] = [
  numberColumn("Job", ({ jobId }) => html`<a href="/registry/jobs/${jobId}">${jobId}</a>`),
  column("What", ({ order }) => orderWords(order)),
  column("State", ({ state }) => jobState(state)),
  column("Started", ({ startedAt }) => instant(startedAt)),
  numberColumn("Took", tookWords),
  column("By", ({ askedBy }) => askedBy ?? "–"),
  column("Words", ({ words }) => html`<span class="break">${words ?? nothing}</span>`),
];

export const jobTable = (jobs: readonly SeenJob[]): Html => dataTable("Jobs", jobColumns, jobs);

function tookWords({ startedAt, endedAt }: SeenJob): string {
  if (endedAt === null) return "–";
  return spanWords(Math.max(0, (Date.parse(endedAt) - Date.parse(startedAt)) / 1000));
}
