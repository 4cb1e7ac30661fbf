/** Extraction in threads gives the same pages, and no page crashes more than its own thread. */
import { afterEach, describe, expect, it } from "vitest";
import { extractPage } from "#crawler/extract/extract-page";
import { ExtractionPool, type ExtractionSettings } from "#crawler/extract/extraction-pool";
import { bodyOf } from "../support/extracted.ts";

const pools: ExtractionPool[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

function poolOf(settings: ExtractionSettings): ExtractionPool {
  const pool = new ExtractionPool(settings);
  pools.push(pool);
  return pool;
}

const small = (word: string, changes = {}) =>
  bodyOf(
    `<html lang="en"><title>${word}</title><p>The ${word} was running.<a href="/next">next</a>`,
    changes,
  );
/** Enough work that the thread asks in between whether it may continue. */
const large = () => bodyOf(`<html lang="en"><title>large</title>${manyWords(3_000_000)}`);

/** Resolves once and never again. */
function onlyOnce(): () => Promise<void> {
  let asked = false;
  return () => {
    const again = asked;
    asked = true;
    return again ? new Promise(() => {}) : Promise.resolve();
  };
}

function manyWords(characters: number): string {
  let text = "<p>";
  for (let word = 0; text.length < characters; word++) text += `${word.toString(36)}x `;
  return text;
}

describe("extraction in threads", { timeout: 60_000 }, () => {
  it("gives the main thread's result, and keeps the body's bytes", async () => {
    const pool = poolOf({ threads: 1 });
    const body = small("harbour");

    const extracted = await pool.extract(body);

    expect(extracted).toEqual(await extractPage(body));
    expect(extracted.page.text).toContain("harbour");
    expect(body.bytes.length).toBeGreaterThan(0);
  });

  it("answers each of many pages with its own result", async () => {
    const pool = poolOf({ threads: 2 });
    const words = Array.from({ length: 60 }, (_, index) => `word${index}`);

    const all = await Promise.all(words.map((word) => pool.extract(small(word))));

    expect(all.map(({ page }) => page.title)).toEqual(words);
  });

  it("gives up a page that takes too long, and continues with the others in a new thread", async () => {
    const pool = poolOf({ threads: 1, pageMs: 3000, heldMs: 300 });

    const stuck = pool.extract({ ...large(), quiet: onlyOnce() });
    const behind = pool.extract(small("behind"));

    await expect(stuck).rejects.toMatchObject({ code: "extraction-timeout", blame: "us" });
    expect((await behind).page.title).toBe("behind");
  });

  it("does not count a thread's waiting time against the page", async () => {
    const pool = poolOf({ threads: 1, pageMs: 8000 });
    let waits = 0;
    const quiet = () => new Promise<void>((goOn) => setTimeout(goOn, waits++ === 1 ? 8100 : 0));

    const { page } = await pool.extract({ ...large(), quiet });

    expect(page.title).toBe("large");
  });

  it.each([
    ["a thread cannot be started", { threads: 1, heapMegabytes: 1 }],
    ["no thread is allowed", { threads: 0 }],
  ])("extracts in the main thread when %s", async (_why, settings) => {
    const { page } = await poolOf(settings).extract(small("here"));

    expect(page.title).toBe("here");
  });

  it("waits for the processor share before a page, and again during a long one", async () => {
    const pool = poolOf({ threads: 1 });
    let asked = 0;
    const quiet = async () => {
      asked++;
    };

    await pool.extract({ ...large(), quiet });

    expect(asked).toBeGreaterThan(1);
  });

  it("rejects unfinished pages when it is closed", async () => {
    const pool = poolOf({ threads: 1 });
    const waiting = [pool.extract(large()), pool.extract(large()), pool.extract(large())];
    const ends = Promise.allSettled(waiting);

    await pool.close();

    for (const end of await ends)
      expect(end).toMatchObject({ status: "rejected", reason: { code: "stopped" } });
  });
});
