/** Renders a document as text for a terminal, and its first table as CSV. */
import { type Paper, painted, printable, tableText } from "#core/terminal-text";
import type { CsvTable } from "../web/html.ts";
import { historyText } from "./history-text.ts";
import type { Column, Document, Fact, Node, Table } from "./operation.ts";
import { csvCell, isOnlyLinks, plainText, shellWord, textCell, textOf } from "./words.ts";

/** The widest line of prose, in columns, however wide the terminal is. */
const mostColumns = 100;

/** The most characters of a line that replaces a picture. */
const mostInLine = 500;

/** The most characters of a line that people copy; in practice it is never cut. */
const mostInCode = 10_000;

const mostInProse = 2000;

export interface TextPaper extends Paper {
  /** Charts are wanted, because the question named a range of time. */
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
      // Pages also show them side by side.
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

/** Wraps at spaces. A word longer than a line stays whole. Without a width (pipe or file) nothing is wrapped. */
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
  // A page only needs to know that the table exists; the rows are made on demand.
  return () => ({ columns: shown.map(({ key }) => key), rows: found.rows.map(rowOf) });
}

/** False when all tables and lists are empty, or the document only says that there is nothing. */
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

// biome-ignore lint/suspicious/noExplicitAny: of whatever rows.
function tablesIn(nodes: readonly Node[]): readonly Table<any>[] {
  return asText(nodes).flatMap((node) => {
    if (node.type === "section") return tablesIn(node.nodes);
    return node.type === "table" ? [node] : [];
  });
}

/** Returns the nodes that a terminal shows, including nested ones and replacements of pictures. */
export function asText(nodes: readonly Node[]): readonly Node[] {
  return nodes.flatMap((node) => {
    if (node.type === "group") return asText(node.nodes);
    if (node.type !== "picture") return [node];
    if (typeof node.otherwise === "object") return asText([node.otherwise]);
    return node.otherwise === "" ? [] : [node];
  });
}
