/**
 * Alerts about the coordinator itself, which need no database, and about stored data: the database and its backups, the
 * journal, the registry and the releases.
 */
import { bytesText } from "#core/format";
import {
  type AlertFacts,
  about,
  critical,
  dayMs,
  info,
  minuteMs,
  minutesSince,
  namesOf,
  type OwnFault,
  sentence,
  span,
  warning,
} from "./alert-facts.ts";

/** After this time its crawlers have gone to other coordinators (crawlers/coordinator-presence-store). */
const silentSeconds = 30;
const leastOverdueMinutes = 10;
/** Jobs that take longer as the crawl grows. */
const slowJobs: Readonly<Record<string, number>> = { "rank-pages": 12 * 60 };
/** Other coordinators count this one as gone after 8 s without a sign of life (crawlers/silent-coordinators). */
const mostStandstillMs = 5000;

const renewIt =
  "Renew it with the same key (certbot renew --reuse-key) into the same files; it is in use within a minute, without a restart.";

export const ownRules = [
  critical("data-folder-gone", "/alerts", {
    looksFor: "the embedded database's data folder was there, and is gone or empty",
    advice: `Mount its disk, or stop the coordinator and restore a backup (nearcrawl database backups lists them). No command
      creates a new one in its place (runbook: bad days).`,
    runbook: `The folder is \`postgres\` in the home. [Bad days](bad-days.md#the-data-folder-is-gone) has the steps.`,
    find: ({ own }) => own?.gone && `${sentence(own.gone.words)} (since ${clockTime(own.gone.sinceMs)}).`,
  }),
  critical("database-does-not-answer", "/alerts", {
    /** Seconds. The database is asked every two seconds, and a restart takes less than this. */
    threshold: 4,
    looksFor: "the database has not answered a trivial query for {n} s",
    advice: `Start it, or check its log, its machine and the network path. Crawlers finish their leases and keep the
      results; everything resumes by itself when it answers.`,
    runbook: `Does it run (\`systemctl status postgresql\`)? A process in state \`T\` (\`ps\`) is stopped; \`kill -CONT\` resumes
      it. An embedded server that ended because its disk was full stays down: free space, then restart the coordinator. No
      acknowledged result is lost.`,
    find: ({ own, nowMs }, seconds) =>
      own?.gone || own?.usedUp ? null : faultWords(own?.silent, { nowMs, seconds }),
  }),
  critical("connections-used-up", "/alerts", {
    looksFor: `the database refuses a connection, since others hold as many as it has (max_connections, or a role's or
      pooler's limit)`,
    advice: `select usename, application_name, count(*) from pg_stat_activity group by 1, 2 says who holds them. End what
      nobody needs, raise max_connections (it takes a restart of Postgres), or put PgBouncer in between. Everything resumes
      by itself.`,
    runbook: `The server's error is \`53300\` (*too many clients*). A coordinator usually takes some twenty connections. Jobs
      that fail for this reason raise no alert of their own. The alert ends a minute after the last refusal.`,
    find: ({ own }) => faultWords(own?.usedUp),
  }),
  critical("clock-wrong", "/alerts", {
    looksFor: `this coordinator's clock jumped, or differs from the database's by over 5 s, or the same way from those of
      most crawlers by over a minute`,
    advice: `Look at the coordinator's machine, not at the crawlers: timedatectl (or chronyc tracking), and let NTP keep its
      clock. Nothing is handed out or written meanwhile, crawlers keep their results; everything resumes by itself when it is
      right. If the clock is right now and this stays, restart the coordinator (runbook: bad days).`,
    runbook: `*Most* means more than two thirds of the crawlers on other machines, and at least two. \`/ready\` is false
      meanwhile. See [bad days](bad-days.md#a-clock-is-wrong).`,
    find: ({ own }) => faultWords(own?.clock, { more: ": nothing is handed out" }),
  }),
  critical("database-cannot-write", "/storage", {
    looksFor:
      "a small write fails: the database's disk is full, it is read-only (a standby), or its files cannot grow",
    advice: `Free space on its disk, or point DATABASE_URL at the server that takes writes. Crawlers keep their results
      meanwhile; everything resumes by itself.`,
    runbook: `Never delete files in \`pg_wal\` by hand. The alert appears a moment after the first job or result that fails, and
      within half a minute when nothing is written.`,
    find: ({ own }) => faultWords(own?.unwritable),
  }),
  critical("journal-cannot-write", "/storage", {
    looksFor:
      "people's changes cannot be written to the journal beside the database, and are answered with an error",
    advice: `Free space in the home folder, or let the coordinator's user write there. The changes are in the database, and
      are journaled by themselves then (runbook: bad days).`,
    runbook: `Changes are answered with an error because they would not survive a restore. Whatever is missing from \`journal/\`
      is written within a minute, or with the next change.`,
    find: ({ own }) => faultWords(own?.journal),
  }),
  critical("coordinator-silent", "/", {
    /** Minutes. Each minute is written as it ends, so this many in a row are missing only if nobody writes. */
    threshold: 5,
    looksFor: `no coordinator has written its figures for {n} minutes, or one of several went silent without shutting down`,
    advice:
      "Start it again; its log says why it stopped. Crawlers finish their leases and reconnect by themselves.",
    runbook: `One of several is named by host and port, from half a minute after its last sign until it is back at the same
      place, for a day at most. If the process runs, \`/health\` and \`/ready\` say what is in its way.`,
    // A database without figures has had no coordinator yet. While the clock is wrong, no figures are written.
    find: ({ figuresAtMs, own, nowMs }, minutes) => {
      if (own?.clock != null) return null;
      const sinceMs = Math.max(figuresAtMs ?? 0, own?.startedAtMs ?? 0);
      if (figuresAtMs !== null && nowMs - sinceMs > (minutes + 1) * minuteMs)
        return `No coordinator has written its figures for ${minutesSince(figuresAtMs, nowMs)} minutes.`;
      const silent = (own?.silentCoordinators ?? []).filter(
        (one) => nowMs - one.sinceMs >= silentSeconds * 1000,
      );
      return about(namesOf(silent), "Coordinators of this database that went silent without shutting down");
    },
  }),
  critical("nobody-leads", "/alerts", {
    /** Seconds. Another coordinator takes the lead 10 s after the leader's last sign of life, and first updates its memory. */
    threshold: 60,
    looksFor: "no coordinator has led for {n} s, although one is running",
    advice: `The log says why no other takes the lead (“could not be looked at”). Restart the coordinator that holds it:
      select * from fleet_lead.`,
    runbook: "Either the holder of the lead cannot bring its memory up to date, or nobody can take the lead.",
    find: ({ own, nowMs }, seconds) => {
      const sinceMs = own?.leaderlessSinceMs ?? nowMs;
      if (nowMs - sinceMs < seconds * 1000) return null;
      return `No coordinator of this database has led since ${clockTime(sinceMs)}: no rounds, no hand-overs, no balancing.`;
    },
  }),
  critical("dns-does-not-answer", "/fleet/queue", {
    /** Seconds. A resolver's restart takes less. */
    threshold: 30,
    looksFor: "the coordinator's DNS servers have answered nothing for {n} s, of five names at least",
    advice: `Look at them (resolvers of the settings, else /etc/resolv.conf): dig @SERVER example.org. New hosts wait for an
      address meanwhile, and no site is blamed; what is known is crawled on.`,
    runbook: "The setting `resolvers` is read at the start. Crawlers have resolvers of their own.",
    find: ({ own, nowMs }, seconds) =>
      own?.dns == null || nowMs - own.dns.sinceMs < seconds * 1000
        ? null
        : `The coordinator's DNS servers have not answered since ${clockTime(own.dns.sinceMs)}: ${own.dns.words}.`,
  }),
  warning("search-behind", "/search", {
    /** Seconds. A restart of the engine takes less. */
    threshold: 600,
    looksFor:
      "what was crawled has waited for the search engine for {n} s, or the engine does not answer for as long",
    advice: `FTS5: free its disk (search/ in the home), or let the coordinator's user write there. OpenSearch: look at it and
      its log. Crawling goes on, and what waits is sent by itself.`,
    runbook: `Pages wait in the database, so its disk bounds the wait. What to do in which case:
      [bad days](bad-days.md#the-search-is-away), [scaling](scaling.md#what-happens-when) of OpenSearch.`,
    find: ({ own, nowMs }, seconds) => faultWords(own?.search, { nowMs, seconds }),
  }),
  critical("certificate-ending", "/alerts", {
    /** Days. Automatic renewal never leaves so few. */
    threshold: 3,
    looksFor: "the coordinator's certificate ends within {n} days, or has ended",
    advice: renewIt,
    runbook: `Crawlers with a pinned key connect all the same; browsers and other crawlers do not. The files are those that
      \`tls\` names.`,
    find: (facts, days) => certificateEnding(facts, { from: Number.NEGATIVE_INFINITY, to: days }),
  }),
  warning("certificate-left", "/alerts", {
    /** Days. Let's Encrypt's clients renew 30 days before the end, so several attempts have failed by now. */
    threshold: 21,
    looksFor:
      "the coordinator's certificate ends within {n} days, or a renewed one is in its file and is not used",
    advice: `${renewIt} With another key, crawlers invited with the former one do not come back: reinvite them.`,
    runbook: `A renewed certificate is not used when only one of its two files is new (they are read again every minute), or when
      its key is another. Crawlers pin the key of their invitation, so another key is used only after a restart, or in the last
      hour of the old certificate; then reinvite those that do not come back (\`nearcrawl fleet reinvite\`). A proxy's
      certificate is checked by \`nearcrawl doctor\` only.`,
    find: (facts, days) => {
      const { file, notTaken } = facts.own?.certificate ?? { notTaken: null };
      if (notTaken !== null) return `What lies in ${file} is not shown: ${notTaken}.`;
      return certificateEnding(facts, { from: 3, to: days });
    },
  }),
  warning("job-failing", "/alerts", {
    /** Failed runs in a row. One or two fail whenever a database restarts. */
    threshold: 3,
    looksFor: "a job of the coordinator has failed {n} times in a row",
    advice: "The log has the reason for each failure (“flow failed, will run again”, with the job's name).",
    runbook:
      "While the database is the reason, its own alert replaces this one. `nearcrawl_job_failures` counts them.",
    find: ({ own }, times) => {
      if (own?.silent !== null || own.unwritable !== null || own.usedUp != null) return null;
      const failing = own.jobs
        .filter(({ failures }) => failures >= times)
        .sort((a, b) => b.failures - a.failures);
      const targets = failing.map(
        (one) => `${one.name} (${one.failures} times: ${one.words ?? "no reason"})`,
      );
      return about(targets, "Jobs that keep failing");
    },
  }),
  warning("job-overdue", "/alerts", {
    /** Intervals, but at least ten minutes, and longer for `slowJobs`. */
    threshold: 20,
    looksFor: `a job has been running for {n} times its interval (at least ${leastOverdueMinutes} minutes)`,
    advice: `It is waiting for a lock (pg_stat_activity, pg_locks), a connection or a slow disk. If several hang, restart the
      coordinator.`,
    runbook: `The limit of \`rank-pages\` is twelve hours. \`select pid, state, wait_event, query from pg_stat_activity where
      application_name like 'nearcrawl%'\` shows the sessions, named \`nearcrawl-coordinator-NUMBER-SCHEMA\`. When most of the
      frequent jobs hang, \`/ready\` says \`jobs-stand-still\`.`,
    find: ({ own, nowMs }, times) => {
      if (own?.silent !== null) return null;
      const late = own.jobs
        .map((job) => ({ ...job, ms: nowMs - (job.runningSinceMs ?? nowMs) }))
        .filter(({ name, everyMs, ms }) => {
          return ms > Math.max(times * everyMs, (slowJobs[name] ?? leastOverdueMinutes) * minuteMs);
        })
        .sort((a, b) => b.ms - a.ms);
      return about(
        late.map(({ name, ms }) => `${name} (for ${span(ms / 1000)})`),
        "Jobs that do not finish",
      );
    },
  }),
  warning("event-loop-late", "/alerts", {
    /** Milliseconds by which one turn in a hundred is late, over a minute. A page takes several turns. */
    threshold: 500,
    looksFor: `the coordinator's process is late: one turn in a hundred by over {n} ms within a minute, or one by over
      ${mostStandstillMs / 1000} s`,
    advice: `Its CPU is too slow or shared, it is short of memory (swap), or one task is too large:
      nearcrawl_event_loop_delay_seconds, top.`,
    runbook: `After 8 s without a beat, the other coordinators replace it. \`vmstat 1\` shows swapping;
      \`nearcrawl_http_request_seconds\` shows which pages suffer.`,
    find: ({ own }, ms) => {
      if (own?.eventLoop == null) return null;
      const { p99Ms, mostMs } = own.eventLoop;
      if (p99Ms <= ms && mostMs <= mostStandstillMs) return null;
      const late = `one turn in a hundred by ${Math.round(p99Ms)} ms, and one by ${Math.round(mostMs)} ms`;
      return `The coordinator's process is late: ${late}, within the last two minutes.`;
    },
  }),
] as const;

