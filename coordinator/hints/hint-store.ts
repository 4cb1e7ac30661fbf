/**
 * Tables hint_host, hint_key and hint: hints as they come, as they move a fetch, and what came of them. Nothing here learns
 * of a fetch by itself: what the frontier keeps of a URL tells whether its hint was right, and whether a key's file was seen.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, type UrlKey, urlKeyOf } from "#core/url-key";
import { type Slices, slicesOf } from "../database/slices.ts";
import { columnsOf, inTransaction } from "../database/transaction.ts";
import { noteForeign, splitByOwner } from "../federation/foreign-url-store.ts";
import { addUrls, lockHosts } from "../frontier/admission-writes.ts";
import { fetchAgain } from "../frontier/fetch-again-writes.ts";
import type { AdmittedUrl, CrawlScope } from "../frontier/frontier.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import { countSignals } from "../recrawl/signal-store.ts";
import {
  type HintSource,
  hintDays,
  hintsHeard,
  keysPerHostAndDay,
  recentHints,
  wasRight,
  wrongKeyHours,
} from "./hint.ts";
import type { HintPolicies } from "./hint-settings.ts";
import type { IndexNowRefusal, IndexNowSubmission } from "./index-now.ts";
import { keyVerdict } from "./index-now.ts";

export interface HintRules {
  readonly policies: HintPolicies;
  readonly scope: CrawlScope;
}

export type SubmissionAnswer =
  /** `waiting`: its key has not been seen yet. */
  | { readonly type: "taken"; readonly urls: number; readonly dropped: number; readonly waiting: boolean }
  /** The frontier does not hold the host, or may not crawl it. */
  | { readonly type: "not-ours" }
  | ({ readonly type: "refused" } & IndexNowRefusal);

export interface HintStore {
  submit(given: IndexNowSubmission, rules: HintRules, now: Date): Promise<SubmissionAnswer>;
}

export const createHintStore = (from: Pool | Slices): HintStore => ({
  submit: async (given, rules, now) =>
    await submit(slicesOf(from).ofHost(given.location.hostHash).pool, given, rules, now),
});

interface HostRow {
  readonly host: string;
  readonly recentRight: number;
  readonly recentWrong: number;
  readonly dayTaken: number;
  readonly dayKeys: number;
}

async function submit(
  pool: Pool,
  given: IndexNowSubmission,
  { policies, scope }: HintRules,
  now: Date,
): Promise<SubmissionAnswer> {
  const { hostHash, host } = given.location;
  const named = { hostHash, host, source: "indexnow" as const };
  const { answer, isAsked } = await inTransaction(pool, async (client) => {
    const row = await hostRow(client, named, now);
    if (row === null) return { answer: { type: "not-ours" } as const, isAsked: false };
    const key = await keyNamed(client, given, now);
    const refusal = key === null || key.state === "again" ? keyRefusal(row, key, now) : refusalOf(key);
    if (refusal !== null) {
      await count(client, named, { received: given.named, dropped: given.named });
      return { answer: { type: "refused" as const, ...refusal }, isAsked: false };
    }
    const isGood = key?.state === "good";
    const left = Math.max(0, hintsHeard(row, policies.perHostAndDay) - (isGood ? row.dayTaken : 0));
    if (left === 0) {
      await count(client, named, { received: given.named, dropped: given.named });
      return { answer: { type: "refused" as const, ...heardEnough(now) }, isAsked: false };
    }
    const isNewKey = key === null || key.state === "again";
    const keyId = isNewKey ? await askKey(client, given, now) : key.keyId;
    const urls = await keep(client, given.urls, { source: "indexnow", keyId, isGood, most: left, now });
    const dropped = given.named - urls;
    await count(client, named, { received: given.named, dropped, keys: isNewKey ? 1 : 0 });
    return { answer: { type: "taken" as const, urls, dropped, waiting: !isGood }, isAsked: isNewKey };
  });
  if (isAsked) await haveFetched(pool, given.location, scope, now);
  return answer;
}

