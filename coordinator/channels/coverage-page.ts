/** How far channels and seeds have come: complete, in progress, cut by budget or depth. */
import { column, dataTable, empty, numberColumn, titleRow } from "../web/components.ts";
import { askAbout, countText } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing, pathWith } from "../web/html.ts";
import type { Coverage } from "./coverage.ts";
import type { CoverageList } from "./coverage-reads.ts";
import { placeWords } from "./page.ts";

export function coverageBody({ coverage, more }: CoverageList): Html {
  return html`${titleRow("Channel coverage")}
<p class="lead">How much of each channel was found and fetched, and what limited the rest.
For URLs submitted together, see their <a href="/submit">receipt</a>. For one host:</p>
<form class="ask" action="/coverage"><label for="coverage-host">Host</label> <input
 id="coverage-host" name="host" placeholder="www.example.org" spellcheck="false"> <button>Show</button></form>
${
  coverage.length === 0
    ? empty("No channels.", html`<a href="/channels">Add a channel</a>, or give a host.`)
    : table(coverage)
}
${more ? html`<p class="small">The first are shown; the CSV has up to 1,000.</p>` : nothing}`;
}

const numbers = [
  ["Fetched", "fetched"],
  ["To go", "waiting"],
  ["Held back", "held"],
  ["Too deep", "tooDeep"],
  ["By robots.txt", "refusedByRobots"],
] as const;

const table = (coverage: readonly Coverage[]): Html =>
  dataTable<Coverage>(
    "Channel coverage",
    [
      column("What", place, "break"),
      column("State", ({ words }) => words, "wide"),
      ...numbers.map(([title, name]) =>
        numberColumn<Coverage>(title, (one) => `${countText(one[name])}${one.more ? "+" : ""}`),
      ),
      column("Seeds", seedCounts),
    ],
    coverage,
  );

function place({ host, channelId, directories }: Coverage): Html {
  if (channelId === null) return askAbout(host);
  const path = pathWith("/coverage", { channel: String(channelId) });
  return html`${askAbout(host)}${directories.join(", ")} <span
 class="small"><a href="${path}">channel ${channelId}</a></span>`;
}

function seedCounts({ seeds }: Coverage): string {
  const failed = seeds.filter(
    ({ lastOutcome, fetches }) => fetches > 0 && lastOutcome !== "fetched" && lastOutcome !== "unchanged",
  );
  return `${countText(seeds.length)}${failed.length === 0 ? "" : `, ${countText(failed.length)} not fetched`}`;
}

const csvCounts = [
  ...(["fetched", "waiting", "gone", "refusedByRobots", "held", "leftOut", "tooDeep"] as const),
  ...(["deepest", "maxDepth"] as const),
];

/** A line for each seed, so that a second stage can begin with those that are cut; for a place without one, a line, too. */
export function coverageCsv({ coverage }: CoverageList): CsvTable {
  return {
    columns: [
      ...["channel", "host", "place", "seed", "seed_outcome", "seed_status", "state", "cut_by"],
      ...csvCounts.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
      "more",
    ],
    rows: coverage.flatMap((one) => {
      const counts = csvCounts.map((name) => one[name]);
      const rest = [one.state, one.cutBy.join(" "), ...counts, String(one.more)];
      const seeds = one.seeds.length === 0 ? [null] : one.seeds;
      return seeds.map((seed) => [
        ...[one.channelId, one.host, placeWords(one), seed?.url ?? null, seed?.lastOutcome ?? null],
        ...[seed?.lastStatus ?? null, ...rest],
      ]);
    }),
  };
}
