/** Counts the URLs of channels and of seeds' hosts: fetched, waiting, held back, too deep. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { hostHashOf, type UrlKey } from "#core/url-key";
import { type ChannelRules, channelHolds } from "../frontier/channel.ts";
import { channelsWhere, pathSql } from "../frontier/channel-reads.ts";
import { type Coverage, coverageOf } from "./coverage.ts";

/** What to cover: one channel, one host, or the hosts of a submission's seeds. If all are null, every channel. */
export interface CoverageQuery {
  readonly channel: number | null;
  readonly submission: number | null;
  readonly host: string | null;
  /** Maximum number of channels and hosts. */
  readonly most: number;
  /** Maximum depth where a channel sets none. */
  readonly maxDepth: number;
}

export interface CoverageList {
  readonly coverage: readonly Coverage[];
  readonly more: boolean;
}

/** Returns null if there is no such channel, submission or host. */
export async function coverageList(pool: Pool, query: CoverageQuery): Promise<CoverageList | null> {
  const places = await placesOf(pool, query);
  const isNamed = (query.channel ?? query.submission ?? query.host) !== null;
  if (places.length === 0 && isNamed) return null;
  return await coverageOfPlaces(pool, places, query.most);
}

/** Covers given canonical URLs, each with its channel or host. */
export async function coverageOfSeeds(
  pool: Pool,
  seeds: readonly UrlKey[],
  { maxDepth, most }: Pick<CoverageQuery, "maxDepth" | "most">,
): Promise<CoverageList> {
  const given = seeds.map(({ hostHash, host, url }) => ({ host_hash: hostHash, host, url }));
  return await coverageOfPlaces(pool, await placesOfSeeds(pool, given, maxDepth), most);
}

async function coverageOfPlaces(pool: Pool, places: readonly Place[], most: number): Promise<CoverageList> {
  const coverage: Coverage[] = [];
  for (const place of places.slice(0, most)) coverage.push(await coverageOfPlace(pool, place));
  return { coverage, more: places.length > most };
}

interface Place extends Pick<ChannelRules, "host" | "directories" | "seeds"> {
  readonly hostHash: HostHash;
  readonly channelId: number | null;
  readonly maxDepth: number;
}

async function placesOf(pool: Pool, query: CoverageQuery): Promise<Place[]> {
  const { submission, host } = query;
  if (submission !== null) return await placesOfSeeds(pool, await seedsOf(pool, submission), query.maxDepth);
  if (host !== null) return await placesOfHost(pool, host, query);
  const channels =
    query.channel === null
      ? await channelsWhere(pool, "true", [])
      : await channelsWhere(pool, "channel_id = $1", [query.channel]);
  return channels.map((channel) => placeOf(channel, query.maxDepth));
}

const placeOf = (
  channel: Awaited<ReturnType<typeof channelsWhere>>[number],
  scopeDepth: number,
  seeds = channel.seeds,
): Place => ({
  ...{ hostHash: channel.hostHash, host: channel.host, directories: channel.directories, seeds },
  ...{ channelId: channel.channelId, maxDepth: channel.maxDepth ?? scopeDepth },
});

/** The whole host, within the scope, with the URLs that people submitted as seeds. */
const wholeHost = (host: string, seeds: readonly string[], maxDepth: number): Place => ({
  ...{ hostHash: hostHashOf(host), host, directories: ["/"], seeds, channelId: null, maxDepth },
});

/** Maximum number of seeds listed. Counts include all URLs. */
const mostSeeds = 1000;

async function placesOfHost(pool: Pool, host: string, { maxDepth }: CoverageQuery): Promise<Place[]> {
  const hostHash = hostHashOf(host);
  const { rows } = await pool.query<{ seeds: string[] }>(
    `select array(
       select url from frontier_url where host_hash = $1 and depth = 0 order by url limit ${mostSeeds}
     ) as seeds
     from frontier_host where host_hash = $1`,
    [hostHash],
  );
  return rows.map(({ seeds }) => wholeHost(host, seeds, maxDepth));
}

interface Seed {
  readonly host_hash: HostHash;
  readonly host: string;
  readonly url: string;
}

