/** /explore: who crawls what, as a map, a level of the tree, a list or by country. */
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { howMany } from "#core/format";
import { parseRange } from "#core/ip/range";
import {
  column,
  empty,
  facts,
  filters,
  lead,
  member,
  picture,
  present,
  section,
  table,
  tabs,
} from "../../ask/document.ts";
import { nodesHtml } from "../../ask/html-rendering.ts";
import { type Document, Fault, type Node, operationsOf, type Seen } from "../../ask/operation.ts";
import { small } from "../../web/components.ts";
import { countText, percentText } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import { type ExplorePorts, exploreQuestion, showExplore } from "./answer.ts";
import {
  type CountriesAnswer,
  type CountryLine,
  type ExploreAnswer,
  exploreCountries,
  exploreInput,
  exploreList,
  exploreMap,
  exploreTree,
  exploreViews,
  filterNames,
  type MapAnswer,
} from "./explore-api.ts";
import {
  type Asking,
  listCsv,
  listNodes,
  placeName,
  type SubnetsSeen,
  shareBar,
  treeNodes,
} from "./explore-subnets-ask.ts";
import { blockText, squareHolding } from "./hilbert-map.ts";
import { medianText, shareWords } from "./shares.ts";

/** A page waits this long for the first reading before it shows a waiting message. */
const patienceMs = 2000;
const readAgainSeconds = 2;

type Explored = ExploreAnswer & {
  /** For the form; null when there are so many that the name is typed. */
  readonly crawlers: readonly string[] | null;
};

/** With more names than this, the name is typed. */
const mostListed = 200;

export const exploreOperations = {
  explore: operationsOf<ExplorePorts>().get({
    ...{ path: "/api/explore", needs: "read" },
    navigation: { group: "Crawl", order: 30, entry: "Explore", tab: "Explore" },
    alsoFound: "map subnets ip space tree",
    summary: "Who crawls what: a map, a level of the tree, a list, or countries",
    description:
      "Needs the scope read where the pages are not open to everybody. " +
      "Answered from the coordinator's memory. Filters are for lists. A list whole, as CSV: /explore/subnets.csv.",
    input: exploreInput,
    output: z.union([exploreMap, exploreTree, exploreList, exploreCountries]),
    answer: { description: "The answer, by view" },
    faults: { 503: "The explorer still reads what is known" },
    command: {
      ...{ name: "explore", takes: "at" },
      says: "who crawls what: the address space as a map's figures, a tree or a list, or by country",
      help: `

Read from the database: of ten million subnets that takes half a minute. A list whole, as CSV: GET /explore/subnets.csv.

Examples:
  nearcrawl explore 192.0.2.0/24 --view tree
  nearcrawl explore --state waiting
  nearcrawl explore --view countries`,
    },
    run: async ({ input, ports, visit }): Promise<Explored> => {
      const question = exploreQuestion(input);
      const answer = await showExplore(ports, await readyWorld(ports, visit.isOwner), question);
      const names = ports.state.crawlers.map(({ name }) => name).sort();
      return { ...answer, crawlers: names.length > mostListed ? null : names };
    },
    told: ({ crawlers: _, ...answer }) => answer,
    view: exploreDocument,
  }),
};

/** Throws a Fault before the first reading. A page says so; a command waits. */
export async function readyWorld({ explorer }: ExplorePorts, isPatient = false) {
  const tired = isPatient ? [] : [wait(patienceMs, null, { ref: false })];
  const world = await Promise.race([explorer.world(), ...tired]);
  if (world !== null) return world;
  const words =
    "The explorer is still reading what is known. The page shows it as soon as it is there; programs try again in a moment.";
  throw new Fault(503, words, "Explore", { refreshSeconds: readAgainSeconds });
}

const viewNames = { map: "Map", tree: "Tree", list: "List", countries: "Countries" } as const;

const stateWords = {
  delegated: "assigned directly",
  inherited: "inherits its crawler",
  waiting: "due, not assigned directly",
  none: "registered, not crawled",
  anycast: "anycast",
  finer: "has delegation overrides",
} as const;

