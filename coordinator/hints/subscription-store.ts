/** Table websub_subscription: feeds that name a hub, what was asked there, and what the hub does since. */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { ofAll, type Slices, slicesOf } from "../database/slices.ts";
import { clean, columnsOf, inTransaction } from "../database/transaction.ts";
import { isOptedOut } from "../frontier/back-link-writes.ts";
import { hintFeed } from "./hint-store.ts";
import { isSigned, mostFailures, renewAt, retryMs } from "./web-sub.ts";

/** Of one host, whoever named them. */
const mostOfHost = 20;

/** A feed that was not seen to name its hub for so long is not subscribed again, and forgotten. */
const namedDays = 60;

export interface NamedHub {
  /** Of the feed, as the frontier has it. */
  readonly key: UrlKey;
  readonly hub: UrlKey;
  /** What it calls itself; its own URL where it does not say. */
  readonly topic: string;
}

/** Feeds as results bring them, in their transaction. Another hub, or another topic, is another subscription. */
export async function noteHubs(client: PoolClient, named: readonly NamedHub[], now: Date): Promise<void> {
  if (named.length === 0) return;
  const rows = [...new Map(named.map((one) => [one.key.url, one])).values()].map(({ key, hub, topic }) => ({
    ...{ hostHash: key.hostHash, urlHash: key.urlHash, host: key.host, feed: clean(key.url) },
    ...{ hub: hub.url, hubHostHash: hub.hostHash, topic: clean(topic) },
  }));
  await client.query(
    `insert into websub_subscription as s (host_hash, url_hash, host, feed, hub, hub_host_hash, topic, named_at, next_at)
     select given.*, $8, $8
     from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
       as given (host_hash, url_hash, host, feed, hub, hub_host_hash, topic)
     where (select count(*) from websub_subscription own where own.host_hash = given.host_hash) < ${mostOfHost}
       or exists (
         select from websub_subscription own
         where own.host_hash = given.host_hash and own.url_hash = given.url_hash
       )
     on conflict (host_hash, url_hash) do update
     set named_at = excluded.named_at, hub = excluded.hub, hub_host_hash = excluded.hub_host_hash, topic = excluded.topic,
       state = case when (s.hub, s.topic) = (excluded.hub, excluded.topic) then s.state else 'found' end,
       token = case when (s.hub, s.topic) = (excluded.hub, excluded.topic) then s.token end,
       lease_ends_at = case when (s.hub, s.topic) = (excluded.hub, excluded.topic) then s.lease_ends_at end,
       asked_until = case when (s.hub, s.topic) = (excluded.hub, excluded.topic) then s.asked_until end,
       failures = case when (s.hub, s.topic) = (excluded.hub, excluded.topic) then s.failures else 0 end,
       next_at = case when (s.hub, s.topic) = (excluded.hub, excluded.topic) then s.next_at else excluded.next_at end`,
    [...columnsOf(rows, ["hostHash", "urlHash", "host", "feed", "hub", "hubHostHash", "topic"]), now],
  );
}

export interface DueSubscription {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly feed: string;
  readonly topic: string;
  readonly hub: string;
  readonly hubHostHash: HostHash;
  readonly state: "found" | "asked" | "active";
  readonly failures: number;
  readonly token: string | null;
  readonly secret: string | null;
}

/** Whose turn it is, so many at most; none of hosts that opted out, be it the feed's or the hub's. */
export async function dueSubscriptions(
  pool: Pool,
  { feedsPerHost, most, now }: { readonly feedsPerHost: number; readonly most: number; readonly now: Date },
): Promise<DueSubscription[]> {
  const { rows } = await pool.query<DueSubscription>(
    `select s.host_hash as "hostHash", s.url_hash as "urlHash", s.feed, s.topic, s.hub,
       s.hub_host_hash as "hubHostHash", s.state, s.failures, s.token, s.secret
     from websub_subscription s
     where s.next_at <= $1 and s.state in ('found', 'asked', 'active')
       and s.named_at > $1::timestamptz - make_interval(days => ${namedDays})
       and not exists (
         select from frontier_host h
         where h.host_hash in (s.host_hash, s.hub_host_hash) and h.opt_out_id is not null
       )
       and (s.state <> 'found' or (
         select count(*) from websub_subscription own
         where own.host_hash = s.host_hash and (own.state in ('asked', 'active') or (own.state = 'found'
           and (own.next_at, own.url_hash) < (s.next_at, s.url_hash)))
       ) < $2)
     order by s.next_at
     limit $3`,
    [now, feedsPerHost, most],
  );
  return rows;
}

