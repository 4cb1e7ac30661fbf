/** What channels leave out of what is admitted to the frontier. */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import type { AdmittedUrl } from "../frontier/frontier.ts";
import { channelHolds, leftOut } from "./channel.ts";
import { channelsWhere, type KeptChannel } from "./channel-reads.ts";

/** Without those that the channel they lie in does not want. */
export async function withinChannels(
  client: PoolClient,
  urls: readonly AdmittedUrl[],
): Promise<readonly AdmittedUrl[]> {
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
  for (const channel of await channelsWhere(client, "host_hash = any ($1::bigint[])", [hosts])) {
    byHost.set(channel.hostHash, [...(byHost.get(channel.hostHash) ?? []), channel]);
  }
  return byHost;
}
