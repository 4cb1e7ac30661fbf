/** After a bot gate's answers: the page as it was, a host that rests, and one URL tried after that. */
import { beforeEach, expect, test } from "vitest";
import type { CrawlerId } from "#core/ids";
import { type Challenge, challengeWords } from "#protocol/bot-gate";
import type { FetchOutcome, RobotsReport } from "#protocol/result";
import { noon, worldOfFile } from "../support/store-world.ts";
import { newShippingWorld, type Shipped, text } from "./shipping-world.ts";

const world = worldOfFile(newShippingWorld);
let north: CrawlerId;
beforeEach(async () => {
  await world.pool.query("truncate page_change_inbox");
  north = await world.delegatedHost("north", first, second);
});

const first = "http://a.example/";
const second = "http://a.example/second";
const dayMs = 86_400_000;
const days = (count: number) => new Date(noon.getTime() + count * dayMs);

const gate = (differences: Partial<Challenge> = {}): Shipped => {
  const challenge: Challenge = { provider: "cloudflare", of: "page", status: 403, ...differences };
  const reason = challengeWords(challenge);
  return { outcome: { type: "failed", blame: "target", code: "challenged", reason, challenge } };
};
const good = (links: readonly string[] = []): Shipped => ({
  ...{ page: { ...text(1), title: "Harbour" }, links },
  result: { etag: '"1"', lastModified: "Mon, 01 Jan 2024 00:00:00 GMT" },
});
const error = (status: number): Shipped => ({
  outcome: { type: "http-error", status, retryAfterSeconds: null },
  result: { etag: '"error"' },
});

const pages = async () =>
  (await world.pool.query("select url, title, digest, fetched_at from page order by url")).rows;
const links = async () =>
  (await world.pool.query("select sum(cardinality(urls))::int as n from out_link")).rows[0].n;
const changes = async () => (await world.pool.query("select kind from page_change_inbox")).rows;
async function rest(): Promise<{ daysLeft: number | null; tries: number | null; provider: string | null }> {
  const host = (await world.hostRow("a.example"))!;
  const notBefore = host.not_before as Date;
  const at = host.challenged_at as Date | null;
  return {
    daysLeft: at === null ? null : (notBefore.getTime() - at.getTime()) / dayMs,
    tries: host.challenges as number | null,
    provider: host.challenge_provider as string | null,
  };
}

/** Makes these URLs due by then, or all where none is given; returns the leases of the host. */
async function visit(at: Date, given: Readonly<Record<string, Shipped>>): Promise<string[]> {
  const urls = Object.keys(given);
  await world.pool.query(
    `update frontier_url set next_fetch_at = case when cardinality($2::text[]) = 0 or url = any($2) then $1::timestamptz else 'infinity' end
     where state = 'due'`,
    [at, urls],
  );
  await world.pool.query("update frontier_host set due_at = $1", [at]);
  const leases = await world.ship(north, given, at);
  return leases.flatMap((lease) => lease.urls.map(({ url }) => url));
}

test("a page read before keeps its text, links and validators, and no change is reported", async () => {
  await visit(noon, { [first]: good([second, "http://b.example/"]), [second]: good() });
  const [before, linksBefore, url] = [await pages(), await links(), await world.urlRow(first)];
  await world.pool.query("truncate page_change_inbox");

  await visit(days(8), { [first]: gate({ provider: "anubis", status: 200 }) });

  expect(await pages()).toEqual(before);
  expect(await links()).toBe(linksBefore);
  expect(await changes()).toEqual([]);
  const kept = [
    "etag",
    "last_modified",
    "digest",
    "out_links",
    "worth",
    "compared_visits",
    "changes_per_day",
  ];
  const after = (await world.urlRow(first))!;
  expect(kept.map((column) => after[column])).toEqual(kept.map((column) => url![column]));
  expect(after).toMatchObject({
    ...{ state: "due", last_outcome: "challenged", last_status: 200, etag: '"1"' },
    last_reason:
      "a bot gate (Anubis) stands before the page and asks for a proof that a person visits (status 200)",
  });
});

