/** `nearcrawl fleet show`: what the coordinator has noted of one crawler, from a real database, in plain sentences. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CrawlerRecord, crawlerRecord } from "#coordinator/fleet/crawler-reads";
import { createIncidentStore } from "#coordinator/overview/incident-store";
import { asCrawlerId } from "#core/ids";
import { recordText } from "#ops/cli/fleet/show";
import { newWorld, type World } from "../../support/store-world.ts";

let world: World;
let record: CrawlerRecord;
const now = new Date("2026-11-22T13:00:00Z");

beforeAll(async () => {
  world = await newWorld();
  const crawlerId = await world.crawler("athens");
  await world.pool.query(
    `update crawler
     set state = 'offline', offline_reason = 'vanished: three heartbeats did not come',
       connected_at = '2026-11-22T08:00Z', last_seen_at = '2026-11-22T12:00Z',
       was_offline_since = '2026-11-20T01:00Z', was_offline_reason = E'asked to stop\\u001b[2J',
       last_end_at = '2026-11-20T00:59Z', last_words = 'it was ended by SIGKILL', seen_address = '192.0.2.7',
       pages_per_day = 5000, concurrent_hosts = 16, probe_methods = '{head,connect}',
       release_version = '1.4.0', dock_version = '2', release_policy = 'pin: only 1.4.0',
       heartbeat = '{"holdingBack": ["outside the hours that are set for crawling"]}'
     where crawler_id = $1`,
    [crawlerId],
  );
  await createIncidentStore(world.pool).record({
    ...{ crawlerId: asCrawlerId(crawlerId), kind: "flood", words: "too many messages" },
    ...{ remoteAddress: "192.0.2.7", at: new Date("2026-11-22T11:00Z"), count: 3 },
  });
  record = (await crawlerRecord(world.pool, "athens", now))!;
});
afterAll(async () => await world.close());

describe("the coordinator's record of a crawler", () => {
  it("says since when it is away and why, why it was before, and its last words", () => {
    const [state, away, end] = recordText(record).split("\n");

    expect(state).toBe(
      "athens: offline since 2026-11-22 12:00 UTC: vanished: three heartbeats did not come.",
    );
    expect(away).toBe("Away before that from 2026-11-20 01:00 UTC: asked to stop [2J.");
    expect(end).toBe("Its last message, at 2026-11-20 00:59 UTC: it was ended by SIGKILL");
  });

  it("has its address, limits, release, trust and incidents", () => {
    const text = recordText(record);

    expect(text).toMatch(/seen at +192\.0\.2\.7/);
    expect(text).toMatch(/today +0 of 5,000 pages/);
    expect(text).toMatch(/it allows +16 sites at a time, probes by head, connect/);
    expect(text).toMatch(/release +1\.4\.0 under supervisor 2; pin: only 1\.4\.0/);
    expect(text).toMatch(/trust +not compared yet/);
    expect(text).toMatch(/incidents +2026-11-22 11:00 UTC flood, 3 times: too many messages/);
  });

  it("says of one that is there what holds it back, in its own words", async () => {
    const text = recordText({ ...record, state: "online" });

    expect(text).toMatch(/^athens: connected since 2026-11-22 08:00 UTC\./);
    expect(text).toMatch(/idle because +outside the hours that are set for crawling/);
    expect(recordText({ ...record, state: "online", holdingBack: [] })).toMatch(
      /idle because +nothing, it says/,
    );
  });

  it("is none of a crawler that nobody knows", async () => {
    expect(await crawlerRecord(world.pool, "nobody", now)).toBeNull();
  });
});
