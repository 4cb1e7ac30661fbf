/** A job as a panel that is alive while it runs (registry.js asks every two seconds), and jobs as a table. */

import { spanWords } from "#core/format";
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import type { SeenJob } from "./registry-facts.ts";
import { orderWords } from "./registry-job-words.ts";

/** Where a job that runs is, with the button that ends it. */
export function jobPanel(job: SeenJob, viewer: PageViewer, mayAct: boolean): Html {
  const { jobId, startedAt, askedBy, cancelAskedBy, progress } = job;
  const cancel = html`<form method="post" action="/registry/cancel">${formToken(viewer)}<input type="hidden" name="jobId" value="${jobId}"><button class="quiet slim">Cancel</button></form>`;
  return html`<section class="job" data-job="${jobId}" aria-label="The job that runs">
<h2><a href="/registry/jobs/${jobId}">Job ${jobId}: ${orderWords(job.order)}</a> ${jobState(job.state)}</h2>
<p class="small">Started ${instant(startedAt)}${askedBy === null ? nothing : ` by ${askedBy}`}.${cancelAskedBy === null ? nothing : ` Asked to end by ${cancelAskedBy}.`} <span class="without-script"><a href="">Reload</a> to see how far it is.</span></p>
<p class="job-text" role="status">${progress.text}</p>
${bar(progress.share)}
${lines(progress.lines)}
${mayAct ? html`<div class="actions">${cancel}</div>` : nothing}</section>`;
}

/** A share that is not known has no value: the bar then says that something goes on. */
function bar(share: number | null): Html {
  return html`<progress max="1"${share === null ? nothing : html` value="${share.toFixed(3)}"`} aria-label="Progress of this step"></progress>`;
}

export function lines(texts: readonly string[]): Html {
  return html`<ol class="job-lines small">${texts.map((text) => html`<li>${text}</li>`)}</ol>`;
}

const looks: Readonly<Record<SeenJob["state"], string>> = {
  running: "good",
  done: "good",
  failed: "bad",
  cancelled: "none",
  "broken-off": "warm",
};

export function jobState(state: SeenJob["state"]): Html {
  return html`<span class="state look-${looks[state]} nowrap">${state.replace("-", " ")}</span>`;
}

export function jobTable(jobs: readonly SeenJob[]): Html {
  const rows = jobs.map(
    (job) =>
      html`<tr><th scope="row" class="number"><a href="/registry/jobs/${job.jobId}">${job.jobId}</a></th><td>${orderWords(job.order)}</td><td>${jobState(job.state)}</td><td>${instant(job.startedAt)}</td><td class="number">${tookWords(job)}</td><td>${job.askedBy ?? "–"}</td><td class="break">${job.words ?? nothing}</td></tr>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Jobs"><table><thead><tr><th scope="col" class="number">Job</th><th scope="col">What</th><th scope="col">State</th><th scope="col">Started</th><th scope="col" class="number">Took</th><th scope="col">By</th><th scope="col">Words</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

export function tookWords({ startedAt, endedAt }: SeenJob): string {
  if (endedAt === null) return "–";
  return spanWords(Math.max(0, (Date.parse(endedAt) - Date.parse(startedAt)) / 1000));
}
