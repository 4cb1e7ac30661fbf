/** /registry/plans/:id: what applying the plan would change, and the button that applies exactly this. */
import type { Difference } from "#rir-import/database/differences";
import { askAbout, country, countText, instant } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { differenceTable, type PlanLinks, planReport, shrinkageWarning } from "./plan-report.ts";
import type { KnownPlan } from "./registry-facts.ts";

export interface PlanPageQuery {
  readonly kind: Difference["kind"];
  readonly from: number;
}

export const differenceKinds = ["added", "removed", "changed", "moved", "returned"] as const;
const rowsShown = 50;

const links: PlanLinks = {
  range: (range) => askAbout(range),
  registry: (registry) => html`<a href="${pathWith("/explore", { registry })}">${registry}</a>`,
  country: (code) => html`<a href="${pathWith("/explore", { country: code })}">${country(code)}</a>`,
};

export function planPage(
  known: KnownPlan,
  query: PlanPageQuery,
  { viewer, mayAct }: { readonly viewer: PageViewer; readonly mayAct: boolean },
): Html {
  const { plan, madeAt, jobId } = known;
  const against = plan.generation === null ? "an empty tree" : `generation ${plan.generation}`;
  return html`<p class="registry-path"><a href="/registry">Registry</a> · <a href="/registry/jobs">Jobs</a></p><h1>Plan ${jobId}</h1>
<p class="lead">What an import of these files would change in ${against}. Made ${instant(madeAt)}; nothing is changed before it is applied.</p>
${shrinkageWarning(known.shrunk)}
${applySection(known, viewer, mayAct)}
${planReport(plan, links)}
${samplesSection(known, query)}`;
}

function applySection(known: KnownPlan, viewer: PageViewer, mayAct: boolean): Html {
  const { outdated, shrunk, jobId, appliedBy } = known;
  const tried =
    appliedBy === null
      ? nothing
      : html`<p>Applied by <a href="/registry/jobs/${appliedBy.jobId}">job ${appliedBy.jobId}</a>: ${appliedBy.state.replace("-", " ")}.</p>`;
  if (outdated !== null) {
    const words =
      appliedBy?.state === "done"
        ? nothing
        : html`<p class="fault" role="alert">This plan cannot be applied any more. ${outdated} <a href="/registry">Make a new plan</a>.</p>`;
    return html`${tried}${words}`;
  }
  if (!mayAct) return tried;
  const confirm =
    shrunk.length === 0
      ? nothing
      : html`<label class="choice"><input type="checkbox" name="confirmShrinkage" value="yes" required> ${shrunk.map(({ registry }) => registry).join(", ")} may lose that much: I have looked into it</label>`;
  return html`${tried}<form method="post" action="/registry/apply" class="actions">${formToken(viewer)}<input type="hidden" name="planId" value="${jobId}">${confirm}<button>Apply this plan</button><span class="small">One transaction; coordinators go on serving, and it can be rolled back.</span></form>`;
}

function samplesSection({ plan, jobId }: KnownPlan, { kind, from }: PlanPageQuery): Html {
  const all = plan.samples[kind];
  const shown = all.slice(from, from + rowsShown);
  const tabs = differenceKinds.map(
    (one) =>
      html`<a href="${pathWith(`/registry/plans/${jobId}`, { kind: one })}#differences"${one === kind ? html` aria-current="true"` : nothing}>${one} ${countText(plan.changes[one])}</a>`,
  );
  return html`<section id="differences"><h2>Each difference</h2><nav class="tabs" aria-label="Kinds of change">${tabs}</nav>
${shown.length === 0 ? html`<p>None.</p>` : differenceTable(shown, links, `Subnets that are ${kind}`)}
${pager(known(plan.changes[kind], all.length, from), { jobId, kind, from, size: all.length })}</section>`;
}

/** "1 to 50 of 1,204; the first 300 are kept here, and all of them by the command". */
function known(total: number, kept: number, from: number): string {
  if (total === 0) return "";
  const range = `${countText(from + 1)} to ${countText(Math.min(from + rowsShown, kept))} of ${countText(total)}`;
  return kept < total
    ? `${range}; the first ${countText(kept)} are kept here, all of them shows: nearcrawl rir plan --cache --page differences.html`
    : range;
}

function pager(
  words: string,
  at: { readonly jobId: number; readonly kind: string; readonly from: number; readonly size: number },
): Html {
  const link = (from: number, name: string) =>
    html`<a href="${pathWith(`/registry/plans/${at.jobId}`, { kind: at.kind, from })}#differences">${name}</a>`;
  return html`<p class="small below">${words}</p><nav class="pager" aria-label="Pages of the list">${at.from > 0 ? link(Math.max(0, at.from - rowsShown), "Earlier") : nothing}${at.from + rowsShown < at.size ? link(at.from + rowsShown, "Later") : nothing}</nav>`;
}
