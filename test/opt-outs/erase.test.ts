/** One page is erased: nothing of its content is left in any table, and later data of it is dropped. */
import { createHash } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { everyChange } from "#coordinator/crawl/changes/page-change";
import { changeOfErasure, erasePageOf } from "#coordinator/run/opt-outs/honour";
import { createOptOutMarks } from "#coordinator/run/opt-outs/mark-writes";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import type { CrawlerId } from "#core/ids";
import { forThisFile } from "../support/for-this-file.ts";
import { arrivedResult, keyOf, newWorld, noon, secondsAfterNoon } from "../support/store-world.ts";

const jane = "https://www.site.example/people/jane";
const others = ["https://www.site.example/", "https://www.site.example/people/john"];
/** The audit log's entry about the first erasure. */
let words = "";
/** The page's text about her, which no other page has. */
const secret = "quokka";

const world = await forThisFile(newWorld());
let crawlerId: CrawlerId;
beforeAll(async () => {
  crawlerId = await world.delegatedHost("amber", jane, ...others);
});

const erase = async (url: string) =>
  await erasePageOf(
    { optOuts: createOptOutStore(world.pool), marks: createOptOutMarks(world.pool) },
    { url, words: "" },
    noon,
  );

/** Tables in which a row holds the text in any column. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await world.rows<{ name: string }>(
    `select c.relname::text as name from pg_class c
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
     order by name`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const { rowCount } = await world.pool.query(
      `select from "${name}" t where t::text ilike '%' || $1 || '%' limit 1`,
      [text],
    );
    if (rowCount) found.push(name);
  }
  return found;
}

let sequence = 0;
const visit = async (
  url: string,
  leaseId: string,
  page: Parameters<typeof arrivedResult>[0]["page"],
  links: string[] = [],
) => {
  sequence += 1;
  const result = arrivedResult({ sequence, leaseId, url, links, ...(page && { page }) });
  return await world.take(crawlerId, [result]);
};

/** A page fetched twice with a change, linked from another one, with a comparison, a rank and a receipt. */
async function pageThatIsKnownEverywhere(): Promise<void> {
  const of = (words: string) => ({ title: `Jane ${words}`, description: words, text: `${words} text` });
  for (const round of ["one", "two"]) {
    const [lease] = await world.lease(crawlerId, secondsAfterNoon(round === "one" ? 0 : 100_000));
    await visit(jane, lease!.leaseId, of(`${secret} ${round}`), [others[round === "one" ? 0 : 1]!]);
    for (const other of others) await visit(other, lease!.leaseId, of("plain"), [jane]);
    await numberChanges(world.pool, noon);
  }
  const { hostHash, urlHash, host } = keyOf(jane);
  const key = [hostHash, urlHash];
  await world.pool.query("update out_link set anchors = replace(anchors, $1, $2)", [
    `to ${jane}`,
    `the ${secret} page`,
  ]);
  await world.pool.query("insert into url_rank values ($1, $2, 0.1, now())", key);
  await world.pool.query(
    `insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by, verdict, words)
     values ($1, $2, $3, $4, $5, 'sample', $6, '{}', now(), 'alone', $7)`,
    [...key, host, jane, crawlerId, JSON.stringify([{ crawlerId, sketch: { words: secret } }]), secret],
  );
  await world.pool.query(
    `with made as (
       insert into submission (deed, submitted_by, submitted_at) values ('add', 'root', now()) returning submission_id)
     insert into submission_url (submission_id, place, url, host_hash, url_hash, answer)
     select submission_id, 1, $3, $1, $2, 'known' from made`,
    [...key, jane],
  );
  await world.pool.query("insert into rejected_url (url, reason, source) values ('x:y', 'not-http', $1)", [
    jane,
  ]);
}

test("nothing but its URL is left, and the counts name the tables", async () => {
  await pageThatIsKnownEverywhere();
  const before = await tablesWith(secret);

  const erased = await erase("HTTPS://WWW.site.example./people/%6Aane#top");
  const again = await erase(jane);

  expect(before).toEqual(
    expect.arrayContaining(["out_link", "page", "document", "page_change", "double_check"]),
  );
  if (typeof erased === "string" || typeof again === "string") throw new Error("no page");
  expect(await tablesWith(secret)).toEqual([]);
  expect(await tablesWith(jane)).toEqual(["frontier_url", "page_change", "page_change_inbox"]);
  expect(erased.rows).toMatchObject({
    ...{ page: 1, page_fetch: 2, out_link: 1, url_rank: 1, double_check: 1, frontier_url: 1 },
    ...{ anchors: 2, submission_url: 1, rejected_url: 1 },
  });
  expect(again).toMatchObject({ optOutId: erased.optOutId, urlDigest: erased.urlDigest });
  // The first entry of the audit log explains what was erased first.
  expect(again.rows).toEqual({});
  words = changeOfErasure(erased).words;
  expect((await world.rows("select url from page order by url")).map((row) => Object.values(row)[0])).toEqual(
    others,
  );
});

test("readers of changes learn that it is gone, so that exports delete it, and nothing of its content", async () => {
  const feed = createChangeFeed(world.pool);
  const { last } = await feed.state();
  await numberChanges(world.pool, noon);
  const told = await feed.after(last, { filter: everyChange, limit: 10 });

  expect(told.type === "read" && told.changes).toMatchObject([
    { url: jane, kind: "gone", reason: "its site has opted out", titleBefore: null, digestBefore: null },
  ]);
});

test("the audit log proves it by a digest of its URL, and repeats nothing of it", async () => {
  const erased = await erase(jane);
  if (typeof erased === "string") throw new Error(erased);

  const change = changeOfErasure(erased);

  expect(change).toMatchObject({ action: "page-erased", target: "www.site.example" });
  expect(change.words).toContain(createHash("sha256").update(jane).digest("hex"));
  expect(words).toMatch(/page 1, .*anchors 2/);
  expect(change.words).toContain("nothing was kept of it");
  expect(JSON.stringify(change)).not.toContain("jane");
});

test("a later result of it, from a spool or an open lease, is dropped without an incident", async () => {
  const [lease] = await world.lease(crawlerId, secondsAfterNoon(400_000));

  const taken = await visit(jane, lease!.leaseId, { title: secret });
  const other = await visit(others[0]!, lease!.leaseId, { title: "still here" }, [jane]);

  expect(taken).toMatchObject({ stored: 0, withoutLease: 1 });
  expect(taken.refused).toBeUndefined();
  expect(other).toMatchObject({ stored: 1, newUrls: 0 });
  expect(await tablesWith(secret)).toEqual([]);
});

test("is erased again where a database came back from a backup with the page", async () => {
  const { hostHash, urlHash } = keyOf(jane);
  await world.pool.query("update opt_out set applied = 0");
  await world.pool.query(`insert into url_rank values ($1, $2, 0.1, now())`, [hostHash, urlHash]);

  const { erased } = await createOptOutMarks(world.pool).apply(noon);

  expect(erased).toMatchObject({ url_rank: 1 });
});

test.each(["192.0.2.0/24", "not a page", ""])("%s is no page, and nothing is erased", async (text) => {
  expect(typeof (await erase(text))).toBe("string");
});

test("a bare name, which elsewhere means a site, is refused, so no front page is erased by it", async () => {
  const before = await world.rows("select opt_out_id from opt_out");

  expect(await erase("www.site.example")).toMatch(/no URL of a page/);
  expect(await world.rows("select opt_out_id from opt_out")).toEqual(before);
});