function exploreDocument(answer: Explored, { input, now }: Seen<z.output<typeof exploreInput>>): Document {
  const { crawlers, view } = answer;
  const at = answer.view === "countries" ? null : answer.at;
  const { sort: _, limit: _most, after: _place, ...own } = input;
  const asking: Asking = (changed) => pathWith("/explore", { ...own, view, at, ...changed });
  const seen: SubnetsSeen = { asking, now: now.toISOString() };
  return {
    title: at === null ? "Explore countries" : `Explore ${placeName(at)}`,
    ...(answer.view === "list" ? { csv: listCsv(answer.subnets) } : {}),
    nodes: present([
      tabs(
        "Views",
        exploreViews.map((one) => ({
          ...{ title: viewNames[one], href: asking({ view: one }), isCurrent: one === view },
        })),
      ),
      at !== null &&
        filters({
          ...{ label: "Subnets", names: view === "list" ? ["at", ...filterNames] : ["at"], also: { view } },
          choices: {
            state: stateWords,
            ...(crawlers && { crawler: Object.fromEntries(crawlers.map((name) => [name, name])) }),
          },
        }),
      ...viewNodes(answer, seen),
    ]),
  };
}

function viewNodes(answer: ExploreAnswer, seen: SubnetsSeen): readonly Node[] {
  if (answer.view === "countries") return countriesNodes(answer);
  if (answer.view === "map") return mapNodes(answer, seen.asking);
  return [answer.view === "tree" ? treeNodes(answer, seen) : listNodes(answer, seen)];
}

function countriesNodes({ countries, totals }: CountriesAnswer): readonly Node[] {
  if (countries.length === 0)
    return [
      empty(
        "No registry has been imported yet, so no country has subnets.",
        html`The command <code>nearcrawl rir apply</code> imports one; <a href="/registry">Registry</a> shows what there is.`,
      ),
    ];
  const some = `${howMany(totals.countries, "country", "countries")} with ${howMany(totals.subnets, "subnet")}`;
  return [
    lead(`${some}, ${countText(totals.crawled)} of them crawled, by a delegation of their own or of a less specific subnet.
The round-trip time is the median of the subnets that are assigned directly.`),
    table<CountryLine>({
      ...{ label: "Countries", rows: countries, empty: ["No country.", ""] },
      columns: [
        member("country", "Country", {
          cell: ({ name }) => name,
          link: ({ country }) => country && pathWith("/explore", { country }),
        }),
        member("name"),
        member("subnets", "Subnets", { unit: "count" }),
        member("crawled", "Crawled", { unit: "count" }),
        column("", "By whom", ({ crawledBy }) => shareBar(crawledBy), { isPicture: true }),
        member("medianRttMs", "Median RTT", { kind: "number", cell: medianText }),
        member("measured", "Measured", { unit: "count" }),
        member("pagesPerDay", "Pages per day", { unit: "count" }),
        member("dueHosts"),
        column(
          "",
          "Hosts",
          ({ country }) => country && html`<a href="${pathWith("/sites", { country })}">sites</a>`,
          {
            isPicture: true,
          },
        ),
      ],
    }),
  ];
}

// The map with its totals. Every block is a link into it, so it needs no script.

type Block = MapAnswer["blocks"][number];

