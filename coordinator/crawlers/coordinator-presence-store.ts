/**
 * Coordinators that share a database: which run, and which one leads. Each has a number, holds an advisory lock of it on a
 * connection of its own (gone when the coordinator is, however it ended), and counts up the beats of its row, which the
 * others watch with clocks of their own (a machine that is lost may keep its connection for hours). Nobody's wall clock
 * matters, the database's included.
 *
 *   runs ── lock lost, or no beat for 10 s ──► gone ── 20 s later ──► its crawlers that came to no other are offline
 *
 * One leads: it does what is done once for the fleet. When it is gone, another takes the lead, by one statement that
 * succeeds for one of them. What the former one still writes is refused (`fence`), should it only have been asleep.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { NoLongerLeads } from "#core/errors";
import type { CrawlerId } from "#core/ids";
import { canParseUrl } from "#core/ip/url-host";
import type { Log } from "#core/log";
import { coordinatorLockKey, heldCoordinatorLocks } from "#db/coordinator-locks";
import { tell } from "#db/schema-channel";
import { mostCoordinators } from "#protocol/coordinator-messages";
import { connectedState } from "./control-store.ts";

const lockAgainMs = 1000;

const beatMs = 2000;

/** Its lock is held, by a machine that may be gone: so long, and so many looks, without a beat, and it counts as gone. */
const silentMs = 10_000;

const silentLooks = 4;

/** Beats came no later than this, or this coordinator may have lost the lead without knowing. */
const lapsedMs = 8000;

/** Crawlers of one that is gone have so long to come to another. */
const absentMs = 20_000;

/** An address that nobody was reached at for a day is forgotten. */
const addressHours = 24;

/** How often it is said that an address is still good. */
const addressMs = 300_000;

/** Whoever is silent and did not come back is told of for so long. */
const silentToldMs = 24 * 3_600_000;

const lockKey = coordinatorLockKey();

/**
 * Numbers of the coordinators whose connection stands. Asked for alone: an engine that spreads statements over servers (Citus)
 * joins no catalogue with its tables. Who is in a table that was read before had its lock by then.
 */
async function lockedNumbers(client: Pool | PoolClient): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ number: number }>(
    `select l.objid::bigint::integer as number ${heldCoordinatorLocks()}`,
  );
  return new Set(rows.map(({ number }) => number));
}

/** Whether a coordinator works on this database now. */
export async function coordinatorRuns(pool: Pool): Promise<boolean> {
  return (await lockedNumbers(pool)).size > 0;
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
  const { rows } = await pool.query<{ number: number }>(
    "select distinct coordinator_number as number from crawler where coordinator_number is not null",
  );
  const locked = await lockedNumbers(pool);
  const gone = rows.map(({ number }) => number).filter((number) => !locked.has(number));
  await pool.query(
    `update crawler
     set ${absent},
         coordinator_number = $3
     where coordinator_number is null or coordinator_number = any ($4)`,
    [reason, now, coordinatorNumber, gone],
  );
}

/** Throws NoLongerLeads in a transaction of one that does not lead (any more). */
export async function fence(client: PoolClient, coordinatorNumber: number): Promise<void> {
  const { rowCount } = await client.query("select from fleet_lead where coordinator_number = $1", [
    coordinatorNumber,
  ]);
  if (rowCount === 0) throw new NoLongerLeads();
}

export interface PresenceHooks {
  /** The lead is this coordinator's: memory is brought up to date before its duties begin. */
  onLead(): Promise<void>;
  /** Another one has come or gone. */
  onOthers(): void;
  /** Others may have taken this coordinator for gone, and notices been missed. */
  onRegained(): Promise<void>;
  /** Crawlers of coordinators that are gone count as offline from now on. */
  onTakenOver(crawlers: number): Promise<void>;
  readonly log: Log;
  readonly now: () => Date;
}

interface Seen {
  readonly beats: number;
  /** By this coordinator's own clock: of the beat, and since when it is gone. */
  readonly atMs: number;
  /** How often it was looked at since the beat. A database that stood still, stood still for all. */
  readonly looks: number;
  readonly goneMs: number | null;
}

/** One that stopped beating without having said that it ends. */
export interface SilentCoordinator {
  /** Host and port, or its number. */
  readonly name: string;
  readonly forMs: number;
}

interface Look {
  readonly own_beats: number;
  readonly lead: number | null;
  readonly term: number;
  readonly others: readonly {
    readonly number: number;
    readonly beats: number;
    readonly name: string | null;
  }[];
}

