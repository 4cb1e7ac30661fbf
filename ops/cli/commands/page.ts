/** `nearcrawl page`: what the index has of one page. */
import { Command } from "commander";
import { kindWords } from "#coordinator/changes/page-change";
import { differenceText } from "#coordinator/changes/text-difference";
import {
  type Listed,
  maxListOffset,
  type PageAnswer,
  type PageFacts,
  pageFacts,
} from "#coordinator/search/page-facts";
import { createReports } from "#coordinator/who/reads";
import { UsageError } from "#core/errors";
import { bytesText, msText } from "#core/format";
import { boundedInteger } from "../bounded-number.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Column, formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import { statedLines } from "../stated-text.ts";

interface PageCommandOptions extends DatabaseOptions {
  readonly fetches: number;
  readonly in: number;
  readonly out: number;
}

export function pageCommand(): Command {
  const offset = boundedInteger(0, maxListOffset);
  const command = new Command("page")
    .description("what the index has of a page: facts, fetches, links from and to it")
    .argument("<url>", "its address")
    .option("--fetches <n>", "leave out the latest N fetches", offset, 0)
    .option("--in <n>", "leave out the first N links to it", offset, 0)
    .option("--out <n>", "leave out the first N links on it", offset, 0);
  return withDatabaseOptions(command)
    .addHelpText(
      "after",
      "\nExample:\n  nearcrawl page https://www.example.org/\n\nExit code 3 when the index has no such page, or it must not be shown.",
    )
    .action(async (url: string, options: PageCommandOptions) => await showPage(url, options));
}

async function showPage(url: string, options: PageCommandOptions): Promise<void> {
  const offsets = { fetches: options.fetches, inLinks: options.in, outLinks: options.out };
  const answer = await readDatabase(commandContext(options), async ({ pool }) => {
    const reads = createReports(pool, () => performance.now());
    return await pageFacts(reads, { url, hostHash: "", urlHash: "" }, offsets);
  });
  if (typeof answer === "string") throw new UsageError(answer);
  printAnswer(options, answer, pageText(answer));
  if (!answer.found) process.exitCode = exitCodes.notFound;
}

// What the index has of a page, as people read it in a terminal.

function pageText({ page, words, stated }: PageAnswer): string {
  if (page === null) return [words ?? "", ...statedLines(stated)].join("\n");
  return [
    `${printable(page.title || "(no title)", 200)}\n${printable(page.url, 2100)}`,
    factLines(page),
    ...(page.description === "" ? [] : [printable(page.description, 500)]),
    ...(page.excerpt === "" ? [] : [printable(`${page.excerpt} …`, 700)]),
    ...(page.stated === null ? [] : [statedLines(page.stated).join("\n")]),
    ...(page.changes.length === 0 ? [] : [changeLines(page)]),
    list("Fetches", page.fetches, fetchColumns, fetchRows(page)),
    list(
      "Links to this page",
      page.inLinks,
      linkColumns("From"),
      page.inLinks.items.map((link) => [link.url, link.anchor, follow(link), ""]),
    ),
    list(
      "Links on this page",
      page.outLinks,
      linkColumns("To"),
      page.outLinks.items.map((link) => [
        link.url ?? "(address not kept)",
        link.anchor,
        follow(link),
        link.state,
      ]),
    ),
    ...(page.alike.items.length === 0 ? [] : [alike(page)]),
  ].join("\n\n");
}

function factLines(page: PageFacts): string {
  const facts: readonly (readonly [string, string | null])[] = [
    ["language", page.language],
    ["published", page.publishedAt],
    ["changed", page.modifiedAt],
    ["fetched", `${page.fetchedAt}${page.crawler === null ? "" : ` by ${page.crawler}`}`],
    ["next fetch", page.nextFetchAt],
    ["country", page.country],
    [
      "text",
      `${page.words} words, ${page.lexemes} distinct terms${page.needsScripts ? " (empty without scripts)" : ""}`,
    ],
    [
      "size",
      `${bytesText(page.bodyBytes)}, ${bytesText(page.wireBytes)} over the wire, ${bytesText(page.shippedBytes)} shipped`,
    ],
    ["linked by", `${page.linkingHosts} other ${page.linkingHosts === 1 ? "host" : "hosts"}`],
    ["describes", page.structured && `${page.structured.type} ${page.structured.name}`],
    ["own address", page.canonicalUrl],
    ["robots.txt", page.robots && `${page.robots.state}, ${page.robots.at}`],
    ["etag", page.validators.etag],
    ["last-modified", page.validators.lastModified],
    ["sha-256", page.digest],
    ["simhash", page.simhash],
  ];
  return facts
    .flatMap(([name, value]) => (value === null ? [] : [`${name.padEnd(14)}${printable(value, 300)}`]))
    .join("\n");
}

/** Where the text differs as wdiff writes it. */
function changeLines({ changes }: PageFacts): string {
  const lines = changes.flatMap(({ seenAt, kind, words, difference }) => [
    `  ${seenAt}  ${kindWords[kind]}: ${printable(words, 300)}`,
    ...(difference === null ? [] : [`    ${printable(differenceText(difference), 600)}`]),
  ]);
  return ["What changed", ...lines].join("\n");
}

const fetchColumns: readonly Column[] = [
  { title: "When" },
  { title: "By" },
  { title: "Outcome" },
  { title: "First byte", align: "right" },
  { title: "All", align: "right" },
  { title: "Body", align: "right" },
];

function fetchRows({ fetches }: PageFacts): string[][] {
  return fetches.items.map((fetch) => [
    fetch.fetchedAt,
    fetch.crawler ?? "gone",
    [fetch.outcome, fetch.status, fetch.blame && `blame ${fetch.blame}`]
      .filter((one) => one !== null)
      .join(" "),
    fetch.firstByteMs === null ? "–" : msText(fetch.firstByteMs),
    msText(fetch.totalMs),
    bytesText(fetch.bodyBytes),
  ]);
}

const linkColumns = (where: string): readonly Column[] => [
  { title: where },
  { title: "Words" },
  { title: "Follows" },
  { title: "State" },
];

function follow({ nofollow }: { readonly nofollow: boolean }): string {
  return nofollow ? "no" : "yes";
}

function list<T>(
  title: string,
  listed: Listed<T>,
  columns: readonly Column[],
  rows: readonly string[][],
): string {
  const count = `${listed.more ? "more than " : ""}${listed.total}`;
  if (rows.length === 0) return `${title}: ${listed.total === 0 ? "none" : "none of these may be shown"}`;
  const shown =
    rows.length < listed.total ? `${listed.offset + 1} to ${listed.offset + rows.length} of ${count}` : count;
  return `${title}: ${shown}\n${formatTable(
    columns,
    rows.map((row) => row.map((cell) => printable(cell, 120))),
  )}`;
}

function alike({ alike: { items, more } }: PageFacts): string {
  const lines = items.map((page) => `  ${printable(page.url, 300)}${page.isFirst ? " (had it first)" : ""}`);
  return ["Pages with nearly the same text:", ...lines, ...(more ? ["  and more"] : [])].join("\n");
}
