/** What the coordinator does by the clock for those who watch it: figures by the minute, gauges, samples of how near the delegations are. */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import { accuracyDays, isSampleDue, type SamplingPorts, sampleAccuracy } from "../delegation/accuracy.ts";
import { createAccuracyStore } from "../delegation/accuracy-store.ts";
import { createReports } from "../who/reads.ts";
import type { Counters } from "./counters.ts";
import { createFigureStore } from "./figure-store.ts";
import { forgetFigures } from "./figures.ts";
import { observeOperation } from "./observe-operation.ts";

export interface OverviewDutyPorts extends Omit<SamplingPorts, "accuracy"> {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly counters: Counters;
  /** True: the crawlers have measured each other, and rounds may begin. */
  readonly isSettled: () => boolean;
  readonly version: string;
  readonly log: Log;
}

export interface OverviewDuties {
  start(): void;
  /** Writes what there is of the minute under way. */
  stop(): Promise<void>;
}

/** How soon after its end a minute is written. */
const figuresMs = 5000;
/** As often as Prometheus usually asks. */
const observeMs = 30_000;
const forgetMs = 3_600_000;
/** How often it is looked whether a sample is due. */
const sampleMs = 30_000;
/** Samples are kept so much longer than they count, for whoever wonders how it was before. */
const keptDays = 3 * accuracyDays;

export function overviewDuties(
  ports: OverviewDutyPorts,
  config: Pick<CoordinatorConfig, "probe" | "allowSpecialPurpose" | "accuracy">,
): OverviewDuties {
  const { pool, timekeeper, counters, log, now } = ports;
  const figures = createFigureStore(pool);
  const accuracy = createAccuracyStore(pool);
  const reads = createReports(pool, () => performance.now());
  const metrics = counters.metrics.operation;
  return {
    start: () => {
      metrics.buildInfo.set({ version: ports.version }, 1);
      timekeeper.every("write-figures", figuresMs, async () => await counters.figures.turn(figures, now()));
      timekeeper.every("observe-operation", observeMs, async () => {
        await observeOperation({ reads, metrics, now });
      });
      timekeeper.every("forget-figures", forgetMs, async () => {
        await forgetFigures(figures, now());
        await accuracy.forget(new Date(now().getTime() - keptDays * 86_400_000));
      });
      timekeeper.every("sample-accuracy", sampleMs, async () => {
        const isDue =
          ports.isSettled() && (await isSampleDue({ accuracy, now }, config.accuracy.subnetsPerHour));
        if (!isDue) return;
        const sample = await sampleAccuracy({ ...ports, accuracy }, config);
        if (sample === null) return;
        const { subnetId, ownerId, ownerRttMs, bestId, bestRttMs } = sample;
        log.debug({ subnetId, ownerId, ownerRttMs, bestId, bestRttMs }, "a delegation was sampled");
      });
    },
    stop: async () => {
      await counters.figures.flush(figures).catch((error: unknown) => {
        log.error({ error }, "the last figures could not be written");
      });
    },
  };
}
