/** Reads the facts for the alert rules with a few small queries, none of which scans growing tables. */

import type { Pool } from "pg";
import { lastBackup } from "#db/backup-folder";
import { homeOf } from "#db/embedded-cluster";
import { nothingDueReason } from "../../crawl/frontier/hand-out-tasks.ts";
import { outboxBacklog } from "../../crawl/frontier/link-outbox-store.ts";
import { waitingEnds } from "../../place/crawlers/sessions.ts";
import { accuracyEstimate } from "../../place/delegation/accuracy.ts";
import type { AccuracyCounts } from "../../place/delegation/delegation.ts";
import { epochs } from "../../run/journal/epoch-store.ts";
import { createReleaseFleetStore } from "../../run/releases/fleet-store.ts";
import { createReleaseStore, type ReleaseEntry } from "../../run/releases/release-store.ts";
import { mayRun } from "../../run/releases/staging.ts";
import type {
  AlertFacts,
  BackupFacts,
  CrawlerFacts,
  IncidentFacts,
  RegistryAccident,
  RelativeFacts,
  ReleaseFacts,
} from "./alert-facts.ts";
import { diskFacts } from "./figure-store.ts";
import type { GatedHosts, QueueAges, SpanFigures } from "./queue-api.ts";

interface SharedReads {
  queueAges(now: Date): Promise<QueueAges>;
  figures(minutes: number, now: Date): Promise<SpanFigures>;
  accuracyCounts(now: Date): Promise<AccuracyCounts>;
  gatedHosts(now: Date): Promise<GatedHosts>;
}

const crawlersLooked = 1000;
const kindsLooked = 200;
/** The setting's default, used until a coordinator states its value. */
const usualBackupHours = 48;
const hourMinutes = 60;
const dayMinutes = 24 * 60;

/** `reads` are cached answers that pages need anyway, and `nowMs` is a monotonic clock. */
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
    hour,
    day,
    ...upkeep,
    registryAccident: accident,
    incidents,
    releases,
    relatives,
    linkOutbox,
    botGates: { asked, providers },
    disk,
    databaseMs,
    accuracy: { samples, share },
    backup,
    wentBack:
      epoch === undefined || epoch.cause === "created"
        ? null
        : { atMs: epoch.beganAt.getTime(), failed: epoch.replay?.failed.length ?? null },
  };
}

async function roundTripMs(pool: Pool, nowMs: () => number): Promise<number> {
  const startedMs = nowMs();
  await pool.query("select 1");
  return nowMs() - startedMs;
}

/** Returns SQL for a time in ms since 1970. */
const msSql = (instant: string, name: string) =>
  `(extract(epoch from ${instant}) * 1000)::float8 as "${name}"`;

/** How many subnets of a crawler that fetches nothing are checked. */
const subnetsLooked = 200;

/** Marks a crawler whose hosts must be checked to find out whether it waits. */
const mayWait = "it may wait";

