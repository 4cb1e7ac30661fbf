/** Beside the tiny world and its fleet: sites with links, leases, comparisons and pages in two languages, for what is told of all hosts. */
import type { Pool } from "pg";
import { keepSearch } from "#coordinator/search/index-upkeep-store";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { addLinks, type TestLink } from "./links.ts";
import { seedFleet } from "./seed-fleet.ts";
import { seedOperation } from "./seed-operation.ts";
import { seedHost, seedPage, seedUrl, seedWorld, worldNow } from "./seed-world.ts";

export const sites = Array.from({ length: 24 }, (_, n) => `site-${n}.example.org`);

export async function seedManySites(pool: Pool): Promise<void> {
  await seedWorld(pool);
  await seedOperation(pool);
  await seedFleet(pool);
  const subnets = ["1.2.3.0", "1.2.9.0", "5.6.0.0", "2a00:1::"];
  for (const [n, host] of sites.entries()) {
    await seedHost(pool, { host, subnet: subnets[n % 4]!, address: `1.2.3.${n + 1}` });
    for (const path of ["", "ferry", "harbour"]) {
      const url = `https://${host}/${path}`;
      if (path !== "") await seedUrl(pool, { url });
      await seedPage(pool, {
        url,
        title: path === "" ? `Welcome to island ${n}` : `The ${path} of island ${n % 5}`,
        text: `The ferry leaves the old harbour of island ${n} ${"every morning at seven ".repeat(1 + (n % 7))}`,
        language: n % 3 === 0 ? "de" : "en",
        textSearchConfig: n % 3 === 0 ? "german" : "english",
        crawler: n % 2 === 0 ? "athens" : "berlin",
      });
    }
  }
  await addLinks(pool, links());
  await pool.query(`
    update frontier_host set due_at = '2026-03-01T11:00:00Z'::timestamptz - make_interval(secs => url_count * 7 + (host_hash & 1023)),
      left_out_urls = case when host_hash & 3 = 0 then (host_hash & 255) else 0 end
    where state = 'resolved';
    update page_fetch set fetched_at = fetched_at - (url_hash & 65535) * interval '1 ms' where fetched_at = '2026-03-01T12:00:00Z';
    update frontier_url set next_fetch_at = next_fetch_at - (url_hash & 65535) * interval '1 ms';
    update page set text_group = 77 where url like '%island-%' or url like 'https://site-_.example.org/';
    update page set text_group = null, duplicate_host_hash = null;
    insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls, ending, addresses, open_url_hashes)
    select 1 + (host_hash & 1), host_hash, host, '2026-03-01T11:50:00Z', '2026-03-01T12:20:00Z', 5, (host_hash & 3) + 1, null, '{}', '{}'
    from frontier_host where host like 'site-1%';
    update frontier_host h set lease_id = l.lease_id from lease l where l.host_hash = h.host_hash;
    insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by, verdict, decided_at)
    select host_hash, url_hash, host, url, crawler_id, 'sample', '[]', '{}', '2026-03-01T12:00:00Z', (array['agree', 'alone', 'once'])[1 + (host_hash & 1)::int],
      '2026-03-01T11:30:00Z'::timestamptz - make_interval(mins => (url_hash & 63)::int)
    from page where url like '%/ferry';`);
}

/** Each front page links to those after it, and every ferry to the first harbour. */
function links(): TestLink[] {
  const front = (n: number) => `https://${sites[n % sites.length]}/`;
  const link = (from: string, to: string) => ({ from: keyOf(from), to: keyOf(to), anchor: "an island" });
  return sites.flatMap((_, n) => [
    ...[front(n + 1), front(n + 5), `${front(n)}ferry`].map((to) => link(front(n), to)),
    ...[`${front(0)}harbour`, `https://beyond-${n}.example.net/`].map((to) => link(`${front(n)}ferry`, to)),
  ]);
}

function keyOf(url: string): UrlKey {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

/** Counts linking hosts in a round, and one more to know the first tier. */
export async function keepSearchOf(pool: Pool): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const now = new Date(worldNow.getTime() + round * 3_600_000);
    while (!(await keepSearch(pool, now)).rests);
  }
}
