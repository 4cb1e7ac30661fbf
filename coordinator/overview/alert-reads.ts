/** What the alert rules look at (overview/alert-facts), read in a few small queries; none of them scans what grows. */

import type { Pool } from "pg";
import { lastBackup } from "#db/backup-folder";
import { homeOf } from "#db/embedded-cluster";
import { accuracyEstimate } from "../delegation/accuracy.ts";
import { waitingGoodbye } from "../fleet/fleet-entry.ts";
import { nothingDueReason } from "../frontier/hand-out-tasks.ts";
import { outboxBacklog } from "../frontier/link-outbox-store.ts";
import { epochs } from "../journal/epoch-store.ts";
import { createReleaseFleetStore } from "../releases/fleet-store.ts";
import { createReleaseStore, type ReleaseEntry } from "../releases/release-store.ts";
import { mayRun } from "../releases/staging.ts";
import type {
  AlertFacts,
  BackupFacts,
  CrawlerFacts,
  IncidentFacts,
  RegistryAccident,
  RelativeFacts,
  ReleaseFacts,
} from "./alert-facts.ts";
import { diskFacts } from "./disk-sample-store.ts";
import type { OperationReads } from "./overview-types.ts";
import type { SpanFigures } from "./queue-api.ts";

type SharedReads = Pick<OperationReads, "queueAges" | "figures" | "accuracyCounts" | "gatedHosts">;

const crawlersLooked = 1000;
const kindsLooked = 200;
/** Where no coordinator has stated any yet, as in the settings' schema. */
const usualBackupHours = 48;
const hourMinutes = 60;
const dayMinutes = 24 * 60;

/** `reads`: those answers that pages need anyway, and that are kept for them; `nowMs`: a clock that never goes back. */
export async function alertFacts(
  pool: Pool,
  reads: SharedReads,
  { now, nowMs }: { readonly now: Date; readonly nowMs: () => number },
): Promise<AlertFacts> {
  const databaseMs = await roundTripMs(pool, nowMs);
  const [
    crawlers,
    queue,
    hour,
    day,
    upkeep,
    incidents,
    releases,
    counts,
    relatives,
    linkOutbox,
    backup,
    disk,
    { asked, providers },
  ] = await Promise.all([
    crawlerFacts(pool, now),
    reads.queueAges(now),
    reads.figures(hourMinutes, now),
    reads.figures(dayMinutes, now),
    upkeepFacts(pool, now),
    incidentFacts(pool, now),
    releaseFacts(pool, now),
    reads.accuracyCounts(now),
    relativeFacts(pool),
    outboxBacklog(pool),
    backupFacts(pool),
    diskFacts(pool, now),
    reads.gatedHosts(now),
  ]);
  const unplaced = queue.reasons.find(({ reason }) => reason === "no-delegation");
  const { samples, share } = accuracyEstimate(counts);
  const accident = await registryAccident(pool);
  const [epoch] = await epochs(pool, 1);
  return {
    nowMs: now.getTime(),
    crawlers,
    queue: { p95Seconds: queue.p95Seconds, unplacedSeconds: unplaced?.oldestSeconds ?? null },
    hour: figureFacts(hour),
    day: figureFacts(day),
    ...upkeep,
    registryAccident: accident,
    incidents,
    releases,
    relatives,
    linkOutbox,
    botGates: { asked, providers },
    ...(disk === null ? {} : { disk }),
    databaseMs,
    accuracy: { samples, share },
    ...(backup === null ? {} : { backup }),
    ...(epoch === undefined || epoch.cause === "created"
      ? {}
      : { wentBack: { atMs: epoch.beganAt.getTime(), failed: epoch.replay?.failed.length ?? null } }),
  };
}

/** To the database and back, as the pages' connections feel it. */
async function roundTripMs(pool: Pool, nowMs: () => number): Promise<number> {
  const startedMs = nowMs();
  await pool.query("select 1");
  return nowMs() - startedMs;
}

function figureFacts({ fetches, fetchedBytes, shippedBytes, failures }: SpanFigures) {
  return { fetches, fetchedBytes, shippedBytes, ourFailures: failures.us };
}

