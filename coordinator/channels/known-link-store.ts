/** Table channel_link: which links to other sites a channel's pages have, told with its leases and read by their names. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { hostHashOf } from "#core/url-key";
import { mostKnownDigests, packKnownDigests } from "#protocol/known-digests";
import { type Lease, linkDigestOf, linkHashOfNumber, linkNameBits, linkNameOf } from "#protocol/lease";
import { prepared } from "../database/transaction.ts";
import type { NamedLink } from "../results/accepted-result.ts";
import { channelHolds } from "./channel.ts";
import { type KeptChannel, pagesOfChannel } from "./channel-reads.ts";
import { keyOfName, linksThatPay, type ToldLink } from "./known-links.ts";

/** Of a channel so many pages are looked at: shares are all that is wanted. */
const mostCountedPages = 100_000;
/** What was told is understood for so many turns, which are an hour apart, and so through the longest leases. */
const keptTurns = 26;

/** Counts the channel's links to other sites that the frontier has; the most frequent are known from now on. */
export async function countLinks(pool: Pool, { channelId }: KeptChannel): Promise<void> {
  await pool.query(
    `with pages as materialized (
       select p.host_hash, p.url_hash
       from ${pagesOfChannel(mostCountedPages)}
     ), links as (
       select l.to_host_hash, l.to_url_hash, count(*) as pages, length(max(u.url)) as url_length
       from pages
       join link l using (host_hash, url_hash)
       join frontier_url u on u.host_hash = l.to_host_hash and u.url_hash = l.to_url_hash
       where l.to_host_hash <> l.host_hash
       group by l.to_host_hash, l.to_url_hash
       order by count(*) desc, l.to_url_hash
       limit ${mostKnownDigests}
     ), seen as (
       select coalesce(sum(u.content_changes)::real / nullif(sum(u.compared_visits), 0), 0)::real as changed_share
       from pages
       join frontier_url u using (host_hash, url_hash)
     ), counted as (
       update channel c set changed_share = seen.changed_share from seen where c.channel_id = $1
       returning c.known_turn
     ), gone as (
       delete from channel_link k using counted
       where k.channel_id = $1 and k.turn < counted.known_turn - ${keptTurns}
         and (k.to_host_hash, k.to_url_hash) not in (select to_host_hash, to_url_hash from links)
     )
     insert into channel_link (channel_id, to_host_hash, to_url_hash, page_share, url_length, turn)
     select $1, l.to_host_hash, l.to_url_hash, l.pages::real / (select count(*) from pages), l.url_length,
       counted.known_turn
     from links l cross join counted
     on conflict (channel_id, to_host_hash, to_url_hash)
       do update set page_share = excluded.page_share, turn = excluded.turn`,
    [channelId],
  );
}

interface LinkedChannel {
  readonly hostHash: HostHash;
  readonly directories: readonly string[];
  readonly turn: number;
  readonly changedShare: number;
  readonly links: readonly (ToldLink & { readonly hash: string })[];
}

/** The leases, with the known links of their channels that save bytes. */
export async function withKnownLinks(client: PoolClient, leases: readonly Lease[]): Promise<Lease[]> {
  const { rows } = await prepared<LinkedChannel>(
    client,
    `select c.host_hash as "hostHash", c.directories, c.known_turn as turn, c.changed_share as "changedShare",
       known.links
     from channel c
     cross join lateral (
       select jsonb_agg(jsonb_build_object(
         'hash', k.to_url_hash::text, 'pageShare', k.page_share, 'urlLength', k.url_length)) as links
       from channel_link k
       where k.channel_id = c.channel_id and k.turn = c.known_turn
     ) known
     where c.host_hash = any ($1::bigint[]) and known.links is not null`,
    [leases.map(({ host }) => hostHashOf(host))],
  );
  return rows.length === 0 ? [...leases] : leases.map((lease) => withLinks(lease, rows));
}

/** Of several channels the first of which any link pays: a lease has one set. */
function withLinks(lease: Lease, channels: readonly LinkedChannel[]): Lease {
  const hostHash = hostHashOf(lease.host);
  for (const channel of channels) {
    if (channel.hostHash !== hostHash) continue;
    const { changedShare, links, turn } = channel;
    const held = lease.urls.filter(({ url }) => channelHolds(channel, url));
    const knownPages = held.filter(({ digest }) => digest !== undefined).length;
    const told = linksThatPay(links, { newPages: held.length - knownPages, knownPages, changedShare });
    const hashes = withoutTwins(told.map(({ hash }) => linkHashOfNumber(hash)));
    if (hashes.length === 0) continue;
    return { ...lease, knownLinks: packKnownDigests(hashes.map(linkDigestOf), turn).toString("base64") };
  }
  return lease;
}

/** Without those that share their name with another. */
function withoutTwins(hashes: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const hash of hashes) counts.set(linkNameOf(hash), (counts.get(linkNameOf(hash)) ?? 0) + 1);
  return hashes.filter((hash) => counts.get(linkNameOf(hash)) === 1);
}

/** By `keyOfName`; without names of no known link of any channel of the host, and of more than one. */
export async function urlsOfNames(
  pool: Pool,
  names: readonly NamedLink[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ ordinal: number; url: string }>(
    `select given.ordinal::int - 1 as ordinal, min(u.url) as url
     from unnest($1::bigint[], $2::bigint[]) with ordinality as given (host_hash, bits, ordinal)
     join channel c on c.host_hash = given.host_hash
     join channel_link k
       on k.channel_id = c.channel_id and ((k.to_url_hash >> 40) & ${2 ** 24 - 1}) = given.bits
     join frontier_url u on u.host_hash = k.to_host_hash and u.url_hash = k.to_url_hash
     group by given.ordinal
     having count(distinct u.url) = 1`,
    [names.map(({ hostHash }) => hostHash), names.map(({ name }) => linkNameBits(name))],
  );
  return new Map(rows.map(({ ordinal, url }) => [keyOfName(names[ordinal]!), url]));
}
