/** Follows a run to its end. Shows its progress, and what it is waiting for when nothing moves. */

import { setTimeout as delay } from "node:timers/promises";
import type { FrontierProgress } from "#coordinator/crawl/frontier/frontier";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createOverviewReads } from "#coordinator/tell/overview/overview-reads";
import type { Verdict } from "#coordinator/tell/overview/queue-api";
import { linkMinutes } from "#core/access-types";
import { DatabaseError } from "#core/errors";
import { type Database, isConnectionLost, wordsOf } from "#db/server-database";
import { ProgressLine } from "../output.ts";

interface FollowedRun {
  readonly database: Database;
  readonly crawlers: number;
  readonly expectedPages: number | null;
  readonly voice: RunVoice;
  readonly throughOutages: ThroughOutages;
  readonly stopRequested: Promise<unknown>;
}

export interface RunOutcome {
  /** False when a person ended the run early. */
  readonly finished: boolean;
  readonly seconds: number;
  readonly pages: number;
  readonly probes: number;
  readonly rounds: number;
  readonly hosts: number;
  readonly hostsFetched: number;
  /** Null when the run was too short to determine it. */
  readonly limitedBy: RunLimit | null;
}

/** What limited the run most of the time. */
interface RunLimit {
  readonly limitedBy: Verdict["limitedBy"];
  /** The share of observations with this limit, from 0 to 1. */
  readonly share: number;
  /** Example: `limited by 3 hosts' Crawl-delay`. Taken from the observation with the most hosts. */
  readonly words: string;
}

const lookEveryMs = 1000;

/** How often the current limit is observed. */
const limitEveryMs = 5000;

/** After a standstill this long, its probable reason is reported. */
const stallMs = 30_000;

export async function followRun(run: FollowedRun): Promise<RunOutcome> {
  const { pool } = run.database;
  const frontier = createFrontierStore(pool);
  const crawlers = createCrawlerStore(pool);
  const reports = createOverviewReads(pool, () => performance.now());
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
  const limits = new RunLimits();
  let limitMs = startMs;
  for (;;) {
    const [progress, known] = await run.throughOutages(
      async () => [await frontier.progress(), await crawlers.list()] as const,
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
        limitedBy: limits.most(),
      });
    }
    if (nowMs - limitMs > limitEveryMs) {
      limitMs = nowMs;
      const { verdict } = await run.throughOutages(async () => await reports.queueAges(new Date()));
      limits.add(verdict);
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
  const { hosts, urlsPending, hostsUnresolved, linksWaiting } = progress;
  return hosts > 0 && urlsPending === 0 && hostsUnresolved === 0 && linksWaiting === 0;
}

function whatItWaitsFor(progress: FrontierProgress, crawlersOnline: number): string {
  if (crawlersOnline === 0) return "no crawler is connected";
  if (progress.hostsUnresolved > 0) return `${progress.hostsUnresolved} hosts wait for DNS`;
  if (progress.subnetsWaiting > 0) return `${progress.subnetsWaiting} subnets wait for a probe round`;
  return `${progress.urlsPending} URLs wait for their hosts' pace`;
}

/** Counts how often each limit was observed during a run. */
export class RunLimits {
  readonly #looks = new Map<Verdict["limitedBy"], { looks: number; readonly worst: Verdict }>();
  #all = 0;

  add(verdict: Verdict): void {
    const known = this.#looks.get(verdict.limitedBy) ?? { looks: 0, worst: verdict };
    const worst = verdict.hosts > known.worst.hosts ? verdict : known.worst;
    this.#looks.set(verdict.limitedBy, { looks: known.looks + 1, worst });
    this.#all += 1;
  }

