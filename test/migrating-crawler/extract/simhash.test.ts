/** Simhashes of texts that are edited slightly, made up and real. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { stemmingOf } from "#core/words/words";
import { Simhash } from "#crawler/extract/simhash";
import { simhashDistance } from "#protocol/result";
import { sharedData } from "../../support/shared-data.ts";
import { extracted } from "../support/extracted.ts";

async function simhashOf(text: string, configuration = "english"): Promise<string> {
  const simhash = new Simhash(await stemmingOf(configuration));
  for (const part of text.split("\n")) simhash.add(part);
  return simhash.toString();
}

describe("a text's simhash", () => {
  it("is the same in every version of the crawler", async () => {
    expect(await simhashOf("one two two three three three and so on, and on", "simple")).toBe(
      "83760f344b682f08",
    );
    expect(await simhashOf("")).toBe("0000000000000000");
  });

  it("is of its stems, without the words that all texts of the language share", async () => {
    expect(await simhashOf("The crawlers are visiting the pages")).toBe(
      await simhashOf("Crawler visits page!"),
    );
    expect(await simhashOf("日本語")).not.toBe(await simhashOf("中国語"));
  });
});

const manifest = sharedData("suites/pages/manifest.json");

it.skipIf(manifest === null)(
  "real pages nearly keep their simhash when a few words change, and differ from each other",
  { timeout: 60_000 },
  async () => {
    const entries = JSON.parse(readFileSync(manifest!, "utf8")) as { file: string }[];
    let [near, pairs, far] = [0, 0, 0];
    let last = "";

    for (const { file } of entries.filter((_, index) => index % 6 === 0)) {
      const { text } = await extracted(readFileSync(sharedData(`suites/pages/${file}`)!));
      const words = text.split(/\s+/);
      if (words.length < 600) continue;
      const whole = await simhashOf(text);
      const edited = await simhashOf([...words.slice(0, 300), "edited", ...words.slice(304)].join(" "));
      pairs++;
      if (simhashDistance(whole, edited) <= 3) near++;
      if (last !== "" && simhashDistance(whole, last) > 6) far++;
      last = whole;
    }

    expect(pairs).toBeGreaterThan(10);
    expect(near / pairs).toBeGreaterThanOrEqual(0.95);
    expect(far / (pairs - 1)).toBeGreaterThanOrEqual(0.9);
  },
);
