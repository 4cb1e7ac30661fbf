/** Whether each crawler is trusted: comparisons of its pages with others', those that are not trusted first. */
import { mayDo } from "#core/actor";
import type { ChartHistory } from "../web/chart-history.ts";
import {
  buttonForm,
  column,
  crawlerPath,
  dataTable,
  empty,
  numberColumn,
  titleRow,
} from "../web/components.ts";
import { countText, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import type { PageViewer } from "../web/page-frame.ts";
import { historySection } from "../web/time-chart.ts";
import { standingWords, type TrustLine } from "./trust-api.ts";

export function trustBody(lines: readonly TrustLine[], history: ChartHistory, viewer: PageViewer): Html {
  return html`${titleRow("Trust")}
<p class="lead">A sample of the pages is fetched again by a second crawler and compared. A crawler that differs from
the others too often, on different hosts, is drained, and others fetch its recent pages again. Judging takes at least
three crawlers.</p>
${
  lines.length === 0
    ? empty("No crawler is registered yet.", html`<a href="/fleet/invitations">Invite one</a>`)
    : table(lines, viewer)
}
${historySection("/fleet/trust", {}, history)}`;
}

const mostShown = 200;

const isDoubted = ({ standing }: TrustLine) => standing === "distrusted" || standing === "probes-doubted";

function table(lines: readonly TrustLine[], viewer: PageViewer): Html {
  const columns = [
    column<TrustLine>(
      "Crawler",
      ({ crawler }) => html`<a href="${crawlerPath(crawler)}#trust">${crawler}</a>`,
    ),
    column<TrustLine>("Trust", standingCell),
    numberColumn<TrustLine>("Agree", ({ comparisons }) => countText(comparisons.agreed)),
    numberColumn<TrustLine>("Differ each time", ({ comparisons }) => countText(comparisons.alone)),
    numberColumn<TrustLine>("Differed once", ({ comparisons }) => countText(comparisons.once)),
    numberColumn<TrustLine>("Score", ({ score }) => score.toFixed(1)),
    numberColumn<TrustLine>("Pages", ({ pages }) => countText(pages)),
    ...(mayDo(viewer.actor, "fleet-write")
      ? [column<TrustLine>("Trust again", (line) => restoreButton(line, viewer))]
      : []),
  ];
  const shown = dataTable("Trust of each crawler", columns, lines.slice(0, mostShown));
  if (lines.length <= mostShown) return shown;
  return html`${shown}<p class="small">The first ${mostShown} of ${countText(lines.length)},
those that are not trusted before all others; <a href="/api/fleet/trust">JSON</a> has all.</p>`;
}

function standingCell(line: TrustLine): Html {
  const { standing, since, words } = line;
  const name = standingWords[standing];
  if (!isDoubted(line))
    return html`${name}${standing === "unproven" ? html`<span class="small">${words}</span>` : nothing}`;
  const why = since === null ? nothing : html`<span class="small">since ${instant(since)}: ${words}</span>`;
  return html`<strong class="warn">${name}</strong>${why}`;
}

function restoreButton(line: TrustLine, viewer: PageViewer): Html {
  const { crawler } = line;
  const to = { path: crawlerPath(crawler, "/believe"), label: `Trust ${crawler} again` };
  return isDoubted(line) ? buttonForm(viewer, to) : nothing;
}
