/** All that the coordinator has noted of one crawler, for operators: what it is, why it was away, what speaks against it. */
import type { Pool } from "pg";
import type { IncidentEntry } from "#core/incidents";
import { createIncidentStore } from "../overview/incident-store.ts";
import { type TrustReport, trustReport } from "../trust/reads.ts";
import { crawlerNamed } from "../who/crawler-reads.ts";
import { type FiguresNow, fleetEntry } from "./fleet-list-reads.ts";
import type { FleetEntry, OfferEntry } from "./fleet-ports.ts";

export interface CrawlerRecord extends Omit<FleetEntry, "trust" | "incidents" | "connectedAt"> {
  /** Of its last session, whether it is open or not. */
  readonly connectedAt: string | null;
  readonly softwareVersion: string | null;
  readonly concurrentHosts: number;
  readonly probeMethods: readonly string[];
  /** In its own words, of its last heartbeat. */
  readonly holdingBack: readonly string[];
  readonly trust: Omit<TrustReport, "evidence" | "crawler">;
  /** What became of releases that it was offered, the latest first. */
  readonly offers: readonly OfferEntry[];
  /** Of the last week, the latest first. */
  readonly incidents: readonly IncidentEntry[];
}

const mostListed = 10;
const incidentMs = 7 * 86_400_000;

/** Null: there is no crawler of that name. */
export async function crawlerRecord(
  pool: Pool,
  name: string,
  now: Date,
  figures?: FiguresNow,
): Promise<CrawlerRecord | null> {
  const entry = await fleetEntry(pool, name, now, figures);
  const [report, trusted] = await Promise.all([crawlerNamed(pool, name), trustReport(pool, name)]);
  if (entry === null || report === null || trusted === null) return null;
  const { connectedAt, softwareVersion, concurrentHosts, probeMethods, holdingBack } = report;
  const { evidence: _evidence, crawler: _crawler, ...trust } = trusted;
  const since = new Date(now.getTime() - incidentMs);
  return {
    ...entry,
    ...{ connectedAt, softwareVersion, concurrentHosts, probeMethods, holdingBack, trust },
    offers: await offersOf(pool, entry.crawlerId),
    incidents: await createIncidentStore(pool).list({ name, since, most: mostListed }),
  };
}

export async function offersOf(pool: Pool, crawlerId: number): Promise<OfferEntry[]> {
  const { rows } = await pool.query<OfferEntry>(
    `select version, offered_at as "offeredAt", state, reason, reported_at as "reportedAt"
     from release_offer
     where crawler_id = $1
     order by coalesce(reported_at, offered_at) desc
     limit ${mostListed}`,
    [crawlerId],
  );
  return rows;
}
