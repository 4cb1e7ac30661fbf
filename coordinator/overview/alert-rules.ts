/**
 * What operators are told. Each rule has its name, how bad it is and where to look; from where on it finds something, what it
 * says and what to do. Page, command, metrics and mail derive from the list; its name is its heading in ops/runbook/monitoring.md.
 */
import { bytesText, leastSamples } from "#core/format";
import { gateName } from "#protocol/bot-gate";
import {
  type AlertFacts,
  type AlertMute,
  type AlertReads,
  type AlertSeverity,
  alertSeverities,
  type CrawlerFacts,
  type IncidentFacts,
  type OwnFacts,
  type OwnFault,
} from "./alert-facts.ts";

interface AlertRule {
  readonly name: string;
  readonly severity: AlertSeverity;
  /** Path of the page that shows the details. */
  readonly link: string;
  /** From where on something is an alert, in the unit of `find`'s second argument, with where it comes from; left out: it asks yes or no. */
  readonly threshold?: number;
  /** What the rule looks for, for whoever wonders why something is an alert, or is none. */
  readonly looksFor: string | ((threshold: number) => string);
  /** Left out: each finding has its own. */
  readonly advice?: string;
  /** A text: the finding is about the crawl as a whole. */
  readonly find: (facts: AlertFacts, threshold: number) => Finding | string | null | undefined;
}

