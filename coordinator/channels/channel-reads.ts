/** Table channel: its rows as channels. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { Channel } from "./channel-ports.ts";
import { parseUrlPattern, type UrlPattern } from "./url-pattern.ts";

export interface KeptChannel extends Channel {
  readonly hostHash: HostHash;
}

interface ChannelRow {
  channel_id: number;
  host_hash: HostHash;
  host: string;
  directories: string[];
  seeds: string[];
  include: string[];
  exclude: string[];
  max_depth: number | null;
  created_at: Date;
  expected_pages: number;
  counted_at: Date | null;
  settled: boolean;
}

export async function channelsWhere(
  client: Pool | PoolClient,
  condition: string,
  values: readonly unknown[],
): Promise<KeptChannel[]> {
  const { rows } = await client.query<ChannelRow>(
    `select channel_id, host_hash, host, directories, seeds, include, exclude, max_depth, created_at, expected_pages,
       counted_at, settled
     from channel
     where ${condition}
     order by host, channel_id`,
    [...values],
  );
  return rows.map(channelOf);
}

function channelOf(row: ChannelRow): KeptChannel {
  return {
    channelId: row.channel_id,
    hostHash: row.host_hash,
    host: row.host,
    directories: row.directories,
    seeds: row.seeds,
    include: row.include.flatMap(patternOf),
    exclude: row.exclude.flatMap(patternOf),
    maxDepth: row.max_depth,
    createdAt: row.created_at,
    expectedPages: row.counted_at === null ? null : row.expected_pages,
    settled: row.settled,
  };
}

/** They were read before they were kept. */
function patternOf(text: string): UrlPattern[] {
  const pattern = parseUrlPattern(text);
  return typeof pattern === "string" ? [] : [pattern];
}
