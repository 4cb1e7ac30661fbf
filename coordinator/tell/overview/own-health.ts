/**
 * What a coordinator knows about itself without the database: whether the database answers and can be written, how late its
 * own process is, how its jobs fare, whether some coordinator leads. These alerts are kept in memory, and /ready, /alerts,
 * /metrics and the live pages report them in bounded time.
 */

import type { EventLoopDelay } from "#core/clock";
import type { ClockFault } from "#core/own-clock";
import type { DutyReport } from "#core/scheduler";
import { within } from "#core/timer-ms";
import type { DatabaseFault, DatabaseState } from "../../database/database-watch.ts";
import type { SilentCoordinator } from "../../place/crawlers/coordinator-presence-store.ts";
import type { ReadOf } from "../../web/api-operation.ts";
import type { AlertMute, AlertReads, JobFacts, OwnFacts } from "./alert-facts.ts";
import { type Alert, type AlertList, type AlertName, ownAlertsOf, showAlerts } from "./alert-rules.ts";
import type { healthFault } from "./overview-api.ts";

interface OwnHealthPorts {
  /** The watched database. `look` checks it now, within a second. */
  readonly database: { readonly state: DatabaseState; look(): Promise<DatabaseState> };
  readonly now: () => Date;
  /** The clock of the jobs' times. */
  readonly nowMs: () => number;
  /** This and what follows is not checked if absent, as in tests of pages. */
  readonly jobs?: () => readonly DutyReport[];
  readonly eventLoop?: () => EventLoopDelay;
  readonly journal?: () => DatabaseFault | null;
  readonly dns?: () => DatabaseFault | null;
  readonly certificate?: () => NonNullable<OwnFacts["certificate"]> | null;
  /** Returns why crawlers are not served, or null. */
  readonly closed?: () => string | null;
  readonly clock?: () => ClockFault | null;
  readonly lead?: { readonly leaderlessMs: number; readonly silentOthers: readonly SilentCoordinator[] };
}

/** A fault as /ready reports it. Code and words are public. */
export type HealthFault = ReadOf<typeof healthFault>;

/** Jobs that run at least this often show whether a coordinator works. */
const frequentMs = 10_000;
const standstillMs = 60_000;

const mostWords = 200;

export class OwnHealth {
  readonly #ports: OwnHealthPorts;
  readonly #startedAtMs: number;
  #search: () => DatabaseFault | null = () => null;

  constructor(ports: OwnHealthPorts) {
    this.#ports = ports;
    this.#startedAtMs = ports.now().getTime();
  }

  /** The search's engine opens later than this. */
  watchSearch(fault: () => DatabaseFault | null): void {
    this.#search = fault;
  }

