/**
 * Caches robots.txt by origin for 24 hours (RFC 9309 section 2.4), across restarts. An unavailable file forbids everything and
 * is fetched again when the host's pace allows. Section 2.3.1.4 permits treating a file that was unreachable for 30 days as
 * absent. This crawler does not, because a site that failed for a month has not invited anybody.
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { maxUrlLength } from "#protocol/fields";
import { contentUses } from "#protocol/preferences";
import type { RobotsReport } from "#protocol/result";
import type { Failure } from "../core/failure.ts";
import type { KeptSettings } from "../limits/state-file.ts";
import { byPrecedence, type RobotsRule, robotsRule } from "../preferences/robots-match.ts";
import {
  askRobots,
  type RobotsAnswer,
  type RobotsAsking,
  type RobotsMemory,
  type TakeTurn,
} from "./ask-robots.ts";
import { OriginMemory, savedOrigins } from "./origin-memory.ts";
import { type RobotsVerdict, robotsVerdict, sitemapUrls } from "./robots-rules.ts";
import { maxUseLines, noUses, type StatedInRobots, useFields, usesOfPath } from "./robots-uses.ts";
import type { SiteClient } from "./site-client.ts";

const keptMs = 24 * 3_600_000;

const robotsFile = { name: "robots-rules.json", version: 2, maxBytes: 16 * 1024 * 1024 };

/** Whether this is a saved file in the format of this release. */
export const isRobotsFile = (json: unknown): boolean =>
  savedOrigins(robotsFile.version).safeParse(json).success;

/** An unavailable file is fetched again after this time at the earliest. The host's back-off may be longer. */
const failureKeptMs = 60_000;

/** Maximum number of requests a day to a host because the robots.txt of other hosts redirect there, each with a different URL. */
const mostElsewhere = 100;
const mostElsewhereHosts = 20_000;

export type OriginRobots =
  | {
      readonly type: "known";
      readonly crawlDelaySeconds: number | null;
      /** Why everything is temporarily forbidden. Null if there are rules. */
      readonly closed: string | null;
      /** The report for the coordinator. Null if the answer was cached. */
      readonly report: RobotsReport | null;
      verdict(pathAndQuery: string): RobotsVerdict;
      stated(pathAndQuery: string): StatedInRobots[];
    }
  | { readonly type: "unreachable"; readonly failure: Failure; readonly report: RobotsReport | null };

interface RobotsSettings extends RobotsAsking {
  readonly kept?: KeptSettings;
}

export class RobotsCache implements RobotsMemory {
  readonly #settings: RobotsSettings;
  readonly #elsewhere = new LRUCache<string, number>({
    max: mostElsewhereHosts,
    ttl: keptMs,
    noUpdateTTL: true,
  });
  readonly #known: OriginMemory<RobotsAnswer, Saved>;

  constructor(settings: RobotsSettings) {
    this.#settings = settings;
    this.#known = new OriginMemory({
      kept: settings.kept,
      file: robotsFile,
      longestMs: keptMs,
      // Most parsed files take less than 10 KB.
      maxCharacters: 16 * 1024 * 1024,
      maxSavedCharacters: 4 * 1024 * 1024,
      ...{ sizeOf, saved, save, load },
    });
  }

  /** Returns null if robots.txt must be fetched. */
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
    // A limit of this crawler says nothing about the site.
    if (answer.type === "unreachable" && answer.failure.code === "held-back") return robotsOf(answer, null);
    return robotsOf(answer, reportOf(origin, answer));
  }

  async ask(client: SiteClient, takeTurn: TakeTurn): Promise<RobotsAnswer> {
    return await askRobots(client, { ...this.#settings, memory: this }, takeTurn);
  }

  get(place: string): RobotsAnswer | null {
    return this.#known.get(place);
  }

  set(place: string, answer: RobotsAnswer): void {
    const isRead = answer.type === "rules" || answer.type === "none";
    this.#known.set(place, answer, isRead ? keptMs : failureKeptMs);
  }

  mayAskElsewhere(host: string): boolean {
    const asked = this.#elsewhere.get(host) ?? 0;
    if (asked < mostElsewhere) this.#elsewhere.set(host, asked + 1);
    return asked < mostElsewhere;
  }

  /** Postpones the next fetch of an unavailable robots.txt until `atMs` (`Date.now()`). */
  notBefore(origin: string, atMs: number): void {
    this.#known.notBefore(origin, atMs);
  }

  close(): void {
    this.#known.close();
  }
}

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

// Saves robots.txt rules, so that a restart does not cost every host another request: the lines that apply to this crawler,
// with their numbers and expiry. Only rules that were read are saved. Sites that were closed or silent are asked again. Files
// of version 1 are ignored because they lack the statements about page uses, so that no `search=no` is overlooked for a day
// after an upgrade.

const line = z.tuple([z.int().min(1), z.union([z.literal(0), z.literal(1)]), z.string().max(16_384)]);

const useLine = z.object({ field: z.enum(useFields), value: z.string().max(2000), line: z.int().min(1) });

const uses = z.object({
  lines: z.array(useLine).max(2 * maxUseLines),
  leftOut: z.object({ lines: z.int().min(0), denied: z.array(z.enum(contentUses)).max(contentUses.length) }),
});

const saved = z.object({
  none: z.boolean(),
  crawlDelaySeconds: z.number().min(0).nullable(),
  sitemaps: z.array(z.string().max(maxUrlLength)).max(50),
  agents: z.array(z.string().max(400)).max(20),
  cut: z.boolean(),
  lines: z.array(line).max(100_000),
  uses: uses.optional(),
});

type Saved = z.infer<typeof saved>;

function save(answer: RobotsAnswer): { saved: Saved; characters: number } | null {
  if (answer.type !== "rules" && answer.type !== "none") return null;
  const { rules, uses, sitemaps, agents, crawlDelaySeconds, cut } = answer.rules;
  const { lines: stated, leftOut } = uses;
  const lines = rules.map((rule): Saved["lines"][number] => [rule.line, rule.allow ? 1 : 0, rule.source]);
  const characters =
    lines.reduce((sum, [, , value]) => sum + value.length + 20, 200) +
    stated.reduce((sum, { value }) => sum + value.length + 60, 0);
  const usesSaved = { lines: [...stated], leftOut: { ...leftOut, denied: [...leftOut.denied] } };
  return {
    saved: {
      ...{ none: answer.type === "none", crawlDelaySeconds, cut, lines },
      ...{ sitemaps: [...sitemaps], agents: [...agents] },
      ...(stated.length > 0 && { uses: usesSaved }),
    },
    characters,
  };
}

function load({ none, lines, uses, ...rest }: Saved): RobotsAnswer {
  const rules = lines
    .map(([number, allow, value]) => robotsRule(allow === 1, value, number))
    .filter((rule): rule is RobotsRule => rule !== null)
    .sort(byPrecedence);
  return { type: none ? "none" : "rules", rules: { rules, uses: uses ?? noUses, ...rest } };
}
