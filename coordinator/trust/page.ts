/** Whether each crawler is trusted: comparisons of its pages with others', those that are not trusted first. */
import { mayDo } from "#core/actor";
import type { ChartHistory } from "../web/chart-history.ts";
import { buttonForm, crawlerPath, empty, titleRow } from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { historySection } from "../web/time-chart.ts";
import { standingWords } from "./judge-crawler.ts";
import type { TrustLine } from "./reads.ts";

export function trustBody(lines: readonly TrustLine[], history: ChartHistory, viewer: PageViewer): Html {
  return html`${titleRow("Trust")}
<p class="lead">One page in a hundred is fetched again by a second crawler and compared. A crawler that differs from the others too often, on different hosts, is drained, and others fetch its recent pages again. Judging takes at least three crawlers.</p>
${lines.length === 0 ? empty("No crawler is registered yet.", html`<a href="/fleet/invitations">Invite one</a>`) : table(lines, viewer)}
${historySection("/fleet/trust", {}, history)}`;
}

const mostShown = 200;

function table(lines: readonly TrustLine[], viewer: PageViewer): Html {
  const mayRestore = mayDo(viewer.actor, "fleet-write");
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Crawler</th><th scope="col">Trust</th><th scope="col" class="number">Agree</th><th scope="col" class="number">Differ each time</th><th scope="col" class="number">Differed once</th><th scope="col" class="number">Score</th><th scope="col" class="number">Pages</th>${mayRestore ? html`<th scope="col"><span class="hidden">Trust again</span></th>` : nothing}</tr></thead>
<tbody>${lines.slice(0, mostShown).map((line) => row(line, viewer, mayRestore))}</tbody></table></div>${lines.length <= mostShown ? nothing : html`<p class="small">The first ${mostShown} of ${countText(lines.length)}, those that are not trusted before all others; <a href="/api/fleet/trust">JSON</a> has all.</p>`}`;
}

function row(line: TrustLine, viewer: PageViewer, mayRestore: boolean): Html {
  const { crawler, standing, comparisons, since, words, score, pages } = line;
  const isDoubted = standing === "distrusted" || standing === "probes-doubted";
  const name = isDoubted
    ? html`<strong class="warn">${standingWords[standing]}</strong>`
    : standingWords[standing];
  const button = buttonForm(viewer, {
    path: crawlerPath(crawler, "/believe"),
    label: `Trust ${crawler} again`,
  });
  return html`<tr><th scope="row"><a href="${crawlerPath(crawler)}#trust">${crawler}</a></th><td class="why">${name}${isDoubted && since !== null ? html`<span class="small">since ${instant(since)}: ${words}</span>` : nothing}${standing === "unproven" ? html`<span class="small">${words}</span>` : nothing}</td>
<td class="number">${countText(comparisons.agreed)}</td><td class="number">${countText(comparisons.alone)}</td><td class="number">${countText(comparisons.once)}</td><td class="number">${score.toFixed(1)}</td><td class="number">${countText(pages)}</td>${mayRestore ? html`<td>${isDoubted ? button : nothing}</td>` : nothing}</tr>`;
}