test("the host rests for a day, doubling to two weeks, and is then asked for one URL at a time", async () => {
  const leased = [(await visit(noon, {})).length];
  await visit(noon, { [first]: gate() });
  const rests = [(await rest()).daysLeft];
  for (let at = noon; rests.length < 6; ) {
    at = new Date(at.getTime() + rests.at(-1)! * dayMs);
    expect(await visit(new Date(at.getTime() - 60_000), {})).toEqual([]);
    leased.push((await visit(at, {})).length);
    await visit(at, { [second]: gate() });
    rests.push((await rest()).daysLeft);
  }

  expect(rests).toEqual([1, 2, 4, 8, 14, 14]);
  expect(leased).toEqual([2, 1, 1, 1, 1, 1]);
  expect((await world.hostRow("a.example"))!.challenged_since).toEqual(noon);
});

test("several challenges during the rest are one try, in one batch or in two", async () => {
  await visit(noon, { [first]: gate(), [second]: gate({ provider: "datadome" }) });

  expect(await rest()).toEqual({ daysLeft: 1, tries: 1, provider: "datadome" });
});

test("a normal page ends the rest, and the host is crawled as before", async () => {
  await visit(noon, { [first]: gate() });
  await visit(days(1), { [second]: gate() });

  await visit(days(3), { [first]: good() });
  const leased = await visit(days(3.5), {});

  expect(await rest()).toEqual({ daysLeft: null, tries: null, provider: null });
  expect(leased).toEqual([first, second]);
});

test("a gate before one URL of a host that serves its other pages delays that URL only", async () => {
  await visit(noon, { [first]: gate(), [second]: good() });

  expect(await rest()).toMatchObject({ tries: null });
  expect((await world.urlRow(first))!.next_fetch_at).toEqual(days(1));
  await visit(days(1), { [first]: gate(), [second]: good() });
  expect((await world.urlRow(first))!.next_fetch_at).toEqual(days(3));
});

test("answers let through by gates, and errors that may be theirs, do not open a gate", async () => {
  const passing: readonly (readonly [string, Shipped])[] = [
    ["a redirect to https", { outcome: { type: "redirected", status: 301, location: "https://a.example/" } }],
    ["an image", { outcome: { type: "unsupported", status: 200, contentType: "image/png" } }],
    ["a sitemap", { page: { kind: "sitemap" } }],
    ["a refusal", error(403)],
    ["trouble", error(503)],
  ];
  await visit(noon, { [first]: gate() });

  for (const [at, [, shipped]] of passing.entries()) {
    await visit(days(2 + at), { [second]: shipped });
    expect(await rest()).toMatchObject({ tries: 1, provider: "cloudflare" });
  }
});

test("robots.txt behind a gate makes the host rest and keeps its pages", async () => {
  await visit(noon, { [first]: good(), [second]: good() });
  const before = await pages();
  const robots: RobotsReport = { state: "unreachable", crawlDelaySeconds: null, sitemaps: [] };

  await visit(days(8), { [first]: { ...gate({ of: "robots", status: 202 }), result: { robots } } });

  expect(await pages()).toEqual(before);
  expect(await world.hostRow("a.example")).toMatchObject({
    ...{ challenge_of: "robots", challenges: 1, robots_state: "unreachable" },
  });
});

test("validators of an error do not replace the page's", async () => {
  await visit(noon, { [first]: good() });

  await visit(days(8), { [first]: error(403) });

  expect((await world.urlRow(first))!.etag).toBe('"1"');
});

test("an earlier release takes a challenge for a failure, which keeps the page", async () => {
  await visit(noon, { [first]: good() });
  const before = await pages();
  const { challenge: _, ...outcome } = gate().outcome as FetchOutcome & { challenge: Challenge };

  await visit(days(8), { [first]: { outcome } });

  expect(await pages()).toEqual(before);
  expect(await world.urlRow(first)).toMatchObject({ state: "due", last_outcome: "failed", etag: '"1"' });
});