export class CoordinatorPresence {
  readonly number: number;
  readonly #pool: Pool;
  /** Monotonic. */
  readonly #nowMs: () => number;
  readonly #name: string | null;
  #client: PoolClient | null = null;
  #hooks: PresenceHooks | null = null;
  #seen = new Map<number, Seen>();
  #others: ReadonlySet<number> = new Set();
  /** By number; those that ended say so, and are not among them. */
  readonly #silent = new Map<number, { readonly name: string; readonly sinceMs: number }>();
  #othersNames: ReadonlySet<string> = new Set();
  #leaderlessSinceMs: number | null = null;
  /** As of the last look: whose the lead is; null: nobody's. */
  #seenLead: number | null = null;
  /** The term that is this coordinator's, and whether its memory is up to date for it. */
  #term: number | null = null;
  #isReady = false;
  #beatAtMs = 0;
  #crawlerUrl: string | null = null;
  #saidUrlAtMs = Number.NEGATIVE_INFINITY;
  #turn: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  private constructor(pool: Pool, number: number, nowMs: () => number, name: string | null) {
    this.#pool = pool;
    this.number = number;
    this.#nowMs = nowMs;
    this.#name = name;
  }

  /** Where nobody leads, this one does from the start. `name`: by which the others tell people of it. */
  static async begin(
    pool: Pool,
    nowMs = () => performance.now(),
    name: string | null = null,
  ): Promise<CoordinatorPresence> {
    const { rows } = await pool.query<{ number: number }>(
      "select nextval('coordinator_number')::integer as number",
    );
    const presence = new CoordinatorPresence(pool, rows[0]!.number, nowMs, name);
    await presence.#lock();
    await presence.look();
    return presence;
  }

  /** Whether this one does what is done once for the fleet. */
  get leads(): boolean {
    return this.#term !== null && this.#isReady && this.isPresent;
  }

  /** Whether others see it as one that runs, as far as is known here. */
  get isPresent(): boolean {
    if (this.#others.size === 0) return true;
    return this.#client !== null && this.#nowMs() - this.#beatAtMs < lapsedMs;
  }

  /** The same, or it is about to: its memory is being brought up to date. */
  get holdsLead(): boolean {
    return this.#term !== null;
  }

  /** Numbers of the others that run. */
  get others(): ReadonlySet<number> {
    return this.#others;
  }

  /** For how long nobody has led as far as is seen from here, or this one has not come to do so; 0: somebody does. */
  get leaderlessMs(): number {
    return this.#leaderlessSinceMs === null ? 0 : this.#nowMs() - this.#leaderlessSinceMs;
  }

  /** Those that are silent and have not come back, by the same name or as they were. */
  get silentOthers(): readonly SilentCoordinator[] {
    const nowMs = this.#nowMs();
    return [...this.#silent.values()]
      .filter(({ name, sinceMs }) => nowMs - sinceMs < silentToldMs && !this.#othersNames.has(name))
      .map(({ name, sinceMs }) => ({ name, forMs: nowMs - sinceMs }));
  }

  /** By the clock from now on. */
  follow(hooks: PresenceHooks): void {
    this.#hooks = hooks;
    this.#next();
  }

  /** Listens there from now on. */
  async stateAddress(crawlerUrl: string): Promise<void> {
    this.#crawlerUrl = crawlerUrl;
    await this.#sayAddress();
  }

  /** The lead and the crawlers are others' at once. */
  async end(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#turn;
    const client = this.#client;
    this.#client = null;
    this.#term = null;
    if (client === null) return;
    await this.#sayEnd(client).catch(() => {});
    client.release(true);
  }

  async #sayEnd(client: PoolClient): Promise<void> {
    await client.query("begin");
    await client.query(
      `with ended as (delete from running_coordinator where coordinator_number = $1)
       update fleet_lead set coordinator_number = null where coordinator_number = $1`,
      [this.number],
    );
    const notice = JSON.stringify({ type: "presence", from: this.number });
    await tell(client, "nearcrawl_coordinators", [notice]);
    await client.query("commit");
  }

  /** Beats, sees who else does, and takes the lead where nobody has it. */
  async look(): Promise<void> {
    await this.#inTurn(async () => {
      try {
        await this.#look();
      } finally {
        this.#noteLead();
      }
    });
  }

  /** Of those connected here, the ones that others have taken for absent. */
  async takeBack(connected: readonly CrawlerId[]): Promise<void> {
    await this.#pool.query(
      `update crawler
       set state = ${connectedState}, offline_reason = null, coordinator_number = $2
       where crawler_id = any($1) and state = 'offline'`,
      [connected, this.number],
    );
  }

  async #look(): Promise<void> {
    const client = this.#client;
    if (client === null || this.#stopped) return;
    const beganMs = this.#nowMs();
    const { rows } = await client.query<Look>(lookSql, [this.number, this.#name]);
    const look = rows[0]!;
    // A coordinator has its lock before its row: who is not locked now is gone.
    const locked = look.others.length === 0 ? new Set<number>() : await lockedNumbers(client);
    this.#beatAtMs = beganMs;
    this.#seenLead = look.lead;
    const wasGone = look.own_beats === 1 && this.#hooks !== null;
    this.#note(look, locked);
    if (look.lead === this.number) this.#term ??= look.term;
    else this.#loseLead();
    if (look.lead !== this.number && (look.lead === null || !this.#others.has(look.lead)))
      await this.#takeLead(client, look);
    if (wasGone) await this.#hooks?.onRegained();
    if (this.#term !== null) await this.#lead();
    if (this.#crawlerUrl !== null && beganMs - this.#saidUrlAtMs >= addressMs) await this.#sayAddress();
  }

  #noteLead(): void {
    const isLed =
      this.#term === null
        ? this.#seenLead !== null && this.#others.has(this.#seenLead)
        : this.#isReady || this.#hooks === null;
    this.#leaderlessSinceMs = isLed ? null : (this.#leaderlessSinceMs ?? this.#nowMs());
  }

  #note({ others }: Look, locked: ReadonlySet<number>): void {
    const nowMs = this.#nowMs();
    const seen = new Map<number, Seen>();
    for (const { number, beats, name } of others) {
      const before = this.#seen.get(number);
      const isSilent = before?.beats === beats;
      const [atMs, looks] = isSilent ? [before.atMs, before.looks + 1] : [nowMs, 0];
      const isGone = !locked.has(number) || (nowMs - atMs >= silentMs && looks >= silentLooks);
      seen.set(number, { beats, atMs, looks, goneMs: isGone ? (before?.goneMs ?? nowMs) : null });
      this.#noteSilence(number, { name: name ?? `number ${number}`, isGone });
    }
    this.#othersNames = new Set(
      others.flatMap(({ name, number }) =>
        name !== null && seen.get(number)?.goneMs === null ? [name] : [],
      ),
    );
    // Whose row is gone has ended; what it could not say of its crawlers any more is found out in time.
    for (const [number, { goneMs, ...before }] of this.#seen) {
      const sinceMs = goneMs ?? nowMs;
      if (!seen.has(number) && nowMs - sinceMs < 2 * absentMs)
        seen.set(number, { ...before, goneMs: sinceMs });
    }
    this.#seen = seen;
    const running = new Set([...seen].filter(([, { goneMs }]) => goneMs === null).map(([number]) => number));
    const isSame = running.size === this.#others.size && [...running].every((one) => this.#others.has(one));
    this.#others = running;
    if (!isSame) this.#hooks?.onOthers();
  }

  /** One that was killed and started again at the same place is this one. */
  #noteSilence(number: number, { name, isGone }: { readonly name: string; readonly isGone: boolean }): void {
    if (!isGone || name === this.#name) this.#silent.delete(number);
    else if (!this.#silent.has(number)) this.#silent.set(number, { name, sinceMs: this.#nowMs() });
  }

  async #takeLead(client: PoolClient, { lead, term }: Look): Promise<void> {
    const { rows } = await client.query<{ term: number }>(
      `insert into fleet_lead as l (coordinator_number, term, since)
       values ($1, 1, now())
       on conflict (only_one) do update
         set coordinator_number = excluded.coordinator_number, term = l.term + 1, since = excluded.since
         where l.coordinator_number is not distinct from $2 and l.term = $3
       returning term::float8 as term`,
      [this.number, lead, term],
    );
    if (rows[0] === undefined) return;
    this.#term = rows[0].term;
    // Before `follow`, nothing has been read yet.
    this.#isReady = this.#hooks === null;
    this.#hooks?.log.warn({ term: this.#term, before: lead }, "this coordinator leads from now on");
  }

  async #lead(): Promise<void> {
    const hooks = this.#hooks;
    if (hooks === null) return;
    const isNew = !this.#isReady;
    const nowMs = this.#nowMs();
    const gone = [...this.#seen]
      .filter(([, { goneMs }]) => goneMs !== null && nowMs - goneMs >= absentMs)
      .map(([number]) => number);
    if (gone.length > 0 || isNew) {
      const crawlers = await this.#takeOver(gone, hooks.now());
      if (crawlers > 0) await hooks.onTakenOver(crawlers);
    }
    if (!isNew) return;
    await hooks.onLead();
    this.#isReady = true;
  }

  /** Crawlers of those, and of such as nobody knows any more. */
  async #takeOver(gone: readonly number[], now: Date): Promise<number> {
    const { rowCount } = await this.#pool.query(
      `update crawler
       set ${absent},
           coordinator_number = $3
       where state <> 'offline'
         and (
           coordinator_number = any($4) or coordinator_number is null
           or coordinator_number not in (select coordinator_number from running_coordinator)
         )`,
      ["the coordinator that it was connected to is gone", now, this.number, gone],
    );
    await this.#pool.query("delete from running_coordinator where coordinator_number = any($1)", [gone]);
    for (const number of gone) this.#seen.delete(number);
    return rowCount ?? 0;
  }

  #loseLead(): void {
    if (this.#term === null) return;
    this.#hooks?.log.warn({ term: this.#term }, "another coordinator leads by now");
    this.#term = null;
    this.#isReady = false;
  }

  async #sayAddress(): Promise<void> {
    await this.#pool.query(
      `with forgotten as (
         delete from coordinator_address
         where seen_at < now() - interval '${addressHours} hours' and crawler_url <> $1
       )
       insert into coordinator_address (crawler_url, seen_at)
       values ($1, now())
       on conflict (crawler_url) do update set seen_at = excluded.seen_at`,
      [this.#crawlerUrl],
    );
    this.#saidUrlAtMs = this.#nowMs();
  }

  #next(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.look()
        .catch((error: unknown) => {
          this.#hooks?.log.error({ error }, "the other coordinators could not be looked at, will look again");
        })
        .finally(() => this.#next());
    }, beatMs);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
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
        async () => {
          await this.look().catch(() => {});
          await this.#hooks?.onRegained().catch(() => {});
        },
        () => {},
      );
    }
  }
}

