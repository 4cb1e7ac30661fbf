/** Subnets as tables of the explorer: the list, and a level of the tree with its path. */
import { howMany } from "#core/format";
import { column, empty, member, note, onward, picture, plain, section, table } from "../../ask/document.ts";
import type { Column, Node } from "../../ask/operation.ts";
import { plainText } from "../../ask/words.ts";
import { small } from "../../web/components.ts";
import { ago, askAbout, country, countText, crawlerLink, msOrDash } from "../../web/format.ts";
import { type Html, html, nothing, pathWith } from "../../web/html.ts";
import {
  type ExploredBranch,
  type ExploredSubnet,
  exploredSubnet,
  type ListAnswer,
  type SharePart,
  type TreeAnswer,
} from "./explore-api.ts";
import { removedCrawler, shareWords } from "./shares.ts";

/** The query of the same question with some changes. */
export type Asking = (changed: Readonly<Record<string, string | number | null>>) => string;

export interface SubnetsSeen {
  readonly asking: Asking;
  readonly now: string;
}

export function placeName(at: string): string {
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

/** Only lists by address can be paged. */
const more = (shown: number, { sort, next }: Pick<ListAnswer, "sort" | "next">, all: number): Node | false =>
  sort !== "address" && all > shown
    ? plain(small(`The first ${shown} in this order. Filter, or sort by address to page through all.`))
    : onward({ next, words: "More subnets" });

export const listNodes = (answer: ListAnswer, { asking, now }: SubnetsSeen): Node =>
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

export const listCsv = (rows: readonly ExploredSubnet[]) => ({ columns: subnetColumns, rows });

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

export function treeNodes(answer: TreeAnswer, { asking, now }: SubnetsSeen): Node {
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
