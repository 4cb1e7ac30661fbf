/**
 * Batches of links as results bring them: a hundred pages of ninety hosts or so, each with eighteen links to its own
 * host and two to others. Half of them are known; of the links to others, one in eight is to a host that nobody knew.
 */
import type { Pool } from "pg";
import type { AdmittedUrl, FrontierStore } from "#coordinator/frontier/frontier";
import { seededRandom } from "#core/random";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { type Rates, ratesOf, roundOf } from "./measured-rounds.ts";

const pagesPerBatch = 100;
const linksPerPage = 18;
const outsideLinks = 200;
const ownLinks = pagesPerBatch * linksPerPage;
export const urlsPerBatch = ownLinks + outsideLinks;
const batchesPerRound = 10;
const rounds = 7;
const scope = { pagesPerHost: 1_000_000, maxDepth: 20, admitNewHosts: true };

export async function measureAdmissions(pool: Pool, frontier: FrontierStore, server: number): Promise<Rates> {
  const random = seededRandom(Math.floor(performance.now()));
  await pool.query("checkpoint");
  const measured = [];
  // The first round fills caches and makes plans.
  for (let round = 0; round <= rounds; round++) {
    const batches = [];
    for (let batch = 0; batch < batchesPerRound; batch++) batches.push(await linksOf(pool, random));
    const jobs = batches.map((urls) => async () => {
      const { newUrls } = await frontier.admit(urls, scope, new Date());
      if (newUrls !== urls.length / 2)
        throw new Error(`${newUrls} of ${urls.length} URLs were new, not half`);
      return urls.length;
    });
    measured.push(await roundOf(jobs, server));
  }
  return ratesOf(measured.slice(1));
}

let made = 0;

/** The pages' links to their own hosts, then those to hosts here and there, half of them known. */
async function linksOf(pool: Pool, random: () => number): Promise<AdmittedUrl[]> {
  const own = await knownUrls(pool, placesFor(random, 2 * pagesPerBatch), {
    fromHost: linksPerPage / 2,
    most: ownLinks / 2,
  });
  const others = await knownUrls(pool, placesFor(random, 4 * outsideLinks), {
    fromHost: 1,
    most: outsideLinks,
  });
  const known = [...own, ...others.slice(0, outsideLinks / 2)];
  const added = [...own, ...others.slice(outsideLinks / 2)].map(({ host }, index) => {
    made += 1;
    const isNewHost = index >= own.length && index % 4 === 0;
    return newKey(isNewHost ? `new${process.pid}-${made}.example` : host, made);
  });
  return [...known, ...added].map((key) => ({ key, depth: 3 }));
}

function newKey(host: string, number: number): UrlKey {
  const key = urlKeyOf(
    `https://${host}/added/${process.pid}/an-article-that-nobody-had-seen-before/${number}.html`,
  );
  if (typeof key === "string") throw new Error(`${host}: ${key}`);
  return key;
}

/** Hashes of hosts, anywhere. */
function placesFor(random: () => number, count: number): string[] {
  return Array.from({ length: count }, () =>
    ((BigInt(Math.floor(random() * 2 ** 32)) << 32n) - 2n ** 63n).toString(),
  );
}

/** URLs of the hosts that come after these places and have enough of them. */
async function knownUrls(
  pool: Pool,
  places: readonly string[],
  { fromHost, most }: { readonly fromHost: number; readonly most: number },
): Promise<UrlKey[]> {
  const { rows } = await pool.query<UrlKey>(
    `select u.url, h.host, h.host_hash as "hostHash", u.url_hash as "urlHash"
     from (
       select distinct h.host, h.host_hash
       from unnest($1::bigint[]) place
       cross join lateral (
         select host, host_hash
         from frontier_host
         where host_hash > place and url_count >= $2
         order by host_hash
         limit 1
       ) h
     ) h
     cross join lateral (select url, url_hash from frontier_url where host_hash = h.host_hash limit $2) u
     limit $3`,
    [places, fromHost, most],
  );
  if (rows.length < most) throw new Error(`${rows.length} of ${most} known URLs were found`);
  return rows;
}
