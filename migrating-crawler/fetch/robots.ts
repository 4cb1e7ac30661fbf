/**
 * Caches robots.txt by origin for 24 hours (RFC 9309 section 2.4), across restarts. An unavailable file forbids
 * everything and is asked for again when the host's pace allows. Section 2.3.1.4 would permit treating a file that was
 * unreachable for 30 days as absent; we do not, because a site that failed for a month has not invited anybody.
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { maxUrlLength } from "#protocol/fields";
import { contentUses } from "#protocol/preferences";
import type { RobotsReport } from "#protocol/result";
import type { Failure } from "../core/failure.ts";
import { KeptFile, type KeptSettings } from "../limits/state-file.ts";
import { byPrecedence, type RobotsRule, robotsRule } from "../preferences/robots-match.ts";
import {
  askRobots,
  type RobotsAnswer,
  type RobotsAsking,
  type RobotsMemory,
  type TakeTurn,
} from "./ask-robots.ts";
import { type RobotsVerdict, robotsVerdict, sitemapUrls } from "./robots-rules.ts";
import {
  maxUseLines,
  noUses,
  type RobotsUses,
  type StatedInRobots,
  useFields,
  usesOfPath,
} from "./robots-uses.ts";
import type { SiteClient } from "./site-client.ts";

const keptMs = 24 * 3_600_000;

/** An unavailable file is retried after this at the earliest; the host's back-off may be longer. */
const failureKeptMs = 60_000;

/** A host is asked this often a day for targets of other hosts' robots.txt redirects, each a different URL. */
const mostElsewhere = 100;
const mostElsewhereHosts = 20_000;

/** Limits the memory for parsed files; most take less than 10 KB. */
const maxKeptCharacters = 16 * 1024 * 1024;

const keptFile = { name: "robots-rules.json", maxBytes: 16 * 1024 * 1024, everyMs: 30_000 };

interface KnownRobots {
  readonly answer: RobotsAnswer;
  /** When it is fetched again (`Date.now()`). */
  readonly untilMs: number;
}

export type OriginRobots =
  | {
      readonly type: "known";
      readonly crawlDelaySeconds: number | null;
      /** Why everything is temporarily forbidden, or null when there are rules. */
      readonly closed: string | null;
      /** The report for the coordinator, or null for a cached answer. */
      readonly report: RobotsReport | null;
      verdict(pathAndQuery: string): RobotsVerdict;
      stated(pathAndQuery: string): StatedInRobots[];
    }
  | { readonly type: "unreachable"; readonly failure: Failure; readonly report: RobotsReport | null };

interface RobotsSettings extends RobotsAsking {
  /** Where rules are saved across restarts; without it they are not. */
  readonly kept?: KeptSettings;
}

