/** Adds a fleet to the tiny world with everything that its pages show. */
import type { Pool } from "pg";

/** athens is online with a history, berlin is offline, tokyo is distrusted; others fill the list. */
export async function seedFleet(pool: Pool): Promise<void> {
  await pool.query(`
    update crawler set public_key = 'mZ4kq1xG8n0' || name, seen_address = '192.0.2.7', expected_address = '192.0.2.1',
      address_changed_at = '2026-02-20T08:00:00Z', partner_contact = 'ops@' || name || '.example',
      software_version = '0.1.0', release_version = '1.4.0', release_digest = repeat('0', 64),
      dock_version = '1.0.0', release_policy = 'newest', last_end_at = '2026-02-27T01:00:00Z',
      last_words = 'it was ended by SIGKILL', partner_pages_per_day = 100000, joining_since = null;
    update crawler set granted_pages_per_day = 50000, pages_per_day = 50000 where name = 'athens';
    insert into crawler (name, place, country, state, connected_at, last_seen_at, offline_reason, draining_since,
      drain_asked_by, drain_subnets, revoked_at, software_version, joining_since) values
      ('sydney', 'Sydney', 'AU', 'draining', '2026-03-01T09:00:00Z', '2026-03-01T11:59:00Z', null,
        '2026-03-01T11:30:00Z', 'operator', 40, null, '0.1.0', null),
      ('lima', 'Lima', 'PE', 'offline', '2026-02-28T09:00:00Z', '2026-03-01T11:52:00Z',
        'three heartbeats did not come', null, null, 0, null, '0.0.9', null),
      ('cairo', null, null, 'offline', null, null, null, null, null, 0, null, null, null),
      ('quito', 'Quito', 'EC', 'offline', '2026-02-01T09:00:00Z', '2026-02-11T11:52:00Z', 'its key was revoked',
        null, null, 0, '2026-02-11T11:52:00Z', '0.0.9', null);
    insert into crawler_trust (crawler_id, pages, score, distrusted_at, distrust_words) values
      (3, 900, 9.4, '2026-03-01T10:00:00Z', 'it stood alone on 6 pages of 5 hosts');
    insert into crawler_key (crawler_id, key_hash, created_at, kept_at, last_used_at) values
      (1, 'a', '2026-01-02T00:00:00Z', '2026-01-02T00:00:05Z', '2026-03-01T11:00:00Z');
    insert into crawler_absence (crawler_id, away_since, back_at, reason, last_words) values
      (1, '2026-02-20T03:00:00Z', '2026-02-20T03:05:00Z', 'its link broke: ECONNRESET', null),
      (1, '2026-02-27T01:00:00Z', '2026-02-27T01:20:00Z', 'three heartbeats did not come', 'it was ended by SIGKILL');
    insert into incident (crawler_id, kind, hour, incidents, first_at, last_at, words, remote_address) values
      (1, 'link-flood', '2026-03-01T10:00:00Z', 3, '2026-03-01T10:00:00Z', '2026-03-01T10:40:00Z',
        '40,000 new hosts in a day, 10,000 are taken', '192.0.2.7'),
      (null, 'bad-signature', '2026-03-01T09:00:00Z', 120, '2026-03-01T09:00:00Z', '2026-03-01T09:50:00Z',
        'a key that nobody has', '198.51.100.9');
    insert into crawler_move (crawler_id, other_crawler_id, name, other_name, from_public_key, to_public_key, step, words,
      asked_at, changed_at) values
      (1, 2, 'athens', 'berlin', 'a', 'b', 'failed', 'berlin was lost: its link broke', '2026-02-25T10:00:00Z', '2026-02-25T10:01:00Z');
    insert into invitation (secret_hash, name, created_by, created_at, expires_at) values
      ('s', 'nairobi', 'anna', '2026-03-01T09:00:00Z', '2026-03-04T09:00:00Z');
    insert into audit_entry (at, actor, via, action, target, words) values
      ('2026-02-26T10:00:00Z', 'anna', 'page', 'crawler-budget-granted', 'athens', 'athens is granted 50,000 pages at most a day.');
    insert into opt_out (site, source, token, words, requester, created_at, in_force_at, lapses_at) values
      ('shop.example.net', 'form', 'k3v9x', 'Please leave our shop alone.', '198.51.100.3', '2026-02-28T10:00:00Z',
        '2026-02-28T10:00:00Z', '2026-03-30T10:00:00Z');
    insert into complaint (target, site, source, reporter, words, requester, created_at, deeds) values
      ('www.example.org', 'www.example.org', 'form', 'abuse@isp.example', 'Far too fast this morning.', '198.51.100.4',
        '2026-03-01T08:00:00Z', '{"since": "2026-02-28T08:00:00.000Z", "hosts": 1, "requests": 40, "mostInAnHour": 12,
        "bytes": 400000, "firstAt": "2026-02-28T09:00:00.000Z", "lastAt": "2026-03-01T07:00:00.000Z", "measurements": 2,
        "crawlers": [{"name": "athens", "address": "1.2.200.1", "place": "Athens", "contact": "ops@athens.example",
        "requests": 40, "lastAt": "2026-03-01T07:00:00.000Z"}], "answers": [{"outcome": "fetched", "status": 200, "requests": 40}],
        "robots": {"rules": 1}, "crawlDelayMs": null, "backOffMs": null, "atWork": []}');`);
  await pool.query(`
    insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, status, total_ms, wire_bytes, body_bytes, shipped_bytes)
    select u.host_hash, u.url_hash, 1 + n % 2, timestamptz '2026-03-01T11:59:00Z' - n * interval '40 s',
      case when n % 9 = 0 then 'failed' else 'fetched' end,
      case when n % 9 = 0 then (array['target', 'network', 'crawler'])[1 + n % 3] end, case when n % 9 > 0 then 200 end,
      40 + n, 10000, 40000, 1500
    from frontier_url u cross join generate_series(1, 60) n
    where u.url = 'https://www.example.org/';
    update frontier_url set last_fetched_at = timestamptz '2026-03-01T11:59:00Z' - 9 * interval '40 s',
      last_reason = 'ECONNRESET: the connection was reset' where url = 'https://www.example.org/';`);
}
