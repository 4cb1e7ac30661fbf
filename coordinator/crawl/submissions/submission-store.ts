/** Tables submission and submission_url: what was submitted, by whom, and the answer for each URL. */
import type { Pool } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import type { AllowedSpecialPurpose } from "#core/ip/special-purpose";
import { nameOf, type UrlKey } from "#core/url-key";
import { clean, columnsOf, inTransaction } from "../../database/transaction.ts";
import { isBeyondReach, needsUnspokenIpv6 } from "../../place/crawlers/control-store.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import { createFrontierStore, createRejectedUrlStore } from "../frontier/frontier-store.ts";
import { isHeldUrl } from "../frontier/held-url-store.ts";
import { fetchAgain } from "../frontier/lease-end-writes.ts";
import { urlsInHand, urlTurn } from "../frontier/open-lease-reads.ts";
import { leavingChannel } from "../frontier/report-reads.ts";
import { isOptedOut, optedOutAmong } from "../frontier/site-rule-writes.ts";
import {
  type AnsweredUrl,
  answerTo,
  type FollowedFacts,
  type FollowedUrl,
  followedUrl,
  type GivenUrl,
  givenUrl,
  type HandedInFacts,
  type Submission,
  type SubmissionDeed,
  submissionBounds,
} from "./submission.ts";

export type SubmissionStore = ReturnType<typeof createSubmissionStore>;

export function createSubmissionStore(pool: Pool) {
  const rejected = createRejectedUrlStore(pool);
  return {
    begin: async (
      { deed, submittedBy }: Pick<Submission, "deed" | "submittedBy">,
      now: Date,
    ): Promise<number> => {
      const { rows } = await pool.query<{ submission_id: string }>(
        "insert into submission (deed, submitted_by, submitted_at) values ($1, $2, $3) returning submission_id",
        [deed, submittedBy, now],
      );
      return Number(rows[0]!.submission_id);
    },
    /** Admits URLs or makes them due, and stores the answers. Stored batches stay even if a later one fails. */
    async take(
      submissionId: number,
      batch: readonly GivenUrl[],
      { deed, scope, now }: { readonly deed: SubmissionDeed; readonly scope: CrawlScope; readonly now: Date },
    ): Promise<readonly AnsweredUrl[]> {
      const wanted = batch.filter(isWanted);
      const keys = wanted.map(({ key }) => key);
      const before = await knownAmong(pool, keys);
      if (deed === "recrawl") await fetchAgain(pool, keys, now);
      else {
        const urls = keys.map((key) => ({ key, depth: 0 }));
        await createFrontierStore(pool).admit(urls, { ...scope, admitNewHosts: true }, now);
      }
      const after = await factsOf(pool, keys);
      const seen = new Set<string>();
      const answers = batch.map((one): AnsweredUrl => {
        const { place, url } = one;
        if (!isWanted(one)) return { place, url, answer: "refused", reason: one.fault };
        const name = nameOf(one.key);
        const isAgain = before.has(name) || seen.has(name);
        seen.add(name);
        return { place, url, ...answerTo({ ...after.get(name)!, before: isAgain }, deed) };
      });
      const faults = batch.flatMap(({ url, fault }) => (fault === null ? [] : [{ url, reason: fault }]));
      if (faults.length > 0) await rejected.record(faults, "operator", now);
      await writeAnswers(pool, { submissionId, batch, answers });
      return answers;
    },
    /** Returns null if the receipt does not exist or has expired. */
    find: async (submissionId: number): Promise<Submission | null> =>
      (await submissionsOf(pool, "where submission_id = $1", [submissionId]))[0] ?? null,
    urls: async (
      submissionId: number,
      { after, limit, now }: { readonly after: number; readonly limit: number; readonly now: Date },
    ): Promise<readonly FollowedUrl[]> =>
      await followedUrls(pool, await givenOf(pool, submissionId, after, limit), now),
    /** Returns the URLs' current states, in order of place. Invalid URLs are refused. */
    statusOf: async (urls: readonly GivenUrl[], now: Date): Promise<readonly FollowedUrl[]> => {
      const given = urls.map(({ place, url, key, fault }): GivenRow => {
        const answered = { place, submittedAt: null } as const;
        if (key === null) return { ...answered, url, answer: "refused", reason: fault, ...noKey };
        return { ...answered, ...key, answer: "known", reason: null };
      });
      return await followedUrls(pool, given, now);
    },
    latest: async (limit: number) =>
      await submissionsOf(pool, "order by submission_id desc limit $1", [limit]),
    /** How many URLs were submitted under this name after `since`. */
    urlsSince: async (submittedBy: string, since: Date): Promise<number> => {
      const { rows } = await pool.query<{ urls: number }>(
        `select coalesce(sum(new_urls + known_urls + elsewhere_urls + refused_urls), 0)::float8 as urls
         from submission
         where submitted_by = $1 and submitted_at > $2`,
        [submittedBy, since],
      );
      return rows[0]!.urls;
    },
    forgetOld: async (now: Date): Promise<number> => {
      const { rowCount } = await pool.query(
        `delete from submission
         where submission_id in (
           select submission_id from submission
           where submitted_at < $1::timestamptz - make_interval(days => ${submissionBounds.keepDays})
           order by submitted_at
           limit 20
         )`,
        [now],
      );
      return rowCount ?? 0;
    },
  };
}

