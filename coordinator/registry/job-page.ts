/** /registry/jobs and /registry/jobs/:id: what was asked for, how far it is, how it ended and what came of it. */
import type { FetchResult } from "#rir-import/download/fetch-sources";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { bytesText } from "../who/words.ts";
import type { SeenJob } from "./registry-facts.ts";
import { jobPanel, jobState, jobTable, lines, tookWords } from "./registry-job-parts.ts";
import { orderWords } from "./registry-job-words.ts";

/** What a job's command printed, as far as the pages show it. */
export type JobReport =
  | { readonly type: "fetch"; readonly results: readonly FetchResult[] }
  | { readonly type: "plan" }
  | {
      readonly type: "apply";
      readonly generation: number;
      readonly isNew: boolean;
      readonly changes: Readonly<Record<string, number>>;
      readonly seconds: number;
      /** False: another has taken its place since. */
      readonly isInForce: boolean;
    }
  | {
      readonly type: "rollback";
      readonly rolledBack: readonly number[];
      readonly generation: number | null;
      readonly undone: Readonly<Record<string, number>>;
    }
  | {
      readonly type: "rollforward";
      readonly generation: number;
      readonly redone: Readonly<Record<string, number>>;
    };

export interface JobPage {
  readonly job: SeenJob;
  /** Null: it runs, failed without one, or is of an older version. */
  readonly report: JobReport | null;
}

export function jobsPage(jobs: readonly SeenJob[]): Html {
  return html`<p class="registry-path"><a href="/registry">Registry</a></p><h1>Jobs</h1>
${jobs.length === 0 ? html`<div class="empty"><p>No job was started yet. Operators start them on <a href="/registry">the registry’s page</a>; commands of <code>nearcrawl rir</code> are none.</p></div>` : jobTable(jobs)}
<p class="small">The latest hundred are kept.</p>`;
}

export function jobPage({ job, report }: JobPage, viewer: PageViewer, mayAct: boolean): Html {
  const head = html`<p class="registry-path"><a href="/registry">Registry</a> · <a href="/registry/jobs">Jobs</a></p>`;
  if (job.state === "running") {
    return html`${head}<h1>A job at work</h1>${jobPanel(job, viewer, mayAct)}<script src="/assets/registry.js" defer></script>`;
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
      return html`<p><strong>Generation ${report.generation} is in force again</strong> (${changeWords(report.redone)}).</p><p class="actions"><a class="button quiet" href="/registry">To the registry</a></p>`;
  }
}

function fetchReport(results: readonly FetchResult[]): Html {
  const rows = results.map(
    (one) =>
      html`<tr><th scope="row">${one.source}</th><td>${one.type}</td><td class="number">${one.type === "failed" ? "–" : bytesText(one.bytes)}</td><td class="break">${one.type === "failed" ? one.reason : one.note}</td></tr>`,
  );
  return html`<section><h2>Sources</h2><div class="scroll" tabindex="0" role="region" aria-label="Sources fetched"><table><thead><tr><th scope="col">Source</th><th scope="col">Outcome</th><th scope="col" class="number">Size</th><th scope="col">Remark</th></tr></thead><tbody>${rows}</tbody></table></div>
<p class="below">Next: <a href="/registry">plan the import</a>.</p></section>`;
}

function applyReport(report: Extract<JobReport, { type: "apply" }>): Html {
  const { generation, isNew, changes, seconds, isInForce } = report;
  if (!isNew) {
    return html`<p>Nothing to do: generation ${generation} was made from the same files.</p>`;
  }
  return html`<p><strong>Generation ${generation}</strong> ${isInForce ? "is in force" : "was in force, and is no more"}; ${changeWords(changes)}, in ${seconds.toFixed(1)} s. Coordinators took the new tree by themselves.</p>
<p class="actions"><a class="button quiet" href="/registry">To the registry</a>${isInForce ? html` <a href="/registry#rollback">Roll it back</a>` : nothing}</p>`;
}

function rollbackReport({ rolledBack, generation, undone }: Extract<JobReport, { type: "rollback" }>): Html {
  const now =
    generation === null ? "no registry is in force now" : `generation ${generation} is in force again`;
  return html`<p>Rolled back: generation ${rolledBack.join(", ")} (${changeWords(undone)}); <strong>${now}</strong>. <a href="/registry">The registry’s page</a> can put it in force again.</p>`;
}

function changeWords(changes: Readonly<Record<string, number>>): string {
  const words = Object.entries(changes)
    .filter(([name, count]) => count > 0 && name !== "unchanged")
    .map(([name, count]) => `${countText(count)} ${name}`);
  return words.length === 0 ? "no changes" : words.join(", ");
}