/** Without those whose hub's host opted out: it may lie in another slice than the feed's, which has looked in its own alone. */
export async function withoutStoppedHubs(
  slices: Slices,
  due: readonly DueSubscription[],
): Promise<readonly DueSubscription[]> {
  if (slices.open.length === 1 || due.length === 0) return due;
  const hashes = [...new Set(due.map(({ hubHostHash }) => hubHostHash))];
  const stopped = await ofAll(slices, async ({ pool }) => {
    const { rows } = await pool.query<{ host_hash: HostHash }>(
      "select host_hash from frontier_host where host_hash = any($1::bigint[]) and opt_out_id is not null",
      [hashes],
    );
    return rows.map((row) => row.host_hash);
  });
  const left = new Set(stopped.flat());
  return due.filter(({ hubHostHash }) => !left.has(hubHostHash));
}

/** How long a hub may take to verify what it was asked. */
const verificationMs = 86_400_000;

/**
 * Before the hub is asked: it may call back before its answer is there. False: the feed names another hub by now. What was
 * asked before and never verified has failed once more.
 */
export async function noteAsked(
  pool: Pool,
  { hostHash, urlHash, hub, topic, state, failures }: DueSubscription,
  given: { readonly token: string; readonly secret: string; readonly now: Date },
): Promise<boolean> {
  const { token, secret, now } = given;
  const failed = state === "asked" ? failures + 1 : failures;
  const { rowCount } = await pool.query(
    `update websub_subscription
     set token = $5, secret = $6, asked_until = $7, next_at = $8, failures = $9::int,
       state = case when $9::int > ${mostFailures} then 'failed' when state = 'active' then 'active' else 'asked' end,
       words = case when $9::int > ${mostFailures} then 'the hub never verified it' else words end
     where host_hash = $1 and url_hash = $2 and hub = $3 and topic = $4`,
    [
      ...[hostHash, urlHash, hub, topic, token, secret],
      new Date(now.getTime() + verificationMs),
      new Date(now.getTime() + retryMs(failed + 1)),
      failed,
    ],
  );
  // It is listed from now on, though it has told nothing yet.
  await pool.query(
    `insert into hint_host (host_hash, source, host, day, last_at)
     select host_hash, 'websub', host, ($2::timestamptz at time zone 'utc')::date, $2
     from websub_subscription
     where host_hash = $1
     limit 1
     on conflict do nothing`,
    [hostHash, now],
  );
  return rowCount === 1 && failed <= mostFailures;
}

export async function noteRefusal(
  pool: Pool,
  { hostHash, urlHash, failures }: DueSubscription,
  { words, now }: { readonly words: string; readonly now: Date },
): Promise<void> {
  const failed = failures + 1;
  await pool.query(
    `update websub_subscription
     set failures = $3::int, words = $4, next_at = $5, asked_until = null,
       state = case when $3::int > ${mostFailures} then 'failed' when lease_ends_at > $6 then 'active' else 'found' end
     where host_hash = $1 and url_hash = $2`,
    [hostHash, urlHash, failed, clean(words), new Date(now.getTime() + retryMs(failed)), now],
  );
}

export interface CalledSubscription {
  readonly hostHash: HostHash;
  readonly urlHash: UrlHash;
  readonly feed: string;
  readonly topic: string;
  readonly askedUntil: Date | null;
  readonly secret: string;
  readonly leaseEndsAt: Date | null;
}

export interface SubscriptionStore {
  /** Null: there is none of this token. */
  find(token: string): Promise<CalledSubscription | null>;
  noteVerified(found: CalledSubscription, leaseSeconds: number, now: Date): Promise<void>;
  noteDenied(found: CalledSubscription, words: string, now: Date): Promise<void>;
  /** A delivery. `hint`: the feed is one now; `repeated`: it was one already; else it does not count. */
  deliver(
    found: CalledSubscription,
    sent: { readonly signature: string | undefined; readonly body: Buffer },
    now: Date,
  ): Promise<"hint" | "repeated" | "forged" | "ended">;
}