/** Locked until the transaction ends, and of today; null: the frontier does not hold the host, or must not ask it. */
async function hostRow(
  client: PoolClient,
  { hostHash, host, source }: { hostHash: HostHash; host: string; source: HintSource },
  now: Date,
): Promise<HostRow | null> {
  const known = await client.query(
    `insert into hint_host (host_hash, source, host, day, last_at)
     select h.host_hash, $2, $3, ($4::timestamptz at time zone 'utc')::date, $4
     from frontier_host h
     where h.host_hash = $1 and h.opt_out_id is null and h.state <> 'refused'
     on conflict (host_hash, source) do update
     set last_at = excluded.last_at, day = excluded.day,
       day_taken = case when hint_host.day = excluded.day then hint_host.day_taken else 0 end,
       day_keys = case when hint_host.day = excluded.day then hint_host.day_keys else 0 end
     returning host, recent_right as "recentRight", recent_wrong as "recentWrong", day_taken as "dayTaken",
       day_keys as "dayKeys"`,
    [hostHash, source, host, now],
  );
  return (known.rows[0] as HostRow | undefined) ?? null;
}

interface NamedKey {
  readonly keyId: string;
  /** again: it was wrong, long enough ago to be looked at once more. */
  readonly state: "pending" | "good" | "wrong" | "again";
  readonly words: string;
}

async function keyNamed(
  client: PoolClient,
  { key, location }: IndexNowSubmission,
  now: Date,
): Promise<NamedKey | null> {
  const { rows } = await client.query<NamedKey>(
    `select key_id as "keyId", words,
       case when state = 'wrong' and checked_at < $4::timestamptz - make_interval(hours => ${wrongKeyHours}) then 'again'
         else state end as state
     from hint_key
     where host_hash = $1 and url_hash = $2 and key = $3`,
    [location.hostHash, location.urlHash, key, now],
  );
  return rows[0] ?? null;
}

function refusalOf({ state, words }: NamedKey): IndexNowRefusal | null {
  return state === "wrong" ? { status: 403, words: `the key is not valid: ${words}` } : null;
}

/** Of a key that is still to be looked at. */
function keyRefusal(row: HostRow, key: NamedKey | null, now: Date): IndexNowRefusal | null {
  if (row.dayKeys < keysPerHostAndDay) return null;
  if (key !== null) return { status: 403, words: `the key is not valid: ${key.words}` };
  const words = `${keysPerHostAndDay} other keys of this host were named today, and no more are checked`;
  return { status: 429, words, retryAfterSeconds: secondsLeft(now) };
}

const heardEnough = (now: Date): IndexNowRefusal => ({
  status: 429,
  words: "this host's daily limit of hints is reached",
  retryAfterSeconds: secondsLeft(now),
});

/** Of the day (UTC). */
const secondsLeft = (now: Date) => 86_400 - Math.floor((now.getTime() / 1000) % 86_400);

async function askKey(
  client: PoolClient,
  { key, location, scope }: IndexNowSubmission,
  now: Date,
): Promise<string> {
  const { rows } = await client.query<{ key_id: string }>(
    `insert into hint_key (host_hash, key, location, url_hash, scope, state, asked_at, seen_visits)
     values ($1, $2, $3, $4, $5, 'pending', $6,
       coalesce((select u.visits from frontier_url u where u.host_hash = $1 and u.url_hash = $4), 0))
     on conflict (host_hash, url_hash, key) do update
     set state = 'pending', words = '', asked_at = excluded.asked_at, checked_at = null,
       seen_visits = excluded.seen_visits
     returning key_id`,
    [location.hostHash, key, location.url, location.urlHash, scope, now],
  );
  return rows[0]!.key_id;
}

