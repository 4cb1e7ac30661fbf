/** Why a URL that the frontier does not hold is not in it: the channel that it lies in, and what of that leaves it out. */
import type { Pool } from "pg";
import type { UrlKey } from "#core/url-key";
import { channelHolds, leftOut } from "../channels/channel.ts";
import { channelsWhere } from "../channels/channel-reads.ts";
import type { LeavingChannel } from "../who/who-channel.ts";

/** Pages that link to it are looked at for how deep it lies, so many at most. */
const mostLinks = 1000;

/** Null: it lies in no channel, or the channel wants it. */
export async function leavingChannel(
  pool: Pool,
  { hostHash, urlHash, url }: UrlKey,
): Promise<LeavingChannel | null> {
  const channels = await channelsWhere(pool, "host_hash = $1", [hostHash]);
  const channel = channels.find((one) => channelHolds(one, url));
  if (channel === undefined) return null;
  const { rows } = await pool.query<{ depth: number | null }>(
    `select min(u.depth) + 1 as depth
     from (select host_hash, url_hash from link where to_host_hash = $1 and to_url_hash = $2 limit ${mostLinks}) l
     join frontier_url u using (host_hash, url_hash)`,
    [hostHash, urlHash],
  );
  // Of a page that nothing links to, filters alone are held against it.
  const why = leftOut(channel, { url, depth: rows[0]?.depth ?? 0 });
  if (why === null) return null;
  const { channelId, host, directories } = channel;
  return { channelId, prefixes: directories.map((directory) => host + directory), why };
}