/** A token does not tell where its feed is; whoever has found it knows. */
export function createSubscriptionStore(from: Pool | Slices): SubscriptionStore {
  const slices = slicesOf(from);
  const storeOf = ({ hostHash }: CalledSubscription) => subscriptionsIn(slices.ofHost(hostHash).pool);
  return {
    async find(token) {
      const found = await ofAll(slices, async ({ pool }) => await findByToken(pool, token));
      return found.find((one) => one !== null) ?? null;
    },
    noteVerified: async (found, leaseSeconds, now) =>
      await storeOf(found).noteVerified(found, leaseSeconds, now),
    noteDenied: async (found, words, now) => await storeOf(found).noteDenied(found, words, now),
    deliver: async (found, sent, now) => await storeOf(found).deliver(found, sent, now),
  };
}

async function findByToken(pool: Pool, token: string): Promise<CalledSubscription | null> {
  const { rows } = await pool.query<CalledSubscription>(
    `select host_hash as "hostHash", url_hash as "urlHash", feed, topic, asked_until as "askedUntil", secret,
       lease_ends_at as "leaseEndsAt"
     from websub_subscription
     where token = $1 and secret is not null`,
    [token],
  );
  return rows[0] ?? null;
}

const subscriptionsIn = (pool: Pool): Omit<SubscriptionStore, "find"> => ({
  async noteVerified({ hostHash, urlHash }, leaseSeconds, now) {
    await pool.query(
      `update websub_subscription
       set state = 'active', words = '', asked_until = null, failures = 0, lease_ends_at = $3, next_at = $4
       where host_hash = $1 and url_hash = $2`,
      [hostHash, urlHash, new Date(now.getTime() + leaseSeconds * 1000), renewAt(leaseSeconds, now)],
    );
  },
  async noteDenied({ hostHash, urlHash }, words, now) {
    await pool.query(
      `update websub_subscription
       set state = 'denied', words = $3, asked_until = null, lease_ends_at = null, next_at = $4
       where host_hash = $1 and url_hash = $2`,
      [hostHash, urlHash, clean(words), now],
    );
  },
  async deliver(found, { signature, body }, now) {
    const { hostHash, urlHash, feed, secret, leaseEndsAt } = found;
    if (leaseEndsAt === null || leaseEndsAt <= now) return "ended";
    const isOurs = isSigned(signature, body, secret);
    const key = urlKeyOf(feed);
    return await inTransaction(pool, async (client) => {
      await client.query(
        `update websub_subscription
         set deliveries = deliveries + $3::int, forged = forged + $4::int, delivered_at = case when $3::int > 0 then $5 else delivered_at end
         where host_hash = $1 and url_hash = $2`,
        [hostHash, urlHash, isOurs ? 1 : 0, isOurs ? 0 : 1, now],
      );
      if (!isOurs || typeof key === "string") return "forged";
      return (await hintFeed(client, key, now)) ? "hint" : "repeated";
    });
  },
});

/** Those that may not be any more: with nothing left of them, their callbacks are gone, and hubs are told so. */
export async function endSubscriptions(pool: Pool, isOn: boolean, now: Date): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from websub_subscription s
     where s.named_at < $1::timestamptz - make_interval(days => ${namedDays})
       or exists (select from frontier_host h where h.host_hash = s.host_hash and h.opt_out_id is not null)
       or exists (select from frontier_url u where u.host_hash = s.host_hash and u.url_hash = s.url_hash and ${isOptedOut("u")})`,
    [now],
  );
  const lapsed = await pool.query(
    `update websub_subscription
     set state = 'found', lease_ends_at = null, token = case when $2 then token end, asked_until = null
     where (state = 'active' and lease_ends_at <= $1) or (not $2 and token is not null)`,
    [now, isOn],
  );
  return (rowCount ?? 0) + (lapsed.rowCount ?? 0);
}
