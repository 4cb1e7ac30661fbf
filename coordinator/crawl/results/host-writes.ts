/**
 * Updates hosts' rows from a batch of results: when a host may be contacted again and at what pace, its robots.txt,
 * its protocol versions, and the sizes and worth of its pages (frontier/budgets.ts).
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { nameOf, type UrlAddress, urlKeyOf } from "#core/url-key";
import { maxPageLinks } from "#protocol/result";
import { asInteger, clean, columnsOf, rowsGiven } from "../../database/transaction.ts";
import { type CountedResult, indexedPage } from "../batch/accepted-result.ts";
import type { ChangedLink, PageWorth } from "../batch/found-urls.ts";
import { type Batch, fetchedAtOf, isHttpMissing, legible, notBeforeOf } from "../batch/result-rows.ts";
import { asksPayment, challengeOf } from "../batch/visit.ts";
import { linksWithin } from "../frontier/back-link-writes.ts";
import { type HostPages, hostPageColumns, paidHostRestDays, paymentsInARow } from "../frontier/budgets.ts";
import { keptRate } from "../frontier/host-pace.ts";
import { firstGateRestDays, longestGateRestDays } from "../recrawl/visit-findings.ts";

/** `worths` is in the same order as the results. Hosts must be locked. */
export async function updateHosts(
  client: PoolClient,
  batch: Batch,
  worths: readonly (PageWorth | null)[],
): Promise<void> {
  const paidRestUntil = new Date(batch.now.getTime() + paidHostRestDays * dayMs);
  await client.query(updateSql, [paidRestUntil, ...given.valuesOf(hostRows(batch, worths))]);
}

/** Counts of the host's pages, named as their columns. */
const countedFigures = ["good", "nearDuplicates", "notFound", "empty", "failed", "trappedLinks"] as const;

const given = rowsGiven(
  `host_hash bigint, not_before timestamptz, new_urls int, fetches int, wire_bytes bigint, robots_state text,
   robots_at timestamptz, crawl_delay_ms int, back_off_ms int, backed_off_at timestamptz, usual_ms int, http_version text,
   tls_version text, good int, near_duplicates int, not_found int, empty int, failed int, trapped_links int, payments int,
   answers_otherwise boolean, payment_asked_at timestamptz, payment_price text, tolerated jsonb, challenged_at timestamptz,
   challenge_provider text, challenge_of text, opened boolean`,
);

const counted = countedFigures.map((figure) => {
  const column = hostPageColumns[figure];
  const name = figure.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return `${column} = greatest(0, least(2147483647, h.${column}::bigint + given.${name}))::int`;
});

const dayMs = 86_400_000;

/** SQL: how many consecutive 402 answers there are after the batch. */
const paymentsAfter = `(case when given.answers_otherwise then 0 else coalesce(h.payments_asked, 0) end + given.payments)`;

/** SQL: consecutive answers by a bot gate after the batch. Answers while the host rests do not count again. */
const challengesAfter = `case
  when given.opened or h.challenges is null then 1
  when given.challenged_at >= h.not_before then least(h.challenges + 1, 1000)
  else h.challenges
end`;

/** SQL: when the host's rest ends, counted from the first try that was answered by a gate. */
const gateRestsUntil = `given.challenged_at + interval '1 day' * least(${longestGateRestDays},
  ${firstGateRestDays} * 2 ^ least(30, (${challengesAfter}) - 1))`;

/** SQL: `told` after a challenge, null after an answer by the site itself, otherwise `before`. */
const ofChallenge = (told: string, before: string) =>
  `case when given.challenged_at is not null then ${told} when not given.opened then ${before} end`;

