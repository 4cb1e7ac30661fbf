/**
 * robots.txt of an origin: fetched with up to five redirects, kept for at most 24 hours (RFC 9309 section
 * 2.4). 4xx allows everything, 5xx and 429 forbid everything; without any answer nothing is fetched either,
 * and the caller learns why. A failure is asked for again after ten minutes.
 */
import { LRUCache } from "lru-cache";
import type { Connector } from "../net/connector.ts";
import { type Failure, failureOf } from "../net/failure.ts";
import { dropBody, readBody, type TakeBytes } from "./body.ts";
import {
  maxRobotsBytes,
  parseRobots,
  type RobotsRules,
  type RobotsVerdict,
  robotsVerdict,
} from "./robots-rules.ts";
import { SiteClient, type Timeouts } from "./site-client.ts";

export const productToken = "Nearcrawl";
const maxRedirects = 5;
const keptMs = 24 * 3_600_000;
const failureKeptMs = 10 * 60_000;
/** Memory for parsed files: most take less than 10 KB. */
const maxKeptCharacters = 16 * 1024 * 1024;

type Known =
  | { readonly type: "rules"; readonly rules: RobotsRules; readonly size: number }
  | { readonly type: "closed"; readonly why: string }
  | { readonly type: "unreachable"; readonly failure: Failure };

export type OriginRobots =
  | {
      readonly type: "known";
      /** How long robots.txt took when it was asked for now; null when it was known. */
      readonly askedMs: number | null;
      readonly crawlDelaySeconds: number | null;
      verdict(pathAndQuery: string): RobotsVerdict;
    }
  | { readonly type: "unreachable"; readonly askedMs: number | null; readonly failure: Failure };

export interface RobotsSettings {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly userAgent: () => string;
  readonly take: TakeBytes;
}

export class RobotsCache {
  readonly #settings: RobotsSettings;
  readonly #known = new LRUCache<string, Known>({
    maxSize: maxKeptCharacters,
    sizeCalculation: (known) => 200 + (known.type === "rules" ? known.size : 0),
  });

  constructor(settings: RobotsSettings) {
    this.#settings = settings;
  }

  /** What the site client's origin allows; fetched over its connection when it is not known. */
  async of(client: SiteClient): Promise<OriginRobots> {
    const kept = this.#known.get(client.origin);
    const startedMs = performance.now();
    const known = kept ?? (await this.#ask(client));
    const askedMs = kept ? null : performance.now() - startedMs;
    switch (known.type) {
      case "rules":
        return {
          type: "known",
          askedMs,
          crawlDelaySeconds: known.rules.crawlDelaySeconds,
          verdict: (path) => robotsVerdict(known.rules, path),
        };
      case "closed":
        return {
          type: "known",
          askedMs,
          crawlDelaySeconds: null,
          verdict: () => ({ allowed: false, rule: known.why }),
        };
      case "unreachable":
        return { ...known, askedMs };
    }
  }

  async #ask(client: SiteClient): Promise<Known> {
    const known = await this.#fetch(client).catch(
      (error: unknown): Known => ({ type: "unreachable", failure: failureOf(error) }),
    );
    this.#known.set(client.origin, known, { ttl: known.type === "rules" ? keptMs : failureKeptMs });
    return known;
  }

  async #fetch(client: SiteClient): Promise<Known> {
    let url = new URL("/robots.txt", client.origin);
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const step = await this.#step(client, url);
      if (step.type !== "redirect") return step;
      if (!URL.canParse(step.location, url.href)) return allowsAll;
      url = new URL(step.location, url);
      if (url.protocol !== "http:" && url.protocol !== "https:") return allowsAll;
    }
    return allowsAll;
  }

  async #step(
    client: SiteClient,
    url: URL,
  ): Promise<Known | { readonly type: "redirect"; readonly location: string }> {
    const { connector, timeouts } = this.#settings;
    const elsewhere =
      url.origin === client.origin ? null : new SiteClient({ origin: url.origin, connector, timeouts });
    try {
      return await this.#read(elsewhere ?? client, url);
    } finally {
      await elsewhere?.close();
    }
  }

  async #read(
    client: SiteClient,
    url: URL,
  ): Promise<Known | { readonly type: "redirect"; readonly location: string }> {
    const answer = await client.get({
      path: url.pathname + url.search,
      headers: {
        "user-agent": this.#settings.userAgent(),
        accept: "text/plain,*/*;q=0.5",
        "accept-encoding": "gzip, deflate, br",
      },
    });
    const { status } = answer;
    const location = [answer.headers.location ?? []].flat()[0];
    if (status >= 200 && status < 300) {
      const body = await readBody(answer, maxRobotsBytes, this.#settings.take);
      const rules = parseRobots(body.bytes, productToken);
      return { type: "rules", rules, size: sizeOf(rules) };
    }
    await dropBody(answer);
    if (status >= 300 && status < 400 && location !== undefined) return { type: "redirect", location };
    if (status >= 500 || status === 429) {
      return { type: "closed", why: `robots.txt was answered with ${status}, which forbids everything` };
    }
    return allowsAll;
  }
}

const allowsAll: Known = {
  type: "rules",
  rules: { rules: [], crawlDelaySeconds: null, sitemaps: [] },
  size: 0,
};

function sizeOf(rules: RobotsRules): number {
  const text = rules.rules.reduce((sum, rule) => sum + 100 + 2 * rule.words.length, 0);
  return text + rules.sitemaps.reduce((sum, sitemap) => sum + sitemap.length, 0);
}
