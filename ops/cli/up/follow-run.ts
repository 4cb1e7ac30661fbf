/** Follows a run to its end: shows how far it is, says what it waits for when nothing moves. */

import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import type { FrontierProgress } from "#coordinator/frontier/frontier";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import type { Database } from "#db/connect";
import { progressText, RunClock } from "./run-progress.ts";
import type { RunVoice } from "./run-voice.ts";
import type { ThroughOutages } from "./through-outages.ts";

export interface FollowedRun {
  readonly database: Database;
  readonly crawlers: number;
  readonly expectedPages: number | null;
  readonly voice: RunVoice;
  readonly throughOutages: ThroughOutages;
  readonly stopRequested: Promise<unknown>;
}

export interface RunOutcome {
  /** False when a person ended it early. */
  readonly finished: boolean;
  readonly seconds: number;
  readonly pages: number;
  readonly probes: number;
  readonly rounds: number;
  readonly hosts: number;
  readonly hostsFetched: number;
}

const lookEveryMs = 1000;
/** Nothing new for so long is said, with the reason as far as it shows. */
const stallMs = 30_000;

export async function followRun(run: FollowedRun): Promise<RunOutcome> {
  const frontier = createFrontierStore(run.database.pool);
  const crawlers = createCrawlerStore(run.database.pool);
  const startMs = performance.now();
  const clock = new RunClock(startMs);
  let stopped = false;
  let stop: () => void = () => {};
  const asked = run.stopRequested.then(() => {
    stopped = true;
    stop();
  });
  let changedMs = startMs;
  let last = "";
  for (;;) {
    const [progress, known] = await run.throughOutages(
      async () => [await frontier.progress(new Date()), await crawlers.list()] as const,
    );
    const online = known.filter(({ state }) => state === "online").length;
    const nowMs = performance.now();
    const measure = clock.measure(progress, {
      ms: nowMs,
      crawlersOnline: online,
      expectedPages: run.expectedPages,
    });
    run.voice.progress(progressText(measure, run.crawlers));
    if (isFinished(progress) || stopped) {
      run.voice.done();
      return outcomeOf(progress, {
        finished: !stopped || isFinished(progress),
        seconds: (nowMs - startMs) / 1000,
      });
    }
    const now = JSON.stringify(progress);
    if (now !== last) changedMs = nowMs;
    last = now;
    if (nowMs - changedMs > stallMs) {
      run.voice.note(`nothing has moved for ${stallMs / 1000} s: ${whatItWaitsFor(progress, online)}`);
      changedMs = nowMs;
    }
    await Promise.race([
      asked,
      new Promise<void>((resolve) => {
        stop = resolve;
        setTimeout(resolve, lookEveryMs);
      }),
    ]);
  }
}

function isFinished(progress: FrontierProgress): boolean {
  return progress.hosts > 0 && progress.urlsPending === 0 && progress.hostsUnresolved === 0;
}

function whatItWaitsFor(progress: FrontierProgress, crawlersOnline: number): string {
  if (crawlersOnline === 0) return "no crawler is connected";
  if (progress.hostsUnresolved > 0) return `${progress.hostsUnresolved} hosts wait for DNS`;
  if (progress.subnetsWaiting > 0) return `${progress.subnetsWaiting} subnets wait for a probe round`;
  return `${progress.urlsPending} URLs wait for their hosts' pace`;
}

function outcomeOf(progress: FrontierProgress, end: { finished: boolean; seconds: number }): RunOutcome {
  const { pages, probes, rounds, hosts, hostsFetched } = progress;
  return { ...end, pages, probes, rounds, hosts, hostsFetched };
}
