/** Table channel: what is crawled of parts of hosts. */
import type { Pool, PoolClient } from "pg";
import { hostHashOf, urlKeyOf } from "#core/url-key";
import { inTransaction } from "../database/transaction.ts";
import { addHosts, addUrls, lockHosts } from "../frontier/admission-writes.ts";
import { type ChannelRules, channelFaults } from "./channel.ts";
import { type Channel, type ChannelStore, channelsWhere, type KeptChannel } from "./channel-reads.ts";
import { letIn, settleChannels } from "./channel-settling-writes.ts";

export function createChannelStore(pool: Pool): ChannelStore {
  return {
    list: async (host) =>
      (host === undefined
        ? await channelsWhere(pool, "true", [])
        : await channelsWhere(pool, "host_hash = $1", [hostHashOf(host)])
      ).map(withoutHash),
    add: async (rules, now) => await add(pool, rules, now),
    remove: async (channelId, now) => await remove(pool, channelId, now),
    settle: async (now) => await settleChannels(pool, now),
  };
}

/** Two that are added at once are looked at one after the other. */
async function add(pool: Pool, rules: ChannelRules, now: Date): Promise<Channel | readonly string[]> {
  return await inTransaction(pool, async (client) => {
    await client.query("lock table channel in share row exclusive mode");
    const hostHash = hostHashOf(rules.host);
    const ofHost = await channelsWhere(client, "host_hash = $1", [hostHash]);
    const faults = [...(await boundFaults(client, rules, ofHost.length)), ...channelFaults(rules, ofHost)];
    if (faults.length > 0) return faults;
    const { rows } = await client.query<{ channel_id: number }>(
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

/** All of a host are read with each lease and result of it, and all that there are for the list. */
const mostOfHost = 200;
const mostChannels = 50_000;

async function boundFaults(client: PoolClient, { host }: ChannelRules, ofHost: number): Promise<string[]> {
  if (ofHost >= mostOfHost) return [`${host} has ${ofHost} channels already, as many as a host may have`];
  const { rows } = await client.query<{ channels: number }>("select count(*)::int as channels from channel");
  const { channels } = rows[0]!;
  return channels < mostChannels
    ? []
    : [`there are ${channels} channels, as many as there may be: remove one first`];
}

/** They come from people: no budget holds for them, and a new host is welcome. */
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

/** The most that a policy can allow (scope.pagesPerHost). */
const roomForSeeds = 10_000_000;

async function remove(pool: Pool, channelId: number, now: Date): Promise<Channel | null> {
  return await inTransaction(pool, async (client) => {
    const [channel] = await channelsWhere(client, "channel_id = $1", [channelId]);
    if (channel === undefined) return null;
    await client.query("delete from channel where channel_id = $1", [channelId]);
    await letIn(client, channel, now);
    return withoutHash(channel);
  });
}

function withoutHash({ hostHash: _, ...channel }: KeptChannel): Channel {
  return channel;
}
