/** What `who` tells of hosts that are delegated by themselves. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerWho } from "#coordinator/who/answer";
import { createReports } from "#coordinator/who/reads";
import type { WhoAnswer } from "#coordinator/who/who-report";
import { verdictOf, whence } from "#coordinator/who/words";
import { urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { seedHost, seedWorld, worldNow } from "../support/seed-world.ts";
import { tinyResolver } from "../support/web-server.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await seedHost(database.pool, { host: "geo.example.org", subnet: "1.2.3.0", address: "1.2.3.9" });
  const geo = urlKeyOf("https://geo.example.org/");
  if (typeof geo === "string") throw new Error(geo);
  // The /24 is berlin's at 20 ms, but for one host.
  await database.pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
     values (3, 1, 'probe-round', true, 20, '2026-03-01T11:10:01Z');
     insert into probe_round (within_subnet_id, cause, policy, target_url, target_address, started_at, decided_at,
       crawler_id, reason) values
       (3, 'differs-by-place', 'nearest', 'https://geo.example.org/', '1.2.3.9', '2026-03-01T11:40:00Z',
         '2026-03-01T11:40:01Z', 3, '{"type": "only-candidate", "runnerUp": null}');
`,
  );
  await database.pool.query(
    `insert into finer_delegation (subnet_id, host_hash, crawler_id, round_id, cause, measured, rtt_ms, seen, found_at,
       delegated_at, review_at) values
       (3, $1, 3, (select max(round_id) from probe_round), 'differs-by-place', true, 4,
         '[{"crawlerId": null, "addresses": ["1.2.3.9"]}, {"crawlerId": 3, "addresses": ["5.6.7.8"]}]',
         '2026-03-01T11:50:00Z', '2026-03-01T11:50:00Z', '2026-03-01T17:50:00Z')`,
    [geo.hostHash],
  );
  await database.pool.query(
    "update frontier_host h set finer_id = f.finer_id from finer_delegation f where f.host_hash = h.host_hash",
  );
});
afterAll(async () => await database?.close());

async function who(question: string): Promise<WhoAnswer> {
  const reads = createReports(database.pool, () => performance.now());
  return await answerWho(question, { reads, resolver: tinyResolver, scope: null }, worldNow);
}

const words = (answer: WhoAnswer, code: string) => answer.standing.find((line) => line.code === code)?.words;

describe("a host that answers differently by place", () => {
  it("goes to its own crawler, with what each was told", async () => {
    const answer = await who("geo.example.org");

    expect(answer.effective).toMatchObject({
      crawler: { name: "tokyo" },
      rttMs: 4,
      finer: true,
      inherited: false,
    });
    expect(answer.round).toMatchObject({ subnetId: 3, cause: "differs-by-place" });
    expect(verdictOf(answer)).toBe("tokyo crawls this");
    expect(answer.finer).toMatchObject({
      host: "geo.example.org",
      seen: [
        { crawler: null, addresses: ["1.2.3.9"] },
        { crawler: "tokyo", addresses: ["5.6.7.8"] },
      ],
    });
    expect(words(answer, "differs-by-place")).toBe(
      "This host answers differently by place: delegated by host, to tokyo, since 2026-03-01 11:50:00 UTC. Seen by the coordinator 1.2.3.9; tokyo 5.6.7.8.",
    );
    expect(whence(answer.effective!)).toBe("for this host by itself");
  });

  it("says nothing of itself to who asks for its address", async () => {
    const answer = await who("1.2.3.9");

    expect(answer.effective?.crawler.name).toBe("athens");
    expect(words(answer, "differs-by-place")).toBeUndefined();
  });
});