const lookSql = `
  with beat as (
    insert into running_coordinator as r (coordinator_number, beats, name)
    values ($1, 1, $2)
    on conflict (coordinator_number) do update set beats = r.beats + 1
    returning beats
  )
  select beat.beats::float8 as own_beats, l.coordinator_number as lead, coalesce(l.term, 0)::float8 as term,
    coalesce((
      select jsonb_agg(jsonb_build_object(
        'number', o.coordinator_number, 'beats', o.beats, 'name', o.name
      ))
      from running_coordinator o
      where o.coordinator_number <> $1
    ), '[]') as others
  from beat
  left join fleet_lead l on true`;

/** Where crawlers reach the coordinators of this database: those that ran last first. */
export async function coordinatorAddresses(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ crawler_url: string }>(
    `select crawler_url
     from coordinator_address
     where seen_at >= now() - interval '${addressHours} hours'
     order by seen_at desc, crawler_url
     limit ${mostCoordinators}`,
  );
  return rows.map((row) => row.crawler_url);
}

/** Of a page's address, where the crawlers' socket is beside it. */
export function socketUrl(text: string): string {
  if (!canParseUrl(text)) return text;
  const url = new URL(text);
  if (url.pathname === "/") url.pathname = "/crawler";
  return url.href.replace(/^http/, "ws");
}

