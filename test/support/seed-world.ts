/**
 * A tiny handmade world for tests of pages and commands, whose numbers are easy to follow:
 *
 *   1.0.0.0/8     apnic   (no holder)                 not delegated
 *   └ 1.2.0.0/16  EXAMPLE-NET of Example Networks     athens, 12.5 ms (round 1: athens, berlin)
 *     ├ 1.2.3.0/24  EXAMPLE-WEB of Example Web Ltd    not delegated: effective is athens
 *     │ └ 1.2.3.4     one address, skipped
 *     └ 1.2.9.0 - 1.2.9.9  EXAMPLE-OLD                berlin, who is offline
 *   5.6.0.0/16    EMPTY-NET of Empty Org              no crawler could take it (round 2)
 *   2a00:1::/32   EXAMPLE-V6 of Example Networks      berlin
 */
import type { Pool } from "pg";
import { urlKeyOf } from "#core/url-key";

export const worldNow = new Date("2026-03-01T12:00:00.000Z");

export async function seedWorld(pool: Pool): Promise<void> {
  await pool.query(registryRows);
  await pool.query(crawlerRows);
  await pool.query(delegationRows);
  await seedHost(pool, { host: "www.example.org", subnet: "1.2.3.0", address: "1.2.3.4" });
  await seedHost(pool, { host: "old.example.org", subnet: "1.2.9.0", address: "1.2.9.5" });
  await seedHost(pool, { host: "empty.example.net", subnet: "5.6.0.0", address: "5.6.7.8" });
  await seedHost(pool, {
    host: "inside.example.org",
    state: "refused",
    stateReason: "10.0.0.0/8 private use",
  });
  await seedHost(pool, {
    host: "nowhere.example.org",
    state: "unresolvable",
    stateReason: "the name does not exist",
  });
}

export interface SeededHost {
  readonly host: string;
  readonly state?: string;
  readonly stateReason?: string;
  readonly subnet?: string;
  readonly address?: string;
  readonly notBefore?: Date;
}

/** A host with its front page, due a minute ago; the subnet is named by its first address. */
export async function seedHost(pool: Pool, seeded: SeededHost): Promise<void> {
  const key = keyOf(`https://${seeded.host}/`);
  await pool.query(
    `insert into frontier_host (host_hash, host, state, state_reason, resolve_at, addresses, subnet_id, due_at, not_before)
     values ($1, $2, $3, $4, $5::timestamptz + interval '1 hour', $6,
       (select subnet_id from subnet where first_address = $7 order by last_address desc limit 1),
       $5::timestamptz - interval '1 minute', coalesce($8::timestamptz, '-infinity'))`,
    [
      key.hostHash,
      key.host,
      seeded.state ?? "resolved",
      seeded.stateReason ?? "",
      worldNow,
      seeded.address ? [seeded.address] : [],
      seeded.subnet ?? null,
      seeded.notBefore ?? null,
    ],
  );
  await seedUrl(pool, { url: key.url });
}

export interface SeededUrl {
  readonly url: string;
  readonly state?: string;
  readonly nextFetchAt?: Date;
  readonly lastOutcome?: string;
  readonly lastStatus?: number;
  readonly lastReason?: string;
  readonly failures?: number;
  readonly lastFetchedAt?: Date;
}

