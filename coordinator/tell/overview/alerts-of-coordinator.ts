/** What a coordinator knows of itself: these rules need no database, and find something while it is gone, too. */
import type { AlertFacts, OwnFault } from "./alert-facts.ts";
import {
  about,
  critical,
  dayMs,
  minuteMs,
  minutesSince,
  namesOf,
  sentence,
  span,
  warning,
} from "./alert-rule.ts";

/** Its crawlers have gone to others by then (crawlers/coordinator-presence-store). */
const silentSeconds = 30;
const leastOverdueMinutes = 10;
/** Of jobs whose turn may take as long as the crawl is large. */
const slowJobs: Readonly<Record<string, number>> = { "rank-pages": 12 * 60 };
/** Others take a coordinator that has not beaten for 8 s for gone (crawlers/coordinator-presence-store). */
const mostStandstillMs = 5000;

/** The page of alerts. */
const alertsPage = "/alerts";
const renewIt =
  "Renew it with the same key (certbot renew --reuse-key) into the same files: it is shown within a minute, without a restart";

export const ownRules = [
  critical("data-folder-gone", alertsPage, {
    looksFor: "the embedded database's data folder was there, and is gone or empty",
    advice: `Mount its disk, or stop the coordinator and restore. nearcrawl database backups lists what there is.
      Nothing is made in its place (runbook: bad days).`,
    runbook: [
      "`postgres` in the home is gone or empty: removed, or its disk is not mounted. Nothing is made in its place, by no command. Mount the disk, or stop",
      "the coordinator and restore the backup that the alert names: [bad days](bad-days.md#the-data-folder-is-gone).",
    ],
    find: ({ own }) => own?.gone && `${sentence(own.gone.words)} (since ${clockTime(own.gone.sinceMs)}).`,
  }),
  critical("database-does-not-answer", alertsPage, {
    /** Seconds. It is asked every two; one that restarts is away for less. */
    threshold: 4,
    looksFor: (seconds) => `the database has not answered a trivial query for ${seconds} s`,
    advice: `Start it, or check its log, its machine and the network path. Crawlers finish their leases and keep the
      results; everything resumes by itself when it answers.`,
    runbook: [
      "No answer to the simplest of questions for four seconds. Does it run (`systemctl status postgresql`, `ps`: `T` is a stopped process, `kill -CONT`",
      "lets it go on)? Its log says why it ended. An embedded server that ended because its disk was full stays down: make room, then start the",
      "coordinator again. Crawlers finish what they hold and keep the results; all goes on when it answers, and nothing that was acknowledged is lost.",
    ],
    find: ({ own, nowMs }, seconds) =>
      own?.gone || own?.usedUp ? null : faultWords(own?.silent, { nowMs, seconds }),
  }),
  critical("connections-used-up", alertsPage, {
    looksFor: `the database refuses a connection, since others hold as many as it has (max_connections, or a role's or
      pooler's limit)`,
    advice: `select usename, application_name, count(*) from pg_stat_activity group by 1, 2 says who holds them. End what
      nobody needs, raise max_connections (it takes a restart of Postgres), or put PgBouncer in between. Everything resumes
      by itself.`,
    runbook: [
      "The server, a role's limit or a pooler refuses connections (`53300`, *too many clients*). A coordinator of usual size takes some twenty; other",
      "programs at the same server, or several coordinators, take the rest. `select usename, application_name, count(*) from pg_stat_activity group by 1,",
      "2` says who. Jobs that fail for it are not alerts of their own. It ends a minute after the last refusal.",
    ],
    find: ({ own }) => faultWords(own?.usedUp),
  }),
  critical("clock-wrong", alertsPage, {
    looksFor: `this coordinator's clock jumped, or differs from the database's by over 5 s, or the same way from those of
      most crawlers by over a minute`,
    advice: `Look at the coordinator's machine, not at the crawlers: timedatectl (or chronyc tracking), and let NTP keep its
      clock. Nothing is handed out or written meanwhile, crawlers keep their results; everything resumes by itself when it is
      right. If the clock is right now and this stays, restart the coordinator (runbook: bad days).`,
    runbook: [
      "The coordinator's own clock, not a crawler's: it jumped, or it differs from the database server's by over 5 s, or from those of more than two",
      "thirds of the crawlers on other machines (at least two) the same way by over a minute. Its words say how far and in which direction. Nothing is",
      "handed out, no result is taken, no job that decides by time runs; `/ready` is false. `timedatectl` on its machine, then [bad",
      "days](bad-days.md#a-clock-is-wrong). It ends by itself.",
    ],
    find: ({ own }) => faultWords(own?.clock, { more: ": nothing is handed out" }),
  }),
  critical("database-cannot-write", "/storage", {
    looksFor: `a small write fails: the database's disk is full, it is read-only (a standby), or its files cannot grow`,
    advice: `Free space on its disk, or point DATABASE_URL at the server that takes writes. Crawlers keep their results
      meanwhile; everything resumes by itself.`,
    runbook: [
      "A write fails: the disk is full, the server is a standby or read-only, or its files cannot grow. The words say which. Make room on its disk (never",
      "in `pg_wal` by hand), or point `DATABASE_URL` at the server that takes writes. Results wait on the crawlers' disks, and all goes on by itself. It",
      "is told a moment after the first job or result that fails, and within half a minute where nothing is written.",
    ],
    find: ({ own }) => faultWords(own?.unwritable),
  }),
  critical("journal-cannot-write", "/storage", {
    looksFor: `people's changes cannot be written to the journal beside the database, and are answered with an error`,
    advice: `Free space in the home folder, or let the coordinator's user write there. The changes are in the database, and
      are journaled by themselves then (runbook: bad days).`,
    runbook: [
      "The journal in the home folder (`journal/`) takes nothing: its disk is full, or the coordinator's user may not write there. What people change is",
      "in the database, and is answered with an error, since it would not outlive a restore. Make room; all that is missing is written within a minute,",
      "or with the next change.",
    ],
    find: ({ own }) => faultWords(own?.journal),
  }),
  critical("coordinator-silent", "/", {
    /** Minutes. They are written as they end; so many in a row are missing only when nobody writes. */
    threshold: 5,
    looksFor: (
      minutes,
    ) => `no coordinator has written its figures for ${minutes} minutes, or one of several went silent
      without shutting down`,
    advice:
      "Start it again; its log says why it stopped. Crawlers finish their leases and reconnect by themselves.",
    runbook: [
      "No minute was written for five minutes, or one of several coordinators, named by host and port, went silent without having ended (after half a",
      "minute; told until it is back at the same place, for a day at most). Is the process there, does `/health` answer? Start it; its log's last lines",
      "say why it ended. Where it runs, `/ready` says what is in the way. Crawlers finish what they hold, keep results on their disks, and come back by",
      "themselves.",
    ],
    // Where none has ever written, none has run with this database yet; none are written while the clock is wrong.
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
  critical("nobody-leads", alertsPage, {
    /** Seconds. Another takes the lead 10 s after the last sign of the one before, and brings its memory up to date. */
    threshold: 60,
    looksFor: (seconds) => `no coordinator has led for ${seconds} s, although one is running`,
    advice: `The log says why no other takes the lead (“could not be looked at”). Restart the coordinator that holds it:
      select * from fleet_lead.`,
    runbook: [
      "For over a minute no coordinator has led, although this one runs: whoever holds the lead cannot bring its memory up to date, or the lead cannot be",
      "taken. The log has *could not be looked at* with the reason. Restart the one that `select * from fleet_lead` names.",
    ],
    find: ({ own, nowMs }, seconds) => {
      const sinceMs = own?.leaderlessSinceMs ?? nowMs;
      if (nowMs - sinceMs < seconds * 1000) return null;
      return `No coordinator of this database has led since ${clockTime(sinceMs)}: no rounds, no hand-overs, no balancing.`;
    },
  }),
  critical("dns-does-not-answer", "/queue", {
    /** Seconds. A resolver that restarts is away for less. */
    threshold: 30,
    looksFor: (seconds) =>
      `the coordinator's DNS servers have answered nothing for ${seconds} s, of five names at least`,
    advice: `Look at them (resolvers of the settings, else /etc/resolv.conf): dig @SERVER example.org. New hosts wait for an
      address meanwhile, and no site is blamed; what is known is crawled on.`,
    runbook: [
      "The coordinator's DNS servers have answered nothing for half a minute, of five names at least. `dig @SERVER example.org` from its machine;",
      "`resolvers` in the settings names others (read at the start). Hosts that are new wait for an address and are looked up by themselves later;",
      "crawlers have resolvers of their own.",
    ],
    find: ({ own, nowMs }, seconds) =>
      own?.dns == null || nowMs - own.dns.sinceMs < seconds * 1000
        ? null
        : `The coordinator's DNS servers have not answered since ${clockTime(own.dns.sinceMs)}: ${own.dns.words}.`,
  }),
  critical("certificate-ending", alertsPage, {
    /** Days. Nothing that renews by itself leaves so few. */
    threshold: 3,
    looksFor: (days) => `the coordinator's certificate ends within ${days} days, or has ended`,
    advice: `${renewIt}.`,
    runbook: [
      "The certificate that the coordinator shows itself ends within three days, or has ended: crawlers with a pinned key come all the same, browsers and",
      "those without do not. Renew it with the same key (`certbot renew --reuse-key`) into the files that `tls` names. It is shown within a minute.",
    ],
    find: (facts, days) => certificateEnding(facts, { from: Number.NEGATIVE_INFINITY, to: days }),
  }),
  warning("certificate-left", alertsPage, {
    /** Days. Let's Encrypt's clients renew 30 days before the end: by then, several attempts have failed. */
    threshold: 21,
    looksFor: (days) =>
      `the coordinator's certificate ends within ${days} days, or a renewed one lies in its file and is not shown`,
    advice: `${renewIt}. With another key, crawlers that were invited with the one before do not come back: invite them anew.`,
    runbook: [
      "The same within 21 days; or what lies in the files is not shown, and why: half a renewal (it is looked again every minute), or another key.",
      "Crawlers pin the key of their invitation, so another key is shown only after a restart, or in the last hour of the old certificate; then invite",
      "anew who does not come back (`nearcrawl fleet reinvite`). A proxy's certificate is not watched: `nearcrawl doctor` looks at it.",
    ],
    find: (facts, days) => {
      const { file, notTaken } = facts.own?.certificate ?? { notTaken: null };
      if (notTaken !== null) return `What lies in ${file} is not shown: ${notTaken}.`;
      return certificateEnding(facts, { from: 3, to: days });
    },
  }),
  warning("job-failing", alertsPage, {
    /** Turns in a row. One or two fail whenever a database restarts. */
    threshold: 3,
    looksFor: (times) => `a job of the coordinator has failed ${times} times in a row`,
    advice: "The log has the reason for each failure (“flow failed, will run again”, with the job's name).",
    runbook: [
      "A job of the clock has failed three times in a row; the alert has its name and the last error, the log each of them (`flow` is the name). Where",
      "the database is the reason, that is the alert. `nearcrawl_job_failures` counts.",
    ],
    // While nothing can be asked or written, that is the alert, and every job's failure.
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
  warning("job-overdue", alertsPage, {
    /** Intervals, and ten minutes at the least; what may take its time by its nature, longer. */
    threshold: 20,
    looksFor: (times) =>
      `a job has been running for ${times} times its interval (at least ${leastOverdueMinutes} minutes)`,
    advice: `It is waiting for a lock (pg_stat_activity, pg_locks), a connection or a slow disk. If several hang, restart the
      coordinator.`,
    runbook: [
      "A job's turn has not ended for 20 times its interval, ten minutes at the least (`rank-pages`: twelve hours). It waits for a lock, a connection or",
      "a disk: `select pid, state, wait_event, query from pg_stat_activity where application_name like 'nearcrawl%'` (a coordinator's sessions are called",
      "`nearcrawl-coordinator-NUMBER-SCHEMA`). `/ready` says `jobs-stand-still` when it is most of the frequent ones: restart the coordinator.",
    ],
    find: ({ own, nowMs }, times) => {
      if (own?.silent !== null) return null;
      const late = own.jobs
        .map((job) => ({ ...job, ms: nowMs - (job.runningSinceMs ?? nowMs) }))
        .filter(({ name, everyMs, ms }) => ms > Math.max(times * everyMs, patienceMs(name)))
        .sort((a, b) => b.ms - a.ms);
      return about(
        late.map(({ name, ms }) => `${name} (for ${span(ms / 1000)})`),
        "Jobs that do not finish",
      );
    },
  }),
  warning("event-loop-late", alertsPage, {
    /** Milliseconds that one turn in a hundred is late over a minute: a page takes several turns. */
    threshold: 500,
    looksFor: (
      ms,
    ) => `the coordinator's process is late: one turn in a hundred by over ${ms} ms within a minute, or one by
      over ${mostStandstillMs / 1000} s`,
    advice: `Its CPU is too slow or shared, it is short of memory (swap), or one task is too large:
      nearcrawl_event_loop_delay_seconds, top.`,
    runbook: [
      "The coordinator's process is late: one turn of its loop in a hundred by over half a second within a minute, or one by over 5 s (after 8 s without",
      "a beat others take it for gone). Is the machine busy or swapping (`top`, `vmstat 1`)? `nearcrawl_event_loop_delay_seconds` shows since when;",
      "`nearcrawl_http_request_seconds` what suffers.",
    ],
    find: ({ own }, ms) => {
      if (own?.eventLoop == null) return null;
      const { p99Ms, mostMs } = own.eventLoop;
      if (p99Ms <= ms && mostMs <= mostStandstillMs) return null;
      const late = `one turn in a hundred by ${Math.round(p99Ms)} ms, and one by ${Math.round(mostMs)} ms`;
      return `The coordinator's process is late: ${late}, within the last two minutes.`;
    },
  }),
] as const;

/** `seconds`: it is an alert once it has lasted so long. */
function faultWords(
  fault: OwnFault | null | undefined,
  { more = "", nowMs = 0, seconds = 0 } = {},
): string | null {
  if (fault == null || (seconds > 0 && nowMs - fault.sinceMs < seconds * 1000)) return null;
  return `${sentence(fault.words)}, since ${clockTime(fault.sinceMs)}${more}.`;
}

/** With so many days left. */
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

const patienceMs = (job: string): number => (slowJobs[job] ?? leastOverdueMinutes) * minuteMs;

/** "14:03:07 UTC". */
const clockTime = (ms: number): string => `${new Date(ms).toISOString().slice(11, 19)} UTC`;