// Table coordinator_place: where partners reach the coordinator and what it crawls, as it said itself when it last started.

const usualBackupHours = 48;

interface CoordinatorPlace {
  /** http:// or https://. */
  readonly webUrl: string;
  /** SHA-256 of the SubjectPublicKeyInfo of its certificate, base64url; null: it has none of its own. */
  readonly certificatePin: string | null;
  /** `webUrl` was set: a proxy with another certificate may stand there. */
  readonly hasPublicUrl?: boolean;
  /** Its own (`domainSets` of its settings), as text; left out: none. */
  readonly domainSets?: readonly string[];
  /** After how many hours without a backup people are told (`backup.warnAfterHours`); null: never; left out: 48. */
  readonly backupWarnHours?: number | null;
}

export async function stateCoordinatorPlace(pool: Pool, place: CoordinatorPlace, now: Date): Promise<void> {
  await pool.query(
    `insert into coordinator_place (web_url, certificate_pin, has_public_url, domain_sets, backup_warn_hours, stated_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (only_one) do update
       set web_url = excluded.web_url, certificate_pin = excluded.certificate_pin,
           has_public_url = excluded.has_public_url, domain_sets = excluded.domain_sets,
           backup_warn_hours = excluded.backup_warn_hours, stated_at = excluded.stated_at`,
    [
      ...[place.webUrl, place.certificatePin, place.hasPublicUrl ?? false, place.domainSets ?? []],
      place.backupWarnHours === undefined ? usualBackupHours : place.backupWarnHours,
      now,
    ],
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