export class RobotsCache implements RobotsMemory {
  readonly #settings: RobotsSettings;
  readonly #file: KeptFile | null;
  readonly #elsewhere = new LRUCache<string, number>({
    max: mostElsewhereHosts,
    ttl: keptMs,
    noUpdateTTL: true,
  });
  readonly #known = new LRUCache<string, KnownRobots>({
    maxSize: maxKeptCharacters,
    sizeCalculation: ({ answer }) => 200 + sizeOf(answer),
  });

  constructor(settings: RobotsSettings) {
    this.#settings = settings;
    const { kept } = settings;
    this.#file = kept ? new KeptFile({ ...kept, ...keptFile }) : null;
    const found = this.#file?.read((json) => robotsFrom(json, Date.now())) ?? [];
    for (const [origin, known] of found) this.#known.set(origin, known);
  }

  /** Returns null when robots.txt must be fetched. */
  known(origin: string): OriginRobots | null {
    const answer = this.get(origin);
    return answer === null ? null : robotsOf(answer, null);
  }

  /** Fetches an unknown robots.txt over the client's connection, in its host's turn. */
  async of(client: SiteClient, takeTurn: TakeTurn = async () => () => {}): Promise<OriginRobots> {
    const { origin } = client;
    const known = this.known(origin);
    if (known !== null) return known;
    const answer = await this.ask(client, takeTurn);
    // A limit of ours says nothing about the site.
    if (answer.type === "unreachable" && answer.failure.code === "held-back") return robotsOf(answer, null);
    return robotsOf(answer, reportOf(origin, answer));
  }

  /** Returns the answer itself. */
  async ask(client: SiteClient, takeTurn: TakeTurn): Promise<RobotsAnswer> {
    return await askRobots(client, { ...this.#settings, memory: this }, takeTurn);
  }

  get(place: string): RobotsAnswer | null {
    const known = this.#known.get(place);
    return known === undefined || !isGoodAt(Date.now(), known) ? null : known.answer;
  }

  set(place: string, answer: RobotsAnswer): void {
    const isRead = answer.type === "rules" || answer.type === "none";
    this.#known.set(place, { answer, untilMs: Date.now() + (isRead ? keptMs : failureKeptMs) });
    if (isRead) this.#file?.changed(() => keptRobots(this.#known.entries()));
  }

  mayAskElsewhere(host: string): boolean {
    const asked = this.#elsewhere.get(host) ?? 0;
    if (asked < mostElsewhere) this.#elsewhere.set(host, asked + 1);
    return asked < mostElsewhere;
  }

  /** An unavailable robots.txt is not retried before this time (`Date.now()`). */
  notBefore(origin: string, atMs: number): void {
    const known = this.#known.get(origin);
    if (known && atMs > known.untilMs) this.#known.set(origin, { ...known, untilMs: atMs });
  }

  close(): void {
    this.#file?.close();
  }
}

/** A longer validity was saved by a clock that was ahead: RFC 9309 forbids use beyond 24 hours. */
const isGoodAt = (nowMs: number, { untilMs }: KnownRobots) => untilMs > nowMs && untilMs <= nowMs + keptMs;

function robotsOf(answer: RobotsAnswer, report: RobotsReport | null): OriginRobots {
  switch (answer.type) {
    case "rules":
    case "none": {
      const { crawlDelaySeconds } = answer.rules;
      const verdict = (path: string) => robotsVerdict(answer.rules, path);
      const stated = (path: string) => usesOfPath(answer.rules.uses, path);
      return { type: "known", crawlDelaySeconds, closed: null, report, verdict, stated };
    }
    case "closed": {
      const verdict = () => ({ allowed: false, rule: answer.why, line: null });
      const { why: closed } = answer;
      return { type: "known", crawlDelaySeconds: null, closed, report, verdict, stated: () => [] };
    }
    case "unreachable":
      return { type: "unreachable", failure: answer.failure, report };
  }
}

function reportOf(origin: string, answer: RobotsAnswer): RobotsReport {
  if (answer.type !== "rules") return { state: answer.type, crawlDelaySeconds: null, sitemaps: [] };
  const { crawlDelaySeconds } = answer.rules;
  return {
    state: "rules",
    crawlDelaySeconds: crawlDelaySeconds === null ? null : Math.min(86_400, crawlDelaySeconds),
    sitemaps: sitemapUrls(answer.rules, `${origin}/robots.txt`),
    difference: answer.difference,
  };
}

function sizeOf(answer: RobotsAnswer): number {
  if (answer.type !== "rules") return 0;
  const { rules, sitemaps, uses } = answer.rules;
  const text = rules.reduce((sum, rule) => sum + 200 + 2 * rule.length, 0);
  const stated = uses.lines.reduce((sum, { value }) => sum + 500 + 3 * value.length, 0);
  return text + stated + sitemaps.reduce((sum, sitemap) => sum + sitemap.length, 0);
}

// Saves robots.txt rules so that a restart does not cost every host another request: the lines that apply to us, with
// their numbers and expiry. Only rules that were read are saved; closed or silent sites are asked again. Files of
// version 1 lack the statements about page uses and are ignored, so no `search=no` goes unnoticed for a day after an
// upgrade.

/** Saves the most recent origins while their rules' text stays below this. */
const maxOrigins = 5000;

const maxCharacters = 4 * 1024 * 1024;
const longestMs = 24 * 3_600_000;

const line = z.tuple([z.int().min(1), z.union([z.literal(0), z.literal(1)]), z.string().max(16_384)]);

const useLine = z.object({ field: z.enum(useFields), value: z.string().max(2000), line: z.int().min(1) });

const uses = z.object({
  lines: z.array(useLine).max(2 * maxUseLines),
  leftOut: z.object({ lines: z.int().min(0), denied: z.array(z.enum(contentUses)).max(contentUses.length) }),
});

const entry = z.object({
  origin: z.string().max(300),
  untilMs: z.number(),
  none: z.boolean(),
  crawlDelaySeconds: z.number().min(0).nullable(),
  sitemaps: z.array(z.string().max(maxUrlLength)).max(50),
  agents: z.array(z.string().max(400)).max(20),
  cut: z.boolean(),
  lines: z.array(line).max(100_000),
  /** Absent when it states nothing. */
  uses: uses.optional(),
});

const file = z.object({ version: z.literal(2), origins: z.array(z.unknown()).max(maxOrigins) });

type Entry = z.infer<typeof entry>;

/** The most recent come first. */
function keptRobots(known: Iterable<[string, KnownRobots]>): unknown {
  const origins: Entry[] = [];
  let characters = 0;
  for (const [origin, { answer, untilMs }] of known) {
    if (answer.type !== "rules" && answer.type !== "none") continue;
    const { rules, uses, ...rest } = answer.rules;
    const lines = rules.map((rule): Entry["lines"][number] => [rule.line, rule.allow ? 1 : 0, rule.source]);
    characters += lines.reduce((sum, [, , value]) => sum + value.length + 20, 200);
    characters += uses.lines.reduce((sum, { value }) => sum + value.length + 60, 0);
    if (origins.length === maxOrigins || characters > maxCharacters) break;
    const none = answer.type === "none";
    origins.push({
      origin,
      untilMs,
      none,
      ...rest,
      sitemaps: [...rest.sitemaps],
      agents: [...rest.agents],
      lines,
      ...(uses.lines.length === 0 ? {} : { uses: keptUses(uses) }),
    });
  }
  return { version: 2, origins };
}

function keptUses({ lines, leftOut }: RobotsUses): Entry["uses"] {
  return { lines: [...lines], leftOut: { lines: leftOut.lines, denied: [...leftOut.denied] } };
}

/** The most recent come last; null for invalid JSON. Expired or damaged entries are dropped. */
export function robotsFrom(json: unknown, nowMs: number): [string, KnownRobots][] | null {
  const read = file.safeParse(json);
  if (!read.success) return null;
  return read.data.origins.flatMap((one) => knownFrom(one, nowMs)).reverse();
}

function knownFrom(one: unknown, nowMs: number): [string, KnownRobots][] {
  const read = entry.safeParse(one);
  if (!read.success) return [];
  const { origin, untilMs, none, lines, uses = noUses, ...rest } = read.data;
  if (untilMs <= nowMs || untilMs > nowMs + longestMs) return [];
  const rules = lines
    .map(([number, allow, value]) => robotsRule(allow === 1, value, number))
    .filter((rule): rule is RobotsRule => rule !== null)
    .sort(byPrecedence);
  return [[origin, { answer: { type: none ? "none" : "rules", rules: { rules, uses, ...rest } }, untilMs }]];
}
