/** The runbook's twenty questions, answered by page and JSON, and whether their commands exist. */
import { readFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { keptDifference } from "#coordinator/crawl/changes/text-difference";
import { countCoverage } from "#coordinator/tell/reports/report-store";
import { keepSites } from "#coordinator/tell/sites/sites-upkeep-store";
import { loadedProgram } from "#ops/cli/commands";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedFleet } from "../support/seed-fleet.ts";
import { seedHost, seedPage, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

interface Question {
  readonly number: number;
  readonly words: string;
  readonly page: string;
  readonly command: readonly string[];
  readonly steps: number;
}

const questions = readFileSync("ops/runbook/questions.md", "utf8")
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, number]) => /^\d+$/.test(number ?? ""))
  .map(
    ([, number, words, page, command, , steps]): Question => ({
      ...{ number: Number(number), words: words ?? "", steps: Number(steps) },
      page: (page ?? "").replaceAll("`", ""),
      command: (command ?? "").replaceAll("`", "").split(" ").slice(1),
    }),
  );

/** The text on the page and in the JSON that answers it. */
const answers: Readonly<Record<number, { readonly page: RegExp; readonly json: object }>> = {
  1: {
    page: /www\.example\.org/,
    json: {
      sort: "failures",
      sites: expect.arrayContaining([expect.objectContaining({ failures: expect.any(Number) })]),
    },
  },
  2: {
    page: /The harbour/,
    json: {
      pages: {
        counts: expect.anything(),
        urls: expect.arrayContaining([expect.objectContaining({ url: "https://www.example.org/" })]),
      },
    },
  },
  3: {
    page: /\/private/,
    json: {
      pages: {
        urls: [
          expect.objectContaining({ url: "https://www.example.org/private", state: "blocked-by-robots" }),
        ],
      },
    },
  },
  4: {
    page: /Coverage by country/,
    json: { countries: expect.arrayContaining([expect.objectContaining({ key: "GR" })]) },
  },
  5: {
    page: /25/,
    json: {
      changes: { changes: [expect.objectContaining({ kind: "changed", difference: expect.anything() })] },
    },
  },
  6: {
    page: /7 days/,
    json: { overview: { freshness: expect.objectContaining({ within7Days: expect.any(Number) }) } },
  },
  7: { page: /8\.0\.0\.0\/16/, json: { lines: [expect.objectContaining({ help: "absent-crawler" })] } },
  8: {
    page: /athens is the only crawler online/,
    json: { lines: expect.arrayContaining([expect.objectContaining({ crawler: "athens" })]) },
  },
  9: {
    page: /Example Networks/,
    json: { lines: expect.arrayContaining([expect.objectContaining({ handle: "ORG-EX1-AP" })]) },
  },
  10: {
    page: /Most waiting is here: India/,
    json: { lines: [expect.objectContaining({ country: "IN" })] },
  },
  11: {
    page: /crawls? this/,
    json: { effective: expect.objectContaining({ crawler: expect.objectContaining({ name: "athens" }) }) },
  },
  12: {
    page: /Delegation history/,
    json: { history: expect.arrayContaining([expect.objectContaining({ from: "berlin", to: "athens" })]) },
  },
  13: { page: /In its space/, json: { rollUp: expect.objectContaining({ subnets: 3 }) } },
  14: {
    page: /it was stopped by its host/,
    json: { crawlers: expect.arrayContaining([expect.objectContaining({ name: "berlin" })]) },
  },
  15: {
    page: /old\.example\.org/,
    json: { hosts: expect.arrayContaining([expect.objectContaining({ host: "old.example.org" })]) },
  },
  16: { page: /The harbour/, json: { page: expect.objectContaining({ url: "https://www.example.org/" }) } },
  17: {
    page: /The harbour/,
    json: { pages: [expect.objectContaining({ url: "https://www.example.org/" })] },
  },
  18: {
    page: /The harbour/,
    json: { changes: [expect.objectContaining({ kind: "changed", url: "https://www.example.org/" })] },
  },
  19: { page: /Delegation accuracy|Accuracy/, json: { estimate: expect.anything() } },
  20: { page: /50,000/, json: { crawler: expect.objectContaining({ name: "athens" }) } },
};

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  const { pool } = database;
  await seedWorld(pool);
  await seedFleet(pool);
  await seedPage(pool, {
    ...{
      url: "https://www.example.org/",
      title: "The harbour",
      text: "ships lie in the harbour",
      language: "en",
    },
  });
  await seedIndia(pool);
  await seedUrl(pool, {
    ...{ url: "https://www.example.org/private", state: "refused", lastOutcome: "refused-by-robots" },
    ...{ lastReason: "Disallow: /private" },
  });
  await seedChangedText(pool);
  await pool.query(
    `update frontier_url set last_outcome = 'fetched', last_status = 200, last_fetched_at = $1
     where url = 'https://www.example.org/'`,
    [worldNow],
  );
  while (!(await keepSites(pool, worldNow)).rests);
  await countCoverage(pool, worldNow);
  app = webServer(database, { parts: await everyPart(database) });
});
/** An hour ago, the price on the front page went up. */
async function seedChangedText(pool: Pool): Promise<void> {
  const place = {
    part: "text",
    before: "A ticket costs",
    removed: "20",
    added: "25",
    after: "euro",
  } as const;
  const difference = keptDifference({ places: [place], more: 0 });
  await pool.query(
    `insert into page_change (change_number, noted_at, host_hash, url_hash, url, kind, seen_at, language, title_after, difference)
     select 1, $1::timestamptz - interval '1 hour', host_hash, url_hash, url, 'changed', $1::timestamptz - interval '1 hour',
       'en', 'The harbour', $2
     from frontier_url where url = 'https://www.example.org/'`,
    [worldNow, deflateRawSync(difference)],
  );
  await pool.query("update change_feed set last_number = 1");
}

