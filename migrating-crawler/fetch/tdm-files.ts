/**
 * Caches `/.well-known/tdmrep.json` of origins (preferences/tdm-reservation) for a day, across restarts. The file costs a
 * request per origin and says nothing about search. It is therefore fetched only if robots.txt allows it and many pages of the
 * origin are fetched at once (`fromUrls`). Three redirects within the origin are followed. An unavailable file counts as
 * absent, as the report defines, and is not fetched again for an hour.
 */
import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";
import { Failure } from "../core/failure.ts";
import type { KeptSettings } from "../limits/state-file.ts";
import { maxTdmFileBytes, parseTdmFile, type TdmRule, TdmRules } from "../preferences/tdm-reservation.ts";
import { askSmallFile, readWantedBody, type TakeBytes, type TakeTurn } from "./ask-robots.ts";
import { OriginMemory } from "./origin-memory.ts";
import type { SiteClient } from "./site-client.ts";

const filePath = "/.well-known/tdmrep.json";
const keptMs = 24 * 3_600_000;
const failureKeptMs = 3_600_000;
const maxRedirects = 3;

const none = { type: "answer", rules: [], keepMs: keptMs } as const;

interface TdmFilesSettings {
  /** Fetches the file if at least this many URLs of an origin are due at once. With 0, never fetches it. */
  readonly fromUrls: number;
  readonly userAgent: () => string;
  readonly take: TakeBytes;
  /**
   * Where rules are saved across restarts, in a folder that supervisors of earlier releases make writable. If absent, they are
   * not saved.
   */
  readonly kept?: KeptSettings;
}

export class TdmFiles {
  readonly #settings: TdmFilesSettings;
  readonly #known: OriginMemory<TdmRules, z.infer<typeof saved>>;

  constructor(settings: TdmFilesSettings) {
    this.#settings = settings;
    this.#known = new OriginMemory({
      kept: settings.kept,
      file: { name: "tdm-rules.json", version: 1, maxBytes: 8 * 1024 * 1024 },
      longestMs: keptMs,
      // Nearly all origins have no rules.
      maxCharacters: 4 * 1024 * 1024,
      maxSavedCharacters: 2 * 1024 * 1024,
      sizeOf: ({ rules }) => charactersOf(rules),
      saved,
      save: ({ rules }) => ({ saved: { rules: [...rules] }, characters: 100 + charactersOf(rules) }),
      load: ({ rules }) => new TdmRules(rules),
    });
  }

  known(origin: string): TdmRules | null {
    return this.#known.get(origin);
  }

  pays(urls: number): boolean {
    const { fromUrls } = this.#settings;
    return fromUrls > 0 && urls >= fromUrls;
  }

  /** Each request takes its host's turn. Throws only what `takeTurn` throws. */
  async ask(client: SiteClient, takeTurn: TakeTurn, allows: (path: string) => boolean): Promise<void> {
    const answer = await this.#askFile(client, takeTurn, allows);
    if (answer === "held-back") return;
    const { rules, keepMs } = answer;
    this.#known.set(client.origin, new TdmRules(rules), keepMs);
  }

  close(): void {
    this.#known.close();
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
  /** A limit of this crawler intervened, so nothing is known. */
  | { readonly type: "held-back" };

function charactersOf(rules: readonly TdmRule[]): number {
  return rules.reduce((sum, { location, policy }) => sum + 300 + 3 * location.length + policy.length, 0);
}

const rule = z.object({ location: z.string().max(2000), reserved: z.boolean(), policy: z.string().max(500) });
const saved = z.object({ rules: z.array(rule).max(501) });
