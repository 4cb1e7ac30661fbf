/**
 * Keeps what an administrator may ask for after a restart, in HOME/status.json: recent errors, today's counts, and how earlier
 * processes ended. Everything except the reading is pure. status-record.ts writes the file.
 */
import { join } from "node:path";
import { z } from "zod";
import { words } from "#protocol/fields";
import { blames, type FetchOutcome } from "#protocol/result";
import { jsonIn } from "../core/json.ts";

export const storyFile = { name: "status.json", maxBytes: 256 * 1024, everyMs: 5000 };
const mostErrors = 100;
const mostEnds = 10;
const mostDays = 60;

/** The protocol's limit, within which part of a failure's message fits. */
const mostErrorWords = 300;

const count = z.int().min(0);

// Counts URLs by outcome over the last minute, and since the host's local midnight.

const urlCounts = z.object({
  urls: count,
  fetched: count,
  unchanged: count,
  redirected: count,
  httpErrors: count,
  refusedByRobots: count,
  refusedAddresses: count,
  unsupported: count,
  failed: count,
});

export type UrlCounts = Readonly<z.infer<typeof urlCounts>>;

const counted = Object.keys(urlCounts.shape) as readonly (keyof UrlCounts)[];
export const noUrls = Object.fromEntries(counted.map((name) => [name, 0])) as UrlCounts;

/** Who is to blame for a failure: the site, the network, this machine with its limits, or this software. */
export type Blame = (typeof blames)[number];

const errorReport = z.object({
  at: z.iso.datetime(),
  blame: z.enum(blames),
  /** The host of the site, or of the coordinator. */
  host: z.string().max(253),
  code: z.string().max(60),
  words: z.string().max(mostErrorWords),
});

export type ErrorReport = Readonly<z.infer<typeof errorReport>>;

/** `day` looks like `2026-11-22`. `pages` were fetched or found unchanged. */
const dayCounted = z.object({ day: z.string().max(10), urls: count, pages: count });

type DayCounts = Readonly<z.infer<typeof dayCounted>>;

export interface Contribution {
  /** Complete days in the host's time zone, latest first, at most 60, without today. */
  readonly days: readonly DayCounts[];
  /** Totals since joining, or since counting began, including today. */
  readonly total: Omit<DayCounts, "day">;
}

const story = z.object({
  day: z.string().max(10),
  urls: urlCounts,
  blames: z.object({ target: count, network: count, crawler: count, us: count }),
  errors: z.array(errorReport).max(mostErrors),
  lastEnds: z.array(z.object({ at: z.iso.datetime(), reason: words })).max(mostEnds),
  /** The previous days, latest first, and the sum of all complete days. */
  days: z.array(dayCounted).max(mostDays).default([]),
  total: z.object({ urls: count, pages: count }).default({ urls: 0, pages: 0 }),
});

export type Story = Readonly<z.infer<typeof story>>;

const noBlames: Readonly<Record<Blame, number>> = { target: 0, network: 0, crawler: 0, us: 0 };
export const emptyStory: Story = {
  day: "",
  urls: noUrls,
  blames: noBlames,
  errors: [],
  lastEnds: [],
  days: [],
  total: { urls: 0, pages: 0 },
};

export function storyFrom(json: unknown): Story | null {
  return story.safeParse(json).data ?? null;
}

export function readStory(home: string): Story {
  return jsonIn(join(home, storyFile.name), storyFile.maxBytes, story) ?? emptyStory;
}

/** Starts new counts each day. A day with requests is kept. */
export function onDay(story: Story, day: string): Story {
  if (story.day === day) return story;
  const fresh = { ...story, day, urls: noUrls, blames: noBlames };
  if (story.urls.urls === 0) return fresh;
  const ended = dayCounts(story);
  const { urls, pages } = story.total;
  return {
    ...fresh,
    days: [ended, ...story.days].slice(0, mostDays),
    total: { urls: urls + ended.urls, pages: pages + ended.pages },
  };
}

const dayCounts = ({ day, urls: { urls, fetched, unchanged } }: Story): DayCounts => ({
  day,
  urls,
  pages: fetched + unchanged,
});

export function contributionOf(story: Story): Contribution {
  const today = dayCounts(story);
  const { urls, pages } = story.total;
  return { days: story.days, total: { urls: urls + today.urls, pages: pages + today.pages } };
}

export function withError(story: Story, error: ErrorReport): Story {
  const cut = { ...error, host: error.host.slice(0, 253), words: error.words.slice(0, mostErrorWords) };
  const errors = [cut, ...story.errors].slice(0, mostErrors);
  return { ...story, errors, blames: { ...story.blames, [error.blame]: story.blames[error.blame] + 1 } };
}

/** Each new process reports the last end again until the coordinator has heard of it. Duplicates (same `at`) are ignored. */
export function withEnd(story: Story, end: Story["lastEnds"][number]): Story {
  if (story.lastEnds.some(({ at }) => at === end.at)) return story;
  return { ...story, lastEnds: [end, ...story.lastEnds].slice(0, mostEnds) };
}

const sliceMs = 1000;
const slices = 60;

type Counts = { -readonly [Name in keyof UrlCounts]: number };
type Kind = Exclude<keyof UrlCounts, "urls">;

const kinds: Readonly<Record<FetchOutcome["type"], Kind>> = {
  fetched: "fetched",
  unchanged: "unchanged",
  redirected: "redirected",
  "http-error": "httpErrors",
  "refused-by-robots": "refusedByRobots",
  "refused-address": "refusedAddresses",
  unsupported: "unsupported",
  failed: "failed",
};

export function withUrl(counts: UrlCounts, outcome: FetchOutcome["type"]): UrlCounts {
  const kind = kinds[outcome];
  return { ...counts, urls: counts.urls + 1, [kind]: counts[kind] + 1 };
}

/** Counts the last minute in slices of a second. */
export class MinuteCounter {
  readonly #slices: { second: number; counts: UrlCounts }[] = [];

  /** `nowMs` is monotonic. */
  count(outcome: FetchOutcome["type"], nowMs: number): void {
    const second = Math.floor(nowMs / sliceMs);
    const last = this.#slices.at(-1);
    if (last?.second === second) last.counts = withUrl(last.counts, outcome);
    else this.#slices.push({ second, counts: withUrl(noUrls, outcome) });
    this.#forget(second);
  }

  counts(nowMs: number): UrlCounts {
    this.#forget(Math.floor(nowMs / sliceMs));
    const sum: Counts = { ...noUrls };
    for (const { counts } of this.#slices) {
      for (const name of counted) sum[name] += counts[name];
    }
    return sum;
  }

  #forget(second: number): void {
    while (this.#slices.length > 0 && this.#slices[0]!.second <= second - slices) this.#slices.shift();
  }
}
