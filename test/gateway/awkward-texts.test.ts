/**
 * Text that an honest crawler may quote from a page it failed on, and extreme numbers: none ends its session, and a crash with
 * such last words locks nobody out.
 */
import { afterEach, expect, it } from "vitest";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";
import { newJoiningWorld } from "./joining-world.ts";

const world = await forThisFile(newJoiningWorld());
afterEach(async () => await world.reset());

const nul = "a\u0000b";
const half = "c\ud800d";
const place = { country: "GR", latitude: 5e-324, longitude: -5e-324 };

it.each([
  ["NUL in its last words", { lastEnd: { at: "2026-11-24T12:00:00.000Z", reason: nul } }, "a\ufffdb"],
  [
    "half a pair in its last words",
    { lastEnd: { at: "2026-11-24T12:00:00.000Z", reason: half } },
    "c\ufffdd",
  ],
  ["an end in the year 0", { lastEnd: { at: "0000-01-01T00:00:00.000Z", reason: "x" } }, null],
  ["NUL in its place's name and version", { place: { ...place, name: nul }, softwareVersion: half }, null],
])("a hello with %s is let in, and so is the next", async (_, more, kept) => {
  const folder = await world.joined("athens");

  const first = await world.come(folder, { change: (hello) => ({ ...hello, ...more }) });
  await world.leave(first.crawler, "athens");
  const second = await world.come(folder);

  expect([first.refuse, second.refuse]).toEqual([null, null]);
  const [row] = await world.rows(
    "select last_words, place, software_version from crawler where name = 'athens'",
  );
  if (kept !== null) expect(row?.last_words).toBe(kept);
  await world.leave(second.crawler, "athens");
});

it("a heartbeat, a goodbye and a probe report with such texts and numbers end no session", async () => {
  const folder = await world.joined("athens");
  await world.joined("berlin");
  const [other] = await world.rows("select crawler_id from crawler where name = 'berlin'");
  const crawlerId = Number(other?.crawler_id);
  const { crawler } = await world.come(folder);
  const figures = { openHosts: 0, spooledResults: 0, pages: 0, fetchedBytes: 0, shippedBytes: 0 };

  await crawler.send({ type: "crawler:heartbeat", ...figures, holdingBack: [nul, half] });
  const outcome = { type: "measured", method: "connect", rttMs: 5e-324, tries: 1 } as const;
  await crawler.send({ type: "crawler:peer-rtts", peers: [{ crawlerId, outcome }] });
  await until(
    async () =>
      (await world.rows("select heartbeat ->> 'holdingBack' as held from crawler where name = 'athens'"))[0]
        ?.held === '["a\ufffdb", "c\ufffdd"]',
    5000,
  );
  await crawler.send({ type: "crawler:goodbye", reason: nul });
  await until(async () => (await world.stateOf("athens")) === "offline", 5000);

  expect(crawler.received.filter(({ type }) => type === "coordinator:refuse")).toEqual([]);
  expect(await world.rows("select offline_reason from crawler where name = 'athens'")).toEqual([
    { offline_reason: expect.stringContaining("a\ufffdb") },
  ]);
});