/** The fault becomes an alert only once it has lasted for `seconds`. */
function faultWords(
  fault: OwnFault | null | undefined,
  { more = "", nowMs = 0, seconds = 0 } = {},
): string | null {
  if (fault == null || (seconds > 0 && nowMs - fault.sinceMs < seconds * 1000)) return null;
  return `${sentence(fault.words)}, since ${clockTime(fault.sinceMs)}${more}.`;
}

/** Returns a text if between `from` and `to` days are left. */
function certificateEnding(
  { own, nowMs }: AlertFacts,
  days: { readonly from: number; readonly to: number },
): string | null {
  if (own?.certificate == null) return null;
  const { file, endsMs } = own.certificate;
  const left = (endsMs - nowMs) / dayMs;
  if (left < days.from || left >= days.to) return null;
  const date = new Date(endsMs).toISOString().slice(0, 10);
  return left < 0
    ? `The certificate ${file} ended on ${date}: no crawler and no browser takes it.`
    : `The certificate ${file} ends on ${date}, in ${span(left * 86_400)}.`;
}

/** Formats a time like "14:03:07 UTC". */
const clockTime = (ms: number): string => `${new Date(ms).toISOString().slice(11, 19)} UTC`;

const allOneSubnet = "all of IPv4 and all of IPv6 are one subnet each, with one crawler";
const retention = "nearcrawl policy set retention.fetchDays=…";

