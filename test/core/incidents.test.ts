/** Noting incidents never waits or fails, and a flood of them becomes a few rows. */
import { expect, it } from "vitest";
import { asCrawlerId } from "#core/ids";
import { type Incident, IncidentLog } from "#core/incidents";

const at = new Date("2026-11-20T12:00:00Z");
const incident = (changes: Partial<Incident> = {}): Incident => ({
  crawlerId: asCrawlerId(1),
  kind: "flood",
  words: "too much",
  remoteAddress: null,
  at,
  ...changes,
});

function recording(fails = false) {
  const written: (readonly Incident[])[] = [];
  const said: string[] = [];
  const noted: string[] = [];
  const incidents = new IncidentLog({
    store: {
      recordAll: async (rows) => {
        if (fails) throw new Error("the database is away");
        written.push(rows);
      },
      forget: async () => 0,
    },
    log: { warn: (_fields, message) => said.push(message) },
    onNoted: (kind) => noted.push(kind),
  });
  return { incidents, written, said, noted };
}

it("writes a flood of the same incident as one row with its count and last message, and logs it once", async () => {
  const { incidents, written, said, noted } = recording();

  for (let n = 1; n <= 10_000; n += 1) incidents.note(incident({ words: `number ${n}` }));
  incidents.note(incident({ kind: "wrong-key", crawlerId: null }));
  await incidents.flush();

  expect(written).toEqual([
    [
      incident({ words: "number 10000", count: 10_000 }),
      incident({ kind: "wrong-key", crawlerId: null, count: 1 }),
    ],
  ]);
  expect([said.length, noted.length]).toEqual([2, 10_001]);
});

it("keeps a bounded number of rows in memory, however many crawlers", async () => {
  const { incidents, written, noted } = recording();

  for (let n = 1; n <= 10_000; n += 1) incidents.note(incident({ crawlerId: asCrawlerId(n) }));
  await incidents.flush();

  expect([written[0]?.length, noted.length]).toEqual([4000, 10_000]);
});

it("continues when the database accepts nothing", async () => {
  const { incidents, said } = recording(true);

  incidents.note(incident());
  await incidents.flush();

  expect(said).toEqual(["an incident", "incidents could not be recorded"]);
});