interface WantedUrl extends GivenUrl {
  readonly key: UrlKey;
}

const isWanted = (given: GivenUrl): given is WantedUrl => given.key !== null && given.fault === null;

const hashesOf = (keys: readonly UrlKey[]) => columnsOf(keys, ["hostHash", "urlHash"]);

/** SQL: the state of the URL in row `given`, with its row of frontier_url as `u`; null if unknown. */
const stateOf = (given: string) =>
  `coalesce(u.state, case when ${isHeldUrl(`${given}.host_hash`, `${given}.url_hash`)} then 'held' end)`;

async function knownAmong(pool: Pool, keys: readonly UrlKey[]): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ host_hash: HostHash; url_hash: UrlHash }>(
    `select given.host_hash, given.url_hash
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     left join frontier_url u using (host_hash, url_hash)
     where ${stateOf("given")} is not null`,
    hashesOf(keys),
  );
  return new Set(rows.map((row) => nameOf({ hostHash: row.host_hash, urlHash: row.url_hash })));
}

interface FactsRow extends Omit<HandedInFacts, "before" | "leftOut"> {
  readonly host_hash: HostHash;
  readonly url_hash: UrlHash;
  readonly has_channels: boolean;
}

async function factsOf(
  pool: Pool,
  keys: readonly UrlKey[],
): Promise<ReadonlyMap<string, Omit<HandedInFacts, "before">>> {
  const { rows } = await pool.query<FactsRow>(
    `select given.host_hash, given.url_hash, ${stateOf("given")} is not null as "now", ${stateOf("given")} as state,
       u.last_reason as "lastReason", h.state as "hostState", h.state_reason as "hostReason",
       coalesce(h.opt_out_id is not null or ${isOptedOut("u")}, false) as "optedOut", r.name as owner,
       exists (select from channel c where c.host_hash = given.host_hash) as has_channels
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     left join frontier_url u using (host_hash, url_hash)
     left join frontier_host h on h.host_hash = given.host_hash
     left join foreign_url f on f.host_hash = given.host_hash and f.url_hash = given.url_hash
     left join related_coordinator r using (peer_id)`,
    hashesOf(keys),
  );
  const keyOf = new Map(keys.map((key) => [nameOf(key), key]));
  const partsOut = await optedOutAmong(pool, keys);
  const facts = new Map<string, Omit<HandedInFacts, "before">>();
  for (const { host_hash, url_hash, has_channels, ...row } of rows) {
    const name = nameOf({ hostHash: host_hash, urlHash: url_hash });
    const leaving = row.now || !has_channels ? null : await leavingChannel(pool, keyOf.get(name)!);
    const leftOut = leaving === null ? null : `channel ${leaving.channelId} skips it: ${leaving.why}`;
    const optedOut = row.optedOut || partsOut.has(keyOf.get(name)!.url);
    facts.set(name, { ...row, optedOut, leftOut });
  }
  return facts;
}

