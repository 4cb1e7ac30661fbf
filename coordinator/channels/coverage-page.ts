/** How far channels and seeds have come: complete, in progress, cut by budget or depth. */
import { titleRow } from "../web/components.ts";
import { askAbout, countText } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import type { Coverage } from "./coverage.ts";
import type { CoverageList } from "./coverage-reads.ts";
import { placeWords } from "./page.ts";

export function coverageBody({ coverage, more }: CoverageList): Html {
  return html`${titleRow("Channel coverage")}
<p class="lead">How much of each channel was found and fetched, and what limited the rest. For URLs submitted together, see their <a href="/submit">receipt</a>. For one host:</p>
<form class="ask" action="/coverage"><label for="coverage-host">Host</label> <input id="coverage-host" name="host" placeholder="www.example.org" spellcheck="false"> <button>Show</button></form>
${coverage.length === 0 ? html`<div class="empty"><p><strong>No channels.</strong> <a href="/channels">Add a channel</a>, or give a host.</p></div>` : table(coverage)}
${more ? html`<p class="small">The first are shown; the CSV has up to 1,000.</p>` : nothing}`;
}

function table(coverage: readonly Coverage[]): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Channel coverage"><table>
<thead><tr><th scope="col">What</th><th scope="col">State</th><th scope="col" class="number">Fetched</th><th scope="col" class="number">To go</th><th scope="col" class="number">Held back</th><th scope="col" class="number">Too deep</th><th scope="col" class="number">By robots.txt</th><th scope="col">Seeds</th></tr></thead>
<tbody>${coverage.map(row)}</tbody></table></div>`;
}

function row(one: Coverage): Html {
  const numbers = [one.fetched, one.waiting, one.held, one.tooDeep, one.refusedByRobots];
  const failed = one.seeds.filter(
    ({ lastOutcome, fetches }) => fetches > 0 && lastOutcome !== "fetched" && lastOutcome !== "unchanged",
  );
  return html`<tr><th scope="row" class="break">${askAbout(one.host)}${one.channelId === null ? nothing : html`${one.directories.join(", ")} <span class="small"><a href="${pathWith("/coverage", { channel: String(one.channelId) })}">channel ${one.channelId}</a></span>`}</th><td class="wide">${one.words}</td>${numbers.map((number) => html`<td class="number">${countText(number)}${one.more ? "+" : ""}</td>`)}<td>${countText(one.seeds.length)}${failed.length === 0 ? nothing : html`, ${countText(failed.length)} not fetched`}</td></tr>`;
}

/** A line for each seed, so that a second stage can begin with those that are cut; for a place without one, a line, too. */
export function coverageCsv({ coverage }: CoverageList): CsvTable {
  return {
    columns: [
      ...[
        "channel",
        "host",
        "place",
        "seed",
        "seed_outcome",
        "seed_status",
        "state",
        "cut_by",
        "fetched",
        "waiting",
      ],
      ...["gone", "refused_by_robots", "held", "left_out", "too_deep", "deepest", "max_depth", "more"],
    ],
    rows: coverage.flatMap((one) => {
      const counts = [
        one.fetched,
        one.waiting,
        one.gone,
        one.refusedByRobots,
        one.held,
        one.leftOut,
        one.tooDeep,
      ];
      const rest = [one.state, one.cutBy.join(" "), ...counts, one.deepest, one.maxDepth, String(one.more)];
      const seeds = one.seeds.length === 0 ? [null] : one.seeds;
      return seeds.map((seed) => [
        ...[one.channelId, one.host, placeWords(one), seed?.url ?? null, seed?.lastOutcome ?? null],
        ...[seed?.lastStatus ?? null, ...rest],
      ]);
    }),
  };
}
