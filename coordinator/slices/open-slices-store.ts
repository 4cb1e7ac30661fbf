/**
 * The slices that there are, each behind a pool of connections of its own, for as long as this process uses them. The catalogue
 * is read again and again: slices come, buckets change hands, and servers go down and come back while a coordinator runs. What it
 * says may be some seconds old, which does no harm: who may write a host is each slice's own to know (frontier/slice-hold-store).
 */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { within } from "#core/within";
import { createPool, type Database, withSearchPath } from "#db/server-database";
import { readServerUrl, withSessionName } from "#db/server-url";
import { sliceOfNumber } from "#db/slice-numbers";
import { type OpenSlice, oneSlice, type Slices } from "../database/slices.ts";
import { type Catalogue, leadsMs, readCatalogue, type SliceEntry } from "./catalogue-store.ts";

/** A server that does not answer for so long counts as down. */
const answerMs = 3000;

export interface PoolOptions {
  readonly maxConnections?: number;
  readonly statementTimeoutMs?: number;
}

/** What a slice says of itself. */
export interface SliceSelf {
  readonly slice: number;
  /** Its ranges of buckets, as Postgres writes a multirange. */
  readonly held: string;
}

export interface SliceFinding {
  readonly number: number;
  readonly self: SliceSelf | null;
  /** Why its server does not answer; null: it does. */
  readonly fault: string | null;
}

export class OpenSlices implements Slices {
  readonly shared: Pool;
  readonly #database: Pick<Database, "url" | "schema">;
  readonly #views: SlicePools[] = [];
  readonly #own: SlicePools;
  #catalogue: Catalogue | null = null;
  /** By `performance.now()`, before it was read. */
  #readMs = Number.NEGATIVE_INFINITY;
  #down: readonly number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closesShared = false;

  private constructor(database: Pick<Database, "pool" | "url" | "schema">, options: PoolOptions) {
    this.shared = database.pool;
    this.#database = database;
    this.#own = new SlicePools(database.pool, (entry) => this.#poolOf(entry, options));
    this.#views.push(this.#own);
  }

  /** `database` stays open when this is closed. */
  static async open(
    database: Pick<Database, "pool" | "url" | "schema">,
    options: PoolOptions = {},
  ): Promise<OpenSlices> {
    const slices = new OpenSlices(database, options);
    await slices.refresh();
    return slices;
  }

  get catalogue(): Catalogue {
    return this.#catalogue!;
  }

  get open(): readonly OpenSlice[] {
    return this.#own.open;
  }

  get down(): readonly number[] {
    return this.#down;
  }

  ofHost(hostHash: HostHash): OpenSlice {
    return this.#own.of(this.ownerOf(hostHash));
  }

  ofNumber(number: string): OpenSlice {
    return this.#own.of(sliceOfNumber(number));
  }

  ownerOf(hostHash: HostHash): number {
    return this.catalogue.slices.length === 1 ? 0 : this.catalogue.owners.ofHost(hostHash);
  }

  /** Whether that coordinator works at the slice, as far as was heard of late: not after having slept. */
  isLedBy(coordinator: number, slice: number): boolean {
    return performance.now() - this.#readMs < leadsMs && this.catalogue.leads.get(slice) === coordinator;
  }

