/** What a coordinator watches of itself beside its work: the database, its clock, its event loop, its certificate. */
import { networkInterfaces, uptime } from "node:os";
import { EventLoopWatch } from "#core/clock";
import { ClockError } from "#core/errors";
import { doubtedAfterMs, doubtfulStart, type MachineClock, OwnClock } from "#core/own-clock";
import { isLoopbackHost } from "#protocol/invitation";
import type { CoordinatorOptions } from "./config.ts";
import { DatabaseWatch } from "./database/database-watch.ts";
import { lastMinute } from "./tell/overview/minute-figure-store.ts";
import { OwnCertificate } from "./web/own-certificate.ts";

export type OwnWatch = ReturnType<typeof watchOwn>;

/** The coordinator's watch on itself: database, clock, event loop, certificate. It uses no connection of the pool, which may be exhausted. */
export function watchOwn({
  database: { url },
  config: { tls },
  log,
  machineClock = systemMachineClock,
  ...given
}: CoordinatorOptions) {
  const clockListeners: ((isRight: boolean, jumpedMs: number) => void)[] = [];
  const clock = given.now
    ? null
    : new OwnClock(machineClock, (fault, jumpedMs) => {
        if (fault !== null) log.error({ words: fault.words }, "this coordinator's clock is wrong");
        else log.info({ jumpedMs }, "the clock is right again, and is followed");
        for (const listener of clockListeners) listener(fault === null, jumpedMs);
      });
  const now = given.now ?? clock!.now;
  const onTime = (atMs: number, tookMs: number) => clock?.hearDatabase(atMs, tookMs);
  const database = new DatabaseWatch(url, { now, nowMs: () => performance.now(), log, onTime });
  const eventLoop = new EventLoopWatch();
  const certificate = tls === null ? null : new OwnCertificate(tls);
  database.start();
  return {
    ...{ clock, now },
    /** Whenever the clock turns out to be wrong, or is right again and jumped by so much. */
    onClock: (listener: (isRight: boolean, jumpedMs: number) => void) => void clockListeners.push(listener),
    database,
    eventLoop,
    certificate,
    close: async () => {
      eventLoop.close();
      await database.close();
    },
  };
}

const systemMachineClock: MachineClock = {
  wall: () => new Date(),
  steadyMs: () => performance.now(),
  uptimeMs: () => uptime() * 1000,
};

/** Of this machine: whoever comes from there goes by the same clock. */
export function isOwnAddress(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, "");
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return isLoopbackHost(plain) || own.some((one) => one.address === plain);
}

/** Before anything is written. Throws ClockError: it is started again when the clock is right, by whoever keeps it running. */
export async function requireRightClock(
  { database, clockIsRight = false, log, now }: CoordinatorOptions & { readonly now: () => Date },
  watch: OwnWatch,
): Promise<void> {
  await watch.database.look();
  const fault = watch.clock?.fault ?? null;
  if (fault !== null) throw new ClockError(`${fault.words}: let NTP set it (timedatectl), then start again`);
  if (watch.clock === null || clockIsRight) return;
  const last = await lastMinute(database.pool);
  const doubt = doubtfulStart(now(), last);
  if (doubt !== null) throw new ClockError(doubt);
  if (last === null || now().getTime() - last.getTime() < doubtedAfterMs) return;
  watch.clock.doubt();
  log.warn(
    { lastWritten: last },
    "the database was last written days ago: if this machine's clock is right, nothing is to be done; nothing " +
      "that is kept for days is deleted for a day, or until crawlers agree",
  );
}
