/**
 * The page of one host with 100,000 URLs, beside a million others: how long each of its parts takes, from the database to the
 * HTML, as the 95th of a hundred, one after the other. The host has 20,000 pages in the index, 60,000 fetches of 30 days,
 * 30,000 changes and 20,000 pages with links; the others have a row each. Made once, and kept in a folder for the next run.
 * Run: npm run bench -- site-page [--hosts 1000000] [--asks 100] [--home FOLDER]
 */

import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Pool } from "pg";
import { answerSite, readAsked } from "#coordinator/sites/site";
import { siteParts } from "#coordinator/sites/site-api";
import { siteBody } from "#coordinator/sites/site-page";
import { sitePorts } from "#coordinator/sites/start";
import { nobody } from "#coordinator/web/page-frame";
import { timeRange } from "#core/time-range";
import { hostHashOf } from "#core/url-key";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { figure } from "./figure.ts";

const { values: options } = parseArgs({
  options: {
    hosts: { type: "string", default: "1000000" },
    asks: { type: "string", default: "100" },
    home: { type: "string", default: join(tmpdir(), "nearcrawl-bench-site-page") },
  },
});
const [hosts, asks] = [Number(options.hosts), Number(options.asks)];
const host = "large.example";
const urls = 100_000;
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home: options.home,
  schema: `site_page_${hosts}`,
  maxConnections: 4,
});
const { pool } = database;

