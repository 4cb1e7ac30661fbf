import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { listOf, prepared } from "../../database/transaction.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import { type ChannelRules, channelHolds, leftOut, parseUrlPattern, type UrlPattern } from "./channel.ts";

export interface KeptChannel extends Channel {
  readonly hostHash: HostHash;
}

interface ChannelRow extends Omit<KeptChannel, "include" | "exclude"> {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

export async function channelsWhere(
  client: Pool | PoolClient,
  condition: string,
  values: readonly unknown[],
): Promise<KeptChannel[]> {
  const { rows } = await prepared<ChannelRow>(
    client,
    `select channel_id::float8 as "channelId", host_hash as "hostHash", host, directories, seeds, include, exclude,
       max_depth as "maxDepth", created_at as "createdAt", settled,
       case when counted_at is not null then expected_pages end as "expectedPages"
     from channel
     where ${condition}
     order by host, channel_id`,
    values,
  );
  return rows.map((row) => ({
    ...row,
    include: row.include.flatMap(patternOf),
    exclude: row.exclude.flatMap(patternOf),
  }));
}

/** Stored patterns have already been validated. */
function patternOf(text: string): UrlPattern[] {
  const pattern = parseUrlPattern(text);
  return typeof pattern === "string" ? [] : [pattern];
}

export interface Channel extends ChannelRules {
  readonly channelId: number;
  readonly createdAt: Date;
  /** Indexed pages at the last count. Null before the first count. */
  readonly expectedPages: number | null;
  /** False while URLs already in the frontier are still being updated. */
  readonly settled: boolean;
}

const mostCounted = 1_000_000;

export async function countPages(
  pool: Pool,
  { channelId, hostHash, directories }: KeptChannel,
  at: { readonly settled: boolean; readonly now: Date },
): Promise<void> {
  await pool.query(
    `update channel
     set settled = $2, counted_at = $3, expected_pages = (
       select count(*)
       from (select $5::text[] as directories) c
       cross join lateral (
         select ${pathSql("url")} as path from page where host_hash = $4 limit ${mostCounted}
       ) p
       where ${holdsPath("p.path")}
     )
     where channel_id = $1`,
    [channelId, at.settled, at.now, hostHash, directories],
  );
}

/** SQL: path and query of the canonical URL in a column. */
export const pathSql = (url: string) => `substring(${url} from '^[a-z]+://[^/]*(/.*)$')`;

/** SQL: the path lies in a directory of row `c` of table channel. */
const holdsPath = (path: string) =>
  `exists (select from unnest(c.directories) directory where starts_with(${path}, directory))`;

/** SQL: the channel's number, or 0. `u` is a row with `host_hash` and `url`. */
export const channelOfUrl = (u: string) => `coalesce((
  select min(c.channel_id)
  from channel c
  where c.host_hash = ${u}.host_hash and ${holdsPath(pathSql(`${u}.url`))}
), 0)`;

/** Removes URLs that their channel excludes. */
export async function withinChannels<Url extends AdmittedUrl>(
  client: PoolClient,
  urls: readonly Url[],
): Promise<readonly Url[]> {
  if (urls.length === 0) return urls;
  const hosts = [...new Set(urls.map(({ key }) => key.hostHash))];
  const channels = await channelsOf(client, hosts);
  if (channels.size === 0) return urls;
  return urls.filter(({ key, depth }) => {
    const channel = channels.get(key.hostHash)?.find((one) => channelHolds(one, key.url));
    return channel === undefined || leftOut(channel, { url: key.url, depth }) === null;
  });
}

async function channelsOf(
  client: PoolClient,
  hosts: readonly HostHash[],
): Promise<ReadonlyMap<HostHash, readonly KeptChannel[]>> {
  const byHost = new Map<HostHash, KeptChannel[]>();
  for (const channel of await channelsWhere(client, "host_hash = any ($1::bigint[])", [listOf(hosts)])) {
    byHost.set(channel.hostHash, [...(byHost.get(channel.hostHash) ?? []), channel]);
  }
  return byHost;
}
