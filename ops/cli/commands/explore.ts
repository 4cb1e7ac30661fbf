/** `nearcrawl explore`: who crawls what in the whole address space, as a tree, a list or a small map. */

import { join } from "node:path";
import { Command, Option } from "commander";
import {
  askedCells,
  defaultLimit,
  type ExplorePorts,
  type ExploreQuestion,
  everySubnet,
  type ListAnswer,
  mostLimit,
  readQuestion,
  showExplore,
  type TreeAnswer,
  type WholeAnswer,
} from "#coordinator/explore/answer";
import { colourings } from "#coordinator/explore/colours";
import {
  type CountryLine,
  type CountryMapAnswer,
  rttWords,
  showCountries,
} from "#coordinator/explore/country-map";
import { defaultExplorerSettings, type ExploredMap, Explorer } from "#coordinator/explore/explorer";
import { subnetStates } from "#coordinator/explore/filter";
import { createExploreReads } from "#coordinator/explore/reads";
import { systemClock } from "#coordinator/explore/start";
import { subnetsAsCsv } from "#coordinator/explore/subnet-export";
import { type CoarseCell, coarseMap, type ExploredSubnet } from "#coordinator/explore/subnet-view";
import { removedCrawler, shareWords } from "#coordinator/explore/summary";
import { readState } from "#coordinator/load-state";
import { registries } from "#coordinator/subnets/subnet";
import { createTreeSnapshots } from "#coordinator/subnets/tree-snapshot-store";
import { worldMap } from "#coordinator/web/world-map";
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
  readonly map?: boolean;
  readonly csv?: boolean;
  readonly countries?: boolean;
  /** The filters and the rest, by the names that the page's address has. */
  readonly [name: string]: unknown;
}

const mostInFile = 1_000_000;

/** The coordinator's default; loads are a guide here. */
const recrawlDays = 1;

/** A map of 32 by 32 cells. */
const mapOrder = 5;

export function exploreCommand(): Command {
  const command = new Command("explore")
    .description("who crawls what: the address space as a tree, a list or a small map, or by country")
    .argument("[place]", "an address, a block, a range, ipv4 or ipv6", "ipv4")
    .option("--tree", "a subnet, what holds it and what is directly within it (the default without a filter)")
    .option("--list", "the subnets within (the default with a filter)")
    .option("--map", "the place along a Hilbert curve")
    .option("--countries", "each country's subnets: who crawls them, and from how far")
    .addOption(new Option("--colour <value>", "what --map shows").choices([...colourings]).default("crawler"))
    .option("--crawler <name>", "only what this crawler has")
    .addOption(new Option("--state <state>", "only subnets like this").choices([...subnetStates]))
    .addOption(new Option("--registry <name>", "only of this registry").choices([...registries]))
    .option("--country <code>", "only of this country, such as CY")
    .option("--holder <name>", "only of this holder: its handle or its name in full")
    .option("--min-rtt-ms <ms>", "only with at least this round-trip time")
    .option("--max-rtt-ms <ms>", "only with at most this round-trip time")
    .option("--min-load <pages>", "only with at least this many pages per day")
    .option("--older-than-days <days>", "only what was decided longer ago")
    .option("--min-prefix <length>", "only blocks of this prefix length or longer")
    .option("--max-prefix <length>", "only blocks of this prefix length or shorter")
    .option("--sort <order>", "address, size, load; a list also rtt, age", "address")
    .option("--limit <n>", `subnets at most, up to ${mostLimit}`, String(defaultLimit))
    .option("--after <range>", "go on behind this one")
    .option("--csv", `the whole list as CSV, up to ${mostInFile} subnets`);
  return withDatabaseOptions(command)
    .addHelpText(
      "after",
      "\nRead from the database: of ten million subnets that takes half a minute, and a few seconds where a coordinator keeps its tree in the same --home.\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 no subnet matches.\n\nExamples:\n  nearcrawl explore 192.0.2.0/24\n  nearcrawl explore --state waiting\n  nearcrawl explore ipv6 --crawler athens --csv > athens.csv\n  nearcrawl explore 80.0.0.0/4 --map --colour rtt\n  nearcrawl explore --countries",
    )
    .action(async (place: string, options: ExploreOptions) => await explore(place, options));
}

async function explore(place: string, options: ExploreOptions): Promise<void> {
  const question = readQuestion((name) => givenIn(place, options, name));
  if (typeof question === "string") throw new UsageError(question);
  const context = commandContext(options);
  const found = await readDatabase(context, async (database) => {
    const folder = join(context.home, "snapshots");
    const { ports, map } = await readMap(database, folder);
    if (options.countries) return await printCountries(ports, map, options);
    return options.csv
      ? await printCsv(ports, map, question)
      : await print(ports, map, { question, options });
  });
  if (!found) process.exitCode = exitCodes.notFound;
}

/** What the page's address would say. */
function givenIn(place: string, options: ExploreOptions, name: string): string {
  if (name === "at") return place;
  if (name === "view") return chosenView(options) === "countries" ? "map" : chosenView(options);
  if (name === "layout") return "whole";
  const value = options[name];
  return typeof value === "string" ? value : "";
}

const narrowing = [
  "crawler",
  "state",
  "registry",
  "country",
  "holder",
  "minRttMs",
  "maxRttMs",
  "minLoad",
  "olderThanDays",
  "minPrefix",
  "maxPrefix",
];

function chosenView(options: ExploreOptions): string {
  const chosen = (["tree", "list", "map", "countries"] as const).filter((view) => options[view] === true);
  if (chosen.length > 1) throw new UsageError(`--${chosen.join(" and --")} exclude each other`);
  return (
    chosen[0] ?? (options.csv || narrowing.some((name) => options[name] !== undefined) ? "list" : "tree")
  );
}