interface CrawlerRow {
  crawler_id: number;
  name: string;
  state: CrawlerFacts["state"];
  last_seen_at: Date | null;
  draining_since: Date | null;
  distrusted: boolean;
  spooled: unknown;
  disk_fault: unknown;
  disk_free: unknown;
  holding_back: unknown;
  fetches: number;
  own_failures: number;
  network_failures: number;
  copied: boolean;
  never_ran: boolean;
  waits: boolean;
  joined_at: Date | null;
  connected_at: Date | null;
  idle_why: string | null;
}

/** Of a crawler that fetches nothing so many of its subnets are looked at. */
const subnetsLooked = 200;

/** Its hosts tell whether it waits for something. */
const mayWait = "it may wait";

/**
 * SQL: why a crawler that may crawl and has fetched nothing for an hour has no work, of `c` and `f`: it has no subnet, or its
 * hosts are to be looked at; null where its host's own limits hold it back.
 */
const idleWhy = `case
  when c.state <> 'online' or coalesce(f.fetches, 0) > 0 or not exists (
      select from crawler_key k where k.crawler_id = c.crawler_id and k.revoked_at is null and 'crawl' = any (k.scopes)
    )
    or jsonb_array_length(case jsonb_typeof(c.heartbeat -> 'holdingBack')
      when 'array' then (c.heartbeat -> 'holdingBack') - '${nothingDueReason}' else '[]' end) > 0 then null
  when not exists (select from delegation d where d.crawler_id = c.crawler_id)
    and not exists (select from finer_delegation d where d.crawler_id = c.crawler_id)
    then 'no subnet is its own'
  else '${mayWait}'
end`;

/** Of the crawlers, those that have no work although hosts of their subnets have been due for an hour. */
export async function keptWaiting(
  pool: Pool,
  crawlerIds: readonly number[],
  now: Date,
): Promise<ReadonlySet<number>> {
  const { rows } = await pool.query<{ crawler_id: number }>(
    `select c.crawler_id
     from unnest($2::int[]) as c (crawler_id)
     where exists (
       select
       from (select subnet_id from delegation d where d.crawler_id = c.crawler_id limit ${subnetsLooked}) d
       join frontier_host h on h.subnet_id = d.subnet_id and h.finer_id is null
       where h.state = 'resolved' and h.lease_id is null and h.opt_out_id is null
         and h.due_at < $1::timestamptz - interval '1 hour' and h.not_before <= $1
     )`,
    [now, crawlerIds],
  );
  return new Set(rows.map((row) => row.crawler_id));
}

/** SQL: its supervisor said for what it waits, and left. */
const saysThatItWaits = "(c.state = 'offline' and coalesce(c.offline_reason like $2 || '%', false))";

/**
 * SQL: it has joined and was never connected, except to say that it waits. One that runs no release has no version of one
 * either; and when it was connected is lost where the database went back to before that.
 */
const neverRan = `c.state = 'offline' and c.public_key is not null and c.release_version is null
  and not exists (select from crawler_figures g where g.crawler_id = c.crawler_id)
  and (${saysThatItWaits} or c.connected_at is null
    and not exists (select from database_epoch e where e.cause <> 'created' and e.began_at > c.created_at))`;

