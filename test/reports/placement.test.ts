/** Greedy placement: which sites save most, each in addition to the earlier ones. */
import { expect, it } from "vitest";
import { chooseSites } from "#coordinator/tell/reports/placement";
import { seededRandom } from "#core/random";

const load = (pagesPerDay: number, rttMs: number, reach: Record<string, number>) => ({
  pagesPerDay,
  rttMs,
  reach: Object.entries(reach).map(([site, ms]) => ({ site, rttMs: ms })),
});

it("the site that saves most comes first, with what it serves and how much nearer it is", () => {
  const [first, ...others] = chooseSites([load(100, 50, { GR: 10 }), load(10, 200, { IN: 20 })], { most: 5 });

  // 100 × 40 against 10 × 180.
  expect(first).toMatchObject({
    site: "GR",
    savedMsPages: 4000,
    pagesPerDay: 100,
    meanNowMs: 50,
    meanThenMs: 10,
  });
  expect(others.map(({ site, savedMsPages }) => [site, savedMsPages])).toEqual([["IN", 1800]]);
});

it("the second is chosen with the first in place: nothing is saved twice", () => {
  const loads = [load(100, 100, { A: 10, B: 12 }), load(40, 100, { B: 20 }), load(30, 100, { C: 10 })];

  const chosen = chooseSites(loads, { most: 3 });

  // B alone saves 100 × 88 + 40 × 80; then C 30 × 90; then A 100 × 2 only.
  expect(chosen.map(({ site, savedMsPages }) => [site, savedMsPages])).toEqual([
    ["B", 12_000],
    ["C", 2700],
    ["A", 200],
  ]);
});

it("no crawler is placed where nothing is saved, and no more than asked for", () => {
  expect(chooseSites([load(100, 10, { A: 10, B: 30 })], { most: 3 })).toEqual([]);
  expect(chooseSites([], { most: 3 })).toEqual([]);
  expect(chooseSites([load(1, 100, { A: 1 }), load(1, 100, { B: 1 })], { most: 1 })).toHaveLength(1);
});

it("chooses what trying every site at every step would", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  const sites = ["A", "B", "C", "D", "E", "F"];
  const loads = Array.from({ length: 60 }, () =>
    load(1 + Math.floor(random() * 100), Math.floor(random() * 200), {
      [sites[Math.floor(random() * 6)]!]: Math.floor(random() * 100),
      [sites[Math.floor(random() * 6)]!]: Math.floor(random() * 100),
    }),
  );

  const chosen = chooseSites(loads, { most: 4 }).map(({ site }) => site);

  const served = (taken: readonly string[]) =>
    loads.reduce(
      (sum, { pagesPerDay, rttMs, reach }) =>
        sum +
        pagesPerDay *
          Math.min(rttMs, ...reach.filter(({ site }) => taken.includes(site)).map((one) => one.rttMs)),
      0,
    );
  const slow: string[] = [];
  for (let step = 0; step < chosen.length; step++) {
    const left = sites.filter((site) => !slow.includes(site));
    slow.push(left.reduce((best, site) => (served([...slow, site]) < served([...slow, best]) ? site : best)));
  }
  expect(chosen, `seed ${seed}`).toEqual(slow);
});
