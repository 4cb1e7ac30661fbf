/** How far each crawler is trusted, from comparisons of its pages with others'. Untrusted ones come first. */
import { z } from "zod";
import { howMany } from "#core/format";
import { timeRange } from "#core/time-range";
import { column, folded, history, lead, list, plain, section, table, warning } from "../../ask/document.ts";
import { type Node, operationsOf } from "../../ask/operation.ts";
import {
  standingWords,
  type TrustEvidence,
  type TrustLine,
  type TrustReport,
  trustLine,
  unprovenWords,
} from "../../crawl/trust/trust-api.ts";
import { record } from "../../web/api-operation.ts";
import { chartHistorySchema, rangeParameters } from "../../web/chart-history.ts";
import { askFor, crawlerPath, small } from "../../web/components.ts";
import { countText, instant } from "../../web/format.ts";
import { type Html, html } from "../../web/html.ts";
import type { PageViewer } from "../../web/page-frame.ts";
import { believeCrawler } from "./crawler-deeds-ask.ts";
import type { FleetPorts } from "./fleet-store.ts";

const { get } = operationsOf<Pick<FleetPorts, "reads" | "past">>();

const trust = get({
  ...{ path: "/api/fleet/trust", needs: "fleet-read" },
  navigation: { group: "Fleet", order: 30, entry: "Trust", tab: "Trust" },
  summary: "Whether each crawler is trusted; those that are not come first",
  input: z.object(rangeParameters),
  output: record("TrustLines", { crawlers: z.array(trustLine), history: chartHistorySchema }),
  command: { name: "fleet trust", help: "\n\nThe evidence: nearcrawl fleet show NAME." },
  run: async ({ input, ports, now }) => {
    const range = timeRange(input, now, "7d");
    const [crawlers, past] = await Promise.all([ports.reads.trust(), ports.past.charts("trust", range)]);
    return { crawlers, history: past };
  },
  view: ({ crawlers, history: past }) => ({
    title: "Trust",
    nodes: [
      lead(`A sample of the pages is fetched again by a second crawler and compared. A crawler that differs from
the others too often, on different hosts, is drained, and others fetch its recent pages again. Judging takes at least
three crawlers.`),
      table<TrustLine>({
        ...{ label: "Trust of each crawler", rows: crawlers, most: 200 },
        empty: ["No crawler is registered yet.", html`<a href="/fleet/invitations">Invite one</a>`],
        columns: [
          column("crawler", "Crawler", ({ crawler }) => crawler, {
            link: ({ crawler }) => `${crawlerPath(crawler)}#trust`,
          }),
          column("standing", "Trust", standingCell, { more: standingWhy, value: ({ standing }) => standing }),
          column("agreed", "Agree", ({ comparisons }) => comparisons.agreed, { unit: "count" }),
          column("alone", "Differ each time", ({ comparisons }) => comparisons.alone, { unit: "count" }),
          column("once", "Differed once", ({ comparisons }) => comparisons.once, { unit: "count" }),
          column("score", "Score", ({ score }) => score, { unit: (score) => score.toFixed(1) }),
          column("pages", "Pages", ({ pages }) => pages, { unit: "count" }),
        ],
        actions: (line) =>
          isDoubted(line)
            ? [
                {
                  ...{ operation: believeCrawler, path: { name: line.crawler } },
                  label: `Trust ${line.crawler} again`,
                },
              ]
            : [],
      }),
      history(past),
    ],
  }),
});

export const trustOperations = { trust };

const isDoubted = ({ standing }: TrustLine) => standing === "distrusted" || standing === "probes-doubted";

function standingCell(line: TrustLine): Html | string {
  const name = standingWords[line.standing];
  return isDoubted(line) ? html`<strong class="warn">${name}</strong>` : name;
}

function standingWhy(line: TrustLine): Html | string | null {
  if (!isDoubted(line)) return line.standing === "unproven" ? line.words : null;
  return line.since === null ? null : html`since ${instant(line.since)}: ${line.words}`;
}

const evidenceShown = 20;

export function trustSection(report: TrustReport, viewer: PageViewer): Node {
  const { distrusted, probesDoubted, evidence, standing, comparisons } = report;
  const doubts = [distrusted, probesDoubted].filter((one) => one !== null);
  return section(
    `Trust: ${standingWords[standing]}`,
    [
      ...doubts.map((one) => warning(html`Since ${instant(one.since)}: ${one.words}.`)),
      standing === "unproven" && warning(unprovenWords(comparisons)),
      plain(comparisonWords(report)),
      evidence.length > 0 &&
        folded(`${howMany(evidence.length, "page")} of evidence, the latest first`, [
          list(evidence.slice(0, evidenceShown).map((one) => evidenceItem(one, viewer))),
        ]),
    ],
    { id: "trust" },
  );
}

function comparisonWords({ pages, comparisons, restoredAt, connected }: TrustReport): Html {
  const { agreed, alone, once } = comparisons;
  const all = agreed + alone + once;
  const counted =
    all === 0
      ? "None of its pages has been compared yet."
      : html`Of ${howMany(pages, "page")} ${howMany(all, "comparison")} count: ${countText(agreed)} agree with another crawler's,
${countText(alone)} differ from everybody's each time, ${countText(once)} differed once.`;
  return html`${counted}${restoredAt && html` An operator restored it ${instant(restoredAt)}.`}${
    connected < 3 && " Fewer than three crawlers are connected: nobody can say which of two is right."
  }`;
}

function evidenceItem(one: TrustEvidence, viewer: PageViewer): Html {
  const differs = one.verdict === "alone" ? "differs each time" : "differed once";
  const counts = `${one.counts ? "counts" : "does not count"}: ${one.why}`;
  const said = one.opinions.map(
    ({ crawler, said, at }) => html`<li>${crawler} found ${said}, ${instant(at)}</li>`,
  );
  return html`${askFor(viewer, one.url)} ${small(html`${instant(one.at)}: ${differs}, ${one.words}; ${counts}.`)}<ul
class="plain small">${said}</ul>`;
}