/** The key's file, by a crawler and at its host's pace, as what a host's own list names; new or known. */
async function haveFetched(pool: Pool, location: UrlKey, scope: CrawlScope, now: Date): Promise<void> {
  await inTransaction(pool, async (client) => {
    const file: AdmittedUrl = { key: location, depth: 1 };
    const { own } = await splitByOwner(client, [file], scope.maxDepth);
    await lockHosts(client, [location.hostHash]);
    const limits = { pagesPerHost: scope.pagesPerHost, budgeted: false, links: [], now };
    await addUrls(client, own, limits);
    await settleHosts(client, [location.hostHash]);
  });
  await fetchAgain(pool, [location], now);
}

/**
 * Those that are no hints already; gives how many of them are now. Who has a good key, or needs none, takes the place of who
 * still has to show one.
 */
async function keep(
  client: PoolClient,
  urls: readonly UrlKey[],
  given: {
    readonly source: HintSource;
    readonly keyId: string | null;
    readonly isGood: boolean;
    readonly most: number;
    readonly now: Date;
  },
): Promise<number> {
  const { source, keyId, isGood, most, now } = given;
  const { rows } = await client.query<{ kept: number }>(
    `with waiting as (
       select count(*)::int as many from hint where key_id = $4 and taken_at is null
     ), fresh as (
       select given.*
       from unnest($1::bigint[], $2::bigint[], $3::text[]) with ordinality as given (host_hash, url_hash, url, place)
       where not exists (
         select from hint h
         where h.host_hash = given.host_hash and h.url_hash = given.url_hash
           and not ($8 and h.taken_at is null and h.key_id is distinct from $4)
       )
       order by place
       limit greatest(0, $7::int - coalesce((select many from waiting), 0))
     ), kept as (
       insert into hint (host_hash, url_hash, url, key_id, source, received_at)
       select host_hash, url_hash, url, $4, $5, $6 from fresh
       on conflict (host_hash, url_hash) do update
       set key_id = excluded.key_id, source = excluded.source, received_at = excluded.received_at
       where $8 and hint.taken_at is null and hint.key_id is distinct from excluded.key_id
       returning 1
     )
     select count(*)::int as kept from kept`,
    [...columnsOf(urls, ["hostHash", "urlHash", "url"]), keyId, source, now, most, isGood],
  );
  return rows[0]!.kept;
}

async function count(
  client: PoolClient,
  { hostHash, source }: { hostHash: HostHash; source: HintSource },
  more: { received?: number; dropped?: number; keys?: number },
): Promise<void> {
  await client.query(
    `update hint_host
     set received = received + $3, dropped = dropped + $4, day_keys = day_keys + $5
     where host_hash = $1 and source = $2`,
    [hostHash, source, more.received ?? 0, more.dropped ?? 0, more.keys ?? 0],
  );
}

/** A feed that its hub says has changed; false: it is a hint already, or its host may not be asked. */
export async function hintFeed(client: PoolClient, feed: UrlKey, now: Date): Promise<boolean> {
  const named = { hostHash: feed.hostHash, host: feed.host, source: "websub" as const };
  if ((await hostRow(client, named, now)) === null) return false;
  const kept = await keep(client, [feed], { source: "websub", keyId: null, isGood: true, most: 1, now });
  await count(client, named, { received: 1, dropped: 1 - kept });
  return kept > 0;
}

function groupedBy<Row>(rows: readonly Row[], nameOfRow: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(nameOfRow(row));
    if (group === undefined) groups.set(nameOfRow(row), [row]);
    else group.push(row);
  }
  return groups;
}

// Hints that wait for nothing any more move the next fetches of their URLs.

const mostAtOnce = 500;

export interface TakenHints {
  readonly taken: Readonly<Record<HintSource, number>>;
  readonly dropped: Readonly<Record<HintSource, number>>;
  /** Which have something due now. */
  readonly hosts: readonly HostHash[];
  readonly more: boolean;
}

interface WaitingHint {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly url: string;
  readonly source: HintSource;
}

