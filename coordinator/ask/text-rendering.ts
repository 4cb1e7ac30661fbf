/** Renders a document as text for a terminal, and its first table as CSV. */

import type { FastifyReply, FastifyRequest } from "fastify";
import { type Paper, painted, printable, tableText } from "#core/terminal-text";
import { rangeWords } from "#core/time-range";
import {
  type ChartHistory,
  chartValueText,
  type HistoryChart,
  type HistorySeries,
  rangeOf,
} from "../web/chart-history.ts";
import type { CsvTable } from "../web/html.ts";
import type { Column, Document, Fact, Node, Table } from "./operation.ts";
import { csvCell, isOnlyLinks, plainText, shellWord, textCell, textOf } from "./words.ts";

/** Maximum width of a line of prose, however wide the terminal is. */
const mostColumns = 100;

/** Maximum number of characters of a line that replaces a picture. */
const mostInLine = 500;

/** Maximum number of characters of a line that people copy. In practice it is never cut. */
const mostInCode = 10_000;

const mostInProse = 2000;

interface TextPaper extends Paper {
  /** Whether charts are wanted, because the question named a range of time. */
  readonly withHistory?: boolean;
}

export function documentText({ nodes }: Document, { withHistory = false, ...paper }: TextPaper): string {
  return nodesText(nodes, { withHistory, ...paper });
}

const nodesText = (nodes: readonly Node[], paper: TextPaper) =>
  nodes
    .map((node) => nodeText(node, paper))
    .filter((text) => text !== "")
    .join("\n\n");

function nodeText(node: Node, paper: TextPaper): string {
  switch (node.type) {
    case "words":
      // Hints on reading a page or its buttons are useless on a terminal.
      if (node.kind === "note") return "";
      return wrapped(
        `${node.kind === "warning" ? "WARNING: " : ""}${textOf(node.words, undefined, mostInProse)}`,
        paper,
      );
    case "facts":
      return factsText(node.facts, paper);
    case "tiles":
      return factsText(
        node.tiles.map((one) => {
          const more = one ? textOf(one[2] ?? "") : "";
          return one && [one[0], `${textOf(one[1])}${more === "–" || more === "" ? "" : `  ${more}`}`];
        }),
        paper,
      );
    case "table":
      return rowsText(node, paper);
    case "list":
      // The shares are in one line, as on pages.
      if (node.kind === "shares") return wrapped(node.items.map((one) => textOf(one)).join(", "), paper);
      return node.items.map((one) => wrapped(`· ${textOf(one)}`, paper, "  ")).join("\n");
    case "section": {
      const parts = node.nodes.map((one) => nodeText(one, paper)).filter((text) => text !== "");
      const title = node.title === "" ? [] : [painted("strong", wrapped(textOf(node.title), paper), paper)];
      return parts.length === 0 ? "" : [...title, ...parts].join("\n");
    }
    case "group":
      return nodesText(node.nodes, paper);
    case "empty": {
      const then = node.then instanceof Date || isOnlyLinks(node.then) ? "" : plainText(node.then);
      return wrapped(`${node.what} ${then}`.trim(), paper);
    }
    case "history":
      return paper.withHistory ? historyText(node.history, paper) : "";
    case "code":
      return node.text
        .split("\n")
        .map((line) => printable(line, mostInCode))
        .join("\n");
    case "picture":
      if (typeof node.otherwise === "object") return nodeText(node.otherwise, paper);
      return linesOf(typeof node.otherwise === "string" ? node.otherwise : node.otherwise(), paper);
    case "pager":
      return node.more ? `There are more: page ${node.page + 1} has them.` : "";
    case "onward":
      return node.next === null
        ? ""
        : `${node.words.replace(/ ?[←→] ?/g, "")}: --${node.option ?? node.name ?? "after"} ${shellWord(printable(String(node.next), mostInCode))}`;
    case "actions":
    case "form":
    case "filters":
    case "tabs":
      return "";
  }
}

const linesOf = (text: string, paper: Paper) =>
  text
    .split("\n")
    .map((line) => wrapped(printable(line, mostInLine), paper, "   "))
    .join("\n");

function factsText(facts: readonly Fact[], paper: Paper): string {
  const all = facts.flatMap((one) => (one ? [[one[0], textOf(one[1])] as const] : []));
  const width = Math.max(0, ...all.map(([name]) => name.length)) + 2;
  return all
    .map(([name, value]) => wrapped(`${name.padEnd(width)}${value}`, paper, " ".repeat(width)))
    .join("\n");
}

