/**
 * Anansi beside ours: table 5.3, how soon each order of the frontier has what counts on generated webs, and (live) the
 * mix of new and old pages in the emulated Internet. Prints tables and writes the pictures of results/anansi.md.
 *
 *   npm run bench -- order.bench        # table 5.3, pictures and the simulated crawls
 *   npm run bench -- order.bench live         # a minute of crawling in the emulated Internet
 *
 * What each order costs a lease: npm run bench -- leases orders
 */
import { writeFileSync } from "node:fs";
import { comparePeaks, estimateCrawl, thesisAssumptions } from "#coordinator/overview/estimate";
import { estimateText, withMeasures } from "#ops/cli/commands/estimate";
import { orderLists, ordersOf, runOf } from "#ops/cli/commands/simulate";
import { formatTable } from "#ops/cli/output";
import { type OrderWeb, orderWeb } from "#ops/simulate/order/order-web";
import { simulateOrder } from "#ops/simulate/order/simulate-order";
import { crawlInOrder } from "./order/live-order.ts";
import { coveragePicture, mixPicture, type OrderCurve, pendingPicture } from "./order/order-pictures.ts";

const [part = "computed"] = process.argv.slice(2);
const size = { pages: 10_000, hosts: 300, outDegree: 12 };
const live = {
  seed: 1,
  crawlers: 4,
  sites: 12,
  pagesPerSite: 400,
  newShare: 0.9,
  fetches: 3000,
  mostSeconds: 50,
};

if (part === "live") await measureLive();
else compute();
process.exit();

function compute(): void {
  for (const { printed, fittedOutDegree, withUsed, usedOff, printedOff } of comparePeaks()) {
    console.log(
      `N = ${printed.pages}: P_max ${Math.round(withUsed.pending)}, n1 ${Math.round(withUsed.crawled)}, S ${fittedOutDegree.toFixed(4)}, off by ${usedOff.toExponential(1)} (with 200: ${printedOff.toExponential(1)})`,
    );
  }
  write("anansi-pending.svg", pendingPicture());
  const web = orderWeb({ ...size, seed: 1 });
  const curves = orderLists.flatMap((lists) => [
    ...ordersOf(lists).map((name): OrderCurve => {
      const run = runOf({ web, name, lists, seed: 1 }, { newShare: 0.9, worthShare: 0.75 });
      return { name, lists, outcome: simulateOrder(run) };
    }),
    { name: "best possible" as const, lists, outcome: { mass: bestMass(web) } },
  ]);
  console.log(curveTable(curves));
  write("anansi-order.svg", coveragePicture(curves));
}

/** Whoever knew all ranks beforehand, and could jump, would have this. */
function bestMass(web: OrderWeb): number[] {
  const sorted = [...web.ranks].sort((a, b) => b - a);
  return Array.from({ length: 100 }, (_, index) =>
    sorted.slice(0, Math.round((web.pages * (index + 1)) / 100)).reduce((sum, rank) => sum + rank, 0),
  );
}

function curveTable(curves: readonly OrderCurve[]): string {
  const right = (title: string) => ({ title, align: "right" as const });
  return formatTable(
    [{ title: "Lists" }, { title: "Order" }, ...["after 10 %", "25 %", "50 %", "100 %"].map(right)],
    curves.map(({ lists, name, outcome: { mass } }) => [
      lists,
      name,
      ...[10, 25, 50, 100].map((percent) => (100 * mass[percent - 1]!).toFixed(1)),
    ]),
  );
}

async function measureLive(): Promise<void> {
  const curve = await crawlInOrder(live);
  const { fetches, measures } = curve;
  const unique = fetches.filter(({ isNew }) => isNew).length;
  console.log(`${fetches.length} fetches, ${unique} of new URLs: ${(unique / fetches.length).toFixed(3)}`);
  const half = fetches.slice(fetches.length / 2);
  const uniqueLater = half.filter(({ isNew }) => isNew).length;
  console.log(
    `second half: ${half.length} fetches, ${uniqueLater} new: ${(uniqueLater / half.length).toFixed(3)}`,
  );
  const [given, table53] = [thesisAssumptions, comparePeaks()];
  const measured = withMeasures(given, measures);
  console.log(estimateText({ assumptions: given, estimate: estimateCrawl(given), table53, measured }));
  write("anansi-mix.svg", mixPicture(curve, live.newShare));
}

function write(name: string, svg: string): void {
  writeFileSync(new URL(`results/${name}`, import.meta.url), svg);
}
