/** `who` about hosts with a delegation of their own and about split leaves. */

import { beforeAll, describe, expect, it } from "vitest";
import { answerWho } from "#coordinator/tell/who/answer";
import type { WhoAnswer } from "#coordinator/tell/who/who-api";
import { whoOperations } from "#coordinator/tell/who/who-ask";
import { verdictOf, whence } from "#coordinator/tell/who/words";
import { urlKeyOf } from "#core/url-key";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedHost, seedWorld, worldNow } from "../support/seed-world.ts";
import { shownAs } from "../support/shown-as.ts";
import { tinyResolver } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedHost(database.pool, { host: "high.example.org", subnet: "1.2.3.0", address: "1.2.3.200" });
  await seedHost(database.pool, { host: "geo.example.org", subnet: "1.2.3.0", address: "1.2.3.9" });
  const geo = urlKeyOf("https://geo.example.org/");
  if (typeof geo === "string") throw new Error(geo);
  // The /24 is berlin's at 20 ms, except for its upper half, which is tokyo's, and for one host.
  await database.pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
     values (3, 1, 'probe-round', true, 20, '2026-03-01T11:10:01Z');
     insert into probe_round (within_subnet_id, cause, policy, target_url, target_address, started_at, decided_at,
       crawler_id, reason) values
       (3, 'measures-apart', 'nearest', 'https://high.example.org/', '1.2.3.200', '2026-03-01T11:40:00Z',
         '2026-03-01T11:40:01Z', 3, '{"type": "only-candidate", "runnerUp": null}');
     insert into finer_delegation (subnet_id, first_address, last_address, crawler_id, round_id, cause, measured,
       rtt_ms, subnet_rtt_ms, found_at, delegated_at, review_at) values
       (3, '1.2.3.128', '1.2.3.255', 3, (select max(round_id) from probe_round), 'measures-apart', true, 12, 100,
         '2026-03-01T11:40:01Z', '2026-03-01T11:40:01Z', '2026-03-01T17:40:01Z')`,
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
    `update frontier_host h set finer_id = f.finer_id from finer_delegation f
     where f.host_hash = h.host_hash or (f.host_hash is null and h.host = 'high.example.org')`,
  );
});

async function who(question: string): Promise<WhoAnswer> {
  const reads = everyRead(database.pool, () => performance.now());
  return await answerWho(question, { reads, resolver: tinyResolver, scope: null }, worldNow);
}

const words = (answer: WhoAnswer, code: string) => answer.standing.find((line) => line.code === code)?.words;

const splitWords =
  "1.2.3.0/24 is split below its registered range: addresses 1.2.3.128–1.2.3.255 measure 80 ms from the rest and go to tokyo (12.0 ms).";

describe("a split leaf", () => {
  it("gives a host in the part to the part's crawler and says why", async () => {
    const answer = await who("high.example.org");

    expect(answer.effective).toMatchObject({
      crawler: { name: "tokyo" },
      range: "1.2.3.128/25",
      rttMs: 12,
      cause: "measures-apart",
      finer: "part",
      inherited: false,
    });
    expect(words(answer, "leaf-split")).toBe(splitWords);
    expect(answer.round).toMatchObject({ subnetId: 3, cause: "measures-apart" });
    expect(verdictOf(answer)).toBe("tokyo crawls this");
  });

  it("leaves a host in the rest with the subnet's crawler but mentions the split", async () => {
    const answer = await who("www.example.org");

    expect(answer.effective).toMatchObject({ crawler: { name: "athens" }, range: "1.2.3.0/24", finer: null });
    expect(answer.finer).toBeNull();
    expect(words(answer, "leaf-split")).toBe(splitWords);
  });

  it("assigns an address by its position", async () => {
    const [inside, outside] = [await who("1.2.3.130"), await who("1.2.3.5")];

    expect(inside.effective?.crawler.name).toBe("tokyo");
    expect(outside.effective?.crawler.name).toBe("athens");
    expect(inside.finer).toMatchObject({ type: "part", range: "1.2.3.128/25", subnetRttMs: 100 });
  });

  it("lists its parts for the whole range, where none is in force", async () => {
    const answer = await who("1.2.3.0/24");

    expect(answer.parts).toMatchObject([{ range: "1.2.3.128/25", crawler: { name: "tokyo" }, host: null }]);
    expect(answer.finer).toBeNull();
    expect(answer.effective?.crawler.name).toBe("athens");
  });

  it("is shown as a table on the command line", async () => {
    const text = shownAs(whoOperations.who, await who("high.example.org")).words;

    expect(text).toContain(splitWords);
    expect(text).toMatch(/1\.2\.3\.128\/25 +tokyo +12\.0 ms +100 ms/);
    expect(text).toContain("Since 2026-03-01 11:40:01 UTC");
  });
});

describe("the page of a split leaf", () => {
  it("shows its parts", async () => {
    const page = shownAs(whoOperations.who, await who("high.example.org")).page;

    expect(page).toContain("Split below its registered range");
    expect(page).toContain("1.2.3.128/25");
    expect(page).toContain("measure 80 ms from the rest");
  });

  it("has no such section without a split", async () => {
    expect(shownAs(whoOperations.who, await who("1.2.9.5")).page).not.toContain("Split below");
  });
});

describe("a host that answers differently by place", () => {
  it("goes to its own crawler, with the answers each got", async () => {
    const answer = await who("geo.example.org");

    expect(answer.effective).toMatchObject({ crawler: { name: "tokyo" }, rttMs: 4, finer: "host" });
    expect(answer.finer).toMatchObject({
      type: "host",
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

  it("is not mentioned to those who ask about its address", async () => {
    const answer = await who("1.2.3.9");

    expect(answer.effective?.crawler.name).toBe("athens");
    expect(words(answer, "differs-by-place")).toBeUndefined();
  });
});
