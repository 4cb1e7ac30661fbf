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
  note,
  onward,
  picture,
  plain,
  present,
  section,
  table,
  tabs,
} from "../../ask/document.ts";
import { nodesHtml } from "../../ask/html-rendering.ts";
import {
  type Column,
  type Document,
  Fault,
  type Node,
  operationsOf,
  type Seen,
} from "../../ask/operation.ts";
import { plainText } from "../../ask/words.ts";
import { small } from "../../web/components.ts";
import { ago, askAbout, country, countText, crawlerLink, msOrDash, percentText } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import { type ExplorePorts, exploreQuestion, showExplore } from "./answer.ts";
import {
  type CountriesAnswer,
  type CountryLine,
  type ExploreAnswer,
  type ExploredBranch,
  type ExploredSubnet,
  exploreCountries,
  exploredSubnet,
  exploreInput,
  exploreList,
  exploreMap,
  exploreTree,
  exploreViews,
  filterNames,
  type ListAnswer,
  type MapAnswer,
  type SharePart,
  type TreeAnswer,
} from "./explore-api.ts";
import { blockText, squareHolding } from "./hilbert-map.ts";
import { medianText, removedCrawler, shareWords } from "./shares.ts";

/** A page waits this long for the first reading before it shows a message. */
const patienceMs = 2000;
const readAgainSeconds = 2;

