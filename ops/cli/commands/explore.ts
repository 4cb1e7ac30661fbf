/** `nearcrawl explore`: who crawls what in the whole address space, as a tree, a list, or by country. */

import { join } from "node:path";
import { Command, Option } from "commander";
import {
  type ExplorePorts,
  type ExploreQuestion,
  isEmptyFilter,
  mostInFile,
  readQuestion,
  showExplore,
  subnetsAsCsv,
} from "#coordinator/explore/answer";
import {
  type CountriesAnswer,
  type ExploreAnswer,
  type ExploredSubnet,
  type ListAnswer,
  mostLimit,
  subnetStates,
  type TreeAnswer,
} from "#coordinator/explore/explore-api";
import { Explorer } from "#coordinator/explore/explorer";
import { createExploreReads } from "#coordinator/explore/reads";
import { medianText, removedCrawler, shareWords } from "#coordinator/explore/shares";
import { systemClock } from "#coordinator/explore/start";
import { readState } from "#coordinator/load-state";
import { registries } from "#coordinator/subnets/subnet";
import { createTreeSnapshots } from "#coordinator/subnets/tree-snapshot-store";
import { UsageError } from "#core/errors";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface ExploreOptions extends DatabaseOptions {
  readonly tree?: boolean;
  readonly list?: boolean;
  readonly csv?: boolean;
  readonly countries?: boolean;
  /** The filters and the rest, by the names that the page's address has. */
  readonly [name: string]: unknown;
}

/** The coordinator's default; loads are a guide here. */
const recrawlDays = 1;

export function exploreCommand(): Command {
  const command = new Command("explore")
    .description("who crawls what: the address space as a tree or a list, or by country")
    .argument("[place]", "an address, a block, a range, ipv4 or ipv6", "ipv4")
    .option("--tree", "a subnet, what holds it and what is directly within it (the default without a filter)")
    .option("--list", "the subnets within (the default with a filter)")
    .option("--countries", "each country's subnets: who crawls them, and from how far")
    .option("--crawler <name>", "only what this crawler has")
    .addOption(new Option("--state <state>", "only subnets like this").choices([...subnetStates]))
    .addOption(new Option("--registry <name>", "only of this registry").choices([...registries]))
    .option("--country <code>", "only of this country, such as CY")
    .option("--holder <name>", "only of this holder: its handle or its name in full")
    .option("--min-rtt-ms <ms>", "only with at least this round-trip time")
    .option("--min-load <pages>", "only with at least this many pages per day")
    .option("--sort <order>", "address, load; a list also rtt", "address")
    .option("--limit <n>", `subnets at most, up to ${mostLimit}`, "50")
    .option("--after <range>", "go on behind this one")
    .option("--csv", `the whole list as CSV, up to ${mostInFile} subnets`);
  return withDatabaseOptions(command)
    .addHelpText(
      "after",
      `
Read from the database: of ten million subnets that takes half a minute, and a few seconds where a coordinator keeps its tree in the same --home.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no subnet matches.

Examples:
  nearcrawl explore 192.0.2.0/24
  nearcrawl explore --state waiting
  nearcrawl explore ipv6 --crawler athens --csv > athens.csv
  nearcrawl explore --countries`,
    )
    .action(async (place: string, options: ExploreOptions) => await explore(place, options));
}

async function explore(place: string, options: ExploreOptions): Promise<void> {
  const question = readOptions(place, options);
  const context = commandContext(options);
  const found = await readDatabase(context, async (database) => {
    const ports = await explorePorts(database, join(context.home, "snapshots"));
    return options.csv ? await printCsv(ports, question) : await print(ports, question, options);
  });
  if (!found) process.exitCode = exitCodes.notFound;
}

/** The options have the names of the page's address. */
function readOptions(place: string, options: ExploreOptions): ExploreQuestion {
  const chosen = (["tree", "list", "countries"] as const).filter((view) => options[view] === true);
  if (chosen.length > 1) throw new UsageError(`--${chosen.join(" and --")} exclude each other`);
  const question = readQuestion((name) => String((name === "at" ? place : options[name]) ?? ""));
  if (typeof question === "string") throw new UsageError(question);
  const usual = options.csv || !isEmptyFilter(question.filter) ? "list" : "tree";
  return { ...question, view: chosen[0] ?? usual };
}

