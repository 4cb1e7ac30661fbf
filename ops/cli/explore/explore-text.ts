/** The explorer's answers as a terminal shows them. */

import type { ListAnswer, MapAnswer, TreeAnswer } from "#coordinator/explore/answer";
import type { CoarseCell, ExploredSubnet } from "#coordinator/explore/lines";
import { formatTable } from "../output.ts";
import { printable } from "../printable.ts";

export function listText(answer: ListAnswer): string {
  if (answer.subnets.length === 0) return `No subnet of ${answer.at} is like that.`;
  const more = answer.next === null ? "" : `\nFurther ones: --after "${answer.next}"`;
  const count = answer.isWholeCount ? `${answer.count}` : `more than ${answer.count}`;
  return `${subnetTable(answer.subnets)}\n\n${count} in ${answer.at}.${more}`;
}

export function treeText(answer: TreeAnswer): string {
  const way = [...answer.above, ...(answer.subnet === null ? [] : [answer.subnet])];
  const lines = way.map((subnet, depth) => `${"  ".repeat(depth)}${depth > 0 ? "└ " : ""}${wayLine(subnet)}`);
  const family = answer.family === 4 ? "IPv4" : "IPv6";
  if (answer.children.length === 0)
    return [...lines, way.length === 0 ? `Nothing is registered in ${family}.` : "Nothing within it."].join(
      "\n",
    );
  const count = answer.childCount === null ? "many" : String(answer.childCount);
  const more = answer.next === null ? [] : [`Further ones: --after "${answer.next}"`];
  const title = `${count} directly within ${answer.subnet?.range ?? family}:`;
  return [...lines, ...(lines.length > 0 ? [""] : []), title, "", subnetTable(answer.children), ...more].join(
    "\n",
  );
}

function wayLine(subnet: ExploredSubnet): string {
  const name = subnet.name === "" ? "" : ` ${printable(subnet.name)}`;
  return `${subnet.range}${name}  ${crawlerText(subnet)}${subnet.rttMs === null ? "" : `, ${subnet.rttMs} ms`}`;
}

function subnetTable(subnets: readonly ExploredSubnet[]): string {
  return formatTable(
    [
      { title: "subnet" },
      { title: "registered to" },
      { title: "registry" },
      { title: "crawler" },
      { title: "RTT ms", align: "right" },
      { title: "since" },
      { title: "pages a day", align: "right" },
      { title: "within", align: "right" },
    ],
    subnets.map((subnet) => [
      subnet.range,
      printable(subnet.holder?.name ?? subnet.name),
      `${subnet.registry}${subnet.country === null ? "" : ` ${subnet.country}`}`,
      crawlerText(subnet),
      subnet.rttMs === null ? "–" : String(subnet.rttMs),
      subnet.delegatedAt?.slice(0, 16).replace("T", " ") ?? "–",
      subnet.pagesPerDay === 0 ? "–" : String(subnet.pagesPerDay),
      subnet.subnetsWithin === 0 ? "–" : String(subnet.subnetsWithin),
    ]),
  );
}

function crawlerText(subnet: ExploredSubnet): string {
  if (subnet.state === "none") return subnet.waiting ? "waits" : "nobody";
  const marks = [subnet.state === "inherited" ? "inherited" : "", subnet.anycast ? "anycast" : ""];
  const words = [...marks, subnet.finer ? "in parts" : ""].filter((mark) => mark !== "");
  return `${subnet.crawler ?? "one that left"}${words.length === 0 ? "" : ` (${words.join(", ")})`}`;
}

const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;

/** Each value has a letter, those that occur most often first; two characters a cell, so that blocks are square. */
export function mapText(answer: MapAnswer, rows: readonly (readonly CoarseCell[])[]): string {
  const order = answer.legend.map(({ label }) => label);
  const signOf = (label: string) => signs[order.indexOf(label)] ?? "#";
  const drawn = rows.map((row) =>
    row.map((cell) => (cell === null ? "  " : cell === "" ? "··" : signOf(cell).repeat(2))).join(""),
  );
  const edge = "─".repeat(drawn[0]?.length ?? 0);
  const legend = answer.legend
    .filter(({ cells }) => cells > 0)
    .map(
      ({ label, share }) =>
        `  ${signOf(label)}  ${printable(label)}, ${percent(share)} of the cells with a value`,
    );
  const { subnets, registeredShare, delegatedShare, pagesPerDay } = answer.totals;
  return [
    `${answer.at} by ${answer.colour}`,
    `┌${edge}┐`,
    ...drawn.map((line) => `│${line}│`),
    `└${edge}┘`,
    ...legend,
    "  ·  registered, and no value",
    "",
    `${subnets} subnets; ${percent(registeredShare)} of the addresses registered, ${percent(delegatedShare)} crawled; ${pagesPerDay} pages a day.`,
  ].join("\n");
}
