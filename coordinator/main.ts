/**
 * The coordinator from start to stop: the foundation, the rooms, and the pages. All its memory is read from the database, so
 * it can be killed and restarted at any time.
 */

import type { CoordinatorOptions } from "./config.ts";
import { type Ground, layGround } from "./ground.ts";
import { succession } from "./place/balance/start.ts";
import { pagesOfRooms } from "./room-pages.ts";
import { type OpenRooms, openRooms, type Room } from "./rooms.ts";
import { accessOver, anonymousMayRead } from "./run/access/start.ts";
import { openWebServer } from "./start-web.ts";
import { readinessReads } from "./tell/overview/overview-reads.ts";

export interface RunningCoordinator {
  /** The address of its pages, API and crawler socket. */
  readonly webUrl: string;
  /**
   * Resolves with the reason when this coordinator's memory is obsolete and it must restart: the database went back to an
   * earlier state, or others considered this coordinator frozen and replaced it.
   */
  readonly hasToStartOver: Promise<string>;
  stop(): Promise<void>;
}

type Web = Awaited<ReturnType<typeof openWebServer>>;

/** Rejects without leaving anything behind when it cannot listen or the database fails. */
export async function startCoordinator(options: CoordinatorOptions): Promise<RunningCoordinator> {
  const ground = await layGround(options);
  const { gateway, journal, timekeeper, log } = ground;
  let rooms: readonly Room[] = [];
  let pages: Web | null = null;
  const stop = async () => {
    for (const room of rooms) room.close?.();
    await timekeeper.stop();
    await gateway.close();
    for (const room of rooms) await room.stop?.();
    await ground.incidents.flush();
    await pages?.web.close();
    // The journal stops last, so that it copies what rooms and pages write while they end.
    await journal.stop();
    await ground.end();
  };
  try {
    const opened = openRooms(ground);
    rooms = opened.rooms;
    for (const room of rooms) await room.begin?.();
    // While the rooms start, visitors already get pages, but crawlers are not served yet.
    pages = await openPages(ground, opened);
    for (const room of rooms) await room.start?.();
    await journal.start();
    await ground.others.stateAddress(ground.config.publicUrl ?? pages.url);
    gateway.serve(null);
  } catch (error) {
    await stop();
    throw error;
  }
  const { url: webUrl } = pages;
  log.info({ webUrl, subnets: ground.state.tree.size }, "coordinator listens");
  return {
    webUrl,
    hasToStartOver: Promise.race([journal.wentBack, ground.presence.replaced]),
    stop: async () => {
      await stop();
      log.info({}, "coordinator stopped");
    },
  };
}

async function openPages(ground: Ground, { jobPorts, live }: OpenRooms): Promise<Web> {
  const { config, watch, now, log } = ground;
  return await openWebServer({
    ...{ ...ground, metrics: ground.counters.metrics, live, certificate: watch.certificate },
    attach: (server) => ground.gateway.attach(server),
    beforeAnswer: ground.journal.catchUp,
    readiness: readinessReads(watch.database.pool),
    succession: succession(jobPorts, config),
    access: (pool) => accessOver(pool, anonymousMayRead(config), now, log),
    rooms: pagesOfRooms,
  });
}