const updateSql = `update frontier_host h
     set not_before = case
           when given.payments > 0 and ${paymentsAfter} >= ${paymentsInARow}
             then greatest(h.not_before, given.not_before, $1::timestamptz)
           when given.challenged_at is not null then greatest(h.not_before, given.not_before, ${gateRestsUntil})
           when given.answers_otherwise and h.payments_asked >= ${paymentsInARow} then given.not_before
           when given.opened and h.challenges is not null then given.not_before
           else greatest(h.not_before, given.not_before)
         end,
         payments_asked = nullif(${paymentsAfter}, 0),
         payment_asked_at = case when ${paymentsAfter} > 0 then coalesce(given.payment_asked_at, h.payment_asked_at) end,
         payment_price = case
           when given.payments > 0 then given.payment_price
           when ${paymentsAfter} > 0 then h.payment_price
         end,
         challenges = case when given.challenged_at is not null then ${challengesAfter} when not given.opened then h.challenges end,
         challenge_provider = ${ofChallenge("given.challenge_provider", "h.challenge_provider")},
         challenge_of = ${ofChallenge("given.challenge_of", "h.challenge_of")},
         challenged_at = ${ofChallenge("given.challenged_at", "h.challenged_at")},
         challenged_since = ${ofChallenge(`case when ${challengesAfter} = 1 then given.challenged_at else h.challenged_since end`, "h.challenged_since")},
         fetched_urls = h.fetched_urls + given.new_urls,
         fetches = h.fetches + given.fetches,
         fetched_bytes = h.fetched_bytes + given.wire_bytes,
         robots_state = coalesce(given.robots_state, h.robots_state),
         robots_at = coalesce(given.robots_at, h.robots_at),
         -- A crawler under a cap reports the cap, which is not the site's own delay.
         crawl_delay_ms = case when given.crawl_delay_ms = h.cap_delay_ms then h.crawl_delay_ms
           else coalesce(given.crawl_delay_ms, h.crawl_delay_ms) end,
         back_off_ms = coalesce(given.back_off_ms, h.back_off_ms),
         backed_off_at = coalesce(given.backed_off_at, h.backed_off_at),
         usual_ms = coalesce(given.usual_ms, h.usual_ms),
         tolerated = case when given.usual_ms is null then h.tolerated else given.tolerated end,
         http_version = coalesce(given.http_version, h.http_version),
         tls_version = case when given.http_version is null then h.tls_version else given.tls_version end,
         ${counted.join(",\n         ")}
     from ${given.sql(2)}
     where h.host_hash = given.host_hash`;

const figureOf: Readonly<Record<PageWorth, keyof HostPages & keyof HostRow>> = {
  good: "good",
  "near-duplicate": "nearDuplicates",
  "not-found": "notFound",
  empty: "empty",
  failed: "failed",
};

type HostRow = ReturnType<typeof emptyRow>;

/** Builds one row per host. If a fact occurs several times, the later result's counts. */
function hostRows({ results, now }: Batch, worths: readonly (PageWorth | null)[]): HostRow[] {
  const rows = new Map<HostHash, HostRow>();
  results.forEach((counted, index) => {
    const { hostHash } = counted.key;
    const row = rows.get(hostHash) ?? emptyRow(hostHash, notBeforeOf(counted.result, now));
    rows.set(hostHash, row);
    addFetch(row, counted, now);
    addPace(row, counted, now);
    addPayment(row, counted, now);
    addChallenge(row, counted, now);
    addWorth(row, counted, worths[index] ?? null);
  });
  return [...rows.values()];
}

function addFetch(row: HostRow, { result, before }: CountedResult, now: Date): void {
  const notBefore = notBeforeOf(result, now);
  if (notBefore > row.notBefore) row.notBefore = notBefore;
  row.newUrls += before.visits === 0 ? 1 : 0;
  row.fetches += result.wireBytes > 0 ? 1 : 0;
  row.wireBytes += asInteger(result.wireBytes);
  if (result.connection === undefined) return;
  row.httpVersion = result.connection.http;
  row.tlsVersion = result.connection.tls === null ? null : clean(result.connection.tls);
}

/** Older back-offs no longer matter, since the longest is a day. */
const oldestBackOffMs = 2 * 86_400_000;

function addPace(row: HostRow, { result }: CountedResult, now: Date): void {
  const { pace, robots } = result;
  const fetchedAt = fetchedAtOf(result, now);
  if (robots !== undefined) {
    row.robotsState = robots.state;
    row.robotsAt = fetchedAt;
    // A robots.txt that cannot be read leaves the delay unchanged.
    const isRead = robots.state === "rules" || robots.state === "none";
    if (isRead) row.crawlDelayMs = Math.round((robots.crawlDelaySeconds ?? 0) * 1000);
  }
  if (pace === undefined) return;
  row.crawlDelayMs = Math.round(pace.crawlDelayMs);
  row.backOffMs = Math.round(pace.backOffMs);
  row.backedOffAt = new Date(fetchedAt.getTime() - Math.min(oldestBackOffMs, pace.backedOffMsAgo));
  row.usualMs = Math.round(pace.usualMs);
  row.tolerated = pace.tolerated === undefined ? null : JSON.stringify(keptRate(pace.tolerated, fetchedAt));
}

