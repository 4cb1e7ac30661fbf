import { request } from "undici";
import { expect, test } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { startWorld } from "#ops/world/main";
import { planSite } from "#ops/world/site-plan";
import { PageChanges, pageAt, type StartOptions } from "#ops/world/world-state";

const day = 86_400_000;

test("a page changes as often as its process says, at the same times from the same seed", () => {
  const process = { seed: 3, startMs: 0, changesPerDay: () => 10 };
  const [one, other] = [new PageChanges(process), new PageChanges(process)];

  const counts = Array.from({ length: 100 }, (_, page) => one.at("a.example", `/${page}`, 10 * day).version);

  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  expect(Math.abs(mean / 100 - 1), "seed 3").toBeLessThan(0.05);
  expect(other.at("a.example", "/7", 4 * day).version).toBeLessThan(counts[7]!);
  expect(other.at("a.example", "/7", 10 * day)).toMatchObject({ version: counts[7] });
});

test("a page without changes stays as it is, and a clock that is set back shows nothing anew", () => {
  const still = new PageChanges({ seed: 1, startMs: 0, changesPerDay: () => 0 });
  const lively = new PageChanges({ seed: 1, startMs: 0, changesPerDay: () => 5 });

  const later = { ...lively.at("a.example", "/", 5 * day) };

  expect(still.at("a.example", "/", 1e15).version).toBe(0);
  expect(lively.at("a.example", "/", 1 * day)).toMatchObject(later);
});

test("a changed page has another text, and validators of its own", async () => {
  const world = generateWorld({ seed: 4, sites: 1, crawlers: 1 });
  const [site] = world.sites;
  const { host } = site!;
  const changes = {
    seed: 2,
    startMs: Date.now() - day,
    changesPerDay: (_: string, path: string) => (path === "/" ? 50 : 0),
  };
  const frontPage = async (options: StartOptions) => {
    const internet = await startWorld(world, options);
    const { headers, body } = await request(`http://127.0.0.1:${internet.originPort}/`, {
      headers: { host },
    });
    const text = await body.text();
    await internet.close();
    return { etag: headers.etag, modified: String(headers["last-modified"]), text };
  };

  const [changed, planned] = [await frontPage({ changes }), await frontPage({})];

  expect(changed.text).not.toBe(planned.text);
  expect(changed.etag).not.toBe(planned.etag);
  expect(Date.parse(changed.modified)).toBeGreaterThan(Date.now() - 2 * day);
  const plan = planSite(world, site!);
  expect(pageAt(plan.pages[0]!, { version: 0, changedAtMs: 0 })).toBe(plan.pages[0]);
});
