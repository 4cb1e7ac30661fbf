/** Subnets of a crawler take turns: nobody gets more than a quarter while others wait. */
import { expect, it } from "vitest";
import { hostsInARow, largestShare, splitByShare } from "#coordinator/frontier/budgets";

const hosts = (...subnets: string[]) => subnets.map((subnet) => ({ subnet }));
const names = (chosen: readonly { subnet: string }[]) => chosen.map(({ subnet }) => subnet).join("");

it("a subnet gets a quarter of many hosts, and five of the latest twenty when few are asked for", () => {
  expect([1, 20, 40, 1000].map(largestShare)).toEqual([5, 5, 10, 250]);
});

it("hosts beyond their subnet's share stand behind the others, in their order", () => {
  const { within, beyond } = splitByShare(hosts(..."aaaaaaabc"), { wanted: 20, recent: [] });

  expect([names(within), names(beyond)]).toEqual(["aaaaabc", "aa"]);
});

it("what the crawler got just before counts, as far as twenty hosts reach", () => {
  const recent = [..."aaaaa", ..."b".repeat(15)];

  const alone = splitByShare(hosts("a", "c"), { wanted: 1, recent: [..."aaaaa"] });
  const longAgo = splitByShare(hosts("a"), { wanted: 1, recent });
  const together = splitByShare(hosts("a"), { wanted: hostsInARow, recent: [..."aaaaa"] });

  expect([names(alone.within), names(alone.beyond)]).toEqual(["c", "a"]);
  expect(names(longAgo.within)).toBe("a");
  expect(names(together.within)).toBe("a");
});

it("no more than wanted are within", () => {
  const { within, beyond } = splitByShare(hosts(..."abcd"), { wanted: 2, recent: [] });

  expect([names(within), names(beyond)]).toEqual(["ab", "cd"]);
});
