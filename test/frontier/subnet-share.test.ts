/** Subnets of a crawler take turns, and so do domains: nobody gets more than a quarter while others wait. */
import { expect, it } from "vitest";
import { hostsInARow, largestShare, splitByShare } from "#coordinator/crawl/frontier/budgets";

/** Each of a domain of its own, unless it is named behind the subnet. */
const hosts = (...names: string[]) =>
  names.map((name, index) => ({ shares: [name[0]!, name[1] ?? `domain ${index}`] as const }));
const names = (chosen: readonly { shares: readonly string[] }[]) =>
  chosen.map(({ shares: [subnet, domain] }) => `${subnet}${domain!.slice(1) === "" ? domain : ""}`).join("");

it("a subnet gets a quarter of many hosts, and five of the latest twenty when few are asked for", () => {
  expect([1, 20, 40, 1000].map(largestShare)).toEqual([5, 5, 10, 250]);
});

it("hosts beyond their subnet's share stand behind the others, in their order", () => {
  const { within, beyond } = splitByShare(hosts(..."aaaaaaabc"), { wanted: 20, recent: [] });

  expect([names(within), names(beyond)]).toEqual(["aaaaabc", "aa"]);
});

it("what the crawler got just before counts, as far as twenty hosts reach", () => {
  const recent = [..."aaaaa", ..."b".repeat(15)].map((subnet) => [subnet]);

  const alone = splitByShare(hosts("a", "c"), { wanted: 1, recent: recent.slice(0, 5) });
  const longAgo = splitByShare(hosts("a"), { wanted: 1, recent });
  const together = splitByShare(hosts("a"), { wanted: hostsInARow, recent: recent.slice(0, 5) });

  expect([names(alone.within), names(alone.beyond)]).toEqual(["c", "a"]);
  expect(names(longAgo.within)).toBe("a");
  expect(names(together.within)).toBe("a");
});

it("no more than wanted are within", () => {
  const { within, beyond } = splitByShare(hosts(..."abcd"), { wanted: 2, recent: [] });

  expect([names(within), names(beyond)]).toEqual(["ab", "cd"]);
});

it("of hosts beyond their subnet's share those of other domains go before those of one that has its own", () => {
  const waiting = hosts(...Array(8).fill("aE"), ..."aaaa");

  const { within, beyond } = splitByShare(waiting, { wanted: 20, recent: [] });

  expect([names(within), names(beyond)]).toEqual(["aEaEaEaEaE", "aaaaaEaEaE"]);
});