/** Reads everything; rejects with what the explorer met. */
async function readMap(
  database: Database,
  folder: string,
): Promise<{ readonly ports: ExplorePorts; readonly map: ExploredMap }> {
  const { schema } = database;
  const snapshots = createTreeSnapshots({ folder, schema, log: silentLog });
  // A coordinator's snapshot is read, and none is written beside it.
  const state = await readState(database, { read: snapshots.read, keep: () => {} });
  const reads = createExploreReads(database.pool);
  const settings = { ...defaultExplorerSettings, mostTiles: 0, recrawlDays };
  let fault: unknown = new Error("the explorer has read nothing");
  const onFault = (error: unknown) => {
    fault = error;
  };
  const explorer = new Explorer({ state, reads, clock: systemClock, onFault }, settings);
  await explorer.settled();
  if (explorer.map === null) throw fault;
  await explorer.stop();
  return { ports: { explorer, state, reads, clock: systemClock }, map: explorer.map };
}

async function printCsv(ports: ExplorePorts, map: ExploredMap, question: ExploreQuestion): Promise<boolean> {
  const subnets = everySubnet(ports, map, { ...question, most: mostInFile + 1 });
  let pieces = 0;
  for await (const text of subnetsAsCsv(subnets, mostInFile)) {
    pieces += 1;
    if (!process.stdout.write(text)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  }
  return pieces > 1;
}

/** False: nothing was found. */
async function print(
  ports: ExplorePorts,
  map: ExploredMap,
  { question, options }: { readonly question: ExploreQuestion; readonly options: ExploreOptions },
): Promise<boolean> {
  const answer = await showExplore(ports, map, question);
  if (answer.view === "map") {
    const cells = await askedCells(ports, map, question);
    const names = new Map(ports.state.crawlers.map(({ crawlerId, name }) => [crawlerId, name]));
    const rows = coarseMap(map.world, {
      ...{ tile: question.tile, cells, order: mapOrder },
      paint: { colouring: question.colouring, nowSeconds: Date.now() / 1000 },
      crawlerName: (crawlerId) => names.get(crawlerId) ?? null,
    });
    printAnswer(options, answer, mapText(answer as WholeAnswer, rows));
    return answer.totals.subnets > 0;
  }
  printAnswer(options, answer, answer.view === "tree" ? treeText(answer) : listText(answer));
  return answer.view === "tree"
    ? answer.subnet !== null || answer.children.length > 0
    : answer.subnets.length > 0;
}

async function printCountries(
  ports: ExplorePorts,
  map: ExploredMap,
  options: ExploreOptions,
): Promise<boolean> {
  const world = await worldMap(async () => {});
  const hasOutline = (country: string) => world.countries.has(country);
  const picked = typeof options.country === "string" ? options.country.toUpperCase() : null;
  const answer = await showCountries({ ...ports, hasOutline }, map, picked);
  const shown =
    picked === null ? answer.countries : answer.countries.filter(({ country }) => country === picked);
  printAnswer(options, answer, countriesText(answer, shown));
  return shown.length > 0;
}

// The explorer's answers as a terminal shows them.

function countriesText(answer: CountryMapAnswer, countries: readonly CountryLine[]): string {
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
      rttWords(line),
      String(line.measured),
      printable(shareWords(line.crawledBy.filter(({ kind }) => kind !== "none"))) || "nobody",
    ]),
  );
  const unplaced = answer.crawlers.filter(({ placedBy }) => placedBy === "nothing");
  const { totals } = answer;
  const end = `${totals.countries} countries, ${totals.subnets} subnets, ${totals.crawled} of them crawled.`;
  const missing = unplaced.map(({ name }) => printable(name)).join(", ");
  return `${table}\n\n${end}${unplaced.length === 0 ? "" : `\nWithout coordinates or country: ${missing}`}`;
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
  const count = answer.childCount === null ? "many" : String(answer.childCount);
  const more = answer.next === null ? [] : [`More: --after "${answer.next}"`];
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

const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;

/** Each value has a letter, those that occur most often first; two characters a cell, so that blocks are square. */
function mapText(answer: WholeAnswer, rows: readonly (readonly CoarseCell[])[]): string {
  const values = answer.legend.filter(({ kind }) => kind === "value");
  const order = values.map(({ label }) => label);
  const signOf = (label: string) => signs[order.indexOf(label)] ?? "#";
  const drawn = rows.map((row) =>
    row.map((cell) => (cell === null ? "  " : cell === "" ? "··" : signOf(cell).repeat(2))).join(""),
  );
  const edge = "─".repeat(drawn[0]?.length ?? 0);
  const legend = answer.legend.map(({ kind, label, subnets, share }) => {
    const sign = kind === "value" ? signOf(label) : kind === "none" ? "·" : "#";
    return `  ${sign}  ${printable(label)}: ${subnets} ${subnets === 1 ? "subnet" : "subnets"}, ${percent(share)}`;
  });
  const { subnets, crawled, pagesPerDay } = answer.totals;
  const { registered } = answer.addresses;
  return [
    `${answer.at} by ${answer.colour}`,
    `┌${edge}┐`,
    ...drawn.map((line) => `│${line}│`),
    `└${edge}┘`,
    ...legend,
    "",
    `${subnets} subnets, ${crawled} of them crawled; ${percent(registered)} of the addresses registered; ${pagesPerDay} pages per day.`,
  ].join("\n");
}
