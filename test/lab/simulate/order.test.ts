/** The simulated crawl that compares the orders of the frontier. */
import { describe, expect, it } from "vitest";
import { orderWeb } from "./order/order-web.ts";
import { simulateOrder } from "./order/simulate-order.ts";

const web = orderWeb({ pages: 600, hosts: 20, outDegree: 8, seed: 3 });
const run = (name: "breadth-first" | "back-links" | "anansi", newShare = 0.9) =>
  simulateOrder({ web, order: { name, newShare }, lists: "whole-web", seed: 1 });

describe("a simulated crawl", () => {
  it("fetches nine new pages per old one while both are due", () => {
    const { fetches, unique } = run("anansi");
    const at = (percent: number) => ({ fetched: fetches[percent - 1]!, unique: unique[percent - 1]! });

    // After a week (23 % of the fetches) the first pages are due again.
    const [start, end] = [at(30), at(60)];

    expect((end.unique - start.unique) / (end.fetched - start.fetched)).toBeCloseTo(0.9, 1);
  });

  it("has a growing share of the web's PageRank, at most all of it", () => {
    const { mass } = run("breadth-first");

    expect(mass.every((share, index) => share <= 1 && share >= (mass[index - 1] ?? 0))).toBe(true);
  });

  it("has important pages sooner by back-links than breadth-first", () => {
    expect(run("back-links").mass[9]).toBeGreaterThan(run("breadth-first").mass[9]!);
  });
});

it("hosts chosen by value give important pages sooner than hosts in turn, and more pages in the end", () => {
  const many = orderWeb({ pages: 1200, hosts: 100, outDegree: 8, seed: 3 });
  const crawl = (worthShare: number) =>
    simulateOrder({
      web: many,
      order: { name: "back-links", newShare: 0.9, worthShare },
      lists: "hosts",
      seed: 1,
    });
  const [turns, worth] = [crawl(0), crawl(0.75)];

  expect(worth.mass[49]! - turns.mass[49]!).toBeGreaterThan(0.04);
  expect(worth.unique[99]).toBeGreaterThan(turns.unique[99]!);
});

it("every link of the generated web leads to a page, and the ranks sum to 1", () => {
  const targets = web.links.flatMap((links) => [...links]);

  expect(targets.every((target) => target < 600)).toBe(true);
  expect(web.ranks.reduce((sum, rank) => sum + rank, 0)).toBeCloseTo(1, 9);
});