/** The last hour by quarters: those that began within it. */
async function crawlerFacts(pool: Pool, now: Date): Promise<CrawlerFacts[]> {
  const { rows } = await pool.query<CrawlerRow>(
    `select c.crawler_id, c.name, c.state, c.last_seen_at, c.draining_since, c.heartbeat -> 'spooledResults' as spooled,
       c.heartbeat -> 'diskFault' as disk_fault, c.heartbeat -> 'diskFreeBytes' as disk_free,
       c.heartbeat -> 'holdingBack' as holding_back,
       t.distrusted_at is not null or t.probes_doubted_at is not null as distrusted,
       coalesce(f.fetches, 0)::float8 as fetches, coalesce(f.own_failures, 0)::float8 as own_failures,
       coalesce(f.network_failures, 0)::float8 as network_failures,
       exists (
         select from incident i
         where i.crawler_id = c.crawler_id and i.kind = 'copied-folder'
           and i.last_at > $1::timestamptz - interval '1 day'
       ) as copied,
       ${neverRan} as never_ran, ${saysThatItWaits} as waits,
       (select max(i.redeemed_at) from invitation i where i.name = c.name) as joined_at,
       case when c.state = 'online' then c.connected_at end as connected_at, ${idleWhy} as idle_why
     from crawler c
     left join crawler_trust t using (crawler_id)
     left join (
       select crawler_id, sum(fetches) as fetches, sum(crawler_failures) as own_failures,
         sum(network_failures) as network_failures
       from crawler_figures
       where quarter > $1::timestamptz - interval '1 hour' and quarter <= $1
       group by crawler_id
     ) f using (crawler_id)
     where c.revoked_at is null
     order by c.name
     limit ${crawlersLooked}`,
    [now, waitingGoodbye],
  );
  const idle = rows.flatMap((row) => (row.idle_why === mayWait ? [row.crawler_id] : []));
  const waiting = idle.length === 0 ? new Set<number>() : await keptWaiting(pool, idle, now);
  return rows.map((row) => ({
    name: row.name,
    state: row.state,
    lastSeenMs: row.last_seen_at?.getTime() ?? null,
    drainingSinceMs: row.draining_since?.getTime() ?? null,
    distrusted: row.distrusted ?? false,
    waitingResults: typeof row.spooled === "number" ? row.spooled : 0,
    diskFault: diskFaultOf(row),
    diskFreeBytes: typeof row.disk_free === "number" ? row.disk_free : null,
    fetches: row.fetches,
    ownFailures: row.own_failures,
    networkFailures: row.network_failures,
    copiedFolder: row.copied,
    neverRan: row.never_ran,
    waits: row.waits,
    joinedMs: row.joined_at?.getTime() ?? null,
    connectedMs: row.connected_at?.getTime() ?? null,
    idleWhy: idleWords(row, waiting),
  }));
}

function idleWords(
  { crawler_id: crawlerId, idle_why: why }: CrawlerRow,
  waiting: ReadonlySet<number>,
): string | null {
  if (why !== mayWait) return why;
  return waiting.has(crawlerId) ? "hosts of its subnets have been due for an hour" : null;
}

/** Crawlers of older versions say so among what holds them back, while they wait to try again. */
const spoolFault = /^the spool cannot be written: (.*)$/;

function diskFaultOf({ disk_fault: fault, holding_back: words }: CrawlerRow): string | null {
  if (typeof fault === "string") return fault;
  const texts: readonly unknown[] = Array.isArray(words) ? words : [];
  return (
    texts.flatMap((text) => (typeof text === "string" ? (spoolFault.exec(text)?.[1] ?? []) : []))[0] ?? null
  );
}

async function upkeepFacts(
  pool: Pool,
  now: Date,
): Promise<Pick<AlertFacts, "figuresAtMs" | "registryAppliedMs" | "openInvitations" | "statedUntilMs">> {
  const { rows } = await pool.query<{
    figures_at: Date | null;
    applied_at: Date | null;
    invitations: number;
    stated_until: Date | null;
  }>(
    `select (select max(minute) from minute_figures) as figures_at,
       (
         select applied_at from registry_generation
         where state = 'applied'
         order by generation desc
         limit 1
       ) as applied_at,
       (
         select count(*)::int from invitation
         where redeemed_at is null and revoked_at is null and expires_at > $1
       ) as invitations,
       (select expires_at from release_timestamp) as stated_until`,
    [now],
  );
  const row = rows[0];
  return {
    figuresAtMs: row?.figures_at?.getTime() ?? null,
    registryAppliedMs: row?.applied_at?.getTime() ?? null,
    openInvitations: row?.invitations ?? 0,
    statedUntilMs: row?.stated_until?.getTime() ?? null,
  };
}

/** Each is found by a key, however large the tree is; where no delegation counts any more, all of them are looked at. */
async function registryAccident(pool: Pool): Promise<RegistryAccident> {
  const { rows } = await pool.query<RegistryAccident>(
    `with stand_in as (select generation from registry_generation where state = 'stand-in'),
     refused as (
       select words, at from audit_entry where action = 'registry-refused' order by entry_id desc limit 1
     )
     select (
         select generation from registry_generation
         where state = 'rolled-back' and not exists (select from registry_generation where state = 'applied')
         order by rolled_back_at desc nulls last, generation
         limit 1
       ) as "emptiedFrom",
       exists (
         select from delegation d
         cross join lateral (
           select from subnet c
           where c.subnet_id = d.subnet_id and c.added_in not in (select generation from stand_in)
           offset 0
         ) known
         limit 1
       ) and not exists (
         select from delegation d
         cross join lateral (
           select from subnet c
           where c.subnet_id = d.subnet_id and c.removed_in is null
             and c.added_in not in (select generation from stand_in)
           offset 0
         ) in_force
         limit 1
       ) as "noneInUse",
       (
         select words from refused
         where at > coalesce((select max(applied_at) from registry_generation), '-infinity')
       ) as "refusedWords"`,
  );
  return rows[0]!;
}

