/**
 * The slices of a coordinator: opened before anything is read of them, followed while it runs, and worked at. What is done by the
 * clock for the tables of a slice is done for each by the coordinator that has its lead; slice 0 goes with the lead of all.
 *
 *   follow-slices   every coordinator: reads the catalogue, asks each slice for itself
 *   lead-slices     who leads: gives slices that nobody works at to somebody, and makes the moves that are planned
 *   carry-effects   for each slice: what its outbox has for others
 */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import { jobs, type PartTimekeeper, type Timekeeper } from "#core/scheduler";
import type { CoordinatorPresence } from "../crawlers/coordinator-presence-store.ts";
import type { OpenSlice } from "../database/slices.ts";
import type { Metrics } from "../overview/metrics.ts";
import { assignLeads, noteSliceFaults } from "./catalogue-store.ts";
import { bringSlicesToEpoch } from "./epoch-writes.ts";
import { advanceMove } from "./move-writes.ts";
import type { OpenSlices, SliceFinding } from "./open-slices-store.ts";
import { lookAgain, ship, waitingFor } from "./shipment-store.ts";
import { faultsOf } from "./slice-reads.ts";

const followMs = 3000;
const leadMs = 1000;
const carryMs = 500;

/** What is done by the clock for one slice. */
export interface SlicePorts {
  readonly pool: Pool;
  readonly slice: OpenSlice;
  readonly timekeeper: PartTimekeeper;
}

export interface SliceDuties {
  /** `schedule` is called for each slice that there is, and that comes; its jobs run where the slice is led. */
  each(schedule: (ports: SlicePorts) => void): void;
  start(): void;
}

export function sliceDuties(ports: {
  readonly slices: OpenSlices;
  readonly presence: CoordinatorPresence;
  readonly timekeeper: Timekeeper;
  readonly metrics: Pick<Metrics, "sliceShipments" | "sliceShipmentLinks" | "sliceShipmentBytes">;
  readonly log: Log;
  readonly now: () => Date;
  readonly migrateSlices: () => Promise<unknown>;
}): SliceDuties {
  const { slices, presence, timekeeper, metrics, log, now, migrateSlices } = ports;
  const schedules: ((ports: SlicePorts) => void)[] = [];
  const scheduled = new Map<number, OpenSlice>();
  const leads = (number: number) =>
    number === 0 ? presence.leads : presence.isPresent && slices.isLedBy(presence.number, number);

  const portsOf = (slice: OpenSlice): SlicePorts => ({
    slice,
    pool: slice.pool,
    timekeeper:
      slice.number === 0 ? timekeeper : timekeeper.within(String(slice.number), () => leads(slice.number)),
  });
  const scheduleNew = () => {
    for (const slice of slices.open) {
      const known = scheduled.get(slice.number);
      if (known === slice) continue;
      // Jobs of a slice that is at another place now replace those of before.
      scheduled.set(slice.number, slice);
      for (const schedule of schedules) schedule(portsOf(slice));
    }
  };

  const carry = async (from: OpenSlice) => {
    if (slices.open.length === 1) return;
    const waiting = await waitingFor(from.pool);
    if (waiting.includes(from.number)) {
      const count = await lookAgain(from.pool, from.number);
      if (count > 0) timekeeper.hurry(jobs.applyLinks);
    }
    for (const number of waiting) {
      const to = slices.open.find((one) => one.number === number);
      if (to === undefined || to.number === from.number || slices.down.includes(number)) continue;
      const shipped = await ship(from, to);
      metrics.sliceShipments.inc(shipped.shipments);
      metrics.sliceShipmentLinks.inc(shipped.effects);
      metrics.sliceShipmentBytes.inc(shipped.bytes);
      if (shipped.rows > 0) timekeeper.hurry(jobs.applyLinks);
    }
  };

  const lead = async () => {
    if (slices.catalogue.slices.length === 1) return;
    await noteSliceFaults(slices.shared, faultsOf(slices, findings));
    await assignLeads(slices.shared, [presence.number, ...presence.others]);
    const move = slices.catalogue.moves[0];
    if (move === undefined) return;
    const done = await advanceMove(move, { shared: slices.shared, slice: (number) => openSlice(number) });
    const words = { move: move.number, from: move.from, to: move.to, ...move.buckets };
    if (done.type === "advanced") {
      log.info({ ...words, stage: done.stage }, "hosts move to another slice");
      await slices.refresh();
      timekeeper.hurry("lead-slices");
    } else if (done.type === "failed")
      log.warn(
        { ...words, stage: move.stage, fault: done.fault },
        "hosts cannot be moved yet, will be tried again",
      );
  };
  const openSlice = (number: number): OpenSlice => {
    const slice = slices.open.find((one) => one.number === number);
    if (slice === undefined) throw new Error(`slice ${number} is not open`);
    return slice;
  };

  const follow = async () => {
    await slices.refresh();
    if (slices.open.length > 1) {
      findings = await slices.look();
      report();
      for (const number of slices.down) brought.delete(number);
      if (hasToBring()) await bring();
    }
    scheduleNew();
  };
  /** One that comes, or comes back, may have numbers of an earlier epoch. */
  const hasToBring = () =>
    slices.open.some(({ number }) => !brought.has(number) && !slices.down.includes(number));
  const bring = async () => {
    // Of one that was away, the schema may be an older one, too.
    if (brought.size > 0) await migrateSlices();
    const answering = slices.open.filter(({ number }) => !slices.down.includes(number));
    for (const slice of await bringSlicesToEpoch(slices, now()))
      log.warn({ slice }, "a slice gives numbers of the new epoch");
    for (const { number } of answering) brought.add(number);
  };
  const brought = new Set<number>();
  let findings: readonly SliceFinding[] = [];
  let downBefore: readonly number[] = [];
  const report = () => {
    for (const { number, fault } of findings) {
      if (fault !== null && !downBefore.includes(number))
        log.error({ slice: number, fault }, "the server of a slice does not answer");
      if (fault === null && downBefore.includes(number)) log.info({ slice: number }, "a slice answers again");
    }
    downBefore = slices.down;
  };
  return {
    each: (schedule) => {
      schedules.push(schedule);
      for (const slice of scheduled.values()) schedule(portsOf(slice));
    },
    start: () => {
      scheduleNew();
      timekeeper.every("follow-slices", followMs, follow);
      timekeeper.every("lead-slices", leadMs, lead);
      schedules.push(({ slice, timekeeper: own }) =>
        own.every("carry-effects", carryMs, async () => await carry(slice)),
      );
      for (const slice of scheduled.values()) schedules.at(-1)!(portsOf(slice));
    },
  };
}