  most(): RunLimit | null {
    const [most] = [...this.#looks].sort(([, one], [, other]) => other.looks - one.looks);
    if (most === undefined) return null;
    const [limitedBy, { looks, worst }] = most;
    return { limitedBy, share: looks / this.#all, words: worst.words };
  }
}

/** Example: `limited by 3 hosts' Crawl-delay, 82 % of the time`. */
export function limitText({ words, share }: RunLimit): string {
  return `${words}, ${Math.round(100 * share)} % of the time`;
}

function outcomeOf(
  progress: FrontierProgress,
  end: Pick<RunOutcome, "finished" | "seconds" | "limitedBy">,
): RunOutcome {
  const { pages, probes, rounds, hosts, hostsFetched } = progress;
  return { ...end, pages, probes, rounds, hosts, hostsFetched };
}

// A run's progress line: sites delegated, probes per subnet, pages, rate, remaining time.

interface RunMeasure {
  readonly progress: FrontierProgress;
  /** Pages per second over the last seconds. */
  readonly pagesPerSecond: number;
  readonly etaSeconds: number | null;
  readonly elapsedSeconds: number;
  readonly crawlersOnline: number;
}

const windowSeconds = 15;

/**
 * Until this share is done, the rate says nothing about the remaining time, since crawlers are still being found for the first
 * subnets.
 */
const leastDoneShare = 0.1;

/** Keeps the counts of the last seconds to compute the current rate. */
export class RunClock {
  readonly #startMs: number;
  readonly #samples: { readonly atMs: number; readonly pages: number }[] = [];
  #shownEtaSeconds = Number.POSITIVE_INFINITY;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  measure(
    progress: FrontierProgress,
    now: { ms: number; crawlersOnline: number; expectedPages: number | null },
  ): RunMeasure {
    this.#samples.push({ atMs: now.ms, pages: progress.pages });
    while (this.#samples.length > 2 && now.ms - this.#samples[0]!.atMs > windowSeconds * 1000)
      this.#samples.shift();
    const oldest = this.#samples[0]!;
    const seconds = (now.ms - oldest.atMs) / 1000;
    const pagesPerSecond = seconds > 0 ? (progress.pages - oldest.pages) / seconds : 0;
    const left = Math.max(progress.urlsPending, (now.expectedPages ?? 0) - progress.pages);
    return {
      progress,
      pagesPerSecond,
      etaSeconds: this.#eta(left, progress.pages, pagesPerSecond),
      elapsedSeconds: (now.ms - this.#startMs) / 1000,
      crawlersOnline: now.crawlersOnline,
    };
  }

  /** The estimate never grows. When a run slows down, it pauses. */
  #eta(left: number, done: number, perSecond: number): number | null {
    if (perSecond === 0 || done < leastDoneShare * (done + left)) return null;
    this.#shownEtaSeconds = Math.min(this.#shownEtaSeconds, left / perSecond);
    return this.#shownEtaSeconds;
  }
}

export function progressText(measure: RunMeasure, crawlers: number): string {
  const { progress } = measure;
  const perSubnet = progress.rounds > 0 ? (progress.probes / progress.rounds).toFixed(2) : "–";
  const parts = [
    `${clock(measure.elapsedSeconds)}`,
    `crawlers ${measure.crawlersOnline}/${crawlers}`,
    `sites ${number(progress.hostsDelegated)}/${number(progress.hosts)} delegated`,
    `${perSubnet} probes/subnet`,
    `${number(progress.pages)} pages`,
    `${measure.pagesPerSecond.toFixed(1)}/s`,
    etaText(measure.etaSeconds),
  ];
  return parts.join(" · ");
}

/** The last pages wait for the pace of their hosts, which no rate predicts. */
const lastSeconds = 5;

function etaText(seconds: number | null): string {
  if (seconds === null) return "ETA –";
  return seconds < lastSeconds ? "the last pages" : `ETA ${clock(seconds)}`;
}

const number = (value: number) => value.toLocaleString("en");

function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60);
  return `${minutes}:${String(whole % 60).padStart(2, "0")}`;
}

// Makes a run's own queries survive a restart of the server: a query is repeated once the server is back (any user of the
// embedded server starts it). Use it only for work that may be repeated.

export type ThroughOutages = <T>(work: () => Promise<T>) => Promise<T>;

const lookAgainMs = 500;

/** A shorter outage is only reported once it is over (run-record.ts). */
const tellAgainMs = 20_000;

export function throughOutages(
  voice: Pick<RunVoice, "note">,
  stopRequested: Promise<unknown>,
): ThroughOutages {
  let isStopped = false;
  void stopRequested.then(() => {
    isStopped = true;
  });
  return async (work) => {
    let toldMs = performance.now();
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
        const words = `the database does not answer: ${wordsOf(error)}`;
        if (isStopped) throw new DatabaseError(words, { cause: error });
        if (performance.now() - toldMs > tellAgainMs) {
          toldMs = performance.now();
          voice.note(`${words}; the run waits for it`);
        }
      }
      await delay(lookAgainMs);
    }
  };
}

// The output of a run: for people on a terminal, in plain lines elsewhere, or none with --json.

export interface RunVoice {
  /** Printed immediately, because the start takes some seconds. */
  begin(what: string): void;
  /** Whether a person reads the output. Sign-in links must not appear in logs and pipes. */
  readonly isTerminal: boolean;
  /** The web page's address, which is printed before all notes. */
  webUrl(url: string, database: string, signInUrl: string | null): void;
  note(words: string): void;
  progress(text: string): void;
  done(): void;
}

/** With `json` it uses standard error, so that standard output contains only the result. */
export function createRunVoice(options: { readonly json: boolean }): RunVoice {
  const stream = options.json ? process.stderr : process.stdout;
  const line = new ProgressLine(stream);
  /** Notes held back until the address is printed. Null afterwards. */
  let held: string[] | null = [];
  const say = (words: string) => {
    line.done();
    stream.write(`${words}\n`);
  };
  return {
    begin(what) {
      say(`starting: the database, ${what}`);
    },
    isTerminal: stream.isTTY === true,
    webUrl(url, database, signInUrl) {
      const signIn =
        signInUrl === null
          ? "nearcrawl sign-in prints a link"
          : `${signInUrl}\n          (as operator, once, within ${linkMinutes.usual} minutes; another: nearcrawl sign-in)`;
      say(`web page: ${url}\nsign in:  ${signIn}\ndatabase: ${database}`);
      for (const words of held ?? []) say(words);
      held = null;
    },
    note(words) {
      if (held) held.push(words);
      else say(words);
    },
    progress(text) {
      line.show(text);
    },
    done() {
      line.done();
    },
  };
}
