/** Table channel: the rules for parts of hosts. */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { hostHashOf, urlKeyOf } from "#core/url-key";
import { inTransaction } from "../../database/transaction.ts";
import { addHosts, addUrls, lockHosts } from "../frontier/admission-writes.ts";
import {
  type ChannelRules,
  channelFaults,
  channelHolds,
  leftOut,
  outsideChannel,
} from "../frontier/channel.ts";
import { type Channel, channelsWhere, countPages, type KeptChannel } from "../frontier/channel-reads.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import { urlsInHand } from "../frontier/open-lease-reads.ts";

export type ChannelStore = ReturnType<typeof createChannelStore>;

export function createChannelStore(pool: Pool) {
  return {
    list: async (host?: string): Promise<readonly Channel[]> =>
      (host === undefined
        ? await channelsWhere(pool, "true", [])
        : await channelsWhere(pool, "host_hash = $1", [hostHashOf(host)])
      ).map(withoutHash),

    /** Returns the new channel, or why it conflicts with existing ones. */
    add: async (rules: ChannelRules, now: Date): Promise<Channel | readonly string[]> =>
      await add(pool, rules, now),

    /** Returns null if no channel has this number. The URLs that it excluded become due again. */
    remove: async (channelId: number, now: Date): Promise<Channel | null> =>
      await remove(pool, channelId, now),

    /** Applies new channels to a batch of URLs in the frontier. Returns how many URLs changed. */
    settle: async (now: Date): Promise<number> => await settleChannels(pool, now),
  };
}

/** A lock makes concurrent additions wait for each other. */
async function add(pool: Pool, rules: ChannelRules, now: Date): Promise<Channel | readonly string[]> {
  const hostHash = hostHashOf(rules.host);
  return await inTransaction(pool, async (client) => {
    await client.query("lock table channel in share row exclusive mode");
    const ofHost = await channelsWhere(client, "host_hash = $1", [hostHash]);
    const faults = [...(await boundFaults(client, rules, ofHost.length)), ...channelFaults(rules, ofHost)];
    if (faults.length > 0) return faults;
    const { rows } = await client.query<{ channel_id: string }>(
      `insert into channel (host_hash, host, directories, seeds, include, exclude, max_depth, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8)
       returning channel_id`,
      [
        hostHash,
        rules.host,
        rules.directories,
        rules.seeds,
        rules.include.map(({ text }) => text),
        rules.exclude.map(({ text }) => text),
        rules.maxDepth,
        now,
      ],
    );
    await admitSeeds(client, rules, now);
    const [channel] = await channelsWhere(client, "channel_id = $1", [rows[0]!.channel_id]);
    return withoutHash(channel!);
  });
}

/** Maximum channels per host, all of which are read with each lease and result of the host. */
const mostOfHost = 200;

const mostChannels = 50_000;

async function boundFaults(client: PoolClient, { host }: ChannelRules, ofHost: number): Promise<string[]> {
  if (ofHost >= mostOfHost) return [`${host} has ${ofHost} channels already, the maximum for a host`];
  const { rows } = await client.query<{ channels: number }>("select count(*)::int as channels from channel");
  const { channels } = rows[0]!;
  return channels < mostChannels ? [] : [`there are ${channels} channels, the maximum: remove one first`];
}

/** People give the seeds, so no budget applies and new hosts are admitted. */
async function admitSeeds(client: PoolClient, { seeds }: ChannelRules, now: Date): Promise<void> {
  const urls = seeds.flatMap((seed) => {
    const key = urlKeyOf(seed);
    return typeof key === "string" ? [] : [{ key, depth: 0 }];
  });
  const keys = urls.map(({ key }) => key);
  await addHosts(client, keys, now);
  await lockHosts(
    client,
    keys.map(({ hostHash }) => hostHash),
  );
  await addUrls(client, urls, { pagesPerHost: roomForSeeds, budgeted: false, links: [], now });
}

const roomForSeeds = 10_000_000;

async function remove(pool: Pool, channelId: number, now: Date): Promise<Channel | null> {
  const [channel] = await channelsWhere(pool, "channel_id = $1", [channelId]);
  if (channel === undefined) return null;
  const isRemoved = await inTransaction(pool, async (client) => {
    const { rowCount } = await client.query("delete from channel where channel_id = $1", [channelId]);
    if (rowCount === 0) return false;
    await letIn(client, channel, now);
    return true;
  });
  return isRemoved ? withoutHash(channel) : null;
}

