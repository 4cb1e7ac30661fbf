/**
 * Releases in a running coordinator. They are offered when crawlers arrive and stages change, advanced periodically,
 * and counted.
 */
import type { Pool } from "pg";
import type { Gauge } from "prom-client";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CrawlerHello } from "#protocol/messages";
import type { WebPart } from "../../ask/add-operations.ts";
import { noteOwnChanges } from "../../database/audit-log.ts";
import { createInvitationStore } from "../../place/crawlers/invitation-store.ts";
import type { ReleaseReport } from "../gateway/gateway-settings.ts";
import { addReleaseFiles } from "./download-routes.ts";
import { createReleaseFleetStore } from "./fleet-store.ts";
import { advanceReleases, type OfferPorts, ReleaseOffers, releaseMoved } from "./move-stage.ts";
import {
  createReleaseFileStore,
  createReleaseKeyStore,
  createReleaseStore,
  partnerProgram,
} from "./release-store.ts";

const duties = { offer: "offer-releases", advance: "advance-releases" } as const;
/** How often stages are checked, and how soon a failed offer is retried. */
const offerMs = 15_000;
const advanceMs = 30_000;
/** Delay after a hello, so that the welcome is sent first. */
const welcomeMs = 250;

interface ReleaseMetrics {
  readonly releaseCrawlers: Gauge<"version" | "state">;
}

interface ReleaseDutyPorts extends Pick<OfferPorts, "send" | "online" | "now"> {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly metrics: ReleaseMetrics;
  readonly log: Log;
}

interface ReleaseDuties {
  onHello(crawlerId: CrawlerId, hello: CrawlerHello): void;
  onReleaseReport(crawlerId: CrawlerId, report: ReleaseReport): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function releaseDuties(ports: ReleaseDutyPorts): ReleaseDuties {
  const { timekeeper, log, now } = ports;
  const releases = createReleaseStore(ports.pool);
  const releaseFleet = createReleaseFleetStore(ports.pool);
  const offers = new ReleaseOffers({ ...ports, releases, releaseFleet });
  const note = noteOwnChanges(ports);
  let notices: { stop(): Promise<void> } | null = null;
  const arrivals = new Set<Promise<void>>();
  return {
    onHello: (crawlerId, hello) => {
      const arrival = offers
        .arrived(crawlerId, hello)
        .then(() => timekeeper.hurry(duties.offer, welcomeMs))
        .catch((error: unknown) => log.error({ crawlerId, error }, "what a crawler runs was not recorded"))
        .finally(() => arrivals.delete(arrival));
      arrivals.add(arrival);
    },
    onReleaseReport: async (crawlerId, report) => {
      const { version, state, reason } = report;
      const known = await offers.reported(crawlerId, report);
      const bad = state === "returned" || state === "refused";
      log[bad ? "warn" : "info"]({ crawlerId, version, state, reason, known }, "a release at a crawler");
      if (bad) timekeeper.hurry(duties.advance);
    },
    start: async () => {
      timekeeper.every(
        duties.offer,
        offerMs,
        async () => {
          const offered = await offers.pass();
          if (offered > 0) log.info({ crawlers: offered }, "a release was offered");
        },
        { onEach: true },
      );
      timekeeper.every(duties.advance, advanceMs, async () => {
        for (const move of await advanceReleases({ releases, releaseFleet }, now())) {
          log[move.type === "stop" ? "error" : "info"](
            move,
            "a release moved to its next stage, or was held",
          );
          await note(releaseMoved(move));
        }
        await observe(ports.metrics, releaseFleet);
      });
      notices = await releases.onChange(() => timekeeper.hurry(duties.offer));
    },
    stop: async () => {
      await notices?.stop();
      await Promise.all(arrivals);
    },
  };
}

async function observe(
  { releaseCrawlers: releases }: ReleaseMetrics,
  fleet: ReturnType<typeof createReleaseFleetStore>,
): Promise<void> {
  releases.reset();
  for (const [version, counts] of await fleet.counts()) {
    for (const [state, crawlers] of Object.entries(counts)) releases.set({ version, state }, crawlers);
  }
}

/** Serves what crawlers run, to them and to their partners. */
export const releaseFilePart =
  ({ pool, version, now, config }: ReleaseFileOptions): WebPart =>
  ({ app }) =>
    addReleaseFiles(app, {
      files: createReleaseFileStore(pool),
      releases: createReleaseStore(pool),
      keys: createReleaseKeyStore(pool),
      program: partnerProgram(),
      onProgram: async (invitationId, at) => await createInvitationStore(pool).noteDownload(invitationId, at),
      ...{ now, version },
      // Behind the proxy, all downloads come from one address.
      ...(config.behindProxy ? { limits: { downloadsPerAddress: Number.POSITIVE_INFINITY } } : {}),
    });

interface ReleaseFileOptions {
  readonly pool: Pool;
  readonly version: string;
  readonly now: () => Date;
  readonly config: { readonly behindProxy: boolean };
}
