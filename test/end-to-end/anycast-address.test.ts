/** An address that answers everywhere, on network namespaces (test/support/small-internet). */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { placedFleet, smallInternet, smallInternetNeeds } from "../support/small-internet/small-internet.ts";
import { until } from "../support/until.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** The registry's record of a CDN's block, and the CDN's own list of ranges, which names no place. */
function filesOfCdn(folder: string, block: string): string[] {
  const day = new Date().toISOString().slice(0, 10).replaceAll("-", "");
  const delegated = join(folder, `delegated-arin-extended-${day}`);
  const lines = [
    `2|arin|${day}|1|20200101|${day}|-0500`,
    "arin|*|ipv4|*|1|summary",
    `arin|US|ipv4|${block}|1048576|20140328|allocated|cdn`,
  ];
  writeFileSync(delegated, `${lines.join("\n")}\n`);
  const list = join(folder, "cloudflare.json");
  const result = { ipv4_cidrs: [`${block}/12`], ipv6_cidrs: [], etag: "1" };
  writeFileSync(list, JSON.stringify({ result, success: true }));
  return [delegated, list];
}

describe.skipIf(smallInternetNeeds() !== null)("on network namespaces", () => {
  it("a CDN's address is found to be anycast, and who says why", { timeout: 180_000 }, async () => {
    const internet = await smallInternet({
      places: ["nl", "jp"],
      sitesPerPlace: 1,
      everywhere: { "cdn.example": "104.16.132.229" },
    });
    cleanups.push(internet.close);
    const fleet = await placedFleet(internet, {
      coordinatorAt: "nl",
      settings: { delegation: { expectedCrawlers: 2 } },
    });
    cleanups.push(fleet.close);
    await fleet.run(
      "rir",
      "apply",
      ...internet.registryFiles(),
      ...filesOfCdn(internet.folder, "104.16.0.0"),
    );
    for (const place of ["nl", "jp"] as const) await fleet.join(place, place);

    await fleet.run("urls", "add", "http://cdn.example/");

    // The first round may be over before the two crawlers know how far they are from each other.
    const isAnycast = "select from delegation where anycast";
    await until(async () => (await fleet.rows(isAnycast)).length === 1, 120_000);
    const words = (await fleet.run("who", "cdn.example")).replaceAll(/\s+/g, " ");
    expect(words).toContain("The range is anycast");
    expect(words).toContain("Its network publishes it as cloudflare 104.16.0.0/12");
  });
});