export const dataRules = [
  critical("journal-differs", "/storage#went-back", {
    /** Days. By then somebody has looked at it, or nobody will. */
    threshold: 30,
    looksFor: `the database went back to an earlier state in the last {n} days, and the journal could not restore everything,
      or there was none`,
    advice: `See what is missing: nearcrawl journal compare. Fix it by hand, or replay another journal (nearcrawl journal
      replay). The alert then ends; otherwise mute it (runbook: bad days).`,
    runbook: "A restore or a failover did this: see [bad days](bad-days.md#we-restored).",
    find: ({ wentBack, nowMs }, days) => {
      if (wentBack == null || wentBack.failed === 0 || nowMs - wentBack.atMs > days * dayMs) return null;
      const ago = Math.floor((nowMs - wentBack.atMs) / dayMs);
      const lost =
        wentBack.failed === null
          ? "there was no journal: opt-outs and revocations made since then are lost"
          : `${wentBack.failed} entries of the journal could not be restored`;
      return `The database went back to an earlier state ${ago} days ago, and ${lost}.`;
    },
  }),
  critical("disk-full", "/storage", {
    /** Bytes. Postgres needs some space even to free space, for a checkpoint's log or the files of a sort. */
    threshold: 2e9,
    looksFor: "the disk of the database has less than {bytes} free",
    advice: `Free space now, or give it a larger disk: once it is full, nothing can be written. nearcrawl storage says what
      takes the space; ${retention} frees some of it.`,
    runbook: `For a server of your own this is what is left of \`databaseGigabytes\`. Once it is full, results wait on the crawlers'
      disks: [bad days](bad-days.md#the-disk-is-full).`,
    find: ({ disk }, bytes) =>
      disk == null || disk.freeBytes >= bytes
        ? null
        : `${bytesText(Math.max(0, disk.freeBytes))} left for the database.`,
  }),
  warning("disk-left", "/storage", {
    /** Days until the disk is full, at the last day's pace. This leaves time to order a disk, or to reduce retention. */
    threshold: 14,
    looksFor: "the disk of the database is full in under {n} days at the pace of the last day",
    advice: `See what takes the space: nearcrawl storage. Free some of it by ${retention}, or get a larger disk.`,
    runbook: `The disk is measured every ten minutes, and the pace takes at least three hours of measurements. For a server of
      your own, state its space in \`databaseGigabytes\`.`,
    find: ({ disk }, days) => {
      const { freeBytes = 0, lostBytesPerDay = null } = disk ?? {};
      if (lostBytesPerDay === null || lostBytesPerDay <= 0) return null;
      const left = Math.max(0, freeBytes) / lostBytesPerDay;
      if (left >= days) return null;
      const when = left < 2 ? `${Math.round(left * 24)} hours` : `${Math.floor(left)} days`;
      const pace = `at the pace of the last day (${bytesText(lostBytesPerDay)} per day)`;
      return `${bytesText(Math.max(0, freeBytes))} left for the database; ${pace} it is full in ${when}.`;
    },
  }),
  warning("database-slow", "/", {
    /** Milliseconds. A page takes a dozen queries, and if each is this slow, people stop waiting. */
    threshold: 250,
    looksFor: "the database takes over {n} ms for a trivial query",
    advice: "Check its disk, its connections, and what else uses the machine.",
    runbook: "`nearcrawl_http_request_seconds` shows which pages suffer.",
    find: ({ databaseMs }, ms) =>
      databaseMs <= ms ? null : `The database takes ${Math.round(databaseMs)} ms to answer a trivial query.`,
  }),
  warning("registry-old", "/registry", {
    /** Days. The registries are imported each quarter (ops/systemd), and ten days are left to review a plan. */
    threshold: 100,
    looksFor: "the registry in force is over {n} days old, or there is none",
    advice: "Fetch the files, review the plan and apply it (runbook: refreshing the registries).",
    find: ({ registryAppliedMs, nowMs }, mostDays) => {
      if (registryAppliedMs === null) return `No registry is in force, so ${allOneSubnet}.`;
      const days = Math.floor((nowMs - registryAppliedMs) / dayMs);
      return days <= mostDays
        ? null
        : `The registry in force was applied ${days} days ago; import it each quarter.`;
    },
  }),
  warning("backup-too-old", "/", {
    /** Hours, unless backup.warnAfterHours says otherwise. One daily backup may fail. */
    threshold: 48,
    looksFor: `the last backup of the embedded database, once there was one, is over {n} hours old (backup.warnAfterHours),
      or a server that archives its log has archived none for as long or fails to`,
    runbook: `Nothing is reported before a first backup was made. \`nearcrawl database backup\` makes one; \`systemctl status
      nearcrawl-backup\` says why the last one failed. A server of your own counts when \`archive_mode\` is on; its disk fills up
      with what is not archived. See [backup and restore](backup-and-restore.md).`,
    find: ({ backup, nowMs }) => {
      if (backup == null) return null;
      const { kind, lastMs, isFailing, warnAfterHours } = backup;
      const isOld = lastMs === null || nowMs - lastMs > warnAfterHours * 3_600_000;
      if (!isOld && !isFailing) return null;
      const age = lastMs === null ? null : span((nowMs - lastMs) / 1000);
      if (kind === "copy")
        return {
          words:
            age === null
              ? "No backup of the database is left."
              : `The last backup of the database is ${age} old.`,
          advice: `Make one: nearcrawl database backup. The timer nearcrawl-backup.timer makes one each day; its last run says
            why it failed (runbook: backup and restore).`,
        };
      const last = `the last piece that it archived ${age === null ? "is not known" : `is ${age} old`}`;
      return {
        words: isFailing
          ? `The database's server fails to archive its log; ${last}.`
          : `The database's server has archived none of its log ${age === null ? "yet" : `for ${age}`}.`,
        advice: `Its log says why archive_command fails; with pgBackRest: pgbackrest --stanza=nearcrawl check (runbook: backup
          and restore). Until then its disk fills up.`,
      };
    },
  }),
  critical("registry-empty", "/registry", {
    looksFor:
      "no registry is in force although there was one, or no delegated subnet is in the tree in force",
    runbook: `In the first case the first import was rolled back, and one crawler is given everything, wherever it is:
      \`nearcrawl rir rollforward\`, or *Put in force again* on \`/registry\`, restores the tree with its delegations. In the
      second another tree was applied than the one used to crawl: roll back, or forward.`,
    find: ({ registryAccident }) => {
      const { emptiedFrom = null, noneInUse = false } = registryAccident ?? {};
      if (emptiedFrom !== null)
        return {
          words: `No registry is in force: generation ${emptiedFrom} was rolled back, and ${allOneSubnet}.`,
          advice: `Restore it, with its delegations: nearcrawl rir rollforward, or the button on /registry (runbook: refreshing
            the registries).`,
        };
      if (!noneInUse) return null;
      return {
        words: "No delegated subnet is in the tree in force: every host is placed again.",
        advice: `The registry in force is not the one that was used to crawl: nearcrawl rir status, then rir rollback or
          rollforward (runbook: refreshing the registries).`,
      };
    },
  }),
  warning("registry-refused", "/registry", {
    looksFor: "the latest import was refused, and nothing was applied since",
    advice: `Review the plan: usually a file is incomplete. If it is right, apply it with the number that it names (runbook:
      refreshing the registries).`,
    runbook: `An import, usually the timer's, would have removed more than 5 % of the subnets in use:
      [refreshing-the-registries.md](refreshing-the-registries.md#many-subnets-in-use-would-go).`,
    find: ({ registryAccident }) =>
      registryAccident?.refusedWords?.replace(/^an /, "An ").replace(/\.?$/, "."),
  }),
  warning("release-missing", "/fleet/versions", {
    looksFor:
      "no release is offered to all, while invitations are open or crawlers have joined where nothing has run yet",
    runbook: `None was published, all are held, or the last one has expired:
      [releasing-the-crawler.md](releasing-the-crawler.md).`,
    find: ({ releases, crawlers, openInvitations: invited }) => {
      const waiting = crawlers.filter(({ neverRan }) => neverRan).length;
      if (invited + waiting === 0 || releases.some(({ stage, mayRun }) => stage === "all" && mayRun))
        return null;
      const already = `${waiting} wait${waiting === 1 ? "s" : ""} already`;
      const more = `${invited} more ${invited === 1 ? "is" : "are"} invited`;
      return {
        words: `No release is offered to all, so crawlers that join run nothing: ${already}, and ${more}.`,
        advice:
          releases.length === 0
            ? `A coordinator publishes the first one at its start, while its own release key is valid; else sign and publish
                one (runbook: releasing the crawler).`
            : `Offer one: nearcrawl release list, then nearcrawl release stage VERSION --to all. Sign and publish an expired
                one again.`,
      };
    },
  }),
  warning("release-unstated", "/fleet/versions", {
    /** Days. A coordinator that has the key signs a new statement each day, valid for a week. */
    threshold: 3,
    looksFor: `the statement of which release is the newest ends in under {n} days, or has ended: supervisors take nothing
      after that`,
    advice: `Renew it: nearcrawl release timestamp (runbook: releasing the crawler). A coordinator does so by itself while a
      valid key is in its home.`,
    runbook: `It concerns supervisors that know such a statement or follow a root: [releasing-the-crawler.md](releasing-the-crawler.md).`,
    find: ({ statedUntilMs, nowMs }, leastDays) => {
      if (statedUntilMs === null || statedUntilMs - nowMs >= leastDays * dayMs) return null;
      const until = new Date(statedUntilMs).toISOString();
      const ends =
        statedUntilMs <= nowMs
          ? `ended at ${until}: supervisors take no release; running ones continue`
          : `ends at ${until}; supervisors take no release after that`;
      return `The statement of which release is the newest ${ends}.`;
    },
  }),
  info("release-held", "/fleet/versions", {
    looksFor: "the newest release was offered, and is no longer offered",
    advice: "Sign a better one, or offer it again: nearcrawl release stage VERSION --to one.",
    find: ({ releases: [newest] }) => {
      if (newest?.stage !== "none" || !newest.wasOffered || newest.revoked) return null;
      const why = newest.words || "it was held";
      return about([newest.version], `The newest release is offered to nobody (${why})`);
    },
  }),
  warning("release-failing", "/fleet/versions", {
    looksFor: "a crawler refused an offered release, or rolled back from it",
    advice: `See how many (nearcrawl release list) and why (nearcrawl fleet show NAME). Hold the release unless only one odd
      machine is affected.`,
    runbook: "Pin the former release on a single odd machine.",
    find: ({ releases }, most) => {
      const failing = releases.filter(({ stage, turnedDown }) => stage !== "none" && turnedDown > most);
      const targets = failing.map(({ version, turnedDown }) => `${version} (${turnedDown})`);
      return about(targets, "Crawlers refused a release or rolled back from it");
    },
  }),
] as const;
