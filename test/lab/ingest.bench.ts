/**
 * What it costs to take results: CPU of the database's backend and of the coordinator per page, in batches of 100 through the
 * gateway's flow. Pages of 300 words and 20 links, in turns: texts too short to be compared (the baseline), unique texts,
 * near-duplicates of one of a thousand, and pages taken before whose words have changed. The table already has 200,000 texts.
 * Linux: the backend's CPU is read from /proc.
 * Run: npm run bench -- ingest (optionally followed by numbers of texts and of rounds)
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createDelegationStore } from "#coordinator/place/delegation/store";
import { asLeaseId, asSubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { urlKeyOf } from "#core/url-key";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { FetchResult } from "#protocol/result";
import { figure, median, spread } from "./figure.ts";

const texts = Number(process.argv[2] ?? 200_000);
const rounds = Number(process.argv[3] ?? 12);
const hostsPerBatch = 20;
const urlsPerHost = 5;
const pagesPerBatch = hostsPerBatch * urlsPerHost;
const scope = { pagesPerHost: 1000, maxDepth: 8, admitNewHosts: true };
const spoolId = "00000000-0000-4000-8000-000000000001";
interface Kind {
  readonly name: string;
  readonly words: number;
  readonly isNear?: true;
  /** Pages taken before, with five words changed. */
  readonly isChanged?: true;
}
const kinds: readonly Kind[] = [
  { name: "too short to compare (baseline)", words: 20 },
  { name: "a text of its own", words: 300 },
  { name: "near-duplicate", words: 300, isNear: true },
  { name: "changed", words: 300, isChanged: true },
];

const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
  // Everything in one backend, whose CPU can be read.
  maxConnections: 1,
});
const { pool } = database;
const random = seededRandom(1);
const hex16 = () =>
  [0, 1]
    .map(() =>
      Math.floor(random() * 2 ** 32)
        .toString(16)
        .padStart(8, "0"),
    )
    .join("");
const originals = Array.from({ length: 1000 }, hex16);
let sequence = 0;