/** Copied folders have an alert of their own. */
async function incidentFacts(pool: Pool, now: Date): Promise<IncidentFacts[]> {
  const { rows } = await pool.query<IncidentFacts>(
    `select i.kind, c.name as crawler, sum(i.incidents)::float8 as count
     from incident i
     left join crawler c using (crawler_id)
     where i.last_at > $1::timestamptz - interval '1 hour' and i.kind <> 'copied-folder'
     group by i.kind, c.name
     order by count desc, i.kind, c.name
     limit ${kindsLooked}`,
    [now],
  );
  return rows;
}

async function releaseFacts(pool: Pool, now: Date): Promise<ReleaseFacts[]> {
  const [releases, counts] = await Promise.all([
    createReleaseStore(pool).list(),
    createReleaseFleetStore(pool).counts(),
  ]);
  return releases.map((entry: ReleaseEntry) => {
    const { refused = 0, returned = 0 } = counts.get(entry.version) ?? {};
    return {
      version: entry.version,
      stage: entry.stage,
      wasOffered: entry.stageSince !== null,
      revoked: entry.revoked,
      mayRun: mayRun(entry, now),
      words: entry.stageWords,
      turnedDown: refused + returned,
    };
  });
}

/**
 * Of an embedded server on this machine its last backup, once there was one; of a server that archives its log how that
 * goes. Null: nobody wants to know, or nothing is expected.
 */
export async function backupFacts(pool: Pool): Promise<BackupFacts | null> {
  const { rows } = await pool.query<{
    hours: number | null;
    data_folder: string | null;
    archives: boolean;
    archived_at: Date | null;
    is_failing: boolean;
  }>(
    `select case when p.only_one is null then ${usualBackupHours} else p.backup_warn_hours end as hours,
       case when inet_server_addr() is null then (select setting from pg_settings where name = 'data_directory') end
         as data_folder,
       current_setting('archive_mode') <> 'off' as archives, a.last_archived_time as archived_at,
       coalesce(a.last_failed_time > coalesce(a.last_archived_time, '-infinity'), false) as is_failing
     from pg_stat_archiver a
     left join coordinator_place p on true`,
  );
  const { hours, data_folder, archives, archived_at, is_failing } = rows[0]!;
  if (hours === null) return null;
  const home = data_folder === null ? null : homeOf(data_folder);
  const last = home === null ? null : lastBackup(home);
  if (last !== null)
    return { kind: "copy", lastMs: last.at?.getTime() ?? null, isFailing: false, warnAfterHours: hours };
  if (home !== null || !archives) return null;
  return {
    kind: "archive",
    lastMs: archived_at?.getTime() ?? null,
    isFailing: is_failing,
    warnAfterHours: hours,
  };
}

// What the alert rules look at of the coordinators above and below.

async function relativeFacts(pool: Pool): Promise<RelativeFacts[]> {
  const { rows } = await pool.query<{
    kind: RelativeFacts["kind"];
    name: string;
    contacted_at: Date | null;
    failing_since: Date | null;
    failure: string | null;
    dropped_at: Date | null;
  }>(
    `select case peer_id when 0 then 'parent' else 'child' end as kind, name, contacted_at, failing_since, failure,
       dropped_at
     from related_coordinator
     order by peer_id
     limit 1000`,
  );
  return rows.map((row) => ({
    kind: row.kind,
    name: row.name,
    contactedMs: row.contacted_at?.getTime() ?? null,
    failingSinceMs: row.failing_since?.getTime() ?? null,
    failure: row.failure,
    droppedMs: row.dropped_at?.getTime() ?? null,
  }));
}