try {
  await migrate(database);
  await seed(pool);
  const now = new Date();
  const resolver = { resolve: async () => ({ failed: "nobody is asked" }) };
  const scope = { pagesPerHost: 1_000_000, maxDepth: 8, admitNewHosts: true };
  const ports = sitePorts({ pool, resolver, scope });
  const questions = [
    ...siteParts.map((part) => ({ name: part, query: { part } })),
    { name: "pages, failing", query: { part: "pages", filter: "failing" } },
    { name: "pages, with a status that none has", query: { part: "pages", status: "418" } },
    { name: "changes of a day", query: { part: "changes", days: "1" } },
    { name: "speed of an hour", query: { part: "speed", range: "1h" } },
  ] satisfies readonly { readonly name: string; readonly query: Readonly<Record<string, string>> }[];
  for (const { name, query } of questions) {
    const typed = (field: string) => (query as Readonly<Record<string, string>>)[field] ?? "";
    const range = timeRange(typed, now, typed("part") === "speed" ? "30d" : "7d");
    const asked = readAsked(typed, { host, range });
    if (typeof asked === "string") throw new Error(asked);
    const times: number[] = [];
    let characters = 0;
    for (let ask = 0; ask < asks + 3; ask++) {
      const beganMs = performance.now();
      const answer = await answerSite(asked, ports, now);
      characters = siteBody({ answer, asked, viewer: nobody }).markup.length;
      if (ask >= 3) times.push(performance.now() - beganMs);
    }
    times.sort((a, b) => a - b);
    const [median, p95] = [times[Math.floor(asks / 2)]!, times[Math.floor(0.95 * asks)]!];
    console.log(
      `${name.padEnd(36)} median ${median.toFixed(0).padStart(5)} ms, p95 ${p95.toFixed(0).padStart(5)} ms, ${(characters / 1000).toFixed(0)} KB`,
    );
    figure(`${name}, p95`, p95, "ms");
  }
  console.log(
    `${hosts} hosts; load average ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );
} finally {
  await database.close();
}

/** As batches of results leave it; only where it is not there yet. */
async function seed(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ there: boolean }>(
    "select exists (select from frontier_host where host = $1) as there",
    [host],
  );
  if (rows[0]!.there) return;
  const beganMs = performance.now();
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  await pool.query(
    `insert into subnet (first_address, last_address, registry, name, country, added_in)
     values ('198.51.100.0', '198.51.100.255', 'ripencc', 'EXAMPLE-NET', 'CY', 1)`,
  );
  await pool.query("insert into crawler (name, state) values ('athens', 'online'), ('berlin', 'online')");
  await pool.query(
    "insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at) values (1, 1, 'operator', true, 12, now())",
  );
  await pool.query(
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, url_count, due_at)
     select hashtextextended(n::text, 0), 'h' || n || '.example', 'resolved', '{198.51.100.7}', 1, 1, now() + interval '1 day'
     from generate_series(1, $1::int) n`,
    [hosts],
  );
  const hash = hostHashOf(host);
  await pool.query(
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, url_count, due_at, fetched_urls, fetches,
       fetched_bytes, robots_state, robots_at, crawl_delay_ms, outside_links)
     values ($1, $2, 'resolved', '{198.51.100.7}', 1, ${urls}, now(), 80000, 240000, 9e9, 'rules', now(), 2000, 5000)`,
    [hash, host],
  );
  const key = (n: string) => `hashtextextended('url ' || ${n}, 0)`;
  const url = (n: string) => `'https://${host}/' || ${n}`;
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url, state, back_links, next_fetch_at, visits, failures, last_fetched_at,
       last_outcome, last_status, last_reason)
     select $1, ${key("n")}, ${url("n")}, case when n % 20 = 0 then 'refused' when n % 50 = 1 then 'gone' else 'due' end,
       case when n % 100 = 0 then n / 100 else 0 end, now() + (n % 30 - 5) * interval '1 day', n % 9, (n % 40 = 3)::int,
       case when n % 5 > 0 then now() - (n % 60) * interval '1 day' end,
       case when n % 20 = 0 then 'refused-by-robots' when n % 40 = 3 then 'http-error' when n % 5 > 0 then 'fetched' end,
       case when n % 40 = 3 then 503 when n % 5 > 0 then 200 end,
       case when n % 20 = 0 then 'robots.txt: Disallow: /' || n % 7 end
     from generate_series(1, ${urls}) n`,
    [hash],
  );
  await pool.query(
    `insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, language,
       text_search_config, title, description, excerpt, headings, noindex, digest, simhash, words, body_bytes, wire_bytes,
       shipped_bytes, lexemes, text_group)
     select $1, ${key("n")}, ${url("n")}, $2, 1, now(), 200, 'text/html', 'en', 'english', 'Page ' || n, repeat('words ', 20),
       repeat('words of a text ', 35), '[]', false, md5(n::text) || md5(n::text), repeat('0', 16), 300, 40000, 10000, 2000,
       array_to_tsvector(array(select 'w' || (n * 31 + i * 17) % 20000 from generate_series(1, 200) i)), n
     from generate_series(1, 20000) n`,
    [hash, host],
  );
  await pool.query(
    `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, status, connect_ms, first_byte_ms,
       total_ms, wire_bytes, body_bytes, shipped_bytes)
     select $1, ${key("(n % 40000)")}, 1 + n % 2, now() - n * interval '43 seconds',
       case when n % 25 = 0 then 'http-error' else 'fetched' end, case when n % 25 = 0 then 'target' end,
       case when n % 25 = 0 then 503 else 200 end, 10 + n % 7, 30 + n % 11, 80 + n % 31, 10000, 40000, 2000
     from generate_series(1, 60000) n`,
    [hash],
  );
  await pool.query(
    `insert into page_change (change_number, noted_at, host_hash, url_hash, url, kind, seen_at, simhash_distance)
     select n, now() - (30000 - n) * interval '80 seconds', $1, ${key("n")}, ${url("n")}, 'changed', now(), 5
     from generate_series(1, 30000) n`,
    [hash],
  );
  await pool.query("update change_feed set last_number = 30000");
  await pool.query(
    `insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, anchors)
     select $1, ${key("n")}, 1, now(), n, 0, array(select ${key("(n * 7 + i)")} + 1 from generate_series(1, 20) i),
       array(select hashtextextended(((n * 13 + i) % 5000 + 1)::text, 0) from generate_series(1, 5) i),
       array(select (1 + i % 5)::smallint from generate_series(1, 20) i), repeat(E'anchor\\n', 19)
     from generate_series(1, 20000) n`,
    [hash],
  );
  await pool.query(
    `insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, anchors)
     select hashtextextended(n::text, 0), n, 1, now(), n, 0, array[${key("(100 * (901 + n % 100))")}], array[$1::bigint], '{1}', ''
     from generate_series(1, least(50000, $2::int)) n`,
    [hash, hosts],
  );
  await pool.query("vacuum analyze");
  console.log(`made in ${((performance.now() - beganMs) / 1000).toFixed(0)} s`);
}