try {
  await migrate(database);
  const crawlerId = await createCrawlerStore(pool).register({ name: "north", keyHash: "k" });
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const { rows } = await pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, added_in)
     select '198.51.100.0', '198.51.100.255', 'ripencc', max(generation) from registry_generation
     returning subnet_id`,
  );
  const subnetId = asSubnetId(rows[0]!.subnet_id);
  await createDelegationStore(pool).delegateOwnSubnet(subnetId, crawlerId, new Date());
  await fillTexts();
  const cpu = kinds.map(() => ({ backend: [] as number[], coordinator: [] as number[] }));
  for (let round = 0; round <= rounds; round++) {
    for (const [index, measured] of cpu.entries()) {
      const kind = kinds[index]!;
      const name = `${round}-${index}`;
      const first = await leasedBatch(kind, name);
      const batch = kind.isChanged ? await changedBatch(name, first) : first;
      const { pid } = (await pool.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!;
      const before = [backendCpuMs(pid), ownCpuMs()] as const;
      await takeResults(
        { crawlerId, spoolId, results: batch },
        createResultStore(pool),
        { scope, recrawl: defaultRecrawlSettings },
        new Date(),
      );
      // The first round fills caches.
      if (round === 0) continue;
      measured.backend.push((backendCpuMs(pid) - before[0]) / pagesPerBatch);
      measured.coordinator.push((ownCpuMs() - before[1]) / pagesPerBatch);
    }
  }
  console.log(
    `${rounds} rounds of batches of ${pagesPerBatch} pages, beside ${texts} texts: median (least to most), ms CPU a page`,
  );
  for (const [kind, { backend, coordinator }] of cpu.entries()) {
    console.log(
      `${kinds[kind]!.name.padEnd(34)} backend ${spread(backend)}  coordinator ${spread(coordinator)}`,
    );
    figure(`${kinds[kind]!.name}, backend`, median(backend), "ms CPU a page");
    figure(`${kinds[kind]!.name}, coordinator`, median(coordinator), "ms CPU a page");
  }
  const baseline = median(cpu[0]!.backend);
  console.log(
    `backend, of the baseline: own text ${(median(cpu[1]!.backend) / baseline).toFixed(2)}, near-duplicate ${(median(cpu[2]!.backend) / baseline).toFixed(2)}`,
  );

  console.log(
    `load average ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );

  /** The same pages again, after they were taken. */
  async function changedBatch(name: string, first: Awaited<ReturnType<typeof leasedBatch>>) {
    await takeResults(
      { crawlerId, spoolId, results: first },
      createResultStore(pool),
      { scope, recrawl: defaultRecrawlSettings },
      new Date(),
    );
    await pool.query(
      "update lease set closed_at = now(), open_urls = 0, open_url_hashes = '{}' where closed_at is null",
    );
    await pool.query("update address_turn set leases = 0");
    await pool.query("update frontier_host set lease_id = null, not_before = 'infinity'");
    await pool.query(`update frontier_host set due_at = now(), not_before = '-infinity' where host like $1`, [
      `h${name}-%`,
    ]);
    await pool.query(
      `update frontier_url set next_fetch_at = now() where host_hash in (select host_hash from frontier_host where host like $1)`,
      [`h${name}-%`],
    );
    const before = new Map(first.map(({ result }) => [result.url, result]));
    const leases = await createFrontierStore(pool).leaseHosts({
      ...{ crawlerId, hosts: hostsPerBatch, urlsPerHost, leaseSeconds: 600, now: new Date() },
    });
    return leases.flatMap(({ leaseId, urls: held }) =>
      held.flatMap(({ url }) => {
        const result = before.get(url);
        if (result === undefined) return [];
        sequence += 1;
        return [{ sequence, leaseId: asLeaseId(leaseId), result: changedResult(result), wireBytes: 1500 }];
      }),
    );
  }

  async function leasedBatch(kind: Kind, name: string) {
    const frontier = createFrontierStore(pool);
    const hosts = Array.from({ length: hostsPerBatch }, (_, index) => `h${name}-${index}.example`);
    const urls = hosts.flatMap((host) =>
      Array.from({ length: urlsPerHost }, (_, page) => `http://${host}/${page}`),
    );
    const now = new Date();
    await frontier.admit(
      urls.map((url) => ({ key: keyOf(url), depth: 0 })),
      scope,
      now,
    );
    await frontier.saveResolutions(
      hosts.map((host) => ({
        type: "resolved",
        host,
        addresses: ["198.51.100.7"],
        subnetId,
        ttlSeconds: 3600,
      })),
      now,
    );
    // Links of earlier batches are due too and are not leased.
    await pool.query("update frontier_host set not_before = 'infinity' where host <> all($1)", [hosts]);
    const leases = await frontier.leaseHosts({
      crawlerId,
      hosts: hostsPerBatch,
      urlsPerHost,
      leaseSeconds: 600,
      now: new Date(),
    });
    return leases.flatMap(({ leaseId, host, urls: held }) =>
      held.map(({ url }) => {
        sequence += 1;
        return { sequence, leaseId: asLeaseId(leaseId), result: resultOf(url, host, kind), wireBytes: 1500 };
      }),
    );
  }
} finally {
  await pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  if (process.env.DATABASE_URL === undefined) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

/** If the schema has such a table: a row in each band for every text. */
async function fillTexts(): Promise<void> {
  const { rows } = await pool.query("select to_regclass('text_band') as found");
  if (rows[0]?.found === null) return;
  await pool.query(
    `insert into text_band (band, host_hash, url_hash, simhash, words, text_group)
     select ((1 + floor(ln(words) / ln(1.25)))::int * 4 + b) * 65536 + ((simhash >> (48 - 16 * b)) & 65535)::int, i, i, simhash, words, i
     from (select i, ('x' || substr(md5(i::text), 1, 16))::bit(64)::bigint as simhash,
             (50 * exp(4 * (i % 1000) / 1000.0))::int as words from generate_series(1, $1::int) i) t,
       generate_series(0, 3) b`,
    [texts],
  );
  await pool.query("analyze text_band");
}

function resultOf(url: string, host: string, { words, isNear }: Kind): FetchResult {
  const near =
    BigInt(`0x${originals[Math.floor(random() * originals.length)]}`) ^ (1n << BigInt(sequence % 64));
  return {
    url,
    fetchedAt: new Date().toISOString(),
    outcome: { type: "fetched", status: 200, truncated: false },
    address: "198.51.100.7",
    timing: { dnsMs: 1, connectMs: 10, tlsMs: null, firstByteMs: 20, totalMs: 30 },
    wireBytes: 9000,
    bodyBytes: 40_000,
    etag: '"one"',
    lastModified: null,
    hostDelayMs: 1000,
    page: {
      contentType: "text/html",
      charset: "utf-8",
      canonicalUrl: null,
      title: "A title of some words",
      description: "And a description that is a little longer than that",
      headings: [{ level: 1, text: "A heading" }],
      language: "en",
      textSearchConfig: "english",
      text: Array.from({ length: 300 }, (_, at) => `w${Math.floor(random() ** 2 * 20_000)}${at % 7}`).join(
        " ",
      ),
      words,
      links: Array.from({ length: 20 }, (_, link) => ({
        url:
          link < 15 ? `http://${host}/${link}` : `http://other${Math.floor(random() * 1000)}.example/${link}`,
        anchor: "words of a link",
        nofollow: false,
      })),
      robots: { noindex: false, nofollow: false },
      digest: hex16().repeat(4),
      simhash: isNear ? near.toString(16).padStart(16, "0") : hex16(),
    },
  };
}

function changedResult(result: FetchResult): FetchResult {
  const page = result.page!;
  const text = page.text.split(" ").map((one, at) => (at % 60 === 30 ? one.replace("w", "x") : one));
  return { ...result, page: { ...page, text: text.join(" "), digest: hex16().repeat(4), simhash: hex16() } };
}

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

/** Time on a processor, ns (Documentation/scheduler/sched-stats.rst). */
function backendCpuMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