/** Ignores robots.txt, redirects and server trouble, which say nothing about payment. */
function addPayment(row: HostRow, { result }: CountedResult, now: Date): void {
  const { outcome } = result;
  if (outcome.type === "http-error" && asksPayment(outcome)) {
    row.payments += 1;
    row.paymentAskedAt = fetchedAtOf(result, now);
    row.paymentPrice = outcome.price === undefined ? null : legible(outcome.price);
    return;
  }
  if (!("status" in outcome) || outcome.status >= 500 || outcome.status === 429) return;
  row.payments = 0;
  row.answersOtherwise = true;
}

/**
 * A page of the host, or a missing one, shows that the gate is open, whichever crawler asked. Redirects to https,
 * robots.txt, sitemaps and images do not, because gates let them through. Nor do other errors, which may be the
 * gate's.
 */
function addChallenge(row: HostRow, { result }: CountedResult, now: Date): void {
  const { outcome } = result;
  const challenge = challengeOf(outcome);
  if (challenge !== null) {
    row.challengedAt = fetchedAtOf(result, now);
    row.challengeProvider = challenge.provider;
    row.challengeOf = challenge.of;
  } else if (outcome.type === "unchanged" || indexedPage(result) !== null || isHttpMissing(outcome)) {
    row.opened = true;
    row.challengedAt = null;
  }
}

function addWorth(row: HostRow, { result, before }: CountedResult, worth: PageWorth | null): void {
  if (before.worth !== null) row[figureOf[before.worth]] -= 1;
  if (worth !== null) row[figureOf[worth]] += 1;
  // Counts only at the first visit, so that repeat visits do not lower the host's worth.
  if (before.visits === 0) row.trappedLinks += Math.min(maxPageLinks, result.page?.trappedLinks ?? 0);
}

function emptyRow(hostHash: HostHash, notBefore: Date) {
  return {
    ...{ hostHash, notBefore, newUrls: 0, fetches: 0, wireBytes: 0 },
    robotsState: null as string | null,
    robotsAt: null as Date | null,
    crawlDelayMs: null as number | null,
    backOffMs: null as number | null,
    backedOffAt: null as Date | null,
    usualMs: null as number | null,
    tolerated: null as string | null,
    httpVersion: null as string | null,
    tlsVersion: null as string | null,
    /** How many 402 answers came last in a row, and whether there was another answer before them. */
    payments: 0,
    answersOtherwise: false,
    paymentAskedAt: null as Date | null,
    paymentPrice: null as string | null,
    /** When the last challenge was, unless the site itself answered after it. */
    challengedAt: null as Date | null,
    challengeProvider: null as string | null,
    challengeOf: null as string | null,
    /** Whether the site itself answered, even if a bot gate did so later. */
    opened: false,
    ...{ good: 0, nearDuplicates: 0, notFound: 0, empty: 0, failed: 0, trappedLinks: 0 },
  };
}

/** Counts links from other hosts per target host in the frontier. Hosts must be locked. */
export async function countOutsideLinks(
  client: PoolClient,
  links: { readonly added: readonly ChangedLink[]; readonly removed: readonly ChangedLink[] },
): Promise<void> {
  const byHost = new Map<HostHash, number>();
  const count = (by: number) => (link: ChangedLink) => {
    const { from, hostHash } = link;
    if (from !== hostHash) byHost.set(hostHash, (byHost.get(hostHash) ?? 0) + by);
  };
  links.added.forEach(count(1));
  links.removed.forEach(count(-1));
  await addOutsideLinks(
    client,
    [...byHost].map(([hostHash, links]) => ({ hostHash, links })),
  );
}

/** `differences` may have several entries per host. Hosts must be locked. */
export async function addOutsideLinks(
  client: PoolClient,
  differences: readonly { readonly hostHash: HostHash; readonly links: number }[],
): Promise<void> {
  const changed = differences.filter(({ links }) => links !== 0);
  if (changed.length === 0) return;
  await client.query(
    `update frontier_host h
     set outside_links = greatest(0, ${linksWithin("h.outside_links + given.links")})
     from (
       select host_hash, sum(links) as links
       from unnest($1::bigint[], $2::int[]) as given (host_hash, links)
       group by host_hash
     ) given
     where h.host_hash = given.host_hash`,
    columnsOf(changed, ["hostHash", "links"]),
  );
}

