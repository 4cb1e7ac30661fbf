/**
 * `/.well-known/tdmrep.json` of origins (preferences/tdm-reservation), remembered for a day, over restarts too. It is a
 * request more for each origin and says nothing of search, so that it is asked for only where it costs little beside the
 * pages that are asked for at once (`fromUrls`), and only where robots.txt allows it. Redirects are followed within the
 * origin, three times. What cannot be had is no file: the report has it so, and it is not asked for again for an hour.
 */
import { LRUCache } from "lru-cache";
import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";
import { Failure } from "../core/failure.ts";
import { KeptFile, type KeptSettings } from "../limits/state-file.ts";
import { maxTdmFileBytes, parseTdmFile, type TdmRule, TdmRules } from "../preferences/tdm-reservation.ts";
import { askSmallFile, readWantedBody, type TakeBytes, type TakeTurn } from "./ask-robots.ts";
import type { SiteClient } from "./site-client.ts";

const filePath = "/.well-known/tdmrep.json";
const keptMs = 24 * 3_600_000;
const failureKeptMs = 3_600_000;
const maxRedirects = 3;

/** Memory for rules; nearly every origin has none. */
const maxKeptCharacters = 4 * 1024 * 1024;

const keptFile = { name: "tdm-rules.json", maxBytes: 8 * 1024 * 1024, everyMs: 30_000 };
/** What is written at most: the origins met last. */
const maxOrigins = 5000;
const maxWrittenCharacters = 2 * 1024 * 1024;

const none = { type: "answer", rules: [], keepMs: keptMs } as const;

interface KnownFile {
  readonly rules: TdmRules;
  /** It is asked for again from then on (`Date.now()`). */
  readonly untilMs: number;
}

interface TdmFilesSettings {
  /** Asked for where so many URLs of an origin are to be fetched at once; 0: never. */
  readonly fromUrls: number;
  readonly userAgent: () => string;
  readonly take: TakeBytes;
  /**
   * Where rules are kept over a restart, in the folder that supervisors of earlier releases let a crawler write; absent:
   * nowhere.
   */
  readonly kept?: KeptSettings;
}

export class TdmFiles {
  readonly #settings: TdmFilesSettings;
  readonly #file: KeptFile | null;
  readonly #known = new LRUCache<string, KnownFile>({
    maxSize: maxKeptCharacters,
    sizeCalculation: ({ rules }) => 200 + charactersOf(rules.rules),
  });

  constructor(settings: TdmFilesSettings) {
    this.#settings = settings;
    this.#file = settings.kept ? new KeptFile({ ...settings.kept, ...keptFile }) : null;
    const found = this.#file?.read((json) => keptFrom(json, Date.now())) ?? [];
    for (const [origin, known] of found) this.#known.set(origin, known);
  }

  /** The origin's rules; null when they are not known. */
  known(origin: string): TdmRules | null {
    const known = this.#known.get(origin);
    const leftMs = (known?.untilMs ?? 0) - Date.now();
    // What is good for longer was kept by a clock that was ahead.
    return leftMs <= 0 || leftMs > keptMs ? null : known!.rules;
  }

  /** Whether the file is worth a request, where so many URLs of the origin are to be fetched. */
  pays(urls: number): boolean {
    const { fromUrls } = this.#settings;
    return fromUrls > 0 && urls >= fromUrls;
  }

  /** Asks for the file, each request in its host's turn. Throws nothing but what `takeTurn` throws. */
  async ask(client: SiteClient, takeTurn: TakeTurn, allows: (path: string) => boolean): Promise<void> {
    const answer = await this.#askFile(client, takeTurn, allows);
    if (answer === "held-back") return;
    const { rules, keepMs } = answer;
    this.#known.set(client.origin, { rules: new TdmRules(rules), untilMs: Date.now() + keepMs });
    this.#file?.changed(() => keptJson(this.#known.entries()));
  }

  close(): void {
    this.#file?.close();
  }

  async #askFile(
    client: SiteClient,
    takeTurn: TakeTurn,
    allows: (path: string) => boolean,
  ): Promise<{ readonly rules: readonly TdmRule[]; readonly keepMs: number } | "held-back"> {
    let path = filePath;
    for (let redirects = 0; redirects <= maxRedirects && allows(path); redirects++) {
      const step = await this.#step(client, path, takeTurn);
      if (step.type === "redirect") {
        const next = canParseUrl(step.location, client.origin + path)
          ? new URL(step.location, client.origin + path)
          : null;
        if (next?.origin !== client.origin) return none;
        path = next.pathname + next.search;
        continue;
      }
      return step.type === "held-back" ? "held-back" : step;
    }
    return none;
  }

  async #step(client: SiteClient, path: string, takeTurn: TakeTurn): Promise<Step> {
    const endTurn = await takeTurn(client);
    const read = await askSmallFile(client, this.#fileAt(path), endTurn);
    if (read instanceof Failure)
      return read.code === "held-back" ? { type: "held-back" } : { ...none, keepMs: failureKeptMs };
    const { status, bytes, location } = read;
    if (bytes !== null) return { ...none, rules: parseTdmFile(bytes) };
    if (location !== null) return { type: "redirect", location };
    return status === 429 || status >= 500 ? { ...none, keepMs: failureKeptMs } : none;
  }

  #fileAt(path: string): Parameters<typeof askSmallFile>[1] {
    const { userAgent, take } = this.#settings;
    return {
      ...{ path, accept: "application/json,*/*;q=0.5", of: "page", userAgent, take },
      read: async (answer) =>
        answer.status === 200 ? await readWantedBody(answer, { limit: maxTdmFileBytes + 1, take }) : null,
    };
  }
}

type Step =
  | { readonly type: "answer"; readonly rules: readonly TdmRule[]; readonly keepMs: number }
  | { readonly type: "redirect"; readonly location: string }
  /** A limit of ours came between: nothing is known. */
  | { readonly type: "held-back" };

function charactersOf(rules: readonly TdmRule[]): number {
  return rules.reduce((sum, { location, policy }) => sum + 300 + 3 * location.length + policy.length, 0);
}

// As it lies on disk: somebody's bytes when it is read again.

const rule = z.object({ location: z.string().max(2000), reserved: z.boolean(), policy: z.string().max(500) });
const entry = z.object({ origin: z.string().max(300), untilMs: z.number(), rules: z.array(rule).max(501) });
const file = z.object({ version: z.literal(1), origins: z.array(z.unknown()).max(maxOrigins) });

/** Those met last first. */
function keptJson(known: Iterable<[string, KnownFile]>): z.input<typeof file> {
  const origins: z.infer<typeof entry>[] = [];
  let characters = 0;
  for (const [origin, { rules, untilMs }] of known) {
    characters += 100 + charactersOf(rules.rules);
    if (origins.length === maxOrigins || characters > maxWrittenCharacters) break;
    origins.push({ origin, untilMs, rules: [...rules.rules] });
  }
  return { version: 1, origins };
}

/** Those met last last; null when the JSON is not ours. What is too old, or damaged, is left out. */
function keptFrom(json: unknown, nowMs: number): [string, KnownFile][] | null {
  const read = file.safeParse(json);
  if (!read.success) return null;
  const known = read.data.origins.flatMap((one): [string, KnownFile][] => {
    const { data } = entry.safeParse(one);
    if (data === undefined || data.untilMs <= nowMs || data.untilMs > nowMs + keptMs) return [];
    return [[data.origin, { rules: new TdmRules(data.rules), untilMs: data.untilMs }]];
  });
  return known.reverse();
}