  /** Reads the catalogue anew. */
  async refresh(): Promise<Catalogue> {
    const readMs = performance.now();
    const catalogue = await readCatalogue(this.shared);
    this.#catalogue = catalogue;
    this.#readMs = readMs;
    for (const view of this.#views) view.update(catalogue.slices);
    return catalogue;
  }

  /** Asks each slice for itself. */
  async look(): Promise<readonly SliceFinding[]> {
    const findings = await Promise.all(this.open.map(async (slice) => await finding(slice)));
    this.#down = findings.filter(({ fault }) => fault !== null).map(({ number }) => number);
    return findings;
  }

  /** Again and again from now on. */
  follow(everyMs: number): void {
    const turn = async () => {
      try {
        await this.refresh();
        if (this.open.length > 1) await this.look();
      } catch {
        // The shared tables' server is away: everybody waits for it, and what was known goes on being so.
      }
      if (this.#timer !== undefined) this.#timer = setTimeout(turn, everyMs).unref();
    };
    this.#timer = setTimeout(turn, everyMs).unref();
  }

  /** The shared tables' pool is this one's own. */
  closeShared(): void {
    this.#closesShared = true;
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const view of this.#views) await view.close();
    if (this.#closesShared) await this.shared.end();
  }

  #poolOf(entry: SliceEntry, { maxConnections, statementTimeoutMs = 0 }: PoolOptions): Pool {
    const register = entry.serverUrl === null ? null : this.shared;
    return createPool(sliceUrl(entry, this.#database), maxConnections, statementTimeoutMs, register);
  }
}

/**
 * For a command, or for pages: behind connections of their own where `options` say how. Slices that do not answer are known to be
 * down. Closed by whoever opened it; the database is not.
 */
export async function openSlices(
  database: Pick<Database, "pool" | "url" | "schema">,
  options?: PoolOptions,
): Promise<OpenSlices> {
  const shared =
    options === undefined
      ? null
      : createPool(database.url, options.maxConnections, options.statementTimeoutMs);
  try {
    const slices = await OpenSlices.open(shared === null ? database : { ...database, pool: shared }, options);
    if (shared !== null) slices.closeShared();
    if (slices.open.length > 1) await slices.look();
    return slices;
  } catch (error) {
    await shared?.end();
    throw error;
  }
}

/** For every connection to a slice: its own tables first, then the shared ones, or their replica. */
export function sliceUrl(
  { serverUrl, schema }: Pick<SliceEntry, "serverUrl" | "schema">,
  shared: Pick<Database, "url" | "schema">,
): string {
  if (schema === null) return shared.url;
  const url =
    serverUrl === null ? shared.url : withSessionName(serverUrl, readServerUrl(shared.url).sessionName);
  return withSearchPath(url, schema, shared.schema);
}

async function finding({ number, pool }: OpenSlice): Promise<SliceFinding> {
  try {
    const answer = await within(
      answerMs,
      pool.query<SliceSelf>("select slice_number as slice, held::text as held from slice_self"),
    );
    if (answer === null)
      return { number, self: null, fault: `its server has not answered for ${answerMs / 1000} s` };
    return { number, self: answer.rows[0] ?? null, fault: null };
  } catch (error) {
    return { number, self: null, fault: (error as Error).message };
  }
}

/** Pools by slice; slice 0's is that of the shared tables, which others close. */
class SlicePools {
  readonly #create: (entry: SliceEntry) => Pool;
  readonly #pools = new Map<number, { readonly key: string; readonly slice: OpenSlice }>();
  readonly #first: OpenSlice;
  #open: readonly OpenSlice[];

  constructor(shared: Pool, create: (entry: SliceEntry) => Pool) {
    this.#create = create;
    this.#first = oneSlice(shared).open[0]!;
    this.#open = [this.#first];
  }

  get open(): readonly OpenSlice[] {
    return this.#open;
  }

  of(number: number): OpenSlice {
    return this.#pools.get(number)?.slice ?? this.#first;
  }

  update(entries: readonly SliceEntry[]): void {
    const others = entries.filter(
      ({ number, state }) => number !== 0 && state !== "preparing" && state !== "removing",
    );
    let isChanged = false;
    for (const entry of others) {
      const key = `${entry.serverUrl} ${entry.schema}`;
      const known = this.#pools.get(entry.number);
      if (known?.key === key) continue;
      if (known !== undefined) void known.slice.pool.end().catch(() => {});
      this.#pools.set(entry.number, { key, slice: { number: entry.number, pool: this.#create(entry) } });
      isChanged = true;
    }
    for (const [number, { slice }] of this.#pools) {
      if (others.some((entry) => entry.number === number)) continue;
      this.#pools.delete(number);
      void slice.pool.end().catch(() => {});
      isChanged = true;
    }
    if (isChanged)
      this.#open = [
        this.#first,
        ...[...this.#pools.values()].map(({ slice }) => slice).sort((a, b) => a.number - b.number),
      ];
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()].map(({ slice }) => slice.pool);
    this.#pools.clear();
    await Promise.all(pools.map(async (pool) => await pool.end().catch(() => {})));
  }
}