function rowsText<Row>({ columns: all, rows, empty }: Table<Row>, paper: Paper): string {
  if (rows.length === 0) return empty?.[0] ?? "None.";
  const shown = all.filter(({ title, isPicture }) => title !== null && !isPicture);
  const heads = shown.map(({ title, unit, kind }) => {
    const isNumber = unit !== undefined || kind === "number";
    return { title: title!.toLowerCase(), ...(isNumber ? { align: "right" as const } : {}) };
  });
  const cells = rows.map((row) => shown.map((column) => textCell(column, row)));
  const text = tableText(heads, cells, paper);
  if (paper.width === null || text.indexOf("\n") <= paper.width) return text;
  // Rows that do not fit one line even when cut become several lines each.
  const inLines = (row: readonly string[]) =>
    factsText(
      heads.map(({ title }, at) => [title, row[at]]),
      paper,
    );
  return cells.map(inLines).join("\n\n");
}

/** Wraps at spaces. A word longer than a line stays whole. If there is no width (pipe or file), nothing is wrapped. */
function wrapped(text: string, { width }: Paper, indent = ""): string {
  if (width === null) return text;
  const lines = [""];
  for (const word of text.split(/(?<=\S) (?=\S)/)) {
    const line = lines.at(-1)!;
    if (line === "") lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= Math.min(width, mostColumns))
      lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(indent + word);
  }
  return lines.join("\n");
}

/** Returns null when the document has no table with columns for programs. */
export function documentCsv({ nodes, csv }: Document): (() => CsvTable) | null {
  const found = csv ?? tablesIn(nodes).find((one) => one.columns.some(({ key }) => key !== ""));
  if (found === undefined) return null;
  const shown = found.columns.filter(({ key }) => key !== "") as readonly Column<unknown>[];
  const rowOf = (row: unknown) => shown.map((column) => csvCell(column, row));
  // A page only needs to know that the table exists, so the rows are made when they are needed.
  return () => ({ columns: shown.map(({ key }) => key), rows: found.rows.map(rowOf) });
}

/** False if all tables and lists are empty, or the document only says that there is nothing. */
export function hasRows({ nodes: all }: Document): boolean {
  const nodes = asText(all);
  const tables = tablesIn(nodes);
  // An object with facts exists, even if its lists are empty.
  if (nodes.some(({ type }) => type === "facts")) return true;
  if (tables.length > 0) return tables.some(({ rows }) => rows.length > 0) || hasList(nodes);
  const matter = nodes.filter(({ type }) => !beside.includes(type));
  return matter.length === 0 || matter.some(({ type }) => type !== "empty");
}

const hasList = (nodes: readonly Node[]): boolean =>
  nodes.some((node) =>
    node.type === "section" ? hasList(node.nodes) : node.type === "list" && node.items.length > 0,
  );

const beside: readonly Node["type"][] = ["words", "form", "filters", "actions", "pager"];

// biome-ignore lint/suspicious/noExplicitAny: a row's type is its columns' alone.
function tablesIn(nodes: readonly Node[]): readonly Table<any>[] {
  return asText(nodes).flatMap((node) => {
    if (node.type === "section") return tablesIn(node.nodes);
    return node.type === "table" ? [node] : [];
  });
}

/** Returns the nodes that a terminal shows, including nested ones and replacements of pictures. */
function asText(nodes: readonly Node[]): readonly Node[] {
  return nodes.flatMap((node) => {
    if (node.type === "group") return asText(node.nodes);
    if (node.type !== "picture") return [node];
    if (typeof node.otherwise === "object") return asText([node.otherwise]);
    return node.otherwise === "" ? [] : [node];
  });
}

// The third output beside HTML and JSON: a client that accepts text/plain, as commands do, gets terminal text. `text/plain;
// width=80; colours=1; history=1` states the table width and asks for colours and charts.

/** Marks an answer that found nothing. A command then ends with exit code 3. */
export const emptyHeader = "nearcrawl-empty";

const widths = { least: 40, most: 1000 };