// Table named_sitemap: cross-submitted sitemaps (sitemaps.org/protocol, "Sitemaps & Cross Submits"). A sitemap counts
// for its own host, and for another host only if that host's robots.txt names it.

/** Replaces the sitemaps on other hosts that these results' robots.txt files name. Hosts must be locked. */
export async function noteNamedSitemaps(
  client: PoolClient,
  results: readonly CountedResult[],
): Promise<void> {
  const named = new Map<HostHash, Map<string, UrlAddress & { readonly of: HostHash }>>();
  for (const { key, result } of results) {
    const { robots } = result;
    // If a robots.txt could not be fetched, earlier entries stay.
    if (robots === undefined || robots.state === "closed" || robots.state === "unreachable") continue;
    const sitemaps = robots.sitemaps.flatMap((url) => {
      const sitemap = urlKeyOf(url);
      if (typeof sitemap === "string" || sitemap.hostHash === key.hostHash) return [];
      return [[nameOf(sitemap), { ...sitemap, of: key.hostHash }] as const];
    });
    named.set(key.hostHash, new Map(sitemaps));
  }
  if (named.size === 0) return;
  const rows = [...named.values()].flatMap((sitemaps) => [...sitemaps.values()]);
  const columns = columnsOf(rows, ["of", "hostHash", "urlHash"]);
  await client.query(
    `delete from named_sitemap n
     where n.host_hash = any($4::bigint[])
       and not exists (
         select from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as given (host, sitemap_host, sitemap_url)
         where given.host = n.host_hash
           and given.sitemap_host = n.sitemap_host_hash
           and given.sitemap_url = n.sitemap_url_hash
       )`,
    [...columns, [...named.keys()]],
  );
  if (rows.length === 0) return;
  await client.query(
    `insert into named_sitemap (host_hash, sitemap_host_hash, sitemap_url_hash)
     select * from unnest($1::bigint[], $2::bigint[], $3::bigint[])
     on conflict do nothing`,
    columns,
  );
}

/**
 * Adds entries of other hosts to the results if those hosts accept them. A sitemap with rejected entries loses its
 * validators, so that it is read in full once a robots.txt names it.
 */
export async function withNamedSitemaps(
  client: PoolClient,
  results: readonly CountedResult[],
): Promise<CountedResult[]> {
  const lists = results.filter(({ foreign }) => foreign.length > 0);
  if (lists.length === 0) return [...results];
  const { rows } = await client.query<UrlAddress & { of: HostHash }>(
    `select n.host_hash as of, n.sitemap_host_hash as "hostHash", n.sitemap_url_hash as "urlHash"
     from unnest($1::bigint[], $2::bigint[]) as given (sitemap_host, sitemap_url)
     join named_sitemap n
       on n.sitemap_url_hash = given.sitemap_url and n.sitemap_host_hash = given.sitemap_host
     where n.host_hash = any($3::bigint[])`,
    [
      lists.map(({ key }) => key.hostHash),
      lists.map(({ key }) => key.urlHash),
      [...new Set(lists.flatMap(({ foreign }) => foreign.map(({ key }) => key.hostHash)))],
    ],
  );
  const namers = new Map<string, Set<HostHash>>();
  for (const { of, ...sitemap } of rows) {
    const name = nameOf(sitemap);
    namers.set(name, (namers.get(name) ?? new Set()).add(of));
  }
  return results.map((counted) => {
    if (counted.foreign.length === 0) return counted;
    const own = namers.get(nameOf(counted.key));
    const taken = counted.foreign.filter(({ key }) => own?.has(key.hostHash) === true);
    const admit = [...counted.admit, ...taken];
    return taken.length === counted.foreign.length
      ? { ...counted, admit }
      : { ...counted, ...unsettled(counted), admit };
  });
}

function unsettled({ result }: CountedResult): Pick<CountedResult, "result" | "isUnsettled"> {
  return { isUnsettled: true, result: { ...result, etag: null, lastModified: null } };
}
