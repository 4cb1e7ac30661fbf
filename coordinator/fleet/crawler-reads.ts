/** Every read of the fleet's pages over one pool; what grows with the tables is asked seldom and kept meanwhile. */
import type { Pool } from "pg";
import { absencesOf } from "../crawlers/crawler-store.ts";
import { keysOfCrawler } from "../crawlers/identity-store.ts";
import { moveList } from "../crawlers/move-store.ts";
import { KeptAnswer } from "../database/cached-read.ts";
import { heirsOf } from "../delegation/successor-reads.ts";
import { failureShares, latestFailures } from "../overview/failure-reads.ts";
import { trustList, trustReport } from "../trust/reads.ts";
import { crawlerActivity } from "./crawler-activity.ts";
import { crawlerLog } from "./crawler-log.ts";
import { offersOf } from "./crawler-record.ts";
import { crawlerWork } from "./crawler-work.ts";
import { fleetFigures } from "./fleet-figures.ts";
import { fleetEntry, fleetList } from "./fleet-list-reads.ts";
import type { FleetReads } from "./fleet-ports.ts";

const hourMs = 3_600_000;

/** `now` is the clock of the figures that are kept; `nowMs` one that never goes back. */
export function createFleetReads(pool: Pool, now: () => Date, nowMs: () => number): FleetReads {
  const figures = new KeptAnswer(() => fleetFigures(pool, now()), nowMs);
  const since = (hours: number) => new Date(now().getTime() - hours * hourMs);
  const shares = {
    1: new KeptAnswer(() => failureShares(pool, since(1)), nowMs),
    24: new KeptAnswer(() => failureShares(pool, since(24)), nowMs),
  } as const;
  const kept = async () => await figures.get();
  return {
    fleet: async (at) => await fleetList(pool, at, kept),
    crawler: async (name, at) => await fleetEntry(pool, name, at, kept),
    activityOf: async (crawlerId) => await crawlerActivity(pool, crawlerId),
    workOf: async (name) => await crawlerWork(pool, name),
    absencesOf: async (name) => await absencesOf(pool, name),
    keysOf: async (name) => await keysOfCrawler(pool, name),
    logOf: async (name, page) => await crawlerLog(pool, name, page),
    offersOf: async (crawlerId) => await offersOf(pool, crawlerId),
    heirsOf: async (name) => await heirsOf(pool, name),
    trustOf: async (name) => await trustReport(pool, name),
    trust: async () => await trustList(pool),
    moves: async (name) => await moveList(pool, name),
    failures: async (query) => await latestFailures(pool, query),
    failureShares: async (hours) => await shares[hours].get(),
  };
}
