/** WEB-SAILOR's figures as pictures: pages a second by client (6), connections by client as paces come (4), and the order. */
import { axisFor, type Role } from "#ops/evaluate/pictures/document";
import { drawLines, type Line } from "#ops/evaluate/pictures/line-picture";
import type { Carried } from "./counting-relay.ts";
import { linkShare } from "./order-quality.ts";

export interface Sample {
  /** Since the start. */
  readonly second: number;
  readonly phase: string;
  readonly clients: readonly {
    /** Connections that it may use by its host's limit and its pace. */
    readonly places: number;
    readonly open: number;
    readonly pace: "slow-down" | "steady" | "hurry-up";
    readonly wire: Carried;
  }[];
}

const roles: readonly Role[] = ["nearest", "ipmicra", "get-first"];
const names = ["client 1", "client 2", "client 3"] as const;
/** Pages come in bursts of a second or two: the figure shows the mean of so many. */
const smoothedSeconds = 5;

export function performancePicture(
  rates: readonly (readonly number[])[],
  at: { readonly allSeedsAt: number; readonly thirdClientAt: number; readonly totalSeconds: number },
): string {
  const total = rates[0]!.map((_, second) => rates.reduce((sum, pages) => sum + pages[second]!, 0));
  const lines: Line[] = [
    lineOf("total", "exhaustive", smoothed(total)),
    ...rates.map((pages, client) =>
      lineOf(names[client]!, roles[client]!, smoothed(pages).slice(client === 2 ? at.thirdClientAt : 0)),
    ),
  ];
  const most = Math.max(...smoothed(total).map(({ y }) => y));
  return drawLines({
    title: "Pages a second, as WEB-SAILOR's figure 6",
    description: `Client 1 (.com, 25 connections), client 2 (.edu .net .org, 10), client 3 (.org, 10) added at ${at.thirdClientAt} s; all seeds at ${at.allSeedsAt} s.`,
    panels: [
      {
        title: `client 3 is added at ${at.thirdClientAt} s`,
        x: axisFor("seconds", [at.totalSeconds]),
        y: axisFor(`pages a second, mean of ${smoothedSeconds} s`, [most]),
        lines,
      },
    ],
  });
}

export function connectionPicture(samples: readonly Sample[], totalSeconds: number): string {
  const linesOf = (value: "places" | "open"): Line[] =>
    names.map((name, client) =>
      lineOf(
        name,
        roles[client]!,
        samples.flatMap(({ second, clients }) => {
          const of = clients[client];
          return of === undefined ? [] : [{ x: second, y: of[value] }];
        }),
      ),
    );
  const x = axisFor("seconds", [totalSeconds]);
  const y = axisFor("connections", [25]);
  return drawLines({
    title: "Connections before and after pace messages, as WEB-SAILOR's figure 4",
    description:
      "Each client begins with its host's limit, slows down while there are few seeds, hurries up as they pile up, and slows down again when its domain set is used up.",
    panels: [
      { title: "allowed by limit and pace", x, y, lines: linesOf("places") },
      { title: "in use", x, y, lines: linesOf("open") },
    ],
  });
}

/** A crawl by the order in which its pages were fetched. */
export interface NamedCrawl {
  readonly name: string;
  readonly role: Role;
  readonly urls: readonly string[];
}

export function orderPicture(
  crawls: readonly NamedCrawl[],
  backLinks: ReadonlyMap<string, number>,
  most: number,
): string {
  const step = 20;
  const lines = crawls.map(({ name, role, urls }): Line => {
    const steps = Math.floor(Math.min(most, urls.length) / step) + 1;
    const points = Array.from({ length: steps }, (_, at) => ({
      x: at * step,
      y: 100 * linkShare(urls, backLinks, at * step),
    }));
    return { name, role, points, style: role === "paper" ? "dashed" : "line" };
  });
  return drawLines({
    title: "Links to the pages fetched first",
    description:
      "The share of the web's links that lead to the pages fetched so far, with frontier.order back-links and, beside, breadth-first.",
    panels: [
      {
        title: "the same web, the same connections in all",
        x: axisFor("pages fetched", [most]),
        y: axisFor(
          "percent of all links",
          lines.map(({ points }) => points.at(-1)?.y ?? 0),
        ),
        lines,
      },
    ],
  });
}

function lineOf(name: string, role: Role, points: Line["points"]): Line {
  return { name, role, points, style: "line" };
}

function smoothed(pages: readonly number[]): { x: number; y: number }[] {
  return pages.map((_, second) => {
    const window = pages.slice(Math.max(0, second - smoothedSeconds + 1), second + 1);
    return { x: second + 1, y: window.reduce((sum, count) => sum + count, 0) / window.length };
  });
}