async function explorePorts(database: Database, folder: string): Promise<ExplorePorts> {
  const { schema } = database;
  const snapshots = createTreeSnapshots({ folder, schema, log: silentLog });
  // A coordinator's snapshot is read, and none is written beside it.
  const state = await readState(database, { read: snapshots.read, keep: () => {} });
  const reads = createExploreReads(database.pool);
  const clock = systemClock;
  const explorer = new Explorer({
    state,
    reads,
    clock,
    recrawlDays: () => recrawlDays,
    onFault: () => {},
  });
  return { explorer, state, reads, clock };
}

/** False: nothing was found. */
async function printCsv(ports: ExplorePorts, question: ExploreQuestion): Promise<boolean> {
  let pieces = 0;
  for await (const text of subnetsAsCsv(ports, await ports.explorer.world(), question)) {
    pieces += 1;
    if (!process.stdout.write(text)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  }
  return pieces > 1;
}

/** False: nothing was found. */
async function print(
  ports: ExplorePorts,
  question: ExploreQuestion,
  options: ExploreOptions,
): Promise<boolean> {
  const answer = await showExplore(ports, await ports.explorer.world(), question);
  const shown = answer.view === "countries" ? onlyOf(answer, question.filter.country) : answer;
  printAnswer(options, shown, textOf(shown));
  if (shown.view === "tree") return shown.subnet !== null || shown.children.length > 0;
  return shown.view === "list"
    ? shown.subnets.length > 0
    : shown.view === "map" || shown.countries.length > 0;
}

function textOf(answer: ExploreAnswer): string {
  if (answer.view === "countries") return countriesText(answer);
  return answer.view === "tree" ? treeText(answer) : answer.view === "list" ? listText(answer) : "";
}

const onlyOf = (answer: CountriesAnswer, wanted: string | undefined): CountriesAnswer => ({
  ...answer,
  countries: answer.countries.filter(({ country }) => wanted === undefined || country === wanted),
});

// The explorer's answers as a terminal shows them.

function countriesText({ countries, totals }: CountriesAnswer): string {
  if (countries.length === 0) return "No country has subnets.";
  const table = formatTable(
    [
      { title: "country" },
      { title: "" },
      { title: "subnets", align: "right" },
      { title: "crawled", align: "right" },
      { title: "median RTT", align: "right" },
      { title: "measured", align: "right" },
      { title: "by" },
    ],
    countries.map((line) => [
      line.country ?? "–",
      line.name,
      String(line.subnets),
      String(line.crawled),
      medianText(line),
      String(line.measured),
      printable(shareWords(line.crawledBy.filter(({ kind }) => kind !== "none"))) || "nobody",
    ]),
  );
  return `${table}\n\n${totals.countries} countries, ${totals.subnets} subnets, ${totals.crawled} of them crawled.`;
}

function listText(answer: ListAnswer): string {
  if (answer.subnets.length === 0) return `No subnet of ${answer.at} matches.`;
  const more = answer.next === null ? "" : `\nMore: --after "${answer.next}"`;
  const count = answer.isWholeCount ? `${answer.count}` : `more than ${answer.count}`;
  return `${subnetTable(answer.subnets)}\n\n${count} in ${answer.at}.${more}`;
}

function treeText(answer: TreeAnswer): string {
  const way = [...answer.above, ...(answer.subnet === null ? [] : [answer.subnet])];
  const lines = way.map((subnet, depth) => `${"  ".repeat(depth)}${depth > 0 ? "└ " : ""}${wayLine(subnet)}`);
  const family = answer.family === 4 ? "IPv4" : "IPv6";
  if (answer.children.length === 0)
    return [...lines, way.length === 0 ? `Nothing is registered in ${family}.` : "Nothing within it."].join(
      "\n",
    );
  const more = answer.next === null ? [] : [`More: --after "${answer.next}"`];
  const title = `${answer.childCount} directly within ${answer.subnet?.range ?? family}:`;
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
      { title: "pages per day", align: "right" },
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
  if (subnet.state === "none") return subnet.waiting ? "due, nobody yet" : "nobody";
  const marks = [subnet.state === "inherited" ? "inherited" : "", subnet.anycast ? "anycast" : ""];
  const words = [...marks, subnet.finer ? "overrides" : ""].filter((mark) => mark !== "");
  return `${subnet.crawler ?? removedCrawler}${words.length === 0 ? "" : ` (${words.join(", ")})`}`;
}