async function writeAnswers(
  pool: Pool,
  given: {
    readonly submissionId: number;
    readonly batch: readonly GivenUrl[];
    readonly answers: readonly AnsweredUrl[];
  },
): Promise<void> {
  const { submissionId, batch, answers } = given;
  await inTransaction(pool, async (client) => {
    await client.query(
      `insert into submission_url (submission_id, place, url, host_hash, url_hash, answer, reason)
       select $1, * from unnest($2::int[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])`,
      [
        submissionId,
        answers.map(({ place }) => place),
        answers.map(({ url }) => clean(url)),
        batch.map(({ key }) => key?.hostHash ?? null),
        batch.map(({ key }) => key?.urlHash ?? null),
        answers.map(({ answer }) => answer),
        answers.map(({ reason }) => (reason === null ? null : clean(reason))),
      ],
    );
    const many = (answer: AnsweredUrl["answer"]) => answers.filter((one) => one.answer === answer).length;
    await client.query(
      `update submission
       set new_urls = new_urls + $2, known_urls = known_urls + $3, elsewhere_urls = elsewhere_urls + $4,
         refused_urls = refused_urls + $5
       where submission_id = $1`,
      [submissionId, many("new"), many("known"), many("elsewhere"), many("refused")],
    );
  });
}

async function submissionsOf(pool: Pool, which: string, values: readonly unknown[]): Promise<Submission[]> {
  const { rows } = await pool.query<Omit<Submission, "submittedAt"> & { submittedAt: Date }>(
    `select s.submission_id::float8 as "submissionId", s.deed, s.submitted_by as "submittedBy",
       s.submitted_at as "submittedAt",
       json_build_object('new', s.new_urls, 'known', s.known_urls, 'elsewhere', s.elsewhere_urls,
         'refused', s.refused_urls) as urls,
       case when s.new_urls + s.known_urls <= ${submissionBounds.countedUrls} then (
         select count(*)::int
         from submission_url su
         join frontier_url u using (host_hash, url_hash)
         where su.submission_id = s.submission_id and su.answer in ('new', 'known')
           and u.last_fetched_at >= s.submitted_at
       ) end as fetched
     from (select * from submission ${which}) s
     order by s.submission_id desc`,
    [...values],
  );
  return rows.map((row) => ({ ...row, submittedAt: row.submittedAt.toISOString() }));
}

/** Maximum earlier due URLs of a host that are counted. */
const mostAhead = 1000;

type FollowedRow = Omit<FollowedFacts, "nextFetchAt" | "notBefore"> & {
  // Postgres' infinite times arrive as numbers.
  readonly nextFetchAt: Date | number | null;
  readonly notBefore: Date | number | null;
};

interface GivenRow {
  readonly place: number;
  readonly url: string;
  readonly answer: AnsweredUrl["answer"];
  readonly reason: string | null;
  /** Null for an invalid URL. */
  readonly hostHash: HostHash | null;
  readonly urlHash: UrlHash | null;
  readonly submittedAt: Date | null;
}

const noKey = { hostHash: null, urlHash: null };

async function givenOf(pool: Pool, submissionId: number, after: number, limit: number): Promise<GivenRow[]> {
  const { rows } = await pool.query<GivenRow>(
    `select su.place, su.url, su.answer, su.reason, su.host_hash as "hostHash", su.url_hash as "urlHash",
       m.submitted_at as "submittedAt"
     from submission_url su
     join submission m using (submission_id)
     where su.submission_id = $1 and su.place > $2
     order by su.place
     limit $3`,
    [submissionId, after, limit],
  );
  return rows;
}

