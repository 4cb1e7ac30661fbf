/**
 * Figures for operators' pages, added to the tiny world (seed-world.ts), whose clock is fixed at noon:
 *
 *   minutes   11:00 to 11:59, 600 pages a minute rising to 718, none written from 11:20 to 11:24
 *   failures  2 target, 1 network a minute; 30 of athens' own in the quarter of 11:30
 *   samples   20 of 1.2.0.0/16 by athens: 19 the nearest itself, 1 where tokyo was 40 ms nearer
 */
import type { Pool } from "pg";

export async function seedOperation(pool: Pool): Promise<void> {
  await pool.query(`
    insert into minute_figures (minute, fetches, pages, fetched_bytes, shipped_bytes, rounds, probes,
      target_failures, network_failures, crawler_failures, our_failures)
    select '2026-03-01T11:00:00Z'::timestamptz + make_interval(mins => n), 620 + 2 * n, 600 + 2 * n,
      40000 * (600 + 2 * n), 1500 * (600 + 2 * n), 4, 11, 2, 1, 0, 0
    from generate_series(0, 59) n
    where n not between 20 and 24;
    insert into crawler_figures (quarter, crawler_id, fetches, wire_bytes, target_failures, crawler_failures)
    values ('2026-03-01T11:30:00Z', 1, 9000, 9000000, 30, 30), ('2026-03-01T11:30:00Z', 3, 8000, 8000000, 20, 0);
    insert into accuracy_sample (subnet_id, target_address, target_host, method, owner_id, owner_rtt_ms, best_id,
      best_rtt_ms, asked, answered, sampled_at)
    select 2, '1.2.3.0'::inet + n, 'www.example.org', 'connect', 1, 12.5, case n when 7 then 3 else 1 end,
      case n when 7 then 13 else 12.5 end, 3, 2,
      '2026-03-01T11:50:00Z'::timestamptz - make_interval(hours => n)
    from generate_series(0, 19) n;
    update accuracy_sample set owner_rtt_ms = 53 where best_id = 3`);
}
