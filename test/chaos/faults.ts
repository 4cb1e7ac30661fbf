/** What each kind of fault does to a running fleet, and how it is undone. */
import { setTimeout as delay } from "node:timers/promises";
import type { FaultyRelay, RelayMode } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { fillDisk } from "./disks.ts";
import type { ChaosFleet } from "./fleet.ts";
import type { FaultKind, PlannedFault } from "./plan.ts";

type Undo = () => Promise<void> | void;
type Apply = (fleet: ChaosFleet, fault: PlannedFault) => Promise<Undo> | Undo;

const slow: RelayMode = { type: "slow", delayMs: 150, bytesPerSecond: 50_000 };
const slowDatabase: RelayMode = { type: "slow", delayMs: 15, bytesPerSecond: 1_000_000 };

export const applyFault: Readonly<Record<FaultKind, Apply>> = {
  "kill-crawler": async ({ crawlers }, { target }) => await killed(crawlers[target]!.process),
  "stop-crawler": ({ crawlers }, { target }) => stopped(crawlers[target]!.process),
  "kill-coordinator": async ({ coordinators }, { target }) => await killed(coordinators[target]!.process),
  "stop-coordinator": ({ coordinators }, { target }) => stopped(coordinators[target]!.process),
  "kill-backend": async (fleet) => {
    await databaseAnswers(fleet);
    const { rows } = await fleet.database.pool.query<{ pid: number }>(
      `select pid from pg_stat_activity
       where backend_type = 'client backend' and application_name = 'nearcrawl' and pid <> pg_backend_pid()
       order by state = 'active' desc, pid
       limit 1`,
    );
    if (rows[0] !== undefined) signalTo([rows[0].pid], "SIGKILL");
    // The server ends all other backends and recovers by itself.
    return async () => await databaseAnswers(fleet);
  },
  "kill-database": async (fleet) => {
    signalTo(fleet.databasePids().slice(0, 1), "SIGKILL");
    return async () => await fleet.startDatabase();
  },
  "stop-database": (fleet) => {
    const pids = fleet.databasePids();
    signalTo(pids, "SIGSTOP");
    return () => signalTo(pids, "SIGCONT");
  },
  "kill-everything": async (fleet) => {
    signalTo(fleet.databasePids(), "SIGKILL");
    const processes = [...fleet.coordinators, ...fleet.crawlers].map(({ process }) => process);
    await Promise.all(processes.map(async (one) => await one.kill()));
    return async () => {
      await fleet.startDatabase();
      for (const one of processes) one.start();
    };
  },
  "fill-crawler-disk": async ({ crawlers }, { target }) => {
    const { disk, process } = crawlers[target]!;
    return await fillDisk(disk, process.pid === null ? [] : [process.pid]);
  },
  "fill-database-disk": async (fleet) => {
    const empty = await fillDisk(fleet.databaseDisk, fleet.databasePids());
    return async () => {
      await empty();
      await fleet.startDatabase();
    };
  },
  "cut-link": ({ crawlers }, { target }) => through(crawlers[target]!.link, { type: "cut" }),
  "stall-link": ({ crawlers }, { target }) => through(crawlers[target]!.link, { type: "stalled" }),
  "slow-link": ({ crawlers }, { target }) => through(crawlers[target]!.link, slow),
  "cut-coordinator": ({ coordinators, crawlers }, { target }) => {
    const { front } = coordinators[target]!;
    const links = crawlers.map(({ link }) => link).filter((link) => link.target === front.target);
    const undo = [front, ...links].map((relay) => through(relay, { type: "cut" }));
    return () => undo.forEach((one) => void one());
  },
  "cut-database": ({ coordinators }, { target }) => through(coordinators[target]!.way, { type: "cut" }),
  "stall-database": ({ coordinators }, { target }) => through(coordinators[target]!.way, { type: "stalled" }),
  "slow-database": ({ coordinators }, { target }) => through(coordinators[target]!.way, slowDatabase),
};

/** The fault's target, in words. */
export function targetWords(fleet: ChaosFleet, { kind, target }: PlannedFault): string {
  if (kind.endsWith("-crawler") || kind.includes("crawler-disk")) return fleet.crawlers[target]!.name;
  if (kind.endsWith("-link")) return `${fleet.crawlers[target]!.name} – coordinator`;
  if (kind.endsWith("-coordinator")) return `coordinator ${target}`;
  if (/^(cut|stall|slow)-database$/.test(kind)) return `coordinator ${target} – database`;
  return kind === "kill-everything" ? "all processes" : "the database";
}

interface Killed {
  kill(): Promise<void>;
  start(): unknown;
}

async function killed(process: Killed): Promise<Undo> {
  await process.kill();
  return () => void process.start();
}

function stopped(process: { readonly pid: number | null }): Undo {
  const pids = process.pid === null ? [] : [process.pid];
  signalTo(pids, "SIGSTOP");
  return () => signalTo(pids, "SIGCONT");
}

/** Several faults may hold a relay; it opens when the last is over. */
const holds = new WeakMap<FaultyRelay, RelayMode[]>();

export function through(relay: FaultyRelay, mode: RelayMode): Undo {
  const modes = holds.get(relay) ?? [];
  holds.set(relay, modes);
  modes.push(mode);
  relay.set(mode);
  return () => {
    modes.splice(modes.indexOf(mode), 1);
    relay.set(modes.at(-1) ?? { type: "open" });
  };
}

function signalTo(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It is gone already.
    }
  }
}

const answersWithinMs = 60_000;

export async function databaseAnswers({ database }: ChaosFleet): Promise<void> {
  await until(async () => {
    const one = database.pool.query("select").then(
      () => true,
      () => false,
    );
    return await Promise.race([one, delay(2000, false)]);
  }, answersWithinMs);
}