/** `targets`: crawlers, releases, coordinators or kinds, the worst first. */
interface Finding {
  readonly words: string;
  readonly targets?: readonly string[];
  readonly advice?: string;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** Fewer fetches say nothing of a share (as in releases/decide-stage). */
const leastFetches = 50;
/** Fewer may be chance. */
const leastGatedHosts = 10;
/** Less than this fetched in a day is too little to judge by: some 250 pages of the usual 40 kB. */
const leastFetchedBytes = 10_000_000;
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
const allOneSubnet = "all of IPv4 and all of IPv6 are one subnet each, with one crawler";

type Rule = Omit<AlertRule, "name" | "severity" | "link">;

const ruleOf =
  <Severity extends AlertSeverity>(severity: Severity) =>
  <Name extends string>(name: Name, link: string, { looksFor, advice, ...rule }: Rule) => ({
    ...{ name, severity, link, advice: inOneLine(advice ?? ""), ...rule },
    looksFor: inOneLine(typeof looksFor === "string" ? looksFor : looksFor(rule.threshold ?? 0)),
  });
const critical = ruleOf("critical");
const warning = ruleOf("warning");
const info = ruleOf("info");

const inOneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ");

/** What a coordinator knows of itself, needs no database, and says so while the database is gone. */
const ownRules = [
  critical("data-folder-gone", alertsPage, {
    looksFor: "the embedded database's data folder was there, and is gone or empty",
    advice: `Mount its disk, or stop the coordinator and restore. nearcrawl database backups lists what there is.
      Nothing is made in its place (runbook: bad days).`,
    find: ({ own }) => own?.gone && `${sentence(own.gone.words)} (since ${clockTime(own.gone.sinceMs)}).`,
  }),
  critical("database-does-not-answer", alertsPage, {
    /** Seconds. It is asked every two; one that restarts is away for less. */
    threshold: 4,
    looksFor: (seconds) => `the database has not answered a trivial query for ${seconds} s`,
    advice: `Start it, or check its log, its machine and the network path. Crawlers finish their leases and keep the
      results; everything resumes by itself when it answers.`,
    find: ({ own, nowMs }, seconds) =>
      own?.gone || own?.usedUp ? null : faultWords(own?.silent, { nowMs, seconds }),
  }),
  critical("connections-used-up", alertsPage, {
    looksFor: `the database refuses a connection, since others hold as many as it has (max_connections, or a role's or
      pooler's limit)`,
    advice: `select usename, application_name, count(*) from pg_stat_activity group by 1, 2 says who holds them. End what
      nobody needs, raise max_connections (it takes a restart of Postgres), or put PgBouncer in between. Everything resumes
      by itself.`,
    find: ({ own }) => faultWords(own?.usedUp),
  }),
  critical("clock-wrong", alertsPage, {
    looksFor: `this coordinator's clock jumped, or differs from the database's by over 5 s, or the same way from those of
      most crawlers by over a minute`,
    advice: `Look at the coordinator's machine, not at the crawlers: timedatectl (or chronyc tracking), and let NTP keep its
      clock. Nothing is handed out or written meanwhile, crawlers keep their results; everything resumes by itself when it is
      right. If the clock is right now and this stays, restart the coordinator (runbook: bad days).`,
    find: ({ own }) => faultWords(own?.clock, { more: ": nothing is handed out" }),
  }),
  critical("database-cannot-write", "/storage", {
    looksFor: `a small write fails: the database's disk is full, it is read-only (a standby), or its files cannot grow`,
    advice: `Free space on its disk, or point DATABASE_URL at the server that takes writes. Crawlers keep their results
      meanwhile; everything resumes by itself.`,
    find: ({ own }) => faultWords(own?.unwritable),
  }),
  critical("journal-cannot-write", "/storage", {
    looksFor: `people's changes cannot be written to the journal beside the database, and are answered with an error`,
    advice: `Free space in the home folder, or let the coordinator's user write there. The changes are in the database, and
      are journaled by themselves then (runbook: bad days).`,
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
    find: (facts, days) => certificateEnding(facts, { from: Number.NEGATIVE_INFINITY, to: days }),
  }),
  warning("certificate-left", alertsPage, {
    /** Days. Let's Encrypt's clients renew 30 days before the end: by then, several attempts have failed. */
    threshold: 21,
    looksFor: (days) =>
      `the coordinator's certificate ends within ${days} days, or a renewed one lies in its file and is not shown`,
    advice: `${renewIt}. With another key, crawlers that were invited with the one before do not come back: invite them anew.`,
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
    find: ({ own }, ms) => {
      if (own?.eventLoop == null) return null;
      const { p99Ms, mostMs } = own.eventLoop;
      if (p99Ms <= ms && mostMs <= mostStandstillMs) return null;
      const late = `one turn in a hundred by ${Math.round(p99Ms)} ms, and one by ${Math.round(mostMs)} ms`;
      return `The coordinator's process is late: ${late}, within the last two minutes.`;
    },
  }),
] as const;

/** What the database tells. */
const crawlRules = [
  critical("journal-differs", "/storage#went-back", {
    /** Days. By then somebody has looked, or nobody will. */
    threshold: 30,
    looksFor: (
      days,
    ) => `the database went back to an earlier state in the last ${days} days, and the journal could not
      restore everything, or there was none`,
    advice: `nearcrawl journal compare lists what is missing; fix it by hand, or replay another journal (nearcrawl journal
      replay). The alert then ends; otherwise mute it (runbook: bad days).`,
    find: ({ wentBack, nowMs }, days) => {
      if (wentBack === undefined || wentBack.failed === 0 || nowMs - wentBack.atMs > days * dayMs)
        return null;
      const ago = Math.floor((nowMs - wentBack.atMs) / dayMs);
      const lost =
        wentBack.failed === null
          ? "there was no journal: opt-outs and revocations made since then are lost"
          : `${wentBack.failed} entries of the journal could not be restored`;
      return `The database went back to an earlier state ${ago} days ago, and ${lost}.`;
    },
  }),
  warning("crawler-disk", "/fleet", {
    /** Bytes. A crawler's spool is bounded by less than that; a machine below it is about to fail in other ways, too. */
    threshold: 250e6,
    looksFor: (bytes) =>
      `a connected crawler cannot write its results, or has less than ${bytesText(bytes)} free on its disk`,
    advice: `Ask its partner to free disk space (nearcrawl-crawler status says what it takes). It keeps its results in
      memory, and takes no new work.`,
    find: ({ crawlers }, bytes) => {
      const full = crawlers.filter(
        ({ state, diskFault, diskFreeBytes }) =>
          state !== "offline" && (diskFault != null || (diskFreeBytes ?? bytes) < bytes),
      );
      const why = (one: CrawlerFacts) => one.diskFault ?? `${bytesText(one.diskFreeBytes ?? 0)} free`;
      return about(
        full.map((one) => `${one.name} (${why(one)})`),
        "Crawlers whose disk is full or nearly full",
      );
    },
  }),
  critical("disk-full", "/storage", {
    /** Bytes. Postgres needs some of it to make room at all: a checkpoint's log, the files of a sort. */
    threshold: 2e9,
    looksFor: (bytes) => `the disk of the database has less than ${bytesText(bytes)} free`,
    advice: `Free space now, or give it a larger disk: once it is full, nothing can be written. nearcrawl storage says what
      takes the space; nearcrawl policy set retention.fetchDays=… frees some of it.`,
    find: ({ disk }, bytes) =>
      disk === undefined || disk.freeBytes >= bytes
        ? null
        : `${bytesText(Math.max(0, disk.freeBytes))} left for the database.`,
  }),
  warning("disk-left", "/storage", {
    /** Days at the pace of the last day: time to order a disk, or to let less be kept. */
    threshold: 14,
    looksFor: (days) => `the disk of the database is full in under ${days} days at the pace of the last day`,
    advice: `nearcrawl storage says what takes the space, and nearcrawl policy set retention.fetchDays=… frees some of it;
      else get a larger disk.`,
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
    /** Milliseconds. A page shows what a dozen queries gave; at this each, it takes longer than people wait. */
    threshold: 250,
    looksFor: (ms) => `the database takes over ${ms} ms for a trivial query`,
    advice: "Check its disk, its connections, and what else uses the machine.",
    find: ({ databaseMs }, ms) =>
      databaseMs <= ms ? null : `The database takes ${Math.round(databaseMs)} ms to answer a trivial query.`,
  }),
  warning("registry-old", "/registry", {
    /** Days. The registries are imported each quarter (ops/systemd), and ten days are left to look at a plan. */
    threshold: 100,
    looksFor: (days) => `the registry in force is over ${days} days old, or there is none`,
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
    /** Hours, unless backup.warnAfterHours says otherwise: a daily backup may be missed once. */
    threshold: 48,
    looksFor: (
      hours,
    ) => `the last backup of the embedded database, once there was one, is over ${hours} hours old
      (backup.warnAfterHours), or a server that archives its log has archived none for as long or fails to`,
    find: ({ backup, nowMs }) => {
      if (backup === undefined) return null;
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
    find: ({ registryAccident }) =>
      registryAccident?.refusedWords?.replace(/^an /, "An ").replace(/\.?$/, "."),
  }),
  warning("release-missing", "/fleet/versions", {
    looksFor: `no release is offered to all, while invitations are open or crawlers have joined where nothing has run yet`,
    // Who joins now would run nothing.
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
    /** Days. A coordinator that has the key states it each day for a week. */
    threshold: 3,
    looksFor: (
      days,
    ) => `the statement of which release is the newest ends in under ${days} days, or has ended: supervisors
      take nothing after that`,
    advice: `Renew it: nearcrawl release timestamp (runbook: releasing the crawler). A coordinator does so by itself while a
      valid key is in its home.`,
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
    // Of the newest release alone: what is older has been passed over.
    find: ({ releases: [newest] }) => {
      if (newest?.stage !== "none" || !newest.wasOffered || newest.revoked) return null;
      return about(
        [newest.version],
        `The newest release is offered to nobody (${newest.words || "it was held"})`,
      );
    },
  }),
  warning("release-failing", "/fleet/versions", {
    looksFor: "a crawler refused an offered release, or rolled back from it",
    advice: `nearcrawl release list says how many, nearcrawl fleet show NAME why; hold it unless only one odd machine is
      affected.`,
    find: ({ releases }, most) => {
      const failing = releases.filter(({ stage, turnedDown }) => stage !== "none" && turnedDown > most);
      const targets = failing.map(({ version, turnedDown }) => `${version} (${turnedDown})`);
      return about(targets, "Crawlers refused a release or rolled back from it");
    },
  }),
  warning("incidents", "/fleet/incidents", {
    looksFor: "incidents were recorded in the last hour",
    advice: "The runbook (watching the fleet) explains each kind.",
    find: ({ incidents }) => {
      const byKind = new Map<string, number>();
      for (const { kind, count } of incidents) byKind.set(kind, (byKind.get(kind) ?? 0) + count);
      const kinds = [...byKind].sort(([, a], [, b]) => b - a).map(([kind, count]) => `${kind} (${count})`);
      return about(kinds, `Incidents in the last hour${whoseWords(incidents)}`);
    },
  }),
  critical("no-crawler-connected", "/fleet", {
    looksFor: "no crawler is connected",
    find: ({ crawlers }) => {
      if (crawlers.some(({ state, lastSeenMs }) => state !== "offline" && lastSeenMs !== null)) return null;
      if (crawlers.length === 0)
        return {
          words: "No crawler is registered, so nothing is crawled.",
          advice: "Invite a partner: nearcrawl fleet invite --name NAME.",
        };
      return {
        words: `None of ${crawlers.length} registered crawlers is connected, so nothing is crawled.`,
        advice: `Check whether partners can reach this coordinator (its address, its certificate, a firewall), then ask one of
          them what its crawler reports.`,
      };
    },
  }),
  warning("copied-folder", "/fleet/incidents?kind=copied-folder", {
    looksFor: "two machines ran with one crawler's folder within the last day",
    advice: "Have one of them stopped, or reinvite that crawler: nearcrawl fleet reinvite NAME.",
    find: crawlersWho(({ copiedFolder }) => copiedFolder, "Two machines run with one crawler's folder"),
  }),
  warning("crawler-offline", "/fleet", {
    /** Minutes. Most machines are back from an update or a cut line within this; the subnets went to others long before. */
    threshold: 60,
    looksFor: (minutes) => `a crawler that is not draining has been away for over ${minutes} minutes`,
    advice: `Its page says why, and what its last message was; write to the partner. Others have its subnets. If it is gone
      for good: nearcrawl fleet kill NAME.`,
    // Who drains and goes has been taken leave of.
    find: crawlersWho(
      ({ state, waits, drainingSinceMs, lastSeenMs }, { nowMs }, minutes) =>
        state === "offline" && !waits && drainingSinceMs === null && isLong(lastSeenMs, nowMs, minutes),
      (minutes) => `Offline for more than ${minutes} minutes`,
      ({ lastSeenMs }) => lastSeenMs ?? 0,
    ),
  }),
  info("crawler-never-ran", "/fleet/invitations", {
    /** Minutes. The line that joins prints the line that starts. */
    threshold: 15,
    looksFor: (minutes) => `a crawler joined over ${minutes} minutes ago, and nothing has run there since`,
    advice: `Its partner has joined but not started it: the command was printed last (node nearcrawl-crawler.mjs run). Write
      to the partner.`,
    // Who says that it waits has an alert of its own, and who has left for good is not expected.
    find: crawlersWho(
      ({ neverRan, waits, drainingSinceMs, joinedMs }, { nowMs }, minutes) =>
        neverRan && !waits && drainingSinceMs === null && isLong(joinedMs, nowMs, minutes),
      (minutes) => `Joined over ${minutes} minutes ago and never ran`,
      ({ joinedMs }) => joinedMs ?? 0,
    ),
  }),
  info("crawler-without-work", "/fleet", {
    /** Minutes. New crawlers are measured, and get what they are nearest to, within a few. */
    threshold: 60,
    looksFor: (minutes) =>
      `a crawler has run for over ${minutes} minutes and gets no work, although it could`,
    advice: `Its page says more: nearcrawl fleet show NAME; who crawls the subnet that it is in: nearcrawl who ADDRESS.`,
    find: crawlersWho(
      ({ idleWhy, connectedMs, drainingSinceMs, distrusted }, { nowMs }, minutes) =>
        idleWhy !== null && isLong(connectedMs, nowMs, minutes) && drainingSinceMs === null && !distrusted,
      "Crawlers that run without work",
      () => 0,
      ({ idleWhy }) => ` (${idleWhy})`,
    ),
  }),
  warning("crawler-waits", "/fleet", {
    looksFor: "an offline crawler has reported that it cannot run until somebody acts",
    advice: "Each says what it needs, and from whom: its page, or nearcrawl fleet show NAME.",
    find: crawlersWho(({ waits }) => waits, "Crawlers that cannot run until somebody acts"),
  }),
  info("crawler-draining", "/fleet", {
    /** Hours. Subnets are handed over within minutes, leases run out in five; what still drains a day later was forgotten. */
    threshold: 24,
    looksFor: (hours) => `a crawler has been draining for over ${hours} hours`,
    advice:
      "Resume it with nearcrawl fleet resume NAME, or revoke its access with nearcrawl fleet kill NAME.",
    find: crawlersWho(
      ({ drainingSinceMs, distrusted }, { nowMs }, hours) =>
        isLong(drainingSinceMs, nowMs, hours * 60) && !distrusted,
      (hours) => `Draining for more than ${hours} hours`,
      ({ drainingSinceMs }) => drainingSinceMs ?? 0,
    ),
  }),
  warning("crawler-distrusted", "/fleet/trust", {
    looksFor: "a crawler's results or probe reports are not trusted",
    advice: `Read the evidence: nearcrawl fleet show NAME. Revoke its access, or restore it if a proxy or a site was to blame.`,
    find: crawlersWho(({ distrusted }) => distrusted, "Crawlers whose reports are not trusted"),
  }),
  warning("crawler-errors", "/fleet/failures?blame=crawler", {
    /** A share. The crawler's or its machine's fault; a release is held back from 2 % more than others have (releases/decide-stage). */
    threshold: 0.1,
    looksFor: (
      share,
    ) => `over ${share * 100} % of a crawler's fetches in the last hour (${leastFetches} at least) failed
      through its own fault`,
    advice: "Its failures say what: a full disk, a resolver, a proxy. Tell the partner, or drain it.",
    find: crawlersWho(
      ({ fetches, ownFailures }, _, share) => fetches >= leastFetches && ownFailures / fetches > share,
      (share) =>
        `More than ${share * 100} % of the last hour's fetches failed through the crawler's own fault`,
      ({ fetches, ownFailures }) => -ownFailures / fetches,
    ),
  }),
  warning("crawler-network", "/fleet/failures?blame=network", {
    /** A share. Of the public web, some few per cent of connections come to nothing; the other crawlers say how many. */
    threshold: 0.2,
    looksFor: (
      share,
    ) => `over ${share * 100} % of a crawler's fetches in the last hour (${leastFetches} at least) got no
      connection in time or lost it, and over three times the other crawlers' share`,
    advice: `Its way to its sites is bad: packets are lost or late, or its resolver is. Tell the partner (nearcrawl-crawler
      check), or drain it until it is well. The sites are not to blame.`,
    find: crawlersWho(
      (one, { crawlers }, share) => {
        const others = crawlers.filter((other) => other.fetches >= leastFetches && other !== one);
        const fetches = others.reduce((sum, other) => sum + other.fetches, 0);
        const failures = others.reduce((sum, other) => sum + (other.networkFailures ?? 0), 0);
        const least = Math.max(share, fetches === 0 ? 0 : (3 * failures) / fetches);
        return one.fetches >= leastFetches && (one.networkFailures ?? 0) / one.fetches > least;
      },
      (share) => `More than ${share * 100} % of the last hour's fetches came to nothing on the way`,
      ({ fetches, networkFailures = 0 }) => -networkFailures / fetches,
    ),
  }),
  warning("results-wait", "/fleet", {
    /** Results that a crawler has on its disk and that we have not acknowledged: minutes of work at full pace. */
    threshold: 5000,
    looksFor: (results) => `over ${results} results wait on a crawler's disk`,
    advice: `If it is one crawler: its connection is slow, or it was away. If all: results arrive faster than the database
      takes them.`,
    find: crawlersWho(
      ({ waitingResults }, _, most) => waitingResults > most,
      (most) => `More than ${most} results wait on a crawler's disk`,
      ({ waitingResults }) => -waitingResults,
    ),
  }),
  critical("errors-by-us", "/fleet/failures?blame=us", {
    /** A share. Failures that are our software's fault should not happen at all; a few may come from one odd page. */
    threshold: 0.01,
    looksFor: (share) =>
      `over ${share * 100} % of the last hour's fetches (${leastFetches} at least) failed in our own software`,
    advice: `If it began with a release, hold it (nearcrawl release hold VERSION). The failures name the URLs to look at.`,
    find: ({ hour: { fetches, failures } }, share) =>
      fetches < leastFetches || failures.us <= fetches * share
        ? null
        : `${percent(failures.us / fetches)} of the last hour's ${fetches} fetches failed by the fault of our own software.`,
  }),
  warning("subnets-wait", "/fleet/queue?reason=no-delegation", {
    /** Minutes. A round takes seconds, and one that nobody answers is tried again for an hour. */
    threshold: 60,
    looksFor: (minutes) => `a host has waited for over ${minutes} minutes for a crawler`,
    advice: `Check who was asked, and why nobody took it: all crawlers may be full, draining, or not allowed there.`,
    find: ({ queue: { unplacedSeconds: seconds } }, minutes) =>
      seconds === null || seconds <= minutes * 60
        ? null
        : `Hosts in subnets without a crawler have waited for up to ${span(seconds)}.`,
  }),
  warning("queue-age", "/fleet/queue", {
    /** Hours. Of the hosts that are due, 95 of 100 wait less: a day late is a seventh of the usual recrawl interval (one week). */
    threshold: 24,
    looksFor: (hours) => `one in twenty due hosts has waited for over ${hours} hours`,
    advice: `The queue says why. Raise the budgets of full crawlers, invite more, or crawl less often
      (recrawl.intervalHours).`,
    find: ({ queue: { p95Seconds: seconds } }, hours) =>
      seconds === null || seconds <= hours * 3600
        ? null
        : `One in twenty due hosts has waited for more than ${span(seconds)}.`,
  }),
  warning("bot-gates-grow", "/fleet/queue#bot-gates", {
    /** A share. Sites put up a gate of their own accord now and then; many at once are a provider's new rule against us. */
    threshold: 0.01,
    looksFor: (
      share,
    ) => `within a day a provider's bot gate came up before ${leastGatedHosts} hosts or more, and over
      ${share * 100} % of those ever asked`,
    advice: `Ask the provider to list the crawler as a verified bot (runbook: signed requests, the list of addresses), and the
      sites to let it in. Gates are never got round; the hosts are tried again by themselves.`,
    find: ({ botGates }, leastShare) => {
      const { asked, providers } = botGates ?? { asked: 0, providers: [] };
      const grown = providers
        .filter(({ newHosts }) => newHosts >= leastGatedHosts && newHosts > leastShare * asked)
        .sort((a, b) => b.newHosts - a.newHosts);
      const figures = grown.map(({ provider, hosts, newHosts }) => {
        const shares = `${percent((hosts - newHosts) / asked)} → ${percent(hosts / asked)}`;
        return `${gateName(provider)} ${shares} (${newHosts.toLocaleString("en-GB")} hosts more)`;
      });
      const words = `Hosts behind bot gates, of those ever asked, a day ago and now: ${figures.join("; ")}.`;
      return about(
        grown.map(({ provider }) => gateName(provider)),
        words,
      );
    },
  }),
  warning("link-outbox-late", "/", {
    /** Minutes. Links count about a second after their results: so much later, more come than are applied, or nobody does it. */
    threshold: 5,
    looksFor: (minutes) => `links to other hosts have waited for over ${minutes} minutes to be counted`,
    advice:
      "Check the coordinators' log for apply-links, and whether the database is slow; a burst clears by itself.",
    find: ({ linkOutbox: { effects, ageSeconds } }, minutes) => {
      if (ageSeconds <= minutes * 60) return null;
      const links = `${effects.toLocaleString("en-GB")} links of results to other hosts`;
      return `${links} wait to be counted, for up to ${span(ageSeconds)}.`;
    },
  }),
  info("compression-poor", "/#fleet", {
    /** A share. UCYMicra ships less than a twentieth of what is fetched. */
    threshold: 1 / 20,
    looksFor: (share) =>
      `over ${share * 100} % of what was fetched in 24 hours (${leastFetchedBytes / 1e6} MB at least) was shipped`,
    advice: `Short pages and many failed fetches ship more than they fetch; the crawlers' table says whose share is the
      largest.`,
    find: ({ day: { fetchedBytes, shippedBytes } }, share) => {
      if (fetchedBytes < leastFetchedBytes || shippedBytes <= fetchedBytes * share) return null;
      const part = `1/${(fetchedBytes / shippedBytes).toFixed(1)}`;
      return `Crawlers shipped ${part} of what they fetched in the last 24 hours; 1/20 is the aim.`;
    },
  }),
  warning("accuracy-low", "/accuracy", {
    /** A share. Below nine of ten the policy does worse than any we measured (test/bench/results/delegation.md: 90 to 99 %). */
    threshold: 0.9,
    looksFor: (share) =>
      `under ${share * 100} % of the samples (${leastSamples} at least) are with a crawler that is nearly the nearest`,
    advice: `The samples say whose subnets are off. A lower λ probes more before it decides; full crawlers pass theirs on.`,
    find: ({ accuracy: { samples, share } }, least) =>
      samples < leastSamples || share === null || share >= least
        ? null
        : `Only ${percent(share)} of ${samples} sampled subnets are with a crawler that is nearly the nearest.`,
  }),
  warning("parent-away", "/coordinators", {
    /** Minutes. Coordinators ask their parent every few seconds, and when it is away, every five minutes at least. */
    threshold: 15,
    looksFor: (minutes) =>
      `the parent coordinator has been unreachable, or has refused, for over ${minutes} minutes`,
    advice:
      "nearcrawl coordinators list says why and how many URLs wait; they are sent when it answers again.",
    find: ({ relatives = [], nowMs }, minutes) => {
      const parent = relatives.find(({ kind }) => kind === "parent");
      if (!parent || !isLong(parent.failingSinceMs, nowMs, minutes)) return null;
      const since = minutesSince(parent.failingSinceMs ?? nowMs, nowMs);
      const why = parent.failure ?? "no answer";
      return `The parent coordinator ${parent.name} has accepted nothing for ${since} minutes (${why}); URLs of others wait here.`;
    },
  }),
  warning("child-silent", "/coordinators", {
    /** Minutes, as of the parent. */
    threshold: 15,
    looksFor: (minutes) =>
      `a coordinator below this one has not been heard from for over ${minutes} minutes, or is refused`,
    advice: "Their URLs wait here; if one does not come back: nearcrawl coordinators remove NAME.",
    // One that was invited and has never come is no alert.
    find: ({ relatives = [], nowMs }, minutes) => {
      const silent = relatives.filter(
        ({ kind, contactedMs, failingSinceMs }) =>
          kind === "child" && (isLong(contactedMs, nowMs, minutes) || isLong(failingSinceMs, nowMs, minutes)),
      );
      return about(namesOf(silent), "Coordinators below this one are silent or refused");
    },
  }),
  warning("foreign-urls-dropped", "/coordinators", {
    /** Days. */
    threshold: 1,
    looksFor: "URLs for another coordinator were given up within the last day, because too many waited",
    advice:
      "Bring the other side back, or raise coordinators.mostWaitingUrls; URLs that are found again are sent again.",
    find: ({ relatives = [], nowMs }, days) => {
      const full = relatives.filter(
        ({ droppedMs }) => droppedMs !== null && nowMs - droppedMs < days * dayMs,
      );
      return about(
        namesOf(full),
        "Too many URLs wait for other coordinators, and the least linked were given up",
      );
    },
  }),
  warning("alert-delivery-failing", "/alerts#delivery", {
    /** Attempts in a row. One or two fail whenever a receiver restarts. */
    threshold: 3,
    looksFor: (times) => `a channel that alerts are sent to has failed ${times} times in a row`,
    advice: `The reason is beside the channel on /alerts. Once it is fixed, send a test there, or: nearcrawl alerts test
      CHANNEL.`,
    find: ({ channels = [] }, times) => {
      const failing = channels.filter(({ failures }) => failures >= times);
      const targets = failing.map(({ name, failures, failure }) => `${name} (${failures} times: ${failure})`);
      return about(targets, "Channels that fail to deliver alerts");
    },
  }),
] as const;

export const alertRules = [...ownRules, ...crawlRules] as const;

export type AlertName = (typeof alertRules)[number]["name"];

export const alertNames: readonly AlertName[] = alertRules.map(({ name }) => name);

/** Of those that a coordinator knows of itself. */
export const ownAlertNames: ReadonlySet<AlertName> = new Set(ownRules.map(({ name }) => name));

/** Every rule with what it looks for in words, the critical first. */
export const listedRules = bySeverity(alertRules);

/** What operators are told now, the critical first; without what is muted, and what somebody has acknowledged. */
export function alertsOf(facts: AlertFacts): Alert[] {
  return foundAlerts(facts).flatMap(({ alert, acknowledged }) => (acknowledged === null ? [alert] : []));
}

/** What somebody is at, as long as it names nothing else. */
function acknowledgedAlertsOf(facts: AlertFacts) {
  return foundAlerts(facts).flatMap(({ alert, acknowledged }) => {
    if (acknowledged === null) return [];
    const { by, at, note } = acknowledged;
    return [{ ...alert, by, at, note }];
  });
}

export type Alert = FoundAlert["alert"];
export type AlertList = Awaited<ReturnType<typeof showAlerts>>;

type FoundAlert = NonNullable<ReturnType<typeof foundBy>>;

/** What all rules find, the critical first; without what is muted. */
export function foundAlerts(facts: AlertFacts): FoundAlert[] {
  const found = alertRules.flatMap((rule) => foundBy(rule, facts) ?? []);
  return alertSeverities.flatMap((severity) => found.filter(({ alert }) => alert.severity === severity));
}

/** All that is known where the database cannot be asked: what a coordinator knows of itself. `mutes`: as last known. */
export function ownAlertsOf(own: OwnFacts, nowMs: number, mutes: readonly AlertMute[] = []): Alert[] {
  const facts = { ...nothingKnown, nowMs, own, mutes };
  return bySeverity(ownRules.flatMap((rule) => foundBy(rule, facts)?.alert ?? []));
}

/** No rule about the crawl finds anything in it; those are not asked. */
const nothingKnown: AlertFacts = {
  nowMs: 0,
  crawlers: [],
  queue: { p95Seconds: null, unplacedSeconds: null },
  linkOutbox: { effects: 0, ageSeconds: 0 },
  hour: { fetches: 0, failures: { target: 0, network: 0, crawler: 0, us: 0 } },
  day: { fetchedBytes: 0, shippedBytes: 0 },
  figuresAtMs: null,
  registryAppliedMs: null,
  incidents: [],
  openInvitations: 0,
  releases: [],
  statedUntilMs: null,
  databaseMs: 0,
  accuracy: { samples: 0, share: null },
};

/** What nobody is told of until an hour that somebody named, and who that was. */
export function mutedAlertsOf(facts: AlertFacts) {
  return (facts.mutes ?? []).flatMap((mute) => {
    const rule = alertRules.find(({ name }) => name === mute.name);
    const alert = rule === undefined ? undefined : foundBy(rule, { ...facts, mutes: [] })?.alert;
    if (alert === undefined) return [];
    const { until, reason, mutedBy, target } = mute;
    const told = { until: until.toISOString(), reason, mutedBy, mutedTarget: target };
    return [{ ...alert, ...told }];
  });
}

/** Without the targets that are muted; null: nothing is left, or all of the rule is muted. */
function unmuted(finding: Finding, ruleName: string, { mutes = [], nowMs }: AlertFacts): Finding | null {
  const holding = mutes.filter(({ name, until }) => name === ruleName && until.getTime() > nowMs);
  if (holding.some(({ target }) => target === null)) return null;
  const silent = new Set(holding.map(({ target }) => target));
  const { targets } = finding;
  if (targets === undefined || silent.size === 0) return finding;
  // Some say how many times in brackets: `copied-folder (3)`.
  const left = targets.filter((target) => !silent.has(bareTarget(target)));
  return left.length === 0 ? null : { ...finding, targets: left };
}

/** `copied-folder (3)` is `copied-folder`. */
export const bareTarget = (target: string): string => target.replace(/ \(.*$/s, "").slice(0, 200);

/** That are noted; the rest is a number. */
const mostTargets = 1000;

/** The critical first, and otherwise as they were. */
function bySeverity<One extends { readonly severity: AlertSeverity }>(all: readonly One[]): One[] {
  return alertSeverities.flatMap((severity) => all.filter((one) => one.severity === severity));
}

function foundBy(rule: AlertRule & { readonly name: AlertName }, facts: AlertFacts) {
  const found = rule.find(facts, rule.threshold ?? 0) ?? null;
  const finding = found && unmuted(typeof found === "string" ? { words: found } : found, rule.name, facts);
  if (finding === null || finding === "") return null;
  const { name, severity, link } = rule;
  const { words, targets } = finding;
  const noted = facts.noted?.find((one) => one.name === name);
  const bare = [...new Set((targets ?? []).map(bareTarget))].slice(0, mostTargets);
  const alert = {
    ...{ name, severity, link, advice: inOneLine(finding.advice ?? rule.advice ?? "") },
    words: targets === undefined ? words : `${words}: ${listOf(targets)}.`,
    targets: (targets ?? []).slice(0, namedTargets) as readonly string[],
    count: targets?.length ?? 1,
    since: noted?.beganAt.toISOString() ?? null,
    toldAt: noted?.toldAt?.toISOString() ?? null,
  };
  const acknowledged = noted?.acknowledged ?? null;
  const isCovered = acknowledged !== null && bare.every((target) => acknowledged.targets.includes(target));
  // Targets: all that it is about, up to a thousand, without what stands in brackets. Acknowledged by nobody, or it names more by now: null.
  return { alert, targets: bare, acknowledged: isCovered ? acknowledged : null };
}

/** Names in the sentence; the rest is a number. */
const namedTargets = 5;

function listOf(names: readonly string[]): string {
  const shown = names.slice(0, namedTargets).join(", ");
  return names.length > namedTargets ? `${shown} and ${names.length - namedTargets} more` : shown;
}

/** Null when there are none. */
function about(targets: readonly string[], words: string): Finding | null {
  return targets.length === 0 ? null : { words, targets };
}

const namesOf = (some: readonly { readonly name: string }[]) => some.map(({ name }) => name);

/** Crawlers that are so, ascending by `order`; equals by name. `more`: of each, behind its name. */
function crawlersWho(
  isSo: (one: CrawlerFacts, facts: AlertFacts, threshold: number) => boolean,
  words: string | ((threshold: number) => string),
  order: (one: CrawlerFacts) => number = () => 0,
  more: (one: CrawlerFacts) => string = () => "",
): AlertRule["find"] {
  return (facts, threshold) => {
    const found = facts.crawlers
      .filter((one) => isSo(one, facts, threshold))
      .sort((a, b) => order(a) - order(b) || (a.name < b.name ? -1 : 1));
    const targets = found.map((one) => one.name + more(one));
    return about(targets, typeof words === "string" ? words : words(threshold));
  };
}

/** `seconds`: it is an alert once it has lasted so long. */
function faultWords(
  fault: OwnFault | null | undefined,
  { more = "", nowMs = 0, seconds = 0 } = {},
): string | null {
  if (fault == null || (seconds > 0 && nowMs - fault.sinceMs < seconds * 1000)) return null;
  return `${sentence(fault.words)}, since ${clockTime(fault.sinceMs)}${more}.`;
}

function whoseWords(entries: readonly IncidentFacts[]): string {
  const names = [...new Set(entries.flatMap(({ crawler }) => crawler ?? []))];
  if (names.length === 0) return "";
  return names.length === 1 ? `, of ${names[0]}` : `, of ${names.length} crawlers`;
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

function minutesSince(sinceMs: number, nowMs: number): number {
  return Math.floor((nowMs - sinceMs) / minuteMs);
}

function isLong(sinceMs: number | null, nowMs: number, minutes: number): boolean {
  return sinceMs !== null && nowMs - sinceMs > minutes * minuteMs;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

const patienceMs = (job: string): number => (slowJobs[job] ?? leastOverdueMinutes) * minuteMs;

const sentence = (words: string): string => words.slice(0, 1).toUpperCase() + words.slice(1);

/** "14:03:07 UTC". */
const clockTime = (ms: number): string => `${new Date(ms).toISOString().slice(11, 19)} UTC`;

/** "90 minutes", "26 hours", "3 days". */
function span(seconds: number): string {
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} hours`;
  return `${Math.round(seconds / 86_400)} days`;
}

// What operators are told now: the alert rules over what is read at this moment.

export async function showAlerts(reads: AlertReads, now: Date) {
  const facts = await reads.alertFacts(now);
  return {
    at: now.toISOString(),
    alerts: alertsOf(facts),
    acknowledged: acknowledgedAlertsOf(facts),
    muted: mutedAlertsOf(facts),
    channels: (facts.channels ?? []).map(({ deliveredAt, failingSince, ...channel }) => ({
      ...channel,
      deliveredAt: deliveredAt?.toISOString() ?? null,
      failingSince: failingSince?.toISOString() ?? null,
    })),
    /** Why this is not all: the database could not be asked, and these are what is known without it. Null: it is. */
    incomplete: null as string | null,
  };
}
