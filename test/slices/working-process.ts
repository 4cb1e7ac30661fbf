/**
 * A process that is killed while it works on slices: `fork(working-process.ts, [ROLE, SHARED-URL, SCHEMA])`. What it does, it does
 * by the program's own stores.
 *
 *   mover         moves hosts that are to move, carries effects between slices, numbers changes, over and over
 *   coordinator   the same but for the moves, and hands out leases and takes results for a crawler at the other end of the channel
 *
 * Each question is answered under its number, with what came of it or why nothing did; "pause" when nothing is written any more.
 */
import { setTimeout as delay } from "node:timers/promises";
import { numberChanges } from "#coordinator/changes/change-writes";
import type { CrawlerId } from "#core/ids";
import { openServerDatabase } from "#db/server-database";
import type { Lease } from "#protocol/lease";
import { slicedWorld } from "../support/sliced-world.ts";
import { arrivedResult, scope, spoolId } from "../support/store-world.ts";

export type Role = "mover" | "coordinator";

/** What the crawler found. */
export interface Visit {
  readonly sequence: number;
  readonly leaseId: string;
  readonly url: string;
  readonly links: readonly string[];
  readonly digest: string;
  readonly fetchedAt: string;
}

export type Ask =
  | { readonly type: "pause" }
  | { readonly type: "resume" }
  /** A session begins: leases that are not held any more go back. */
  | { readonly type: "hello"; readonly crawlerId: CrawlerId; readonly held: readonly string[] }
  | { readonly type: "lease"; readonly crawlerId: CrawlerId; readonly hosts: number }
  | { readonly type: "take"; readonly crawlerId: CrawlerId; readonly visits: readonly Visit[] };

export interface Asked {
  readonly number: number;
  readonly ask: Ask;
}

export type Answer =
  | { readonly number: number; readonly leases: readonly Lease[] }
  | { readonly number: number; readonly fault: string };

if (process.send !== undefined) await work();

async function work(): Promise<void> {
  const [role, databaseUrl = "", schema = ""] = process.argv.slice(2);
  // A bite of the outbox that somebody was killed over is another's soon.
  const world = await slicedWorld(await openServerDatabase({ databaseUrl, schema }), { stalledMs: 500 });
  world.slices.follow(300);
  let isPaused = false;
  let turn = Promise.resolve();

  const answer = async (ask: Ask): Promise<readonly Lease[]> => {
    const now = new Date();
    if (ask.type === "resume") isPaused = false;
    else if (ask.type === "pause") {
      isPaused = true;
      await turn;
    } else if (ask.type === "hello") {
      const held = ask.held as Parameters<typeof world.frontier.returnLeasesOf>[2];
      await world.frontier.returnLeasesOf(ask.crawlerId, now, held);
    } else if (ask.type === "take") {
      const results = ask.visits.map(({ sequence, leaseId, url, links, digest, fetchedAt }) =>
        arrivedResult({
          ...{ sequence, leaseId, url, links, page: { digest }, result: { fetchedAt, hostDelayMs: 0 } },
          again: () => ({ at: now, isGone: false }),
        }),
      );
      const { crawlerId } = ask;
      const lastSequence = results.at(-1)!.sequence;
      await world.results.take({ crawlerId, spoolId, results, scope, now, lastSequence });
    } else
      return await world.frontier.leaseHosts({
        ...{ crawlerId: ask.crawlerId, hosts: ask.hosts, now },
        ...{ urlsPerHost: 10, leaseSeconds: 3600, addressRestSeconds: 0 },
      });
    return [];
  };
  process.on("message", ({ number, ask }: Asked) => {
    answer(ask).then(
      (leases) => process.send!({ number, leases }),
      (error: Error) => process.send!({ number, fault: error.message }),
    );
  });
  process.on("disconnect", () => process.exit());
  process.send!({ number: 0, leases: [] });

  const workOnce = async () => {
    if (role === "mover") await world.advance();
    await world.carryAll(new Date());
    for (const { pool } of world.slices.open) await numberChanges(pool, new Date());
  };
  for (;;) {
    // A server may be away.
    if (!isPaused) turn = workOnce().catch(() => {});
    await turn;
    await delay(10);
  }
}