/** What is beyond what a host may tell in a day is dropped. */
export async function takeWaiting(
  pool: Pool,
  { policies, scope }: HintRules,
  now: Date,
): Promise<TakenHints> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<WaitingHint>(
      `select h.host_hash as "hostHash", h.url_hash as "urlHash", h.url, h.source
       from hint h
       left join hint_key k using (key_id)
       where h.taken_at is null and (h.key_id is null or k.state = 'good')
       order by h.received_at
       limit ${mostAtOnce}
       for update of h skip locked`,
    );
    const { chosen, left } = await chooseWithin(client, rows, policies, now);
    await drop(client, left);
    const hosts = [...new Set(chosen.map(({ hostHash }) => hostHash))];
    if (chosen.length > 0) await moveFetches(client, chosen, { hosts, policies, scope, now });
    return { taken: bySource(chosen), dropped: bySource(left), hosts, more: rows.length === mostAtOnce };
  });
}

async function chooseWithin(
  client: PoolClient,
  hints: readonly WaitingHint[],
  { perHostAndDay }: HintPolicies,
  now: Date,
): Promise<{ chosen: WaitingHint[]; left: WaitingHint[] }> {
  const chosen: WaitingHint[] = [];
  const left: WaitingHint[] = [];
  const ofHosts = groupedBy(hints, ({ hostHash, source }) => `${hostHash} ${source}`);
  // In one order, as everybody locks them.
  for (const name of [...ofHosts.keys()].sort()) {
    const [first] = ofHosts.get(name)!;
    const host = urlKeyOf(first!.url);
    const row = typeof host === "string" ? null : await hostRow(client, { ...first!, host: host.host }, now);
    const most = row === null ? 0 : Math.max(0, hintsHeard(row, perHostAndDay) - row.dayTaken);
    chosen.push(...ofHosts.get(name)!.slice(0, most));
    left.push(...ofHosts.get(name)!.slice(most));
  }
  return { chosen, left };
}

async function drop(client: PoolClient, hints: readonly WaitingHint[]): Promise<void> {
  if (hints.length === 0) return;
  await client.query(
    `with gone as (
       delete from hint h
       using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
       where h.host_hash = given.host_hash and h.url_hash = given.url_hash
       returning h.host_hash, h.source
     )
     update hint_host hh
     set dropped = hh.dropped + g.many
     from (select host_hash, source, count(*)::int as many from gone group by host_hash, source) g
     where hh.host_hash = g.host_hash and hh.source = g.source`,
    columnsOf(hints, ["hostHash", "urlHash"]),
  );
}

/**
 * A URL that is known is due as soon as its last fetch is old enough, and one that is not enters as from a sitemap, within
 * the host's budget. Hosts whose URLs another coordinator owns keep theirs by the same rule as links.
 */
async function moveFetches(
  client: PoolClient,
  hints: readonly WaitingHint[],
  at: HintRules & { readonly hosts: readonly HostHash[]; readonly now: Date },
): Promise<void> {
  const { hosts, policies, scope, now } = at;
  const urls = hints.flatMap(({ url }): AdmittedUrl[] => {
    const key = urlKeyOf(url);
    return typeof key === "string" ? [] : [{ key, depth: 1, lists: 1 }];
  });
  const found = await splitByOwner(client, urls, scope.maxDepth);
  await lockHosts(client, hosts);
  const columns = columnsOf(hints, ["hostHash", "urlHash"]);
  await client.query(
    `update hint h
     set taken_at = $3, was_visits = coalesce(u.visits, 0), was_outcome = u.last_outcome, was_digest = u.digest
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     left join frontier_url u on u.host_hash = given.host_hash and u.url_hash = given.url_hash
     where h.host_hash = given.host_hash and h.url_hash = given.url_hash`,
    [...columns, now],
  );
  await addUrls(client, found.own, { pagesPerHost: scope.pagesPerHost, budgeted: true, links: [], now });
  await client.query(
    `update frontier_url u
     set state = 'due', next_fetch_at = least(u.next_fetch_at,
       greatest($3::timestamptz, u.last_fetched_at + make_interval(secs => $4)))
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where u.host_hash = given.host_hash and u.url_hash = given.url_hash and u.state in ('due', 'gone')
       and u.next_fetch_at > $3`,
    [...columns, now, policies.urlMinutes * 60],
  );
  // What their visits find is learnt from as of any signal.
  await countSignals(
    client,
    hints.map(({ hostHash, urlHash }) => ({ hostHash, urlHash, changedAt: now })),
  );
  await settleHosts(client, hosts);
  await noteForeign(client, found, { links: [], now });
  const ofHosts = groupedBy(hints, ({ hostHash, source }) => `${hostHash} ${source}`);
  const sums = [...ofHosts.values()].map((own) => ({ ...own[0]!, many: own.length }));
  await client.query(
    `update hint_host hh
     set taken = hh.taken + given.many, day_taken = hh.day_taken + given.many
     from unnest($1::bigint[], $2::text[], $3::int[]) as given (host_hash, source, many)
     where hh.host_hash = given.host_hash and hh.source = given.source`,
    columnsOf(sums, ["hostHash", "source", "many"]),
  );
}

