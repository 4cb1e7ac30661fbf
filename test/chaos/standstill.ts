/**
 * How long a fleet stands still when the coordinator that leads is frozen, cut off or far too slow, in all connections at once and
 * without a word: until a crawler that was connected to it has a result stored by way of the other one. Over and over again,
 * each time the one that leads; then it goes on, and is to join the other.
 */
import { setTimeout as delay } from "node:timers/promises";
import { coordinatorLockKey } from "#db/coordinator-locks";
import { signalTo, through, type Undo } from "./faults.ts";
import type { ChaosFleet } from "./fleet.ts";
import type { RelayMode } from "./relay.ts";

type Coordinator = ChaosFleet["coordinators"][number];

const onItsNetwork =
  (mode: RelayMode) =>
  ({ crawlers }: ChaosFleet, { way, front }: Coordinator): Undo => {
    const links = crawlers.map(({ link }) => link).filter((link) => link.target === front.target);
    const undo = [way, front, ...links].map((relay) => through(relay, mode));
    return () => undo.forEach((one) => void one());
  };

function frozen(_: ChaosFleet, { process: { pid } }: Coordinator): Undo {
  const pids = pid === null ? [] : [pid];
  signalTo(pids, "SIGSTOP");
  return () => signalTo(pids, "SIGCONT");
}

/** What is done to the one that leads. */
const ways = {
  frozen,
  cut: onItsNetwork({ type: "stalled" }),
  slow: onItsNetwork({ type: "slow", delayMs: 2000, bytesPerSecond: 10_000_000 }),
  /** Alone: the other one is started at this moment. */
  alone: frozen,
} as const;

export type StandstillKind = keyof typeof ways;
export const standstillKinds = Object.keys(ways) as readonly StandstillKind[];

export interface Standstill {
  readonly kind: StandstillKind;
  /** Until a crawler was welcomed by the other one, and until its result was stored. */
  readonly movedMs: number;
  readonly storedMs: number;
  /** From its end until the one that was frozen was one of two again. */
  readonly joinedMs: number;
}

const mostMs = 120_000;

/** Longer than all of it is to take: the other one has been on its own for a while. */
const goesOnMs = 3000;

export async function measureStandstill(fleet: ChaosFleet, kind: StandstillKind): Promise<Standstill> {
  const { pool } = fleet.database;
  const one = async <Row extends object>(text: string, values: readonly unknown[] = []) =>
    (await pool.query<Row>(text, [...values])).rows[0];
  const number = async (text: string, values: readonly unknown[] = []) =>
    (await one<{ n: number }>(`select (${text})::int as n`, values))?.n ?? 0;
  const fetchesOf = async (crawlers: readonly number[]) =>
    await number("select count(*) from page_fetch where crawler_id = any($1)", [crawlers]);
  const running = `select count(*) from running_coordinator r join pg_locks l
    on l.locktype = 'advisory' and l.granted and l.objid::bigint = r.coordinator_number
      and l.classid::bigint = ${coordinatorLockKey()}::bigint & 4294967295`;
  const sinceMs = async (beganMs: number, words: string, holds: () => Promise<boolean>): Promise<number> => {
    while (!(await holds())) {
      if (performance.now() - beganMs > mostMs)
        throw new Error(`${kind}: not within ${mostMs / 1000} s: ${words}`);
      await delay(20);
    }
    return performance.now() - beganMs;
  };

  const startMs = performance.now();
  await sinceMs(startMs, "two coordinators run", async () => (await number(running)) === 2);
  const leads = "(select coordinator_number from fleet_lead)";
  type Lead = { number: number; name: string; crawlers: number[] };
  let lead: Lead | undefined;
  // One that has just gone on may still be listed, with crawlers that have left it.
  await sinceMs(startMs, "the one that leads has crawlers, which fetch", async () => {
    lead = await one<Lead>(
      `select r.coordinator_number as number, r.name, array(
         select c.crawler_id from crawler c where c.coordinator_number = r.coordinator_number and state = 'online'
       ) as crawlers
       from running_coordinator r where r.coordinator_number = ${leads}`,
    );
    const before = await fetchesOf(lead?.crawlers ?? []);
    await delay(goesOnMs);
    return (await number(running)) === 2 && (await fetchesOf(lead?.crawlers ?? [])) > before;
  });
  const isIts = ({ webUrl, process: { pid } }: Coordinator) =>
    lead!.name.endsWith(`:${new URL(webUrl).port}`) || lead!.name.endsWith(`process ${pid}`);
  const its = fleet.coordinators.find(isIts)!;
  const other = fleet.coordinators.find((coordinator) => coordinator !== its)!;
  if (kind === "alone") {
    await other.process.kill();
    await sinceMs(startMs, "it is alone", async () => (await number(running)) === 1);
    await delay(goesOnMs);
  }

  const beganMs = performance.now();
  const undo = await ways[kind](fleet, its);
  if (kind === "alone") other.process.start();
  try {
    let moved: number[] = [];
    const movedMs = await sinceMs(beganMs, "a crawler comes to the other", async () => {
      const found = await one<{ ids: number[] }>(
        `select array_agg(crawler_id) as ids from crawler
         where crawler_id = any($1) and coordinator_number <> $2 and state = 'online'`,
        [lead!.crawlers, lead!.number],
      );
      moved = found?.ids ?? [];
      return moved.length > 0;
    });
    const atMove = await fetchesOf(moved);
    const storedMs = await sinceMs(
      beganMs,
      "a result is stored",
      async () => (await fetchesOf(moved)) > atMove,
    );
    await delay(goesOnMs);
    const endedMs = performance.now();
    await undo();
    const joinedMs = await sinceMs(endedMs, "it joins the other", async () => (await number(running)) === 2);
    return { kind, movedMs, storedMs, joinedMs };
  } finally {
    await undo();
  }
}

/** In seconds: least, median, most. */
export function standstillText(all: readonly Standstill[]): readonly string[][] {
  return standstillKinds.flatMap((kind) => {
    const some = all.filter((one) => one.kind === kind);
    if (some.length === 0) return [];
    const spread = (of: (one: Standstill) => number) => {
      const sorted = some.map(of).toSorted((a, b) => a - b);
      const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))]! / 1000).toFixed(1);
      return `${at(0)} / ${at(0.5)} / ${at(1)}`;
    };
    return [
      [
        kind,
        String(some.length),
        spread((one) => one.movedMs),
        spread((one) => one.storedMs),
        spread((one) => one.joinedMs),
      ],
    ];
  });
}
