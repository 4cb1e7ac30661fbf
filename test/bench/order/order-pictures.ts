/** The pictures of results/anansi.md: the pending list, a live crawl's mix of new and old, and how soon each order has what counts. */

import type { OrderName } from "#coordinator/frontier/order/strategies";
import { pendingAfter, printedPeaks } from "#coordinator/overview/estimate";
import type { OrderLists } from "#ops/cli/commands/simulate";
import { axisFor, type Role } from "#ops/evaluate/pictures/document";
import { drawLines, type Line, type Point } from "#ops/evaluate/pictures/line-picture";
import type { OrderOutcome } from "#ops/simulate/order/simulate-order";
import type { LiveCurve } from "./live-order.ts";

const billion = 1e9;
const pendingRoles: readonly Role[] = ["nearest", "ipmicra", "get-first", "ipmicra-strict", "exhaustive"];

export function pendingPicture(): string {
  const line = (pages: number, outDegree: number, role: Role, name: string): Line => ({
    name,
    role,
    style: "line",
    points: Array.from({ length: 201 }, (_, index) => {
      const crawled = (pages * index) / 200;
      return { x: crawled / billion, y: pendingAfter({ pages, outDegree }, crawled) / billion };
    }),
  });
  const printed: Line = {
    name: "peaks as printed",
    role: "paper",
    style: "hollow",
    points: printedPeaks.map(({ crawled, pending }) => ({ x: crawled / billion, y: pending / billion })),
  };
  const near = (pages: number, outDegree: number, role: Role, name: string): Line => ({
    ...line(pages, outDegree, role, name),
    named: false,
    points: Array.from({ length: 151 }, (_, index) => {
      const crawled = (0.15 * billion * index) / 150;
      return { x: crawled / 1e6, y: pendingAfter({ pages, outDegree }, crawled) / billion };
    }),
  });
  const rows = printedPeaks.map(({ pages }, index) => {
    const name = `N = ${pages / billion} billion, S = ${200 * (index + 1)}`;
    return { pages, outDegree: 200 * (index + 1), role: pendingRoles[index]!, name };
  });
  const peaksNear = { ...printed, points: printed.points.map(({ x, y }) => ({ x: 1000 * x, y })) };
  const y = axisFor("URLs that wait, billions", [5]);
  return drawLines({
    title: "The pending list of a whole crawl",
    description:
      "Pages waiting against pages crawled for webs of one to five billion pages; the printed peaks of table 5.3 lie on the curves with 200 links for each billion of pages.",
    panels: [
      {
        title: "The whole crawl",
        x: axisFor("pages crawled, billions", [5]),
        y,
        lines: [
          ...rows.map(({ pages, outDegree, role, name }) => line(pages, outDegree, role, name)),
          printed,
        ],
      },
      {
        title: "Its beginning",
        x: axisFor("pages crawled, millions", [150]),
        y,
        lines: [
          ...rows.map(({ pages, outDegree, role, name }) => near(pages, outDegree, role, name)),
          { ...peaksNear, named: false },
        ],
      },
    ],
  });
}

/** Fetches in all and of new pages, by time (figure 5.1); at most 200 points. */
export function mixPicture({ fetches }: LiveCurve, newShare: number): string {
  const step = Math.max(1, Math.floor(fetches.length / 200));
  let unique = 0;
  const [all, first]: [Point[], Point[]] = [[], []];
  for (const [index, { seconds, isNew }] of fetches.entries()) {
    if (isNew) unique += 1;
    if (index % step !== 0) continue;
    all.push({ x: seconds, y: index + 1 });
    first.push({ x: seconds, y: unique });
  }
  return drawLines({
    title: "New and old pages in a live crawl",
    description: `Fetches in all and unique pages over time in the emulated Internet, in the order anansi with ${100 * newShare} % of a lease for new URLs.`,
    panels: [
      {
        title: `Order anansi, ${100 * newShare} % new`,
        x: axisFor(
          "seconds",
          all.map(({ x }) => x),
        ),
        y: axisFor("pages", [fetches.length]),
        lines: [
          { name: "fetched", role: "ipmicra", style: "line", points: all },
          { name: "unique", role: "nearest", style: "line", points: first },
          {
            name: `${newShare} of fetched`,
            role: "paper",
            style: "dashed",
            points: all.map(({ x, y }) => ({ x, y: newShare * y })),
          },
        ],
      },
    ],
  });
}

export interface OrderCurve {
  readonly name: OrderName | "best possible";
  readonly lists: OrderLists;
  readonly outcome: Pick<OrderOutcome, "mass">;
}

const orderRoles: Readonly<Record<OrderCurve["name"], Role>> = {
  "breadth-first": "random",
  "back-links": "nearest",
  anansi: "nearest",
  pagerank: "get-first",
  "best possible": "paper",
};

/** For new URLs two orders are one. */
export function coveragePicture(curves: readonly OrderCurve[]): string {
  const linesOf = (lists: OrderCurve["lists"]) =>
    curves
      .filter((curve) => curve.lists === lists && curve.name !== "anansi")
      .map(
        ({ name, outcome }): Line => ({
          name: name === "back-links" ? "back-links, anansi" : name,
          role: orderRoles[name],
          style: name === "best possible" ? "dashed" : "line",
          points: [{ x: 0, y: 0 }, ...outcome.mass.map((mass, index) => ({ x: index + 1, y: 100 * mass }))],
        }),
      );
  const axes = {
    x: axisFor("fetches, % of the web's pages", [100], { to: 100 }),
    y: axisFor("PageRank fetched, %", [100], { to: 100 }),
  };
  return drawLines({
    title: "How soon each order has what counts",
    description: "Share of a generated web's PageRank that was fetched against fetches, by order.",
    panels: [
      { title: "By hosts in turn", ...axes, lines: linesOf("hosts") },
      {
        title: "By hosts in turn and by worth, as the coordinator leases",
        ...axes,
        lines: linesOf("hosts-by-worth"),
      },
      { title: "One list for the whole web", ...axes, lines: linesOf("whole-web") },
    ],
  });
}