export async function seedUrl(pool: Pool, seeded: SeededUrl): Promise<void> {
  const key = keyOf(seeded.url);
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url, state, discovered_at, next_fetch_at, last_outcome,
       last_status, last_reason, failures, last_fetched_at)
     values ($1, $2, $3, $4, $5::timestamptz - interval '2 hours', coalesce($6, $5::timestamptz - interval '1 minute'),
       $7, $8, $9, $10, $11)`,
    [
      key.hostHash,
      key.urlHash,
      key.url,
      seeded.state ?? "due",
      worldNow,
      seeded.nextFetchAt ?? null,
      seeded.lastOutcome ?? null,
      seeded.lastStatus ?? null,
      seeded.lastReason ?? null,
      seeded.failures ?? 0,
      seeded.lastFetchedAt ?? null,
    ],
  );
  await pool.query("update frontier_host set url_count = url_count + 1 where host_hash = $1", [key.hostHash]);
}

export interface SeededPage {
  readonly url: string;
  readonly title: string;
  readonly text: string;
  readonly language?: string;
  readonly textSearchConfig?: string;
  readonly noindex?: boolean;
  readonly crawler?: string;
}

/** A stored page, with one fetch of 40 ms that made it. */
export async function seedPage(pool: Pool, seeded: SeededPage): Promise<void> {
  const key = keyOf(seeded.url);
  const crawler = seeded.crawler ?? "athens";
  await pool.query(
    `insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, language,
       text_search_config, title, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes)
     select $1, $2, $3, $4, crawler_id, $5, 200, 'text/html', $6, $7, $8, $9, repeat('0', 64), repeat('0', 16), 100,
       40000, 10000, 1500
     from crawler where name = $10`,
    [
      key.hostHash,
      key.urlHash,
      key.url,
      key.host,
      worldNow,
      seeded.language ?? "en",
      seeded.textSearchConfig ?? "english",
      seeded.title,
      seeded.noindex ?? false,
      crawler,
    ],
  );
  await pool.query(
    "insert into document (host_hash, url_hash, description, headings, text) values ($1, $2, '', '[]', $3)",
    [key.hostHash, key.urlHash, seeded.text],
  );
  await pool.query(
    `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, status, total_ms, wire_bytes, body_bytes, shipped_bytes)
     select $1, $2, crawler_id, $3, 'fetched', 200, 40, 10000, 40000, 1500 from crawler where name = $4`,
    [key.hostHash, key.urlHash, worldNow, crawler],
  );
}

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

const registryRows = `
  insert into registry_generation (state, applied_at) values ('applied', '2026-02-28T00:00:00Z');
  insert into holder (holder_key, name, handle, registry) values
    ('apnic:org-handle:ORG-EX1-AP', 'Example Networks', 'ORG-EX1-AP', 'apnic'),
    ('apnic:org-handle:ORG-EX2-AP', 'Example Web Ltd', 'ORG-EX2-AP', 'apnic'),
    ('ripencc:org-handle:ORG-EM1-RIPE', 'Empty Org', 'ORG-EM1-RIPE', 'ripencc');
  insert into subnet (first_address, last_address, parent_id, holder_id, country, registry, name, added_in, removed_in) values
    ('1.0.0.0', '1.255.255.255', null, null, null, 'iana', 'APNIC', 1, null),
    ('1.2.0.0', '1.2.255.255', 1, 1, 'GR', 'apnic', 'EXAMPLE-NET', 1, null),
    ('1.2.3.0', '1.2.3.255', 2, 2, 'GR', 'apnic', 'EXAMPLE-WEB', 1, null),
    ('1.2.3.4', '1.2.3.4', 3, 2, 'GR', 'apnic', 'ONE-HOST', 1, null),
    ('1.2.9.0', '1.2.9.9', 2, 1, 'GR', 'apnic', 'EXAMPLE-OLD', 1, null),
    ('5.6.0.0', '5.6.255.255', null, 3, 'DE', 'ripencc', 'EMPTY-NET', 1, null),
    ('2a00:1::', '2a00:1:ffff:ffff:ffff:ffff:ffff:ffff', null, 1, 'DE', 'ripencc', 'EXAMPLE-V6', 1, null),
    ('1.2.3.0', '1.2.3.127', 3, 2, 'GR', 'apnic', 'REMOVED', 1, 1);`;

const crawlerRows = `
  insert into crawler (name, address, place, country, latitude, longitude, probe_methods, state,
    connected_at, last_seen_at, offline_reason, offline_code) values
    ('athens', '1.2.200.1', 'Athens', 'GR', 37.98, 23.73, '{head,connect}', 'online',
      '2026-03-01T11:00:00Z', '2026-03-01T11:59:55Z', null, null),
    ('berlin', '5.6.200.1', 'Berlin', 'DE', 52.52, 13.4, '{head}', 'offline',
      '2026-03-01T10:00:00Z', '2026-03-01T11:00:00Z', 'it was stopped by its host', 'stops'),
    ('tokyo', '9.9.9.9', 'Tokyo', 'JP', 35.68, 139.69, '{head}', 'online',
      '2026-03-01T11:00:00Z', '2026-03-01T11:59:58Z', null, null);
  update crawler set created_at = '2026-01-01T00:00:00Z';
  insert into crawler_rtt (from_crawler_id, to_crawler_id, rtt_ms, method, measured_at) values
    (1, 2, 45, 'connect', '2026-03-01T11:30:00Z'),
    (1, 3, 212.5, 'connect', '2026-03-01T11:30:00Z'),
    (2, 3, 230, 'connect', '2026-03-01T11:30:00Z');`;

const delegationRows = `
  insert into probe_round (subnet_id, cause, policy, parameters, target_url, target_address, started_at, decided_at,
    crawler_id, runner_up_id, reason) values
    (2, 'new-subnet', 'nearest', '{"lambdaMs": 0.1}', 'https://www.example.org/', '1.2.3.4',
      '2026-03-01T11:10:00Z', '2026-03-01T11:10:01Z', 1, 2, '{"type": "expected-gain", "stop": "all-ruled-out", "rttMs": 12.5,
        "lambdaMs": 0.1, "costMs": 0.1, "next": null,
        "certainty": 0.97, "askedCount": 2, "ruledOutCount": 1,
        "asked": [{"crawlerId": 2, "rttMs": 48.25, "failed": null}, {"crawlerId": 1, "rttMs": 12.5, "failed": null}],
        "ruledOut": [{"crawlerId": 3, "lowerBoundMs": 140, "by": 1, "byRttMs": 12.5, "peerRttMs": 212.5}],
        "runnerUp": {"crawlerId": 2, "rttMs": 48.25, "atMostMs": null}}'),
    (6, 'new-subnet', 'nearest', '{}', 'https://empty.example.net/', '5.6.7.8',
      '2026-03-01T11:20:00Z', '2026-03-01T11:20:03Z', null, null, '{"type": "no-candidates"}');
  insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms, detail) values
    (1, 1, 2, 'head', 'measured', 48.25, ''),
    (1, 2, 1, 'head', 'measured', 12.5, '');
  insert into delegation (subnet_id, crawler_id, round_id, cause, measured, rtt_ms, runner_up_id, runner_up_rtt_ms, delegated_at) values
    (2, 1, 1, 'probe-round', true, 12.5, 2, 48.25, '2026-03-01T11:10:01Z'),
    (5, 2, null, 'operator', false, null, null, null, '2026-03-01T10:30:00Z'),
    (7, 2, null, 'own-subnet', true, 0, null, null, '2026-03-01T10:00:00Z');
  insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason) values
    (2, '2026-03-01T10:30:00Z', null, 2, 'operator', null, 'by hand'),
    (2, '2026-03-01T11:10:01Z', 2, 1, 'probe-round', 1, 'athens was nearer');`;
