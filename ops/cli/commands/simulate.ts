/** `nearcrawl simulate`: how the crawler decides, without a network. Each subcommand has its file in ../simulate. */
import { Command, Option } from "commander";
import { type OrderName, orderNames, orderStrategy } from "#coordinator/frontier/order/strategies";
import { orderWeb } from "../../simulate/order/order-web.ts";
import { type OrderOutcome, type OrderRun, simulateOrder } from "../../simulate/order/simulate-order.ts";
import { type Spread, spreadOf, spreadText } from "../../simulate/repeat-policies.ts";
import { boundedInteger, share } from "../bounded-number.ts";
import { formatTable, printJson } from "../output.ts";
import { balanceCommand } from "../simulate/balance-command.ts";
import { calibrateCommand } from "../simulate/calibrate-command.ts";
import { delegationCommand } from "../simulate/delegation-command.ts";
import { paceCommand } from "../simulate/pace-command.ts";
import { recrawlCommand } from "../simulate/recrawl-command.ts";
import { workProgress } from "../simulate/work-progress.ts";

export function simulateCommand(): Command {
  return new Command("simulate")
    .description("try out how the crawler decides, on measured or generated figures, without a network")
    .addCommand(delegationCommand())
    .addCommand(balanceCommand())
    .addCommand(calibrateCommand())
    .addCommand(orderCommand())
    .addCommand(recrawlCommand())
    .addCommand(paceCommand());
}

// `nearcrawl simulate order`: how soon each order of the frontier has what counts, on generated webs.

interface OrderOptions {
  readonly pages: number;
  readonly hosts: number;
  readonly outDegree: number;
  readonly newShare: number;
  readonly worthShare: number;
  readonly seed: number;
  readonly seeds: number;
  readonly json?: boolean;
}

export const orderLists = ["hosts", "hosts-by-worth", "whole-web"] as const;

/** Of `hosts` those with the longest due URL come first, of `hosts-by-worth` a share goes by what they are worth. */
export type OrderLists = (typeof orderLists)[number];

/** Where hosts go by turns alone there is nothing to be worth. */
export function ordersOf(lists: OrderLists): readonly OrderName[] {
  return orderNames.filter((name) => lists !== "hosts-by-worth" || orderStrategy(name).mixesNewAndOld);
}

interface OrderFigures {
  readonly order: OrderName;
  readonly lists: OrderLists;
  /** Shares of the web's PageRank that were fetched after 10, 25 and 50 % as many fetches as there are pages. */
  readonly mass10: Spread;
  readonly mass25: Spread;
  readonly mass50: Spread;
  /** Shares, when as many fetches were made as there are pages. */
  readonly unique: Spread;
  readonly freshness: Spread;
}

const help = `
A crawl of as many fetches as the web has pages takes a month; a page is due again after a week, and changes between
ten times a day and once in a hundred days. "hosts": leases of 20 URLs of the longest due host, 20 hosts being in hand at
once; "hosts-by-worth": as the coordinator grants them, a share of the hosts by what their best new URL is worth, with the
URLs that are worth as much as the next host's best; "whole-web": one list for all, as WEB-SAILOR's and Anansi's servers
keep it. For new URLs back-links and anansi are the same order by definition; they differ in what is visited
again.

Exit codes: 0 done, 2 wrong usage.
`;

function orderCommand(): Command {
  const whole = (flags: string, words: string, [value, least, most]: readonly [number, number, number]) =>
    new Option(flags, words).default(value).argParser(boundedInteger(least, most));
  return new Command("order")
    .description("crawl generated webs in every order, and see how soon what counts is there")
    .addOption(whole("--pages <n>", "of the web", [10_000, 100, 200_000]))
    .addOption(whole("--hosts <n>", "of the web", [300, 1, 10_000]))
    .addOption(whole("--out-degree <n>", "links on a page, on average", [12, 1, 100]))
    .addOption(new Option("--new-share <share>", "of a lease, for new URLs").default(0.9).argParser(share))
    .addOption(
      new Option("--worth-share <share>", "of hosts-by-worth, those that go by it")
        .default(0.75)
        .argParser(share),
    )
    .addOption(whole("--seed <number>", "which web", [1, 0, 0xffff_ffff]))
    .addOption(whole("--seeds <n>", "number of webs, from --seed on: mean and spread", [1, 1, 100]))
    .option("--json", "print JSON: a list with one object per order and kind of list")
    .addHelpText("after", help)
    .action(async (options: OrderOptions) => {
      const figures = compareOrders(options);
      if (options.json) printJson(figures);
      else process.stdout.write(`${orderTable(figures)}\n`);
    });
}

/** Every order with both kinds of list, over the same webs. */
function compareOrders(options: OrderOptions): OrderFigures[] {
  const runs = orderLists.flatMap((lists) => ordersOf(lists).map((name) => ({ lists, name })));
  const progress = workProgress("crawls");
  const outcomes = runs.map((): OrderOutcome[] => []);
  for (let seed = options.seed; seed < options.seed + options.seeds; seed++) {
    const web = orderWeb({ ...options, seed });
    for (const [index, { lists, name }] of runs.entries()) {
      outcomes[index]!.push(simulateOrder(runOf({ web, name, lists, seed }, options)));
      const done = (seed - options.seed) * runs.length + index + 1;
      progress.show("crawling", done, options.seeds * runs.length);
    }
  }
  progress.done();
  return runs.map(({ lists, name }, index) =>
    figuresOf(outcomes[index]!, { lists, name, pages: options.pages }),
  );
}

/** One crawl, with the shares that were asked for. */
export function runOf(
  {
    lists,
    name,
    ...run
  }: Pick<OrderRun, "web" | "seed"> & { readonly lists: OrderLists; readonly name: OrderName },
  { newShare, worthShare }: Pick<OrderOptions, "newShare" | "worthShare">,
): OrderRun {
  const order = { name, newShare, worthShare: lists === "hosts-by-worth" ? worthShare : 0 };
  return { ...run, order, lists: lists === "whole-web" ? lists : "hosts" };
}

function figuresOf(
  outcomes: readonly OrderOutcome[],
  { lists, name, pages }: { lists: OrderLists; name: OrderName; pages: number },
): OrderFigures {
  const after = (percent: number) => spreadOf(outcomes.map(({ mass }) => mass[percent - 1]!));
  return {
    order: name,
    lists,
    mass10: after(10),
    mass25: after(25),
    mass50: after(50),
    unique: spreadOf(outcomes.map(({ unique }) => unique.at(-1)! / pages)),
    freshness: spreadOf(outcomes.map(({ freshness }) => freshness)),
  };
}

function orderTable(figures: readonly OrderFigures[]): string {
  const right = (title: string) => ({ title, align: "right" as const });
  const percent = (spread: Spread) =>
    spreadText({ mean: 100 * spread.mean, least: 100 * spread.least, most: 100 * spread.most }, 1);
  return formatTable(
    [
      { title: "Lists" },
      { title: "Order" },
      ...["PageRank % after 10 %", "25 %", "50 % of the fetches", "Pages % at the end", "Fresh %"].map(right),
    ],
    figures.map((one) => [
      one.lists,
      one.order,
      ...[one.mass10, one.mass25, one.mass50, one.unique, one.freshness].map(percent),
    ]),
  );
}