  facts(): OwnFacts {
    const { certificate, clock, database, eventLoop, jobs, journal, lead, now } = this.#ports;
    const { silent, unwritable, usedUp, gone } = database.state;
    const at = now().getTime();
    const { leaderlessMs = 0, silentOthers = [] } = lead ?? {};
    return {
      startedAtMs: this.#startedAtMs,
      gone: faultFacts(gone),
      clock: faultFacts(clock?.() ?? null),
      silent: faultFacts(silent),
      unwritable: faultFacts(unwritable),
      usedUp: faultFacts(usedUp),
      journal: faultFacts(journal?.() ?? null),
      dns: faultFacts(this.#ports.dns?.() ?? null),
      search: faultFacts(this.#search()),
      certificate: certificate?.() ?? null,
      eventLoop: eventLoop?.() ?? null,
      jobs: (jobs?.() ?? []).map((job) => this.#jobFacts(job, at)),
      leaderlessSinceMs: leaderlessMs === 0 ? null : at - leaderlessMs,
      silentCoordinators: silentOthers.map(({ name, forMs }) => ({ name, sinceMs: at - forMs })),
    };
  }

  alerts(mutes: readonly AlertMute[] = []): Alert[] {
    return ownAlertsOf(this.facts(), this.#ports.now().getTime(), mutes);
  }

  /** Checks the database. Returns why it cannot be asked, or null if it answers. */
  async silence(): Promise<string | null> {
    return (await this.#ports.database.look()).silent?.words ?? null;
  }

  /** Checks the database, then lists what prevents work and what deserves a look. */
  async look(): Promise<HealthFault[]> {
    const { silent, unwritable, gone } = await this.#ports.database.look();
    const own: readonly (readonly [AlertName, DatabaseFault | null])[] = [
      ["clock-wrong", this.#ports.clock?.() ?? null],
      ["data-folder-gone", gone],
      ["database-does-not-answer", gone === null ? silent : null],
      ["database-cannot-write", unwritable],
    ];
    const told = new Set(own.map(([code]) => code));
    const facts = this.facts();
    const others = this.alerts().filter(({ name }) => !told.has(name));
    return [
      ...own.flatMap(([code, fault]) => (fault === null ? [] : [{ code, ...fault, isInTheWay: true }])),
      ...this.#notServed(),
      ...this.#standstill(),
      ...others.map((alert) => ({
        ...{ code: alert.name, words: publicWords(alert), isInTheWay: false },
        since: sinceOf(alert.name, facts),
      })),
    ];
  }

  /** Reports that the coordinator refuses crawlers, because it is starting, ending or perhaps replaced. */
  #notServed(): HealthFault[] {
    const words = this.#ports.closed?.() ?? null;
    return words === null ? [] : [{ code: "crawlers-not-served", words, since: null, isInTheWay: true }];
  }

  /** Reports that most of the frequent jobs have not ended for a minute. */
  #standstill(): HealthFault[] {
    const nowMs = this.#ports.nowMs();
    const frequent = (this.#ports.jobs?.() ?? []).filter(({ everyMs }) => everyMs <= frequentMs);
    const standing = frequent.flatMap(({ runningSinceMs }) =>
      runningSinceMs !== null && nowMs - runningSinceMs > standstillMs ? [runningSinceMs] : [],
    );
    if (standing.length === 0 || standing.length * 2 <= frequent.length) return [];
    const since = new Date(this.#ports.now().getTime() - (nowMs - Math.min(...standing)));
    const words = `${standing.length} of the ${frequent.length} jobs that run every few seconds have not ended for over ${standstillMs / 1000} s`;
    return [{ code: "jobs-stand-still", words, since, isInTheWay: true }];
  }

  #jobFacts(job: DutyReport, at: number): JobFacts {
    const { name, everyMs, failures, error } = job;
    const then = (ms: number | null) => (ms === null ? null : at - (this.#ports.nowMs() - ms));
    return {
      ...{ name, everyMs, failures },
      runningSinceMs: then(job.runningSinceMs),
      succeededMs: then(job.succeededMs),
      failingSinceMs: then(job.failingSinceMs),
      words: error === undefined ? null : wordsOf(error),
    };
  }
}

/** Returns null if it is unknown when the fault began. */
function sinceOf(name: AlertName, facts: OwnFacts): Date | null {
  const times: Partial<Record<AlertName, readonly (number | null)[]>> = {
    "job-failing": facts.jobs.map(({ failingSinceMs }) => failingSinceMs),
    "job-overdue": facts.jobs.map(({ runningSinceMs }) => runningSinceMs),
    "nobody-leads": [facts.leaderlessSinceMs],
    "dns-does-not-answer": [facts.dns?.sinceMs ?? null],
    "search-behind": [facts.search?.sinceMs ?? null],
    "coordinator-silent": facts.silentCoordinators.map(({ sinceMs }) => sinceMs),
  };
  const known = (times[name] ?? []).filter((ms) => ms !== null);
  return known.length === 0 ? null : new Date(Math.min(...known));
}

const faultFacts = (fault: DatabaseFault | null): OwnFacts["silent"] =>
  fault === null ? null : { words: fault.words, sinceMs: fault.since.getTime() };

/** Leaves out errors and machine names, which are only for readers of the alerts. */
function publicWords({ name, count, words }: Alert): string {
  // Anyone who connects sees the certificate, but its folder is private.
  if (name === "certificate-ending" || name === "certificate-left")
    return words.replace(/(?<=^| )\/\S*\//, "").replace(/\.$/, "");
  const jobs = (one: string, many: string) => `${count === 1 ? `a job ${one}` : `${count} jobs ${many}`}`;
  const known: Partial<Record<AlertName, string>> = {
    "job-failing": `${jobs("fails", "fail")} whenever it runs; /alerts names it`,
    "job-overdue": `${jobs("does", "do")} not come to an end; /alerts names it`,
    "coordinator-silent": "another coordinator of this database went silent; /alerts names it",
    "journal-cannot-write": "the journal beside the database cannot be written",
    "nobody-leads": "nobody leads the coordinators of this database",
    "connections-used-up": "the database has no connection left",
    "dns-does-not-answer": "the coordinator's DNS servers do not answer",
    "search-behind": "searches lack what was crawled lately",
    "event-loop-late": "the process is late: it does other work before it answers",
  };
  return known[name] ?? `see /alerts (${name})`;
}

function wordsOf(error: unknown): string {
  const words = error instanceof Error && error.message !== "" ? error.message : String(error);
  const { code } = error as { readonly code?: unknown };
  return `${words}${typeof code === "string" ? `, ${code}` : ""}`.replace(/\s+/g, " ").slice(0, mostWords);
}

// Alerts in bounded time: from the database if it answers soon enough, else from memory.

/** Reading the facts takes a few small queries. If it takes longer, the database itself is checked. */
const factsMs = 300;
/** Time limit for a database that answers slowly. */
const slowFactsMs = 5000;

export function withOwnFacts<Reads extends AlertReads>(
  reads: Reads,
  health: Pick<OwnHealth, "facts">,
): Reads {
  return {
    ...reads,
    alertFacts: async (now: Date) => ({ ...(await reads.alertFacts(now)), own: health.facts() }),
  };
}

export class AlertsInTime {
  readonly #reads: AlertReads;
  readonly #health: OwnHealth;
  #mutes: readonly AlertMute[] = [];

  /** `reads` must include the coordinator's own facts. */
  constructor(reads: AlertReads, health: OwnHealth) {
    this.#reads = reads;
    this.#health = health;
  }

  async list(now: Date): Promise<AlertList> {
    if (this.#health.facts().silent !== null) return this.#own(now, "");
    const reads = { alertFacts: async (at: Date) => this.#noted(await this.#reads.alertFacts(at)) };
    const whole = showAlerts(reads, now).catch(() => this.#own(now, "the database could not be asked"));
    return (
      (await within(factsMs, whole)) ??
      ((await this.#health.silence()) !== null ? this.#own(now, "") : null) ??
      (await within(slowFactsMs, whole)) ??
      this.#own(now, `the database has not said within ${slowFactsMs / 1000} s`)
    );
  }

  #own(now: Date, why: string): AlertList {
    const { silent } = this.#health.facts();
    const alerts = this.#health.alerts(this.#mutes);
    return {
      ...{ at: now.toISOString(), alerts, acknowledged: [], muted: [], channels: [] },
      incomplete: silent?.words ?? why,
    };
  }

  #noted<Facts extends { readonly mutes?: readonly AlertMute[] }>(facts: Facts): Facts {
    this.#mutes = facts.mutes ?? [];
    return facts;
  }
}