function bySource(hints: readonly WaitingHint[]): Record<HintSource, number> {
  const of = (source: HintSource) => hints.filter((one) => one.source === source).length;
  return { indexnow: of("indexnow"), websub: of("websub") };
}

// Keys, by what came of fetching their files.

const mostKeys = 500;

export interface CheckedKeys {
  /** New ones. */
  readonly good: number;
  readonly wrong: number;
  readonly more: boolean;
}

/**
 * Those whose files were fetched since they were looked at: keys that wait for it, which is looked at often, and now and then
 * the good ones, since a file that is taken away ends its key.
 */
export async function checkKeys(pool: Pool, state: "pending" | "good", now: Date): Promise<CheckedKeys> {
  const { rows } = await pool.query<{
    keyId: string;
    key: string;
    hostHash: HostHash;
    urlHash: UrlHash;
    state: "pending" | "good";
    visits: number;
    outcome: string;
    status: number | null;
    digest: string | null;
    isLate: boolean;
  }>(
    `select k.key_id as "keyId", k.key, k.host_hash as "hostHash", k.url_hash as "urlHash", k.state,
       coalesce(u.visits, k.seen_visits) as visits, u.last_outcome as outcome, u.last_status as status,
       encode(u.digest, 'hex') as digest,
       coalesce(u.visits, 0) <= k.seen_visits as "isLate"
     from hint_key k
     left join frontier_url u using (host_hash, url_hash)
     where k.state = $2 and (u.visits > k.seen_visits
       or (k.state = 'pending' and k.asked_at < $1::timestamptz - make_interval(days => ${hintDays})))
     limit ${mostKeys}`,
    [now, state],
  );
  const checked = { good: 0, wrong: 0, more: rows.length === mostKeys };
  for (const row of rows) {
    const verdict = row.isLate
      ? ({ type: "wrong", words: `its file was not fetched within ${hintDays} days` } as const)
      : keyVerdict(row.key, row);
    if (verdict.type === "wrong") checked.wrong += 1;
    if (verdict.type === "good" && row.state === "pending") checked.good += 1;
    await writeVerdict(pool, { ...row, verdict }, now);
  }
  return checked;
}

async function writeVerdict(
  pool: Pool,
  row: {
    readonly keyId: string;
    readonly hostHash: HostHash;
    readonly urlHash: UrlHash;
    readonly visits: number;
    readonly verdict: ReturnType<typeof keyVerdict>;
  },
  now: Date,
): Promise<void> {
  const { keyId, hostHash, urlHash, visits, verdict } = row;
  await inTransaction(pool, async (client) => {
    await client.query(
      `update hint_key
       set seen_visits = $2, state = coalesce($3, state), words = coalesce($4, words),
         checked_at = case when $3::text is null then checked_at else $5 end
       where key_id = $1`,
      [
        keyId,
        visits,
        verdict.type === "unknown" ? null : verdict.type,
        verdict.type === "wrong" ? verdict.words : verdict.type === "good" ? "" : null,
        now,
      ],
    );
    // A key is no page, though it was fetched as one.
    if (verdict.type === "good")
      await client.query(
        `with hidden as (
           update page set noindex = true
           where host_hash = $1 and url_hash = $2 and not noindex
           returning host_hash, url_hash, url, fetched_at, status, language
         )
         insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at, status, reason, language)
         select host_hash, url_hash, url, 'gone', fetched_at, status, 'noindex', language from hidden`,
        [hostHash, urlHash],
      );
    if (verdict.type !== "wrong") return;
    const { rowCount } = await client.query("delete from hint where key_id = $1 and taken_at is null", [
      keyId,
    ]);
    await client.query("update hint set key_id = null where key_id = $1", [keyId]);
    await count(client, { hostHash, source: "indexnow" }, { dropped: rowCount ?? 0 });
  });
}