type Explored = ExploreAnswer & {
  /** The choices of the form; null if there are so many that the name is typed. */
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

/** Throws a Fault if the first reading has not ended. A page then says so; a command waits. */
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

// The map with its totals. Every block is a link, so the map needs no script.

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

/** Links from the whole family down to the current position. */
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

/** A block below the smallest square opens in the tree. */
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

// The explorer's tables of subnets: the list, and a level of the tree with its path.

/** Returns the query of the same question with some changes. */
export type Asking = (changed: Readonly<Record<string, string | number | null>>) => string;

interface SubnetsSeen {
  readonly asking: Asking;
  readonly now: string;
}

function placeName(at: string): string {
  if (at === "0.0.0.0/0") return "IPv4";
  return at === "2000::/3" || at === "::/0" ? "IPv6" : at;
}

const orders = {
  address: "address",
  load: "pages per day, most first",
  rtt: "round-trip time, longest first",
} as const;

const sortedBy = (names: readonly (keyof typeof orders)[], chosen: string, asking: Asking): Node =>
  note(
    html`Sorted by ${names.map((order, at) => {
      const to = asking({ sort: order === "address" ? null : order });
      const name = orders[order];
      return html`${at > 0 && " · "}${order === chosen ? html`<strong>${name}</strong>` : html`<a href="${to}">${name}</a>`}`;
    })}`,
  );

/** Only lists in address order can be paged. */
const more = (shown: number, { sort, next }: Pick<ListAnswer, "sort" | "next">, all: number): Node | false =>
  sort !== "address" && all > shown
    ? plain(small(`The first ${shown} in this order. Filter, or sort by address to page through all.`))
    : onward({ next, words: "More subnets" });

const listNodes = (answer: ListAnswer, { asking, now }: SubnetsSeen): Node =>
  section(answer.subnets.length === 0 ? "Subnets" : countWords(answer), [
    answer.subnets.length > 0 && sortedBy(["address", "load", "rtt"], answer.sort, asking),
    table<ExploredSubnet>({
      ...{ label: "Subnets", kind: "subnets", rows: answer.subnets },
      columns: [
        member("range", "Subnet", { cell: ({ range }) => askAbout(range), more: named }),
        column("holder", "Registered to", holder),
        column("registry", "Registry", (one) => html`${one.registry} ${country(one.country)}`),
        column("crawler", "Crawler", crawler),
        ...measured(now),
        member("pagesPerDay", "Pages per day", {
          ...{ unit: "count", cell: ({ pagesPerDay }) => Math.ceil(pagesPerDay) || null },
          more: ({ dueHosts }) => dueHosts > 0 && howMany(dueHosts, "due host"),
        }),
        within,
      ],
      empty: [
        "No subnet here matches.",
        html`Look in <a href="${asking({ at: null })}">all of IPv4</a> or
<a href="${asking({ at: "ipv6" })}">all of IPv6</a>, or remove a filter above.`,
      ],
    }),
    more(answer.subnets.length, answer, answer.count),
    answer.subnets.length > 0 &&
      note(html`The whole list, up to 1,000,000 subnets: <a
href="/explore/subnets.csv?${asking({ view: null }).split("?")[1] ?? ""}">CSV</a>.`),
  ]);

const haveWords = { address: "", load: " with pages to fetch", rtt: " measured" } as const;

function countWords({ count, isWholeCount, subnets, sort }: ListAnswer): string {
  if (isWholeCount) return `${howMany(count, "subnet")}${haveWords[sort]}`;
  return count > subnets.length
    ? `More than ${countText(count)} subnets`
    : `${countText(count)} more subnets`;
}

/** All fields of a subnet, for programs. */
export const subnetColumns = (Object.keys(exploredSubnet.shape) as (keyof ExploredSubnet)[]).map((name) =>
  member<ExploredSubnet>(name, null, name === "holder" ? { value: (one) => one.holder?.name ?? null } : {}),
);

const listCsv = (rows: readonly ExploredSubnet[]) => ({ columns: subnetColumns, rows });

const of = member<ExploredSubnet>;

const measured = (now: string): readonly Column<ExploredSubnet>[] => [
  of("rttMs", "RTT", { unit: "ms" }),
  of("delegatedAt", "Since", { cell: ({ delegatedAt }) => delegatedAt && ago(delegatedAt, now) }),
];

const within = of("subnetsWithin", "Within", { unit: "count", cell: (one) => one.subnetsWithin || null });

const named = ({ name }: ExploredSubnet) => name !== "" && html`<bdi>${name}</bdi>`;

const holder = ({ holder: known }: ExploredSubnet) => known && html`<bdi class="holder">${known.name}</bdi>`;

function crawler(subnet: ExploredSubnet): Html {
  const marks = [subnet.anycast ? "anycast" : "", subnet.finer ? "overrides" : ""].filter(
    (one) => one !== "",
  );
  const words = marks.length === 0 ? nothing : html` ${small(marks.join(", "))}`;
  if (subnet.state === "none") return html`${subnet.waiting ? "due, nobody yet" : "nobody"}${words}`;
  const name =
    subnet.crawler === null ? html`${removedCrawler}` : html`<bdi>${crawlerLink(subnet.crawler)}</bdi>`;
  if (subnet.state === "delegated") return html`${name}${words}`;
  const from = `from ${subnet.decidedFor ?? "a less specific one"}`;
  return html`${name}${words} ${small(`${from}${subnet.waiting ? "; due, not assigned directly" : ""}`)}`;
}

// The tree: the path from the root, one subnet, and its direct children.

function treeNodes(answer: TreeAnswer, { asking, now }: SubnetsSeen): Node {
  const { above, subnet, children, family, childCount } = answer;
  const way = [...above, ...(subnet === null ? [] : [subnet])];
  const [root, whole] = family === 4 ? ["IPv4", "0.0.0.0/0"] : ["IPv6", "::/0"];
  const lines = way.map((one, depth) => wayLine(one, asking, depth === way.length - 1));
  const here = way.length === 0 ? html` aria-current="true"` : nothing;
  const page = html`<ol class="way"><li><a href="${asking({ at: whole })}"${here}>${root}</a></li>
${lines.map((line, depth) => html`<li class="depth-${Math.min(depth + 1, 9)}">${line}</li>`)}</ol>`;
  const text = [html`${root}`, ...lines].map((line, depth) => `${"  ".repeat(depth)}${plainText(line)}`);
  const none =
    subnet === null
      ? "No registry has been imported yet. The command nearcrawl rir apply imports one."
      : "Nothing is registered within it.";
  return section(subnet?.range ?? root, [
    picture(page, text.join("\n")),
    children.length === 0 ? empty(none) : plain(small(`${howMany(childCount, "subnet")}`)),
    children.length > 0 && sortedBy(["address", "load"], answer.sort, asking),
    children.length > 0 &&
      table<ExploredBranch>({
        ...{ label: "Subnets directly within", kind: "subnets", rows: children, empty: ["None.", ""] },
        columns: [
          member("range", "Subnet", {
            cell: ({ range }) => html`<a class="mono" href="${asking({ at: range })}">${range}</a>`,
            more: named,
          }),
          column("holder", "Registered to", (one) => html`${holder(one) ?? "–"} ${country(one.country)}`),
          column("crawler", "Crawler", crawler),
          column("", "Crawled below", ({ crawledBy }) => shareBar(crawledBy), { isPicture: true }),
          ...measured(now),
          within,
          column("", "Why", ({ range }) => askAbout(range, "why?"), { isPicture: true }),
        ],
      }),
    more(children.length, answer, childCount),
  ]);
}

function wayLine(subnet: ExploredBranch, asking: Asking, isHere: boolean): Html {
  const here = isHere ? html` aria-current="true"` : nothing;
  const rtt = subnet.rttMs === null ? nothing : html`, ${msOrDash(subnet.rttMs)}`;
  const range = html`<a class="mono" href="${asking({ at: subnet.range })}"${here}>${subnet.range}</a>`;
  const why = html` <a class="small" href="${pathWith("/who", { q: subnet.range })}">why?</a>`;
  return html`${range} <bdi>${subnet.name}</bdi> ${country(subnet.country)}
<span class="small">${crawler(subnet)}${rtt}</span>${isHere ? html`${why}${shareBar(subnet.crawledBy)}` : nothing}`;
}

const bar = { width: 120, height: 10 };

/** Shares of subnets side by side, with a title in words. */
export function shareBar(parts: readonly SharePart[]): Html {
  const all = parts.reduce((sum, { subnets }) => sum + subnets, 0);
  let before = 0;
  const fills = parts.map(({ colour, kind, subnets }) => {
    const left = (bar.width * before) / all;
    before += subnets;
    const width = (bar.width * subnets) / all;
    return html`<rect x="${left.toFixed(2)}" width="${width.toFixed(2)}" height="${bar.height}"
fill="${colour}"${kind === "none" ? html` opacity="0.4"` : nothing}/>`;
  });
  return html`<svg class="share-bar" viewBox="0 0 ${bar.width} ${bar.height}" preserveAspectRatio="none" role="img"
aria-label="${shareWords(parts)}"><title>${shareWords(parts)}</title>${fills}</svg>`;
}