/**
 * SQL over `c` and `f`: why a crawler that may crawl and has fetched nothing for an hour has no work: it has no subnet, or
 * its hosts must be checked. Null when its host's own limits hold it back.
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

/** The given crawlers that have no work although hosts of their subnets have been due for an hour. */
async function keptWaiting(
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

/** SQL: whether its supervisor said what it waits for, and then disconnected. */
const saysThatItWaits = "(c.state = 'offline' and coalesce(c.offline_code = any($2), false))";

/**
 * SQL: whether it has joined but was never connected except to say that it waits. A crawler without a release has no version,
 * and a restored database may have lost the time of its connection.
 */
const neverRan = `c.state = 'offline' and c.public_key is not null and c.release_version is null
  and not exists (select from crawler_figures g where g.crawler_id = c.crawler_id)
  and (${saysThatItWaits} or c.connected_at is null
    and not exists (select from database_epoch e where e.cause <> 'created' and e.began_at > c.created_at))`;

/** SQL: the disk fault, which older crawlers report in `holdingBack`. */
const diskFault = `coalesce(
  c.heartbeat ->> 'diskFault',
  (
    select substring(word from '^the spool cannot be written: (.*)$')
    from jsonb_array_elements_text(
      case jsonb_typeof(c.heartbeat -> 'holdingBack') when 'array' then c.heartbeat -> 'holdingBack' else '[]' end
    ) word
    where word like 'the spool cannot be written: %'
    limit 1
  )
)`;

/** SQL: a number of the heartbeat, or null. */
const numberSql = (name: string) =>
  `case jsonb_typeof(c.heartbeat -> '${name}') when 'number' then (c.heartbeat ->> '${name}')::float8 end`;

/** Counts as the last hour all quarters that began within it. */
async function crawlerFacts(pool: Pool, now: Date): Promise<CrawlerFacts[]> {
  const { rows } = await pool.query<CrawlerFacts & { readonly crawlerId: number }>(
    `select c.crawler_id as "crawlerId", c.name, c.state, ${msSql("c.last_seen_at", "lastSeenMs")},
       ${msSql("c.draining_since", "drainingSinceMs")}, coalesce(${numberSql("spooledResults")}, 0) as "waitingResults",
       ${diskFault} as "diskFault", ${numberSql("diskFreeBytes")} as "diskFreeBytes",
       t.distrusted_at is not null or t.probes_doubted_at is not null as distrusted,
       coalesce(f.fetches, 0)::float8 as fetches, coalesce(f.own_failures, 0)::float8 as "ownFailures",
       coalesce(f.network_failures, 0)::float8 as "networkFailures",
       exists (
         select from incident i
         where i.crawler_id = c.crawler_id and i.kind = 'copied-folder'
           and i.last_at > $1::timestamptz - interval '1 day'
       ) as "copiedFolder",
       ${neverRan} as "neverRan", ${saysThatItWaits} as waits,
       ${msSql("(select max(i.redeemed_at) from invitation i where i.name = c.name)", "joinedMs")},
       ${msSql("case when c.state = 'online' then c.connected_at end", "connectedMs")}, ${idleWhy} as "idleWhy"
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
    [now, waitingEnds],
  );
  const idle = rows.flatMap(({ idleWhy: why, crawlerId }) => (why === mayWait ? [crawlerId] : []));
  const waiting = idle.length === 0 ? new Set<number>() : await keptWaiting(pool, idle, now);
  return rows.map(({ crawlerId, idleWhy: why, ...facts }) => {
    const isWaiting = waiting.has(crawlerId) ? "hosts of its subnets have been due for an hour" : null;
    return { ...facts, idleWhy: why === mayWait ? isWaiting : why };
  });
}

async function upkeepFacts(pool: Pool, now: Date) {
  const applied = `(
    select applied_at from registry_generation where state = 'applied' order by generation desc limit 1
  )`;
  const { rows } = await pool.query<
    Pick<AlertFacts, "figuresAtMs" | "registryAppliedMs" | "openInvitations" | "statedUntilMs">
  >(
    `select ${msSql("(select max(minute) from minute_figures)", "figuresAtMs")}, ${msSql(applied, "registryAppliedMs")},
       (
         select count(*)::int from invitation
         where redeemed_at is null and revoked_at is null and expires_at > $1
       ) as "openInvitations",
       ${msSql("(select expires_at from release_timestamp)", "statedUntilMs")}`,
    [now],
  );
  return rows[0]!;
}

/** Index look-ups stop at the first hit. Every delegation is read only if no delegated subnet is in force any more. */
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

/** Leaves out copied folders, which have an alert of their own. */
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
 * Returns the last backup of an embedded server on this machine, once there was one, or the state of a server's log archive.
 * Returns null if no backup is expected.
 */
export async function backupFacts(pool: Pool): Promise<BackupFacts | null> {
  const { rows } = await pool.query<{
    readonly warnAfterHours: number | null;
    readonly dataFolder: string | null;
    readonly archives: boolean;
    readonly lastMs: number | null;
    readonly isFailing: boolean;
  }>(
    `select case when p.only_one is null then ${usualBackupHours} else p.backup_warn_hours end as "warnAfterHours",
       case when inet_server_addr() is null then (select setting from pg_settings where name = 'data_directory') end
         as "dataFolder",
       current_setting('archive_mode') <> 'off' as archives, ${msSql("a.last_archived_time", "lastMs")},
       coalesce(a.last_failed_time > coalesce(a.last_archived_time, '-infinity'), false) as "isFailing"
     from pg_stat_archiver a
     left join coordinator_place p on true`,
  );
  const { warnAfterHours, dataFolder, archives, lastMs, isFailing } = rows[0]!;
  if (warnAfterHours === null) return null;
  const home = dataFolder === null ? null : homeOf(dataFolder);
  const last = home === null ? null : lastBackup(home);
  if (last !== null)
    return { kind: "copy", lastMs: last.at?.getTime() ?? null, isFailing: false, warnAfterHours };
  return home !== null || !archives ? null : { kind: "archive", lastMs, isFailing, warnAfterHours };
}

async function relativeFacts(pool: Pool): Promise<RelativeFacts[]> {
  const { rows } = await pool.query<RelativeFacts>(
    `select case peer_id when 0 then 'parent' else 'child' end as kind, name, ${msSql("contacted_at", "contactedMs")},
       ${msSql("failing_since", "failingSinceMs")}, failure, ${msSql("dropped_at", "droppedMs")}
     from related_coordinator
     order by peer_id
     limit 1000`,
  );
  return rows;
}