// What fetches found.

const mostJudged = 1000;

export type JudgedHints = Readonly<
  Record<HintSource, { readonly right: number; readonly wrong: number }> & { more: boolean }
>;

/** Of hints whose URLs were fetched since, or never in time: they go, and their hosts are heard accordingly. */
export async function judgeHints(pool: Pool, now: Date): Promise<JudgedHints> {
  const { rows } = await pool.query<{
    hostHash: HostHash;
    urlHash: UrlHash;
    source: HintSource;
    isFetched: boolean;
    wasOutcome: string | null;
    wasDigest: string | null;
    outcome: string;
    status: number | null;
    digest: string | null;
  }>(
    `select h.host_hash as "hostHash", h.url_hash as "urlHash", h.source, coalesce(u.visits, 0) > h.was_visits as "isFetched",
       h.was_outcome as "wasOutcome", encode(h.was_digest, 'hex') as "wasDigest",
       u.last_outcome as outcome, u.last_status as status, encode(u.digest, 'hex') as digest
     from hint h
     left join frontier_url u using (host_hash, url_hash)
     where h.taken_at is not null
       and (u.visits > h.was_visits or h.taken_at < $1::timestamptz - make_interval(days => ${hintDays}))
     limit ${mostJudged}`,
    [now],
  );
  const judged = rows.map((row) => ({ ...row, right: row.isFetched ? wasRight(row) : null }));
  const sums = [...groupedBy(judged, ({ hostHash, source }) => `${hostHash} ${source}`).values()]
    .map((own) => ({
      ...own[0]!,
      rightHints: own.filter(({ right }) => right === true).length,
      wrongHints: own.filter(({ right }) => right === false).length,
    }))
    .sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  await inTransaction(pool, async (client) => {
    for (const { hostHash, source, rightHints, wrongHints } of sums) {
      if (rightHints + wrongHints === 0) continue;
      await client.query(
        `update hint_host
         set right_hints = right_hints + $3, wrong_hints = wrong_hints + $4,
           recent_right = (recent_right + $3) * f.share, recent_wrong = (recent_wrong + $4) * f.share
         from (
           select case when recent_right + recent_wrong + $3 + $4 > ${recentHints} then 0.5 else 1 end as share
           from hint_host where host_hash = $1 and source = $2
         ) f
         where host_hash = $1 and source = $2`,
        [hostHash, source, rightHints, wrongHints],
      );
    }
    await client.query(
      `delete from hint h
       using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
       where h.host_hash = given.host_hash and h.url_hash = given.url_hash`,
      columnsOf(judged, ["hostHash", "urlHash"]),
    );
  });
  const of = (source: HintSource) => ({
    right: judged.filter((one) => one.source === source && one.right === true).length,
    wrong: judged.filter((one) => one.source === source && one.right === false).length,
  });
  return { indexnow: of("indexnow"), websub: of("websub"), more: rows.length === mostJudged };
}

/** What was never looked at in time, and keys that were wrong for a month. */
export async function forgetHints(pool: Pool, now: Date): Promise<void> {
  await pool.query(
    `delete from hint where taken_at is null and received_at < $1::timestamptz - make_interval(days => ${hintDays})`,
    [now],
  );
  await pool.query(
    "delete from hint_key where state = 'wrong' and checked_at < $1::timestamptz - interval '30 days'",
    [now],
  );
}
