/** Lists of subnets as files, made while they are sent. A list that had to be cut says so at its end. */

import { csvText } from "../web/html.ts";
import type { ExploredSubnet } from "./subnet-view.ts";

const subnetColumns = [
  "range",
  "name",
  "holder",
  "country",
  "registry",
  "state",
  "crawler",
  "decided_for",
  "rtt_ms",
  "delegated_at",
  "pages_per_day",
  "due_hosts",
  "waiting",
  "anycast",
  "finer",
  "subnets_within",
] as const;

function cellsOf(subnet: ExploredSubnet): (string | number | boolean | null)[] {
  return [
    subnet.range,
    subnet.name,
    subnet.holder?.name ?? null,
    subnet.country,
    subnet.registry,
    subnet.state,
    subnet.crawler,
    subnet.decidedFor,
    subnet.rttMs,
    subnet.delegatedAt,
    subnet.pagesPerDay,
    subnet.dueHosts,
    subnet.waiting,
    subnet.anycast,
    subnet.finer,
    subnet.subnetsWithin,
  ];
}

/** At most `most` rows; a last line with a word in it where there were more. */
export async function* subnetsAsCsv(
  pieces: AsyncIterable<readonly ExploredSubnet[]>,
  most: number,
): AsyncGenerator<string> {
  yield csvText({ columns: subnetColumns, rows: [] });
  let left = most;
  for await (const piece of pieces) {
    const rows = piece.slice(0, left).map(cellsOf);
    yield csvText({ columns: [], rows }).slice(2);
    left -= rows.length;
    if (rows.length < piece.length) yield `more than ${most} subnets: the rest is left out\r\n`;
    if (left === 0 && rows.length < piece.length) return;
  }
}

/** `{"subnets": [...], "isComplete": …}` */
export async function* subnetsAsJson(
  pieces: AsyncIterable<readonly ExploredSubnet[]>,
  most: number,
): AsyncGenerator<string> {
  let left = most;
  let isComplete = true;
  yield '{"subnets":[';
  for await (const piece of pieces) {
    const shown = piece.slice(0, left);
    const text = shown.map((subnet) => JSON.stringify(subnet)).join(",\n");
    if (text !== "") yield (left === most ? "\n" : ",\n") + text;
    left -= shown.length;
    isComplete = shown.length === piece.length;
    if (!isComplete) break;
  }
  yield `\n],"isComplete":${isComplete}}\n`;
}
