/**
 * `npm run lab -- order`: how soon each order of the frontier fetches important pages, on generated webs (Anansi, WEB-SAILOR).
 */
import { Command, Option } from "commander";
import { orderNames, orderStrategy } from "#coordinator/crawl/frontier/order/strategies";
import { boundedInteger } from "#ops/cli/options";
import { formatTable } from "#ops/cli/output";
import { spreadOf, spreadText } from "../repeat-policies.ts";
import { workProgress } from "../work-progress.ts";
import { orderWeb } from "./order-web.ts";
import { type OrderOutcome, simulateOrder } from "./simulate-order.ts";

interface OrderOptions {
  readonly pages: number;
  readonly hosts: number;
  readonly outDegree: number;
  readonly seed: number;
  readonly seeds: number;
}

/** `hosts`: hosts with the longest due URL first; `hosts-by-worth`: a share of them by value. */
const orderLists = ["hosts", "hosts-by-worth", "whole-web"] as const;
/** Shares: of a lease for new URLs, and of the hosts of `hosts-by-worth` that are chosen by value. */
const [newShare, worthShare] = [0.9, 0.75];

const help = `
A crawl of as many fetches as the web has pages takes a month; a page is due again after a week, and changes between
ten times a day and once in a hundred days. "hosts": leases of 20 URLs of the longest due host, 20 hosts being in hand at
once; "hosts-by-worth": as the coordinator grants them, a share of the hosts by what their best new URL is worth, with the
URLs that are worth as much as the next host's best; "whole-web": one list for all, as WEB-SAILOR's and Anansi's servers
keep it. For new URLs back-links, anansi and freshness are the same order by definition; they differ in what is visited
again.
`;

export function orderCommand(): Command {
  const whole = (flags: string, words: string, [value, least, most]: readonly [number, number, number]) =>
    new Option(flags, words).default(value).argParser(boundedInteger(least, most));
  return new Command("order")
    .description("crawl generated webs in every order, and see how soon what counts is there")
    .addOption(whole("--pages <n>", "of the web", [10_000, 100, 200_000]))
    .addOption(whole("--hosts <n>", "of the web", [300, 1, 10_000]))
    .addOption(whole("--out-degree <n>", "links on a page, on average", [12, 1, 100]))
    .addOption(whole("--seed <number>", "which web", [1, 0, 0xffff_ffff]))
    .addOption(whole("--seeds <n>", "number of webs, from --seed on: mean and spread", [1, 1, 100]))
    .addHelpText("after", help)
    .action((options: OrderOptions) => {
      process.stdout.write(`${orderTable(options)}\n`);
    });
}

/** Every order with each kind of list, on the same webs. */
function orderTable(options: OrderOptions): string {
  const { pages, seed: first, seeds } = options;
  const webs = Array.from({ length: seeds }, (_, at) => orderWeb({ ...options, seed: first + at }));
  const progress = workProgress("crawls");
  // Hosts that only take turns need no value.
  const runs = orderLists.flatMap((lists) =>
    orderNames
      .filter((name) => lists !== "hosts-by-worth" || orderStrategy(name).mixesNewAndOld)
      .map((name) => ({ lists, name })),
  );
  const rows = runs.map(({ lists, name }, at) => {
    const order = { name, newShare, worthShare: lists === "hosts-by-worth" ? worthShare : 0 };
    const crawled = webs.map((web, index) =>
      simulateOrder({ web, order, lists: lists === "whole-web" ? lists : "hosts", seed: first + index }),
    );
    progress.show("crawling", at + 1, runs.length);
    const percent = (of: (outcome: OrderOutcome) => number) =>
      spreadText(spreadOf(crawled.map((outcome) => 100 * of(outcome))), 1);
    return [
      lists,
      name,
      ...[10, 25, 50].map((share) => percent(({ mass }) => mass[share - 1]!)),
      percent(({ unique }) => unique.at(-1)! / pages),
      percent(({ freshness }) => freshness),
    ];
  });
  progress.done();
  const titles = ["PageRank % after 10 %", "25 %", "50 % of the fetches", "Pages % at the end", "Fresh %"];
  const columns = titles.map((title) => ({ title, align: "right" as const }));
  return formatTable([{ title: "Lists" }, { title: "Order" }, ...columns], rows);
}
