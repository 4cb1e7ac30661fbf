/** Results of a crawler with an identity count only once they are signed. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EdgeIncident } from "#coordinator/run/gateway/gateway-settings";
import { SealCheck } from "#coordinator/run/gateway/inbox";
import { maxUnsealedBytes } from "#protocol/result";
import { generatedResults } from "../protocol/generated-results.ts";
import { until } from "../support/until.ts";
import { helloOf, type LoopbackGateway, startGateway } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";
import { knownBy, SealingCrawler, testIdentity } from "./sealing-crawler.ts";

const identity = testIdentity();
const stranger = testIdentity();
const pages = generatedResults({ count: 8, hosts: 2, seed: 4 });
const [one, two, three, four] = pages as [Page, Page, Page, Page];
type Page = (typeof pages)[number];

describe("a crawler with an identity", () => {
  let world: LoopbackGateway;
  let incidents: EdgeIncident[];
  beforeEach(async () => {
    incidents = [];
    const onIncident = (incident: EdgeIncident) => incidents.push(incident);
    world = await startGateway({
      zlibSync: null,
      handlers: { ...knownBy("amber", identity.publicKey), onIncident },
    });
  });
  afterEach(async () => await world.close());

  const arrive = async () => await SealingCrawler.arrive(world.url, "amber", identity);
  const taken = () => world.seen.batches.flatMap(({ results }) => results.map(({ sequence }) => sequence));

  /** Earlier messages have been read when this one has. */
  async function isRead(crawler: SealingCrawler): Promise<void> {
    const before = world.seen.messages.length;
    await crawler.say({ type: "crawler:ready", freeHosts: 1 });
    await until(() => world.seen.messages.length > before, 5000);
  }

  test("has its results stored with the seal, when the seal comes", async () => {
    const crawler = await arrive();
    await crawler.ship(one, two, three);
    await isRead(crawler);
    const before = taken();
    await crawler.seal(1, 3);

    expect(before).toEqual([]);
    expect(await crawler.raw.next("coordinator:acknowledge")).toMatchObject({ sequence: 3 });
    expect(taken()).toEqual([1, 2, 3]);
  });

  test("seals piece by piece, and each piece continues the one before", async () => {
    const crawler = await arrive();
    await crawler.ship(one, two);
    await crawler.seal(1, 2);
    await crawler.ship(three);
    await crawler.seal(3, 3);

    await until(() => taken().length === 3, 5000);
  });

  test("that leaves without a seal has nothing stored, and sends it again", async () => {
    const crawler = await arrive();
    await crawler.ship(one);
    await crawler.seal(1, 1);
    await crawler.raw.next("coordinator:acknowledge");
    await crawler.ship(two, three);
    await isRead(crawler);
    crawler.raw.disconnect();
    await until(() => world.seen.leaves.length === 1, 5000);

    expect(taken()).toEqual([1]);
    const back = await arrive();
    await back.ship(two, three);
    await back.seal(2, 3);
    await back.raw.next("coordinator:acknowledge");
    expect(taken()).toEqual([1, 2, 3]);
  });

  test("is refused when another key signed, and nothing of it is stored", async () => {
    const crawler = await arrive();
    await crawler.ship(one, two);
    await crawler.seal(1, 2, { as: stranger });

    expect(await crawler.raw.next("coordinator:refuse")).toMatchObject({
      code: "bad-signature",
      reason: "the seal of results 1 to 2 is not of this crawler's key",
    });
    expect(taken()).toEqual([]);
    expect(incidents).toMatchObject([{ crawlerId: 1, kind: "bad-signature" }]);
  });

  test("is refused when it signed results other than those that it sent", async () => {
    const crawler = await arrive();
    await crawler.ship(one);
    await crawler.seal(1, 1, { digest: "0".repeat(64) });

    expect(await crawler.raw.next("coordinator:refuse")).toMatchObject({ code: "bad-signature" });
    expect(taken()).toEqual([]);
  });

  test.each([
    ["less than it sent", 1, 2, "crawler:seal: 1 to 2 are sealed, 1 to 3 are due"],
    ["more than it sent", 1, 4, "crawler:seal: 1 to 4 are sealed, 1 to 3 are due"],
    ["not the first", 2, 3, "crawler:seal: 2 to 3 are sealed, 1 to 3 are due"],
  ])("is refused when it seals %s", async (_what, first, last, reason) => {
    const crawler = await arrive();
    await crawler.ship(one, two, three);
    await crawler.seal(first, last);

    expect(await crawler.raw.next("coordinator:refuse")).toMatchObject({ code: "bad-message", reason });
    expect(taken()).toEqual([]);
  });

  test("is refused when it seals what it has sealed before, or nothing at all", async () => {
    const crawler = await arrive();
    await crawler.ship(one);
    await crawler.seal(1, 1);
    await crawler.raw.next("coordinator:acknowledge");
    await crawler.seal(1, 1);

    expect(await crawler.raw.next("coordinator:refuse")).toMatchObject({
      code: "bad-message",
      reason: "crawler:seal: 1 to 1 are sealed, and nothing waits for a seal",
    });
  });

  test("is served beside a crawler without identity, whose results count as they come", async () => {
    const plain = await RawCrawler.arrive(world.url, "birch");
    await plain.send(four);

    expect(await plain.next("coordinator:acknowledge")).toMatchObject({ sequence: 4 });
  });
});

test("results that wait for a seal are bounded by their memory", () => {
  const check = new SealCheck(identity.publicKey, helloOf("amber").spoolId);
  const parts = { numbers: Buffer.alloc(1), text: Buffer.from("a") };
  const add = (inflatedBytes: number) =>
    check.add({ message: one, size: { wireBytes: 1, inflatedBytes } }, parts);
  add(maxUnsealedBytes - 1);

  expect(() => add(2)).toThrow(`crawler:result: ${maxUnsealedBytes + 1} bytes without a seal`);
});
