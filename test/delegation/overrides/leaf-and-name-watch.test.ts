/** What the watches keep in memory, and its limits. */
import { describe, expect, it } from "vitest";
import { addAnswer, NameWatch } from "#coordinator/place/delegation/overrides/hosts";
import type { HostPlace } from "#coordinator/place/delegation/overrides/override";
import { LeafWatch } from "#coordinator/place/delegation/overrides/split-leaves";
import { asCrawlerId, asHolderId, asSubnetId, type HostHash } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import { fetchesBy } from "./override-world.ts";

const athens = asCrawlerId(1);
const tokyo = asCrawlerId(2);
const leaf = asSubnetId(7);
const inLeaf = () => leaf;

describe("connect times", () => {
  it("of an address are the latest eight of the crawler that fetched last", () => {
    const watch = new LeafWatch();
    watch.note(fetchesBy(tokyo, ["a.example", "5.1.1.1", 90]), inLeaf);
    for (let time = 1; time <= 10; time++) {
      watch.note(fetchesBy(athens, ["a.example", "5.1.1.1", time]), inLeaf);
    }
    watch.note(fetchesBy(athens, ["b.example", "5.1.1.2", 5]), inLeaf);

    const [[, known]] = watch.takeTouched(0) as [ReturnType<LeafWatch["takeTouched"]>[number]];

    expect(known.addresses.get("5.1.1.1")).toMatchObject({
      crawlerId: athens,
      timesMs: [3, 4, 5, 6, 7, 8, 9, 10],
      target: { host: "a.example", url: "http://a.example/" },
    });
  });

  it("of a leaf with one address are ignored", () => {
    const watch = new LeafWatch();
    for (let time = 0; time < 9; time++) watch.note(fetchesBy(athens, ["a.example", "5.1.1.1", 1]), inLeaf);

    expect(watch.takeTouched(0)).toEqual([]);
  });

  it("are kept for the 64 addresses of a leaf that were fetched from last", () => {
    const watch = new LeafWatch();
    for (let last = 0; last < 100; last++) {
      watch.note(fetchesBy(athens, ["a.example", `5.1.1.${last}`, 1]), inLeaf);
    }

    const [touched] = watch.takeTouched(0);
    const addresses = [...touched![1].addresses.keys()];

    expect(addresses).toHaveLength(64);
    expect(addresses.at(-1)).toBe("5.1.1.99");
    expect(addresses).not.toContain("5.1.1.0");
  });

  it("are returned once, until there are new ones", () => {
    const watch = new LeafWatch();
    watch.note(fetchesBy(athens, ["a.example", "5.1.1.1", 1], ["b.example", "5.1.1.2", 1]), inLeaf);

    expect([watch.takeTouched(0).length, watch.takeTouched(0).length]).toEqual([1, 0]);
  });
});

describe("names", () => {
  const hash = (host: string): HostHash => (urlKeyOf(`http://${host}/`) as { hostHash: HostHash }).hostHash;
  const place = (host: string): HostPlace => ({
    hostHash: hash(host),
    host,
    url: `http://${host}/`,
    addresses: ["5.1.1.1"],
    subnetId: leaf,
    byItself: false,
  });

  it("are noted from new connections only, at most 5,000 between two passes", () => {
    const watch = new NameWatch();
    const reused = fetchesBy(athens, ["a.example", "5.1.1.1", 1]);
    const { result, ...rest } = reused.results[0]!;
    const timing = { ...result.timing, connectMs: null };
    watch.note({ ...reused, results: [{ ...rest, result: { ...result, timing } }] });

    expect(watch.takeNoted(0).size).toBe(0);
    for (let host = 0; host < 5100; host++) {
      watch.note(fetchesBy(athens, [`h${host}.example`, "5.1.1.1", 1]));
    }
    expect(watch.takeNoted(0).size).toBe(5000);
  });

  it("are suspected at most a thousand at once, the latest ones", () => {
    const watch = new NameWatch();
    for (let host = 0; host < 1100; host++) watch.suspect(place(`h${host}.example`), athens);

    const due = watch.due(0, 2000);

    expect(due).toHaveLength(1000);
    expect(due.some((suspect) => suspect.place.host === "h1099.example")).toBe(true);
  });

  it("that were cleared are not noted for a day", () => {
    const watch = new NameWatch();
    watch.suspect(place("a.example"), athens);
    watch.close(hash("a.example"), 0);
    watch.note(fetchesBy(athens, ["a.example", "5.1.1.1", 1]));
    expect(watch.takeNoted(86_399_999).size).toBe(0);

    watch.note(fetchesBy(athens, ["a.example", "5.1.1.1", 1]));
    expect(watch.takeNoted(86_400_000).size).toBe(1);
  });

  it("keep the latest twelve answers of a vantage point", () => {
    const watch = new NameWatch();
    watch.suspect(place("a.example"), athens);
    const [suspect] = watch.due(0, 1);

    for (let answer = 1; answer <= 15; answer++) {
      addAnswer(suspect!, tokyo, [{ subnetId: asSubnetId(answer), holderId: asHolderId(1) }]);
    }

    const answers = suspect!.answers.get(tokyo)!;
    expect(answers).toHaveLength(12);
    expect(answers.at(-1)![0]!.subnetId).toBe(15);
  });
});
