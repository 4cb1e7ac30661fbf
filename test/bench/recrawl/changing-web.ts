/** A web whose pages change at rates that differ a lot, and which of the stored copies are the current ones. */
import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { importanceOf } from "#coordinator/recrawl/recrawl-plan";
import type { RunningWorld } from "#ops/world/main";
import { hashText, SeededRandom } from "#ops/world/seeded-random";
import { type ChangeProcess, PageChanges } from "#ops/world/world-state";

/** Spread of the logarithm of a page's rate between hosts and between a host's pages. */
const hostSpread = 1;
const pageSpread = 0.8;

/** In time that is scaled: `medianSeconds` between two changes of a page. */
export function changingWeb(seed: number, startMs: number, medianSeconds: number): ChangeProcess {
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
  /** By importance (recrawl/recrawl-plan). */
  readonly weighted: number;
  /** Both as they are to be expected of when each page was fetched last, and how often it really changes. */
  readonly expected: number;
  readonly expectedWeighted: number;
}

interface StoredPage {
  readonly url: string;
  readonly digest: string;
  readonly back_links: number;
  readonly fetched_at: Date;
}

/** Looks at the stored digests and at what the origins would send now. */
export class FreshnessMeter {
  readonly #pool: Pool;
  readonly #internet: RunningWorld;
  readonly #process: ChangeProcess;
  /** The same changes as the origins', which are drawn from the seed alone. */
  readonly #changes: PageChanges;
  readonly #digests = new Map<string, { readonly version: number; readonly digest: string }>();

  constructor(pool: Pool, internet: RunningWorld, process: ChangeProcess) {
    this.#pool = pool;
    this.#internet = internet;
    this.#process = process;
    this.#changes = new PageChanges(process);
  }

  async look(): Promise<FreshShares> {
    const { rows } = await this.#pool.query<StoredPage>(
      `select url, encode(digest, 'hex') as digest, back_links, last_fetched_at as fetched_at
       from frontier_url
       where digest is not null`,
    );
    const nowMs = Date.now();
    const looks = rows.map((row) => ({
      importance: importanceOf({ pageRank: null, backLinks: row.back_links }, 0),
      isFresh: row.digest === this.#current(row.url) ? 1 : 0,
      expected: this.#expected(row, nowMs),
    }));
    const weight = Math.max(
      1,
      sum(looks, ({ importance }) => importance),
    );
    const pages = Math.max(1, looks.length);
    return {
      pages: looks.length,
      plain: sum(looks, ({ isFresh }) => isFresh) / pages,
      weighted: sum(looks, ({ isFresh, importance }) => isFresh * importance) / weight,
      expected: sum(looks, ({ expected }) => expected) / pages,
      expectedWeighted: sum(looks, ({ expected, importance }) => expected * importance) / weight,
    };
  }

  /** The chance that a Poisson process has not changed it since: without the luck of the single changes. */
  #expected({ url, fetched_at: fetchedAt }: StoredPage, nowMs: number): number {
    const { host, pathname } = new URL(url);
    const ageDays = Math.max(0, nowMs - fetchedAt.getTime()) / 86_400_000;
    return Math.exp(-this.#process.changesPerDay(host, pathname) * ageDays);
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

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((all, item) => all + of(item), 0);
}