async function seedsOf(pool: Pool, submission: number): Promise<Seed[]> {
  const { rows } = await pool.query<Seed>(
    `select s.host_hash, h.host, s.url
     from submission_url s
     join frontier_host h on h.host_hash = s.host_hash
     where s.submission_id = $1 and s.answer in ('new', 'known')
     order by s.place`,
    [submission],
  );
  return rows;
}

/** Assigns each seed to its channel, or else to its host. */
async function placesOfSeeds(pool: Pool, seeds: readonly Seed[], maxDepth: number): Promise<Place[]> {
  const channels = await channelsWhere(pool, "host_hash = any($1::bigint[])", [
    [...new Set(seeds.map((seed) => seed.host_hash))],
  ]);
  const places = new Map<string, Place & { readonly seeds: string[] }>();
  for (const { host_hash, host, url } of seeds) {
    const channel = channels.find((one) => one.hostHash === host_hash && channelHolds(one, url));
    const name = channel === undefined ? host : String(channel.channelId);
    const place =
      places.get(name) ??
      ((channel === undefined ? wholeHost(host, [], maxDepth) : placeOf(channel, maxDepth, [])) as Place & {
        readonly seeds: string[];
      });
    places.set(name, { ...place, seeds: [...place.seeds, url] });
  }
  return [...places.values()];
}

const mostUrls = 100_000;

/** Maximum number of URLs counted as too deep. */
const mostTooDeep = 1000;

type CoverageRow = Omit<
  Parameters<typeof coverageOf>[0],
  keyof Omit<Place, "hostHash" | "seeds"> | "more"
> & {
  readonly looked: number;
};

async function coverageOfPlace(pool: Pool, { hostHash, ...place }: Place): Promise<Coverage> {
  const { rows } = await pool.query<CoverageRow>(
    `with looked as materialized (
       select url_hash, state, depth, visits, last_outcome, ${pathSql("url")} as path
       from frontier_url
       where host_hash = $1
       limit ${mostUrls + 1}
     ), inside as (
       select * from looked where exists (select from unnest($2::text[]) d where starts_with(path, d))
     ), too_deep as (
       select distinct link.url_hash
       from inside i
       join out_link o on o.host_hash = $1 and o.url_hash = i.url_hash
       cross join lateral unnest(o.urls[1:o.own_links]) with ordinality as link (url_hash, place)
       where i.depth >= $3 and i.visits > 0
         -- Nofollow links are left out because of the scope, not because of the depth.
         and not link.place = any(coalesce(o.nofollows, '{}'))
         and not exists (select from frontier_url u where u.host_hash = $1 and u.url_hash = link.url_hash)
         and not exists (select from held_urls b where b.host_hash = $1 and link.url_hash = any(b.url_hashes))
       limit ${mostTooDeep}
     )
     select counted.*, coalesce(h.left_out_urls, 0)::float8 as "leftOut",
       (select count(*)::int from looked) as looked,
       (select count(*)::int from too_deep) as "tooDeep",
       (select count(*)::int from held_url u
        where u.host_hash = $1
          and exists (select from unnest($2::text[]) d where starts_with(${pathSql("u.url")}, d))) as held,
       case
         when h.opt_out_id is not null then 'its site does not want to be crawled'
         when h.state in ('refused', 'unresolvable') then h.state_reason
         when h.host_hash is null then 'its host is not in the crawl'
       end as blocked,
       coalesce((
         select json_agg(json_build_object('url', given.url, 'state', u.state, 'lastOutcome', u.last_outcome,
           'lastStatus', u.last_status, 'fetches', coalesce(u.visits, 0)) order by given.place)
         from unnest($4::text[]) with ordinality as given (url, place)
         left join frontier_url u on u.host_hash = $1 and u.url = given.url
       ), '[]') as seeds
     from (
       select count(*) filter (where visits > 0)::int as fetched,
         count(*) filter (where state = 'due' and visits = 0)::int as waiting,
         count(*) filter (where state = 'gone')::int as gone,
         count(*) filter (where last_outcome = 'refused-by-robots')::int as "refusedByRobots",
         coalesce(max(depth), 0)::int as deepest
       from inside
     ) counted
     left join frontier_host h on h.host_hash = $1`,
    [hostHash, place.directories, place.maxDepth, place.seeds.slice(0, mostSeeds)],
  );
  const { looked, ...row } = rows[0]!;
  return coverageOf({ ...place, ...row, more: looked > mostUrls });
}