/** A subnet that athens crawls from far away, although berlin measured less. */
async function seedIndia(pool: Pool): Promise<void> {
  await pool.query(`
    insert into subnet (first_address, last_address, holder_id, country, registry, name, added_in)
    values ('8.0.0.0', '8.0.255.255', 1, 'IN', 'apnic', 'INDIAN-NET', 1);
    insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
    select subnet_id, 1, 'probe-round', true, 124, '2026-03-01T11:00:00Z' from subnet where name = 'INDIAN-NET';
    insert into probe_round (subnet_id, cause, policy, target_url, target_address, started_at, decided_at, crawler_id, reason)
    select subnet_id, 'new-subnet', 'nearest', 'https://india.example/', '8.0.0.1', '2026-03-01T11:00:00Z',
      '2026-03-01T11:00:01Z', 1, '{"type": "nearest"}'
    from subnet where name = 'INDIAN-NET';
    insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms)
    select max(round_id), 1, 1, 'head', 'measured', 124 from probe_round;
    insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms)
    select max(round_id), 2, 2, 'head', 'measured', 80 from probe_round`);
  await seedHost(pool, { host: "india.example", subnet: "8.0.0.0", address: "8.0.0.1" });
  await pool.query("update frontier_host set url_count = 400, good_pages = 40 where host = 'india.example'");
}

afterAll(async () => await app?.close());

it("number twenty, each with a page, a command and at most three steps", () => {
  expect(questions.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, at) => at + 1));
  for (const { words, steps } of questions) expect(steps, words).toBeLessThanOrEqual(3);
});

it("are each answered by their page, and by the same address below /api/ as JSON", async () => {
  for (const { number, page, words } of questions) {
    const answer = answers[number];
    if (answer === undefined) throw new Error(`question ${number} has no answer here: ${words}`);
    const shown = await app.inject({ url: page, headers: { accept: "text/html" } });
    expect(shown.statusCode, `${number} ${page}`).toBe(200);
    expect(shown.body, `${number} ${page}`).toMatch(answer.page);
    const told = await app.inject({ url: `/api${page}` });
    expect(told.statusCode, `${number} /api${page}`).toBe(200);
    expect(JSON.parse(told.body), `${number} /api${page}`).toMatchObject(answer.json);
  }
});

it("have commands that exist, with the options named", async () => {
  for (const { number, command } of questions) {
    let at = await loadedProgram(command[0]);
    for (const word of command) {
      if (word.startsWith("--")) {
        const names = at.options.map(({ long }) => long);
        expect(names, `${number} ${command.join(" ")}`).toContain(word);
        continue;
      }
      at = at.commands.find((one) => one.name() === word) ?? at;
    }
    expect(at.name(), `${number} ${command.join(" ")}`).not.toBe("nearcrawl");
  }
});
