/** Table complaint: who complained of what, what we had done, and how it ended. */
import type { Pool } from "pg";
import { clean } from "../database/transaction.ts";
import { deedsOf } from "./complaint-deeds.ts";
import {
  type Complaint,
  type ComplaintReport,
  type ComplaintStore,
  type Deeds,
  mostReportsADay,
} from "./complaints.ts";
import { domainsAbove } from "./opt-out-target.ts";

const dayMs = 86_400_000;

export function createComplaintStore(pool: Pool): ComplaintStore {
  return {
    add: async (report, now) => await add(pool, report, now),
    list: async ({ open, most }) =>
      await read(pool, `${open ? "closed_at is null" : "true"} order by complaint_id desc limit $1`, [most]),
    find: async (complaintId) => (await read(pool, "complaint_id = $1", [complaintId]))[0] ?? null,
    close: async (complaintId, words, now) => {
      const { rowCount } = await pool.query(
        `update complaint set closed_at = $2, closing_words = $3
         where complaint_id = $1 and closed_at is null`,
        [complaintId, now, clean(words)],
      );
      return rowCount === 0 ? null : ((await read(pool, "complaint_id = $1", [complaintId]))[0] ?? null);
    },
    of: async (host, addresses, most) =>
      await read(
        pool,
        `(site = any($1::text[])
          or exists (select from unnest($2::inet[]) a where a between first_address and last_address))
         order by complaint_id desc limit $3`,
        [host === null ? [] : domainsAbove(host), addresses, most],
      ),
  };
}

async function add(pool: Pool, report: ComplaintReport, now: Date): Promise<Complaint | null> {
  if (report.source === "form" && (await isFlooded(pool, now))) return null;
  const deeds = await deedsOf(pool, report.target, now);
  const { site, network } = report.target;
  const { rows } = await pool.query<{ complaint_id: number }>(
    `insert into complaint (target, site, first_address, last_address, source, reporter, words, requester,
       created_at, deeds)
     values ($1, $2, $3::inet, $4::inet, $5, $6, $7, $8::inet, $9, $10)
     returning complaint_id`,
    [
      clean(report.targetText),
      site,
      network?.first ?? null,
      network?.last ?? null,
      report.source,
      clean(report.reporter),
      clean(report.words),
      report.requester,
      now,
      JSON.stringify(deeds),
    ],
  );
  return (await read(pool, "complaint_id = $1", [rows[0]!.complaint_id]))[0] ?? null;
}

async function isFlooded(pool: Pool, now: Date): Promise<boolean> {
  const { rows } = await pool.query<{ today: number }>(
    "select count(*)::int as today from complaint where source = 'form' and created_at > $1",
    [new Date(now.getTime() - dayMs)],
  );
  return rows[0]!.today >= mostReportsADay;
}

interface ComplaintRow {
  complaint_id: number;
  target: string;
  source: Complaint["source"];
  reporter: string;
  words: string;
  requester: string | null;
  created_at: Date;
  deeds: Deeds;
  closed_at: Date | null;
  closing_words: string | null;
}

async function read(pool: Pool, condition: string, values: readonly unknown[]): Promise<Complaint[]> {
  const { rows } = await pool.query<ComplaintRow>(
    `select complaint_id, target, source, reporter, words, host(requester) as requester, created_at, deeds,
       closed_at, closing_words
     from complaint where ${condition}`,
    [...values],
  );
  return rows.map((row) => ({
    complaintId: row.complaint_id,
    target: row.target,
    source: row.source,
    reporter: row.reporter,
    words: row.words,
    requester: row.requester,
    createdAt: row.created_at,
    deeds: row.deeds,
    closedAt: row.closed_at,
    closingWords: row.closing_words,
  }));
}