async function followedUrls(pool: Pool, given: readonly GivenRow[], now: Date): Promise<FollowedUrl[]> {
  const { rows } = await pool.query<FollowedRow>(
    `with given as materialized (
       select *
       from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::timestamptz[])
         as given (place, url, answer, reason, host_hash, url_hash, submitted_at)
     )
     select s.place, s.url, s.answer, s.reason, s.submitted_at as "submittedAt",
       case when u.url_hash is null then ${stateOf("s")}
         else ${urlTurn("u", { inHand: urlsInHand("s.host_hash"), now: "$8::timestamptz" })} end as state,
       u.next_fetch_at as "nextFetchAt", u.last_fetched_at as "lastFetchedAt", u.last_outcome as "lastOutcome",
       u.last_status as "lastStatus", u.last_reason as "lastReason",
       h.state as "hostState", h.state_reason as "hostReason", h.resolve_at as "resolveAt",
       coalesce(h.opt_out_id is not null or ${isOptedOut("u")}, false) as "optedOut", h.not_before as "notBefore",
       greatest(h.crawl_delay_ms, h.back_off_ms) as "hostPaceMs", coalesce(ahead.urls, 0) as ahead,
       case when not coalesce(${isBeyondReach("h", "c")}, false) then c.name end as crawler,
       coalesce(${needsUnspokenIpv6("h")}, false) as "needsUnspokenIpv6"
     from given s
     left join frontier_host h on h.host_hash = s.host_hash
     left join frontier_url u on u.host_hash = s.host_hash and u.url_hash = s.url_hash
     left join delegation d on d.subnet_id = h.subnet_id and h.finer_id is null
     left join finer_delegation f on f.finer_id = h.finer_id
     left join crawler c on c.crawler_id = coalesce(f.crawler_id, d.crawler_id)
     left join lateral (
       select count(*)::int as urls
       from (
         select
         from frontier_url o
         where o.host_hash = u.host_hash and o.state = 'due' and o.next_fetch_at < u.next_fetch_at
         limit ${mostAhead}
       ) earlier
     ) ahead on u.state = 'due'
     order by s.place`,
    [...columnsOf(given, ["place", "url", "answer", "reason", "hostHash", "urlHash", "submittedAt"]), now],
  );
  return rows.map((row) =>
    followedUrl({ ...row, nextFetchAt: dateOf(row.nextFetchAt), notBefore: dateOf(row.notBefore) }, now),
  );
}

const dateOf = (value: Date | number | null) => (value instanceof Date ? value : null);

// Submits in batches, so that a million lines need no more memory than a thousand.

interface Submitting {
  readonly deed: SubmissionDeed;
  readonly submittedBy: string;
  readonly scope: CrawlScope;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
  readonly now: () => Date;
  /** Called after each batch with its answers and the total so far. */
  readonly onBatch?: (answers: readonly AnsweredUrl[], taken: number) => void;
}

const batchSize = 1000;

/** Submits the texts in order. Blank lines and those that begin with # are skipped, but count as places. */
export async function submitUrls(
  texts: Iterable<string> | AsyncIterable<string>,
  store: SubmissionStore,
  submitting: Submitting,
): Promise<Submission> {
  const { deed, submittedBy, scope, allowSpecialPurpose, now } = submitting;
  const submissionId = await store.begin({ deed, submittedBy }, now());
  let batch: GivenUrl[] = [];
  let place = 0;
  let taken = 0;
  const flush = async () => {
    if (batch.length === 0) return;
    const answers = await store.take(submissionId, batch, { deed, scope, now: now() });
    taken += batch.length;
    batch = [];
    submitting.onBatch?.(answers, taken);
  };
  for await (const text of texts) {
    place += 1;
    const line = text.trim();
    if (line === "" || line.startsWith("#")) continue;
    batch.push(givenUrl(line, place, allowSpecialPurpose));
    if (batch.length === batchSize) await flush();
  }
  await flush();
  return (await store.find(submissionId)) as Submission;
}