/** Returns an Accept header. With `part`, it asks only for the section with this id. */
export function acceptOf(form: TextPaper | "text/csv" | "application/json", part?: string): string {
  const parameters = (paper: TextPaper) => [
    ...(paper.width === null ? [] : [`width=${paper.width}`]),
    ...(paper.colours ? ["colours=1"] : []),
    ...(paper.withHistory ? ["history=1"] : []),
  ];
  const named = typeof form === "string" ? [form] : ["text/plain", ...parameters(form)];
  return [...named, ...(part === undefined ? [] : [`part=${part}`])].join("; ");
}

/** Returns the requested section, or the whole document if none is requested or found. */
export function partOf(document: Document, { headers }: FastifyRequest): Document {
  const [, part] = /;\s*part=([\w-]+)/.exec(headers.accept ?? "") ?? [];
  if (part === undefined) return document;
  const { csv: _, ...rest } = document;
  const nodes = asText(document.nodes).filter((one) => one.type === "section" && one.id === part);
  return nodes.length === 0 ? document : { ...rest, nodes };
}

/** Returns null if the request does not ask for text. */
export function paperOf({ headers }: FastifyRequest): TextPaper | null {
  const accept = headers.accept ?? "";
  if (!/^text\/plain\b/.test(accept)) return null;
  const [, digits] = /;\s*width=(\d{1,4})\b/.exec(accept) ?? [];
  const width = digits === undefined ? null : Math.min(widths.most, Math.max(widths.least, Number(digits)));
  const isAsked = (name: string) => new RegExp(`;\\s*${name}=1\\b`).test(accept);
  return { width, colours: isAsked("colours"), withHistory: isAsked("history") };
}

interface Told {
  readonly document: Document | undefined;
  /** The sentence that says what was done. */
  readonly said?: string | undefined;
}

export function sendText(reply: FastifyReply, paper: TextPaper, { document, said = "" }: Told): FastifyReply {
  const text = document === undefined ? "" : documentText(document, paper);
  const parts = [said, text].filter((one) => one !== "");
  return reply.type("text/plain; charset=utf-8").send(`${parts.join("\n")}\n`);
}

// The output of `--range`: a line of characters for the history of each figure, which pages draw as a chart.

export function historyText(history: ChartHistory, paper: Paper): string {
  const lines = history.charts.flatMap((chart) => chartLines(chart, paper));
  const marks = history.marks.map(
    ({ at, words }) => `  ${at.slice(0, 16).replace("T", " ")}  ${printable(words, 120)}`,
  );
  const more = history.moreMarks > 0 ? [`  ${history.moreMarks} more`] : [];
  const changes =
    marks.length === 0 ? [] : ["", painted("strong", "What changed (UTC)", paper), ...marks, ...more];
  return [painted("strong", `History of ${rangeWords(rangeOf(history))}`, paper), ...lines, ...changes].join(
    "\n",
  );
}

function chartLines({ title, unit, series, whenEmpty }: HistoryChart, paper: Paper): string[] {
  const known = series.filter(({ values }) => values.some((value) => value !== null));
  if (known.length === 0) return [`${title}: ${painted("soft", whenEmpty, paper)}`];
  const names = Math.max(...known.map(({ name }) => name.length));
  return [
    title,
    ...known.map(
      (line) => `  ${line.name.padEnd(names)}  ${barLine(narrowed(line))}  ${figures(line, unit)}`,
    ),
  ];
}

function figures({ values }: HistorySeries, unit: HistoryChart["unit"]): string {
  const known = values.filter((value) => value !== null);
  const last = chartValueText(unit, known.at(-1)!);
  return `last ${last}, highest ${chartValueText(
    unit,
    known.reduce((one, other) => Math.max(one, other)),
  )}`;
}

/** Maximum number of bars, which leaves room for name and figures on a terminal of 80 columns. */
const mostBars = 40;

/** Averages neighbours if there are too many values. The average is null if none is known. */
function narrowed({ values }: HistorySeries): (number | null)[] {
  const each = Math.ceil(values.length / mostBars);
  return Array.from({ length: Math.ceil(values.length / each) }, (_, index) => {
    const known = values.slice(index * each, (index + 1) * each).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
  });
}

const heights = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

const unknown = "·";

/** Draws values in eight heights, and an unknown value as a dot. */
function barLine(values: readonly (number | null)[]): string {
  const most = Math.max(...values.map((value) => value ?? 0), Number.MIN_VALUE);
  return values
    .map((value) => {
      if (value === null) return unknown;
      return heights[Math.max(0, Math.min(heights.length - 1, Math.floor((value / most) * heights.length)))];
    })
    .join("");
}
