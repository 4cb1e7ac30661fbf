/**
 * Crawlers of earlier releases, as they spoke: the frames that they sent to a coordinator from their hello to their goodbye, in a
 * crawl of three sites, recorded between the two. Whatever changes here, each of them is understood to its end. The deflate
 * stream of a session is one, so a frame that were not read would make those after it unreadable.
 */
import { readdirSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { protocolVersions } from "#protocol/coordinator-messages";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import { until } from "../support/until.ts";
import { type LoopbackGateway, startGateway } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

const folder = `${import.meta.dirname}/earlier-releases`;
const recorded = readdirSync(folder).map((file) => ({
  version: Number(/^protocol-(\d+)\.json$/.exec(file)?.[1]),
  ...(JSON.parse(readFileSync(`${folder}/${file}`, "utf8")) as { crawler: string; frames: string[] }),
}));

let loopback: LoopbackGateway;
afterEach(async () => await loopback.close());

describe.each(recorded)("a crawler of $crawler, which speaks protocol $version", ({ version, frames }) => {
  it("is welcomed in its own version, and understood from its hello to its goodbye", async () => {
    loopback = await startGateway({ zlibSync: await loadZlibSync() });
    const { seen } = loopback;
    const crawler = await RawCrawler.connect(loopback.url);

    crawler.sendBytes(Buffer.from(frames[0]!, "base64"));
    const welcome = await crawler.next("coordinator:welcome");
    for (const frame of frames.slice(1)) crawler.sendBytes(Buffer.from(frame, "base64"));
    await until(() => seen.leaves.length === 1, 5000);

    expect(protocolVersions).toContain(version);
    expect(welcome.protocolVersion).toBe(version);
    expect(seen.arrivals).toMatchObject([{ hello: { name: "amber", softwareVersion: "0.1.0" } }]);
    const results = seen.batches.flatMap((batch) => batch.results);
    expect(results.map(({ sequence }) => sequence)).toEqual(results.map((_, at) => at + 1));
    const pages = results.flatMap(({ result }) => (result.outcome.type === "fetched" ? [result.page] : []));
    expect(pages).toHaveLength(8);
    expect(pages.map((page) => page?.text)).toEqual(Array(8).fill(expect.stringMatching(/\w+ \w+/)));
    expect(new Set(seen.messages.map(({ message }) => message.type))).toEqual(
      new Set(["crawler:ready", "crawler:heartbeat", "crawler:lease-end"]),
    );
    expect(seen.leaves).toMatchObject([{ forGood: false, reason: expect.any(String) }]);
  });
});