function mapNodes(answer: MapAnswer, asking: Asking): readonly Node[] {
  const { at, totals, blocks, legend: parts } = answer;
  const { subnets, crawled, pagesPerDay, dueHosts } = totals;
  const share = subnets > 0 && small(shareText(crawled / subnets));
  const figures = facts(
    ["Subnets", countText(subnets)],
    ["Crawled, by own or inherited delegation", html`${countText(crawled)} ${share}`],
    ["Pages per day", countText(pagesPerDay)],
    ["Hosts due", countText(dueHosts)],
  );
  const page = html`${wayOut(answer, asking)}
<div class="explore-view"><div>${mapPicture(answer, asking)}
<p class="small">A cell has the colour of the crawler with most subnets in it; grey: nobody crawls any. Click a block to zoom.
Addresses run along a Hilbert curve. Clear: not registered.</p></div>
<div class="map-side">${nodesHtml([figures])}${legend(answer)}</div></div>`;
  return [
    picture(
      page,
      section(placeName(at), [
        figures,
        table<MapAnswer["legend"][number]>({
          ...{ label: "By crawler", rows: parts, empty: ["No subnets.", ""] },
          columns: [
            column("", "Crawler", ({ label }) => label),
            column("", "Subnets", (part) => part.subnets, { unit: "count" }),
            column("", "Share", (part) => shareText(part.subnets / subnets), { kind: "number" }),
          ],
        }),
      ]),
    ),
    section(`Blocks of ${placeName(at)} with subnets`, [
      table<Block>({
        ...{ label: "Blocks", rows: blocks.filter((block) => block.subnets > 0) },
        empty: ["No subnet.", html`Subnets come with the <a href="/registry">registries' data</a>.`],
        columns: [
          member("range", "Block", {
            cell: (block) => html`<a class="mono" href="${blockAddress(block, asking)}">${block.range}</a>`,
          }),
          member("subnets", "Subnets", { unit: "count" }),
          member("crawled", "Crawled", {
            ...{ kind: "number", cell: (block) => shareText(block.crawled / block.subnets) },
          }),
          column("", "By whom", ({ crawledBy }) => shareBar(crawledBy), { isPicture: true }),
          column(
            "",
            "(List)",
            ({ range }) => html`<a href="${asking({ at: range, view: "list" })}">list</a>`,
            {
              isPicture: true,
            },
          ),
        ],
      }),
    ]),
  ];
}

/** From the whole family down to the current position. */
function wayOut({ at, above, family }: MapAnswer, asking: Asking): Html {
  const other = family === 4 ? "IPv6" : "IPv4";
  return html`<nav class="way-out" aria-label="Larger blocks">${above.map(
    (to) => html`<a class="mono"
href="${asking({ at: to })}">${placeName(to)}</a> › `,
  )}<strong class="mono">${placeName(at)}</strong> <span
class="other-family"><a href="${asking({ at: other.toLowerCase() })}">${other}</a></span></nav>`;
}

/** Picture units per cell, and cells per side of a block. */
const [unit, cellsPerBlock] = [10, 16];

const opacityOf = (kind: string) => (kind === "none" ? html` opacity="0.4"` : nothing);

function mapPicture({ at, legend: parts, blocks }: MapAnswer, asking: Asking): Html {
  const side = 4 * cellsPerBlock * unit;
  return html`<svg class="space-map" viewBox="0 0 ${side} ${side}" role="group"
aria-label="${placeName(at)} by crawler; the table below says the same in figures">
<g transform="scale(${unit})" shape-rendering="crispEdges">${parts.map(
    ({ kind, colour, path }) => html`<path d="${path}" fill="${colour}"${opacityOf(kind)}/>`,
  )}</g>
${blocks.map((block) => blockLink(block, asking))}</svg>`;
}

function blockLink(block: Block, asking: Asking): Html {
  const { range, subnets, crawledBy } = block;
  const [x, y, side] = [unit * block.x, unit * block.y, unit * cellsPerBlock];
  const words = `${range}: ${countText(subnets)} subnets${subnets === 0 ? "" : ` (${shareWords(crawledBy)})`}`;
  return html`<a href="${blockAddress(block, asking)}"><title>${words}</title><rect x="${x}" y="${y}" width="${side}" height="${side}"/><text x="${x + 6}"
y="${y + 17}">${range}</text></a>`;
}

/** Blocks below the smallest square open in the tree. */
function blockAddress({ range: text }: Block, asking: Asking): string {
  const range = parseRange(text);
  const isSquare = range === null || blockText(squareHolding(range)) === text;
  return asking({ at: text, view: isSquare ? "map" : "tree" });
}

function legend({ legend: parts, totals }: MapAnswer): Html {
  if (parts.length === 0) return nothing;
  return html`<h2>By crawler</h2><ul class="map-key">${parts.map(
    ({ label, colour, kind, subnets }) =>
      html`<li><svg viewBox="0 0 16 16" aria-hidden="true"><rect width="16" height="16"
fill="${colour}"${opacityOf(kind)}/></svg> <span class="name"><bdi>${label}</bdi></span> <span
class="small number">${countText(subnets)} <span class="part">${shareText(subnets / totals.subnets)}</span></span></li>`,
  )}</ul>`;
}

/** Tiny shares are not shown as 0 %, and near-total ones not as 100 %. */
function shareText(share: number): string {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return share < 1 && share > 0.9995 ? "> 99.9 %" : percentText(share);
}
