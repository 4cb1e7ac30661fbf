/** The overview's two tables of what does not go: what waits and for what, and what failed by whose fault. */

import { countText, percentText } from "../web/format.ts";
import { type Html, html, nothing, pathWith } from "../web/html.ts";
import type { Blame } from "./figure-ports.ts";
import type { QueueAge, QueueAges, SpanFigures } from "./operation-types.ts";
import { blames, blameWords, spanOrDash, waitReasonWords } from "./operation-words.ts";

export function queueSection(queue: QueueAges): Html {
  if (queue.hosts === 0) {
    return html`<h2><a href="/fleet/queue">What waits</a></h2><div class="empty"><p><strong>Nothing that is due waits.</strong> Hosts appear here from the moment one of their URLs may be fetched.</p></div>`;
  }
  return html`<h2><a href="/fleet/queue">What waits</a></h2>
${queueTable(queue)}`;
}

/** Hosts that are due, by what they wait for. */
export function queueTable(queue: QueueAges): Html {
  const about = queue.isEstimate ? "about " : "";
  const cells = (age: QueueAge) =>
    html`<td class="number">${about}${countText(age.hosts)}</td><td class="number">${spanOrDash(age.medianSeconds)}</td><td class="number">${spanOrDash(age.p95Seconds)}</td><td class="number">${spanOrDash(age.oldestSeconds)}</td>`;
  const rows = queue.reasons.map(
    (line) =>
      html`<tr><th scope="row"><a href="${pathWith("/fleet/queue", { reason: line.reason })}">${waitReasonWords[line.reason]}</a></th>${cells(line)}</tr>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Hosts that are due, by what they wait for"><table>
<thead><tr><th scope="col">Hosts that wait for</th><th scope="col" class="number">Hosts</th><th scope="col" class="number">Median wait</th><th scope="col" class="number">95 % less than</th><th scope="col" class="number">Longest</th></tr></thead>
<tbody>${rows}<tr class="total"><th scope="row">all that is due</th>${cells(queue)}</tr></tbody>
</table></div>`;
}

export function errorSection(hour: SpanFigures, day: SpanFigures): Html {
  const note =
    day.fetches === 0
      ? html`<p class="small">Nothing was fetched in the last 24 hours.</p>`
      : html`<p class="small">Shares of all fetches: ${countText(hour.fetches)} in the last hour, ${countText(day.fetches)} in 24 hours. Answers of a site, such as 404, are no failures.</p>`;
  return html`<h2><a href="/fleet/failures">What fails</a></h2>
<div class="scroll" tabindex="0" role="region" aria-label="Failed fetches by who is to blame"><table>
<thead><tr><th scope="col">To blame</th><th scope="col" class="number">Last hour</th><th scope="col" class="number">Share</th><th scope="col" class="number">24 hours</th><th scope="col" class="number">Share</th></tr></thead>
<tbody>${blames.map((blame) => errorRow(blame, hour, day))}</tbody>
</table></div>${note}`;
}

function errorRow(blame: Blame, hour: SpanFigures, day: SpanFigures): Html {
  const cells = ({ failures, fetches }: SpanFigures) =>
    html`<td class="number">${countText(failures[blame])}</td><td class="number">${fetches === 0 ? html`–` : percentText(failures[blame] / fetches)}</td>`;
  return html`<tr><th scope="row"><a href="${pathWith("/fleet/failures", { blame })}">${blameWords[blame]}</a>${blame === "us" ? html` <span class="small inline">(should be none)</span>` : nothing}</th>${cells(hour)}${cells(day)}</tr>`;
}