function withoutHash({ hostHash: _, ...channel }: KeptChannel): Channel {
  return channel;
}

// Applies a channel to URLs that were in the frontier before it. URLs that it excludes are refused, so that nobody
// fetches them; leased ones wait for the next run. When the channel is removed, they become due again.

const urlsAtOnce = 5000;

/** How often a channel's pages are counted and its URLs are checked again. */
const againMs = 3_600_000;

/** Settles each channel that is new or due. Returns how many URLs were excluded. */
async function settleChannels(pool: Pool, now: Date): Promise<number> {
  let total = 0;
  for (const channel of await channelsWhere(pool, "not settled or counted_at < $1", [
    new Date(now.getTime() - againMs),
  ]))
    total += await settleChannel(pool, channel, now);
  return total;
}

async function settleChannel(pool: Pool, channel: KeptChannel, now: Date): Promise<number> {
  let after: UrlHash | null = null;
  let taken = 0;
  let leased = 0;
  for (;;) {
    const batch: Batch = await inTransaction(pool, async (client) => await takeOut(client, channel, after));
    taken += batch.taken;
    leased += batch.leased;
    after = batch.last;
    if (after === null) break;
  }
  await countPages(pool, channel, { settled: leased === 0, now });
  return taken;
}

interface Batch {
  readonly taken: number;
  /** How many of the excluded URLs are still leased. */
  readonly leased: number;
  readonly last: UrlHash | null;
}

async function takeOut(client: PoolClient, channel: KeptChannel, after: UrlHash | null): Promise<Batch> {
  const { hostHash } = channel;
  await lockHosts(client, [hostHash]);
  const { rows } = await client.query<{ url_hash: UrlHash; url: string; depth: number; state: string }>(
    `select url_hash, url, depth,
       case when url_hash = any(${urlsInHand("$1::bigint")}) then 'leased' else state end as state
     from frontier_url
     where host_hash = $1 and ($2::bigint is null or url_hash > $2)
     order by url_hash
     limit $3`,
    [hostHash, after, urlsAtOnce],
  );
  const out = rows.flatMap((row) => {
    const why = channelHolds(channel, row.url) ? leftOut(channel, row) : null;
    return why === null || row.state === "refused" ? [] : [{ ...row, why }];
  });
  const free = out.filter(({ state }) => state !== "leased");
  if (free.length > 0) await refuse(client, channel, free);
  const last = rows.length < urlsAtOnce ? null : rows.at(-1)!.url_hash;
  return { taken: free.length, leased: out.length - free.length, last };
}

async function refuse(
  client: PoolClient,
  { hostHash, channelId }: KeptChannel,
  urls: readonly { readonly url_hash: UrlHash; readonly state: string; readonly why: string }[],
): Promise<void> {
  await client.query(
    `update frontier_url u
     set state = 'refused', last_outcome = '${outsideChannel}', last_reason = 'channel ' || $2::int || ': ' || given.why
     from unnest($3::bigint[], $4::text[]) as given (url_hash, why)
     where u.host_hash = $1 and u.url_hash = given.url_hash`,
    [hostHash, channelId, urls.map((one) => one.url_hash), urls.map(({ why }) => why)],
  );
  // Held URLs do not count in the host's URL budget, but refused ones do.
  await client.query(
    "update frontier_host set held_urls = greatest(0, held_urls - $2), url_count = url_count + $2 where host_hash = $1",
    [hostHash, urls.filter(({ state }) => state === "held").length],
  );
  await settleHosts(client, [hostHash]);
}

/** Makes the URLs that the channel excluded due. The host must not be locked yet. */
async function letIn(client: PoolClient, { hostHash, channelId }: KeptChannel, now: Date): Promise<void> {
  await lockHosts(client, [hostHash as HostHash]);
  await client.query(
    `update frontier_url u
     set state = 'due', last_outcome = null, last_reason = null, next_fetch_at = least(u.next_fetch_at, $3)
     from frontier_host h
     where h.host_hash = $1 and h.state <> 'refused' and u.host_hash = $1 and u.state = 'refused'
       and u.last_outcome = '${outsideChannel}' and u.last_reason like 'channel ' || $2::int || ':%'`,
    [hostHash, channelId, now],
  );
  await settleHosts(client, [hostHash]);
}
