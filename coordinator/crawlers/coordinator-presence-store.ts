/**
 * Coordinators that share a database. Each has a number, and an advisory lock of it on a connection of its own: the lock
 * is gone when the coordinator is, however it ended. A crawler's row names the coordinator that it is, or was last,
 * connected to. Only that one says that it left, and gives its subnets away; when that one is gone, another takes over.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import { connectedState } from "./control-store.ts";

const lockAgainMs = 1000;

/** A connection may break and come back; so long without its lock, and a coordinator is gone. */
const goneMs = 10_000;

const lockKey = "hashtext('nearcrawl coordinator ' || current_schema())";

/** Numbers of the coordinators that run. */
const running = `
  select objid::bigint
  from pg_locks
  where locktype = 'advisory' and granted and objsubid = 2
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = ${lockKey}::bigint & 4294967295`;

/** Whether a coordinator works on this database now. */
export async function coordinatorRuns(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ runs: boolean }>(`select exists (${running}) as runs`);
  return rows[0]!.runs;
}

/** Who was offline keeps its reason; $1 is the reason, $2 the time. */
const absent = `
  offline_reason = case when state = 'offline' then offline_reason else $1 end,
  last_seen_at = case when state = 'offline' then last_seen_at else coalesce(last_seen_at, $2) end,
  state = 'offline'`;

/** Nobody is connected to a coordinator that starts: what is no other's that runs is its own from now on. */
export async function takeOverAtStart(
  pool: Pool,
  coordinatorNumber: number | null,
  { reason, now }: { readonly reason: string; readonly now: Date },
): Promise<void> {
  await pool.query(
    `update crawler
     set ${absent},
         coordinator_number = $3
     where coordinator_number is null or coordinator_number not in (${running})`,
    [reason, now, coordinatorNumber],
  );
}

export class CoordinatorPresence {
  readonly number: number;
  readonly #pool: Pool;
  /** Others that have no lock, and since when. */
  readonly #missing = new Map<number, number>();
  #client: PoolClient | null = null;
  #stopped = false;
  /** The connection was lost, and others may have taken this coordinator for gone. */
  onRegained: () => void = () => {};

  private constructor(pool: Pool, number: number) {
    this.#pool = pool;
    this.number = number;
  }

  static async begin(pool: Pool): Promise<CoordinatorPresence> {
    const { rows } = await pool.query<{ number: number }>(
      "select nextval('coordinator_number')::integer as number",
    );
    const presence = new CoordinatorPresence(pool, rows[0]!.number);
    await presence.#lock();
    return presence;
  }

  async end(): Promise<void> {
    this.#stopped = true;
    this.#client?.release(true);
    this.#client = null;
  }

  /** How many other coordinators run. */
  async others(): Promise<number> {
    const { rows } = await this.#pool.query<{ others: number }>(
      `select count(*)::int as others from (${running}) r where objid <> $1`,
      [this.number],
    );
    return rows[0]!.others;
  }

  /**
   * Takes over the crawlers of coordinators that are gone; returns how many. `nowMs`: a clock that never goes back. Of
   * one that runs and has nobody connected, those that are absent too: it has nobody to give their subnets to.
   */
  async takeOver(reason: string, now: Date, nowMs: number): Promise<number> {
    const gone = await this.#gone(nowMs);
    const { rowCount } = await this.#pool.query(
      `update crawler
       set ${absent},
           coordinator_number = $3
       where coordinator_number = any($4)
         or (
           state = 'offline' and coordinator_number is distinct from $3
           and exists (select from crawler o where o.state <> 'offline' and o.coordinator_number = $3)
           and not exists (
             select from crawler o
             where o.state <> 'offline' and o.coordinator_number = crawler.coordinator_number
           )
         )`,
      [reason, now, this.number, gone],
    );
    return rowCount ?? 0;
  }

  /** Of those connected here, the ones that others have taken over as absent. */
  async takeBack(connected: readonly CrawlerId[]): Promise<void> {
    await this.#pool.query(
      `update crawler
       set state = ${connectedState}, offline_reason = null, coordinator_number = $2
       where crawler_id = any($1) and state = 'offline'`,
      [connected, this.number],
    );
  }

  async #gone(nowMs: number): Promise<number[]> {
    const { rows } = await this.#pool.query<{ number: number }>(
      `select distinct coordinator_number as number
       from crawler
       where coordinator_number <> $1 and coordinator_number not in (${running})`,
      [this.number],
    );
    const missing = rows.map((row) => row.number);
    for (const number of this.#missing.keys()) if (!missing.includes(number)) this.#missing.delete(number);
    for (const number of missing) if (!this.#missing.has(number)) this.#missing.set(number, nowMs);
    return missing.filter((number) => nowMs - (this.#missing.get(number) ?? nowMs) >= goneMs);
  }

  async #lock(): Promise<void> {
    const client = await this.#pool.connect();
    client.on("error", (error) => {
      if (this.#client !== client) return;
      this.#client = null;
      client.release(error);
      void this.#lockAgain();
    });
    try {
      // Waits where Postgres has not noticed yet that the connection before is lost.
      await client.query(`select pg_advisory_lock(${lockKey}, $1)`, [this.number]);
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (this.#stopped) client.release(true);
    else this.#client = client;
  }

  async #lockAgain(): Promise<void> {
    while (!this.#stopped && this.#client === null) {
      await delay(lockAgainMs, undefined, { ref: false });
      if (this.#stopped) return;
      await this.#lock().then(
        () => this.onRegained(),
        () => {},
      );
    }
  }
}

// Table coordinator_place: where partners reach the coordinator and what it crawls, as it said itself when it last started.

interface CoordinatorPlace {
  /** http:// or https://. */
  readonly webUrl: string;
  /** SHA-256 of the SubjectPublicKeyInfo of its certificate, base64url; null: it has none of its own. */
  readonly certificatePin: string | null;
  /** `webUrl` was set: a proxy with another certificate may stand there. */
  readonly hasPublicUrl?: boolean;
  /** Its own (`domainSets` of its settings), as text; left out: none. */
  readonly domainSets?: readonly string[];
}

export async function stateCoordinatorPlace(pool: Pool, place: CoordinatorPlace, now: Date): Promise<void> {
  await pool.query(
    `insert into coordinator_place (web_url, certificate_pin, has_public_url, domain_sets, stated_at)
     values ($1, $2, $3, $4, $5)
     on conflict (only_one) do update
       set web_url = excluded.web_url, certificate_pin = excluded.certificate_pin,
           has_public_url = excluded.has_public_url, domain_sets = excluded.domain_sets, stated_at = excluded.stated_at`,
    [place.webUrl, place.certificatePin, place.hasPublicUrl ?? false, place.domainSets ?? [], now],
  );
}

/** Null: no coordinator has started here yet. */
export async function readCoordinatorPlace(pool: Pool): Promise<CoordinatorPlace | null> {
  const { rows } = await pool.query<{
    web_url: string;
    certificate_pin: string | null;
    has_public_url: boolean;
    domain_sets: string[];
  }>("select web_url, certificate_pin, has_public_url, domain_sets from coordinator_place");
  const [row] = rows;
  if (!row) return null;
  return {
    webUrl: row.web_url,
    certificatePin: row.certificate_pin,
    hasPublicUrl: row.has_public_url,
    domainSets: row.domain_sets,
  };
}
