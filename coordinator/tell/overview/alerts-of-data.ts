/** Alerts about what is kept: the database and its backups, the journal, the registry and the releases. */
import { bytesText } from "#core/format";
import { about, critical, dayMs, info, span, warning } from "./alert-rule.ts";

const allOneSubnet = "all of IPv4 and all of IPv6 are one subnet each, with one crawler";

export const dataRules = [
  critical("journal-differs", "/storage#went-back", {
    /** Days. By then somebody has looked, or nobody will. */
    threshold: 30,
    looksFor: (
      days,
    ) => `the database went back to an earlier state in the last ${days} days, and the journal could not
      restore everything, or there was none`,
    advice: `nearcrawl journal compare lists what is missing; fix it by hand, or replay another journal (nearcrawl journal
      replay). The alert then ends; otherwise mute it (runbook: bad days).`,
    runbook: [
      "The database went back in the last 30 days (a restore, a failover), and some entries of the journal could not be put back, or there was no",
      "journal. `nearcrawl journal compare` names them; [bad days](bad-days.md#we-restored) says what to do. It ends when a replay by hand (`nearcrawl",
      "journal replay`) leaves none, or mute it.",
    ],
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
  critical("disk-full", "/storage", {
    /** Bytes. Postgres needs some of it to make room at all: a checkpoint's log, the files of a sort. */
    threshold: 2e9,
    looksFor: (bytes) => `the disk of the database has less than ${bytesText(bytes)} free`,
    advice: `Free space now, or give it a larger disk: once it is full, nothing can be written. nearcrawl storage says what
      takes the space; nearcrawl policy set retention.fetchDays=… frees some of it.`,
    runbook: [
      "Under 2 GB are free where the embedded database lies (or left of `databaseGigabytes`). Postgres needs some room to make room: when it is gone,",
      "nothing is written and results wait on the crawlers' disks. Make room for it now ([bad days](bad-days.md#the-disk-is-full)); `nearcrawl storage`",
      "says what takes it, `retention.fetchDays` is what gives most of it back.",
    ],
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
    runbook: [
      "What is free where the embedded database lies lasts for under 14 days at the pace of the last day (three hours of samples are needed; one is taken",
      "every ten minutes). For a server of your own say what it has: `databaseGigabytes`. `nearcrawl storage` says what takes the room;",
      "`retention.fetchDays` is what gives most of it back.",
    ],
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
    runbook: [
      "More than 250 ms for `select 1`. Its disk, its connections, other users of the machine; `nearcrawl_http_request_seconds` says which pages suffer.",
    ],
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
    runbook: [
      "The last backup of the embedded database is over 48 hours old (`backup.warnAfterHours`), or it is gone; nobody is told before a first one was",
      "made. `nearcrawl database backup` makes one; `systemctl status nearcrawl-backup` says why the last one failed. Of a server of your own: it",
      "archives its log (`archive_mode`), and has archived nothing for so long, or fails to; its disk fills up with what waits. See [backup and",
      "restore](backup-and-restore.md).",
    ],
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
    runbook: [
      "No registry is in force although there was one: somebody rolled back the first import. All of IPv4 and all of IPv6 are one subnet each, so one",
      "crawler is given everything, wherever it lies. `nearcrawl rir rollforward`, or *Put in force again* at the head of `/registry`, brings the tree",
      "back with its delegations. Or a registry is in force of which nothing is delegated although subnets are: another tree was applied than the one",
      "that is crawled by; roll back, or forward.",
    ],
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
    runbook: [
      "An import, mostly the timer's, would have removed more than 5 % of the subnets in use, and changed nothing:",
      "[refreshing-the-registries.md](refreshing-the-registries.md#many-subnets-in-use-would-go). It ends with the next import that is applied.",
    ],
    find: ({ registryAccident }) =>
      registryAccident?.refusedWords?.replace(/^an /, "An ").replace(/\.?$/, "."),
  }),
  warning("release-missing", "/fleet/versions", {
    looksFor: `no release is offered to all, while invitations are open or crawlers have joined where nothing has run yet`,
    runbook: [
      "No release is offered to all (none was published, all are held, or the last one has expired), and somebody is invited or has joined: such a",
      "crawler runs nothing. [releasing-the-crawler.md](releasing-the-crawler.md).",
    ],
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
    runbook: [
      "Supervisors that know a statement of what is newest (or follow a root) take no release once it has expired; crawlers go on. The coordinator states",
      "it by itself where the key lies in its home, else `nearcrawl release timestamp` does: [releasing-the-crawler.md](releasing-the-crawler.md).",
    ],
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
    runbook: [
      "Crawlers refused a release or rolled back from it; `nearcrawl fleet show NAME` says why. One odd machine: pin it there. Several: hold the release.",
    ],
    find: ({ releases }, most) => {
      const failing = releases.filter(({ stage, turnedDown }) => stage !== "none" && turnedDown > most);
      const targets = failing.map(({ version, turnedDown }) => `${version} (${turnedDown})`);
      return about(targets, "Crawlers refused a release or rolled back from it");
    },
  }),
] as const;
