/** `who` about a URL: its key, its discovery, its turn with the reason, its next fetch, its history. */
import { beforeAll, describe, expect, it } from "vitest";
import type { OrderName } from "#coordinator/crawl/frontier/order/strategies";
import { answerWho } from "#coordinator/tell/who/answer";
import { hostTurnWords, placeWords } from "#coordinator/tell/who/explanation";
import { whoOperations } from "#coordinator/tell/who/who-ask";
import { urlKeyOf } from "#core/url-key";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { shownAs } from "../support/shown-as.ts";
import { tinyResolver } from "../support/web-server.ts";

const page = "https://www.example.org/timetable";
const unseen = "https://www.example.org/new";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedUrl(database.pool, { url: page });
  await seedUrl(database.pool, { url: unseen });
  await seedPast();
});

/** Visited 60 times, the last 18 days ago; every second visit found a change, and the first had nothing to compare with. */
async function seedPast(): Promise<void> {
  const key = keyOf(page);
  await database.pool.query(
    `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, status, total_ms, wire_bytes,
       body_bytes, shipped_bytes, changed)
     select $1, $2, 1, $3::timestamptz - make_interval(days => 18 + 60 - n), 'fetched', 200, 20, 900, 2000, 300,
       case when n > 1 then n % 2 = 0 end
     from generate_series(1, 60) n`,
    [key.hostHash, key.urlHash, worldNow],
  );
  await database.pool.query(
    `update frontier_url
     set visits = 60, depth = 1, back_links = 12, out_links = 8, change_ratio = 0.7, changes_per_day = 0.5,
       compared_visits = 59, content_changes = 30, last_fetched_at = $3::timestamptz - interval '18 days',
       last_outcome = 'fetched', last_status = 200, etag = '"a1"', digest = '\\xab', state = 'due',
       next_fetch_at = $3::timestamptz - interval '1 hour'
     where host_hash = $1 and url_hash = $2`,
    [key.hostHash, key.urlHash, worldNow],
  );
  const other = keyOf(unseen);
  await database.pool.query(
    `update frontier_url set back_links = 3, state = 'due', next_fetch_at = $3::timestamptz - interval '1 minute'
     where host_hash = $1 and url_hash = $2`,
    [other.hostHash, other.urlHash, worldNow],
  );
}

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(key);
  return key;
}

async function who(question: string, order: OrderName = "anansi") {
  const reads = everyRead(database.pool, () => performance.now());
  const inForce = { name: order, newShare: 0.9, worthShare: 0.75 };
  return await answerWho(question, { reads, resolver: tinyResolver, scope: null, order: inForce }, worldNow);
}

describe("its turn", () => {
  it("is its position in its list, with the score in words and numbers", async () => {
    const { order } = await who(page);

    expect(order).toMatchObject({ strategy: "anansi", list: "old", newShare: 0.9, place: 1, of: 1 });
    expect(order?.reason).toBe("1.4 = C 0.7 × T 0.1 × (I 12 + O 8)");
  });

  it("counts new URLs separately, those with more back-links first", async () => {
    const { order } = await who(unseen);

    expect(order).toMatchObject({ list: "new", score: 3, place: 1, of: 2 });
    expect(placeWords(order!)).toBe("1st of 2 new URLs due on its host");
  });

  it("counts all URLs where the strategy mixes both", async () => {
    const { order } = await who(page, "breadth-first");

    expect(order).toMatchObject({ strategy: "breadth-first", newShare: null, score: 3600 });
    expect(order?.reason).toBe("due for 60 min, 1 link from a seed");
  });

  it("is unknown for a URL outside the frontier and for a host", async () => {
    expect((await who("https://www.example.org/nowhere")).order).toBeNull();
    expect((await who("www.example.org")).order).toBeNull();
  });
});

describe("the turn of its host", () => {
  it("depends on the host's best known new URL where the order asks for it", async () => {
    const unknown = await who(page);
    await database.pool.query("update frontier_host set worth = 3 where host = 'www.example.org'");
    const known = await who(page);

    expect(hostTurnWords(unknown.order!)).toBe(
      "75 % of the hosts go by their best new URL, and this one has none that is known and due; the others by how long they are due",
    );
    expect(hostTurnWords(known.order!)).toContain("and this one's is worth 3;");
    expect(shownAs(whoOperations.who, known).words).toContain(
      "Its host's turn 75 % of the hosts go by their best new URL",
    );
    expect(shownAs(whoOperations.who, known).page).toContain("is worth 3;");
  });

  it("depends on how long it has been due under breadth-first", async () => {
    expect(hostTurnWords((await who(page, "breadth-first")).order!)).toBe(
      "hosts go by how long they are due",
    );
  });
});

describe("its record", () => {
  it("has key, discovery, validators, changes and the latest 50 visits", async () => {
    const { url } = await who(page);

    expect(url).toMatchObject({
      url: page,
      id: { hostHash: keyOf(page).hostHash, urlHash: keyOf(page).urlHash },
      foundBy: "link",
      validators: { etag: '"a1"', lastModified: null, digest: "ab" },
      changes: { perDay: 0.5, comparedVisits: 59, contentChanges: 30, outLinks: 8, linkRatio: 0.7 },
    });
    expect(url?.fetches).toHaveLength(50);
    expect(url?.fetches.slice(0, 2).map((visit) => visit.changed)).toEqual([true, false]);
  });

  it("is shown in a terminal and on a page", async () => {
    const answer = await who(page);

    const text = shownAs(whoOperations.who, answer).words;
    const body = shownAs(whoOperations.who, answer).page;

    expect(text).toContain(
      "Next fetch due since 2026-03-01 11:00:00 UTC, set by the recrawl policy for a page with 0.5 changes per day",
    );
    expect(text).toContain("Priority 1.4 = C 0.7 × T 0.1 × (I 12 + O 8)");
    expect(text).toContain(
      "Changes 30 changes in 59 compared visits, about 0.5 per day; 8 links, 0.7 of them changed at the last visit",
    );
    expect(text).toContain('Validators ETag "a1", SHA-256 ab');
    expect(text).toMatch(/2026-02-11 12:00:00 UTC athens fetched 200/);
    expect(body).toContain("1.4 = C 0.7 × T 0.1 × (I 12 + O 8)");
    expect(body).toContain("1st of 1 old URL due on its host");
  });
});

describe("visits whose fetches are no longer kept", () => {
  it("are counted and said to be missing; a list that is only cut does not say so", async () => {
    const cut = await who(page);
    await database.pool.query(
      "delete from page_fetch where fetched_at < $1::timestamptz - interval '30 days'",
      [worldNow],
    );

    const answer = await who(page);

    const words =
      "47 earlier visits are counted and not listed: fetches are kept for a time (policy retention.fetchDays)";
    expect(answer.url?.fetches).toHaveLength(13);
    expect(shownAs(whoOperations.who, answer).words).toContain(words);
    expect(shownAs(whoOperations.who, answer).page).toContain(words);
    expect(shownAs(whoOperations.who, cut).words).not.toContain("not listed");
  });
});
