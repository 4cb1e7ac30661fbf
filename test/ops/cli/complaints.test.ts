/** `nearcrawl complaints` and the paragraph that answers a complaint. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Complaint, deedsParagraph } from "#coordinator/run/opt-outs/opt-out";
import type { Database } from "#db/server-database";
import { commandNamed, inProcess, said } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
});
afterAll(async () => await database?.close());

const placed = (args: readonly string[]) => [
  ...args,
  ...["--database-url", database.url, "--schema", database.schema],
];
const told = (name: string, ...args: readonly string[]) => said(commandNamed(name), placed(args));

it("a complaint is recorded with its answer, and closed", async () => {
  const report = ["--target", "www.example.org", "--from", "abuse@isp.example", "--text", "too fast"];
  const added = JSON.parse(await told("complaints", "add", ...report, "--json")) as Complaint;
  const number = String(added.complaintId);

  await told("complaints", "close", number, "--words", "answered");
  const listed = await told("complaints", "list", "--all");
  const missing = await inProcess(commandNamed("complaints"), placed(["close", number, "--words", "again"]));

  expect(listed).toMatch(
    /www\.example\.org \(.*abuse@isp\.example\)\ntoo fast\n.*no record of a request.* answered/s,
  );
  expect(missing.code).toBe(3);
});

const complaint: Complaint = {
  complaintId: 12,
  target: "example.org",
  source: "form",
  reporter: "admin@example.org",
  words: "too fast",
  requester: "203.0.113.5",
  createdAt: worldNow,
  closedAt: null,
  closingWords: null,
  deeds: {
    since: "2026-02-28T12:00:00.000Z",
    hosts: 2,
    requests: 71,
    mostInAnHour: 3,
    bytes: 71_000,
    firstAt: "2026-02-28T12:20:00.000Z",
    lastAt: "2026-03-01T11:40:00.000Z",
    measurements: 4,
    crawlers: [
      {
        name: "athens",
        address: "198.51.100.7",
        place: "Athens",
        contact: "abuse@uni.example",
        requests: 71,
        lastAt: "2026-03-01T11:40:00.000Z",
      },
    ],
    answers: [
      { outcome: "fetched", status: 200, requests: 70 },
      { outcome: "http-error", status: 429, requests: 1 },
    ],
    robots: { rules: 1, none: 1 },
    crawlDelayMs: 5000,
    backOffMs: null,
    atWork: ["athens"],
  },
};

describe("a complaint", () => {
  it("is answered by a paragraph about what we did, which names the partner to the operator", () => {
    expect(deedsParagraph(complaint)).toBe(
      "On 2026-03-01 12:00:00 UTC we received a report about our crawler's requests to " +
        "example.org. In the 24 hours before, we sent 71 requests to 2 hosts between 2026-02-28 " +
        "12:20:00 UTC and 2026-03-01 11:40:00 UTC, at most 3 within one hour, from 198.51.100.7 " +
        "(athens); 71.0 kB came back. Its distance was measured 4 times. The answers were 70 × " +
        "status 200 and 1 × status 429. Its robots.txt was read and followed for 1 host and absent, " +
        "which allows everything for 1 host. A Crawl-delay of 5 s was respected.",
    );
    expect(deedsParagraph(complaint)).not.toContain("abuse@uni.example");
  });
});
