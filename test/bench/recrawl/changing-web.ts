/** A web whose pages change at rates that differ a lot, and which of the stored copies are the current ones. */
import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { importanceOf } from "#core/recrawl/recrawl-plan";
import type { RunningWorld } from "#ops/world/main";
import { type ChangeProcess, PageChanges } from "#ops/world/page-changes";
import { hashText, SeededRandom } from "#ops/world/seeded-random";

/** Median time between two changes of a page, and the spread of its logarithm between hosts and between a host's pages. */
const medianSeconds = 40;
const hostSpread = 1;
const pageSpread = 0.8;

/** In time that is scaled: what changes every 40 seconds stands for what changes once in a week. */
export function changingWeb(seed: number, startMs: number): ChangeProcess {
  const normalOf = (name: string) => new SeededRandom(hashText(seed, name)).normal();
  return {
    seed,
    startMs,
    changesPerDay: (host, path) =>
      86_400 /
      (medianSeconds * Math.exp(hostSpread * normalOf(host) + pageSpread * normalOf(`${host}${path}`))),
  };
}

export interface FreshShares {
  readonly pages: number;
  /** Of the pages that were fetched at least once, those whose stored digest is the current one's. */
  readonly plain: number;
  /** By importance (core/recrawl/recrawl-plan). */
  readonly weighted: number;
}

/** Looks at the stored digests and at what the origins would send now. */
export class FreshnessMeter {
  readonly #pool: Pool;
  readonly #internet: RunningWorld;
  /** The same changes as the origins', which are drawn from the seed alone. */
  readonly #changes: PageChanges;
  readonly #digests = new Map<string, { readonly version: number; readonly digest: string }>();

  constructor(pool: Pool, internet: RunningWorld, process: ChangeProcess) {
    this.#pool = pool;
    this.#internet = internet;
    this.#changes = new PageChanges(process);
  }

  async look(): Promise<FreshShares> {
    const { rows } = await this.#pool.query<{ url: string; digest: string; back_links: number }>(
      "select url, encode(digest, 'hex') as digest, back_links from frontier_url where digest is not null",
    );
    let [fresh, freshWeight, weight] = [0, 0, 0];
    for (const row of rows) {
      const importance = importanceOf({ pageRank: null, backLinks: row.back_links }, 0);
      const isFresh = row.digest === this.#current(row.url);
      weight += importance;
      fresh += isFresh ? 1 : 0;
      freshWeight += isFresh ? importance : 0;
    }
    const pages = Math.max(1, rows.length);
    return { pages: rows.length, plain: fresh / pages, weighted: freshWeight / Math.max(1, weight) };
  }

  #current(url: string): string | null {
    const { host, pathname } = new URL(url);
    const { version } = this.#changes.at(host, pathname, Date.now());
    const known = this.#digests.get(url);
    if (known?.version === version) return known.digest;
    const body = this.#internet.currentBody(host, pathname);
    if (body === null) return null;
    const digest = createHash("sha256").update(body).digest("hex");
    // It may have changed once more in between.
    if (this.#changes.at(host, pathname, Date.now()).version === version)
      this.#digests.set(url, { version, digest });
    return digest;
  }
}
