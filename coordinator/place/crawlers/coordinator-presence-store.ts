/**
 * Keeps track of which coordinators share a database and which one leads. Each has a number, holds an advisory lock on it on
 * a connection of its own (released when the coordinator ends, for whatever reason), and increments a heartbeat counter in
 * its row. The others time that counter with their own monotonic clocks, because a lost machine may keep its connection for
 * hours. No wall clock matters, not even the database's.
 *
 *     runs ── lock lost ── gone ── 5 s later ── row removed, sessions ended ── 20 s later ── its crawlers that are not
 *       └──── under 3 beats in 8 s ───────────── row removed, sessions ended ──┘            connected elsewhere: offline
 *
 * A frozen or cut-off coordinator keeps its lock, and its transactions keep their rows, so all others wait. The first to
 * notice removes its row and ends its sessions (db/advisory-lock): open transactions roll back and new sessions are refused.
 * The replaced coordinator notices and starts over under a new number.
 *
 * The leader does what is done once for the fleet. When it is gone, another takes the lead with one statement that only one
 * coordinator can win. `fence` refuses later writes of a former leader that merely lost its lock.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { gatherArrivals } from "#core/coalesce";
import { NoLongerLeads, Replaced } from "#core/errors";
import type { CrawlerId } from "#core/ids";
import { type Log, silentLog } from "#core/log";
import { within } from "#core/timer-ms";
import { coordinatorLockKey, coordinatorSession, endSessions, heldCoordinatorLocks } from "#db/advisory-lock";
import { tell } from "#db/schema-channel";
import { sqlStateOf } from "../../database/transaction.ts";
import { connectedState } from "./control-store.ts";
import { addressHours } from "./coordinator-place-store.ts";
import type { SessionEndCode } from "./sessions.ts";
import { isSilent, recentLooks, type Seen } from "./silent-coordinators.ts";

const lockAgainMs = 1000;

/** Must exceed the time in which a server notices that its client is gone (db/server-pool). */
const lockMs = 20_000;

const beatMs = 1000;

/** Time without a beat or without its lock after which a coordinator may have been replaced without knowing it. */
const lapsedMs = 5000;

/** Time the crawlers of a lost coordinator have to connect to another one. */
const absentMs = 20_000;

/** How often an address is confirmed. */
const addressMs = 300_000;

/** For how long a silent coordinator is reported. */
const silentToldMs = 24 * 3_600_000;

const lockKey = coordinatorLockKey();

/**
 * Returns the numbers of coordinators whose lock is held. A separate query, because Citus cannot join the catalogue with its
 * own tables. A coordinator whose row was read before this query had taken its lock by then.
 */
async function lockedNumbers(client: Pool | PoolClient): Promise<ReadonlySet<number>> {
  const { rows } = await client.query<{ number: number }>(
    `select l.objid::bigint::integer as number ${heldCoordinatorLocks()}`,
  );
  return new Set(rows.map(({ number }) => number));
}

export const coordinatorRuns = async (pool: Pool): Promise<boolean> => (await lockedNumbers(pool)).size > 0;

/** Crawlers that are already offline keep their reason and code. $1 is the reason, $2 the time. */
const absent = `
  offline_reason = case when state = 'offline' then offline_reason else $1 end,
  offline_code = case when state = 'offline' then offline_code else '${"coordinator-gone" satisfies SessionEndCode}' end,
  last_seen_at = case when state = 'offline' then last_seen_at else coalesce(last_seen_at, $2) end,
  state = 'offline'`;

/** At its start, a coordinator takes over every crawler that belongs to no running coordinator. */
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

/** Throws NoLongerLeads inside the transaction when this coordinator does not lead. */
export async function fence(client: PoolClient, coordinatorNumber: number): Promise<void> {
  const { rowCount } = await client.query("select from fleet_lead where coordinator_number = $1", [
    coordinatorNumber,
  ]);
  if (rowCount === 0) throw new NoLongerLeads();
}

interface Registered {
  readonly number: number;
  readonly schema: string;
}

interface PresenceOptions {
  readonly nowMs?: () => number;
  /** The name under which other coordinators report this one. */
  readonly name?: string | null;
  /** Opens a pool of that session name for the lock and the beats. Default: the pool passed to `begin`, which nobody closes. */
  readonly sessions?: (sessionName: string) => Pool;
  readonly log?: Log;
}

interface PresenceHooks {
  /** Called when this coordinator takes the lead. Its duties begin once its memory is up to date. */
  onLead(): Promise<void>;
  /** Called when another coordinator starts or ends. */
  onOthers(): void;
  /** Called after a gap in which others may have replaced this coordinator or in which notifications may be lost. */
  onRegained(): Promise<void>;
  /** Called when crawlers of lost coordinators are marked offline. */
  onTakenOver(crawlers: number): Promise<void>;
  readonly now: () => Date;
}

/** A coordinator that stopped beating without announcing its end. */
export interface SilentCoordinator {
  /** Host and port, or its number if they are unknown. */
  readonly name: string;
  readonly forMs: number;
}

interface Look {
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
  readonly #log: Log;
  readonly #schema: string;
  /** Resolves with a reason when other coordinators have replaced this one, which must then start over. */
  readonly replaced: Promise<string>;
  #onReplaced: (words: string) => void = () => {};
  #isReplaced = false;
  readonly #ownsPool: boolean;
  readonly #nowMs: () => number;
  readonly #name: string | null;
  readonly #takingBack = gatherArrivals(async (connected: readonly CrawlerId[]) => {
    await this.#pool.query(
      `update crawler
       set state = ${connectedState}, offline_reason = null, offline_code = null, coordinator_number = $2
       where crawler_id = any($1) and state = 'offline'`,
      [connected, this.number],
    );
    return connected;
  });
  #client: PoolClient | null = null;
  #hooks: PresenceHooks | null = null;
  #seen = new Map<number, Seen>();
  #others: ReadonlySet<number> = new Set();
  /** Locks without a row when last checked. Their coordinators are ending, or their sessions have not ended yet. */
  #strayLocks: ReadonlySet<number> = new Set();
  /** Keyed by coordinator number. Coordinators that end normally announce it and are not listed. */
  readonly #silent = new Map<number, { readonly name: string; readonly sinceMs: number }>();
  #othersNames: ReadonlySet<string> = new Set();
  #leaderlessSinceMs: number | null = null;
  /** The leader when last checked. Null if there was none. */
  #seenLead: number | null = null;
  /** The term in which this coordinator leads, and whether its memory is up to date for it. */
  #term: number | null = null;
  #firstTerm: number | null = null;
  #isReady = false;
  #beatAtMs = 0;
  #crawlerUrl: string | null = null;
  #saidUrlAtMs = Number.NEGATIVE_INFINITY;
  #turn: Promise<void> = Promise.resolve();
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  private constructor(pool: Pool, { number, schema }: Registered, options: PresenceOptions) {
    const { nowMs = () => performance.now(), name = null, sessions, log = silentLog } = options;
    this.number = number;
    this.#schema = schema;
    this.#pool = sessions?.(this.sessionName) ?? pool;
    this.#ownsPool = this.#pool !== pool;
    this.#nowMs = nowMs;
    this.#name = name;
    this.#log = log;
    this.replaced = new Promise((resolve) => {
      this.#onReplaced = resolve;
    });
  }

  /** Takes the lead if no coordinator has it. Beats from now on, even while the start waits for locks. */
  static async begin(pool: Pool, options: PresenceOptions = {}): Promise<CoordinatorPresence> {
    // The row must come first, because sessions with an unregistered number are refused.
    const { rows } = await pool.query<Registered>(
      `insert into running_coordinator (coordinator_number, beats, name)
       values (nextval('coordinator_number'), 0, $1)
       returning coordinator_number as number, current_schema() as schema`,
      [options.name ?? null],
    );
    const presence = new CoordinatorPresence(pool, rows[0]!, options);
    try {
      await presence.#lock();
      await presence.look();
      presence.#firstTerm = presence.#term;
    } catch (error) {
      await presence.end();
      throw error;
    }
    if (options.sessions !== undefined) presence.#next();
    return presence;
  }

  get sessionName(): string {
    return coordinatorSession(this.number, this.#schema);
  }

  /** Whether this coordinator is the leader and ready for its duties. */
  get leads(): boolean {
    return this.#term !== null && this.#isReady && this.isPresent;
  }

  /** Whether the others see it as running, as far as this coordinator knows. */
  get isPresent(): boolean {
    return !this.#isReplaced && (this.#others.size === 0 || this.reachesDatabase);
  }

  /** If false, others may have replaced this coordinator without its knowledge. */
  get reachesDatabase(): boolean {
    return !this.#isReplaced && this.#client !== null && this.#nowMs() - this.#beatAtMs < lapsedMs;
  }

  /** Unlike `leads`, also true while the memory is still being updated. */
  get holdsLead(): boolean {
    return this.#term !== null;
  }

  get others(): ReadonlySet<number> {
    return this.#others;
  }

  /** How long there has been no leader, or this leader has not been ready. 0 while there is a leader. */
  get leaderlessMs(): number {
    return this.#leaderlessSinceMs === null ? 0 : this.#nowMs() - this.#leaderlessSinceMs;
  }

  /** Silent coordinators that have not come back, under their old number or their name. */
  get silentOthers(): readonly SilentCoordinator[] {
    const nowMs = this.#nowMs();
    return [...this.#silent.values()]
      .filter(({ name, sinceMs }) => nowMs - sinceMs < silentToldMs && !this.#othersNames.has(name))
      .map(({ name, sinceMs }) => ({ name, forMs: nowMs - sinceMs }));
  }

  follow(hooks: PresenceHooks): void {
    this.#hooks = hooks;
    // Data read since `begin` may lack the former leader's last changes.
    if (this.#term !== this.#firstTerm) this.#isReady = false;
    if (this.#timer === undefined) this.#next();
  }

  async stateAddress(crawlerUrl: string): Promise<void> {
    this.#crawlerUrl = crawlerUrl;
    await this.#sayAddress();
  }

  /** Gives up the lead and the crawlers at once. */
  async end(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await within(lapsedMs, this.#turn);
    const client = this.#client;
    this.#client = null;
    this.#term = null;
    if (client !== null) {
      await within(lapsedMs, this.#sayEnd(client)).catch(() => {});
      client.release(true);
    }
    if (this.#ownsPool) await within(lapsedMs, this.#pool.end());
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

  /** Beats, checks the other coordinators, and takes the lead if no coordinator has it. */
  async look(): Promise<void> {
    this.#looking ??= this.#inTurn(async () => {
      try {
        await this.#look();
      } finally {
        this.#looking = null;
        this.#noteLead();
      }
    });
    await this.#looking;
  }

  /** Reclaims a crawler that is connected here but that others may have marked absent. */
  async takeBack(crawlerId: CrawlerId): Promise<void> {
    await this.#takingBack.ask(crawlerId);
  }

  async #look(): Promise<void> {
    const client = this.#client;
    if (client === null || this.#stopped) return;
    const beganMs = this.#nowMs();
    // On a slow connection the coordinator keeps its lock until it is replaced. If it lost it, others would count it as gone
    // while it holds row locks.
    const answer = await within(lockMs, this.#ask(client));
    if (answer === null) return this.#drop(client, new Error(`no answer within ${lockMs / 1000} s`));
    const { look, locked } = answer;
    if (look === undefined) return this.#noteReplaced();
    this.#beatAtMs = beganMs;
    this.#seenLead = look.lead;
    for (const number of this.#note(look, locked)) await this.#replace(client, number);
    if (look.lead === this.number) this.#term ??= look.term;
    else this.#loseLead();
    if (look.lead !== this.number && (look.lead === null || !this.#others.has(look.lead)))
      await this.#takeLead(client, look);
    if (this.#term !== null) await this.#lead();
    if (this.#crawlerUrl !== null && beganMs - this.#saidUrlAtMs >= addressMs) await this.#sayAddress();
  }

  /** Reads the rows before the locks. A coordinator whose lock is not held by then is gone or has not started. */
  async #ask(client: PoolClient): Promise<{ look: Look | undefined; locked: ReadonlySet<number> }> {
    const { rows } = await client.query<Look>(lookSql, [this.number]);
    return { look: rows[0], locked: await lockedNumbers(client) };
  }

  /** Replaces a connection that broke or was ended by the server. */
  #drop(client: PoolClient, error: Error): void {
    if (this.#client !== client) return;
    this.#client = null;
    client.release(error);
    void this.#lockAgain();
  }

  #noteReplaced(): void {
    if (this.#isReplaced) return;
    this.#isReplaced = true;
    this.#stopped = true;
    this.#term = null;
    this.#onReplaced(new Replaced().message);
  }

  /** Removes the row before ending sessions, since a session opened in between would otherwise survive. */
  async #replace(client: PoolClient, number: number): Promise<void> {
    await client.query("delete from running_coordinator where coordinator_number = $1", [number]);
    const name = coordinatorSession(number, this.#schema);
    const before = { coordinator: number };
    try {
      const sessions = (await within(lapsedMs, endSessions(client, name))) ?? 0;
      if (sessions > 0) this.#log.warn({ ...before, sessions }, "a coordinator that is frozen was cut off");
    } catch (error) {
      const words =
        sqlStateOf(error) === "42501"
          ? "sessions of a frozen coordinator have another role, which this one may not end: what they have locked stays so for 30 s"
          : "sessions of a frozen coordinator could not be ended";
      this.#log.error({ ...before, error }, words);
    }
  }

  #noteLead(): void {
    const isLed =
      this.#term === null
        ? this.#seenLead !== null && this.#others.has(this.#seenLead)
        : this.#isReady || this.#hooks === null;
    this.#leaderlessSinceMs = isLed ? null : (this.#leaderlessSinceMs ?? this.#nowMs());
  }

  /** Returns the coordinators that must be replaced. */
  #note({ others }: Look, locked: ReadonlySet<number>): number[] {
    const nowMs = this.#nowMs();
    const seen = new Map<number, Seen>();
    const listed = new Set(others.map(({ number }) => number));
    const strays = [...locked].filter((number) => number !== this.number && !listed.has(number));
    const replaced = strays.filter((number) => this.#strayLocks.has(number));
    this.#strayLocks = new Set(strays);
    for (const { number, beats, name } of others) {
      const before = this.#seen.get(number);
      const looks = recentLooks([...(before?.looks ?? []), { beats, atMs: nowMs }]);
      const isFrozen = locked.has(number) && isSilent(looks);
      const isGone = !locked.has(number) || isFrozen;
      const isLost = isGone && before?.goneMs != null && nowMs - before.goneMs >= lapsedMs;
      if (isFrozen || isLost) replaced.push(number);
      seen.set(number, { looks, goneMs: isGone ? (before?.goneMs ?? nowMs) : null });
      this.#noteSilence(number, { name: name ?? `number ${number}`, isGone });
    }
    this.#othersNames = new Set(
      others.flatMap(({ name, number }) =>
        name !== null && seen.get(number)?.goneMs === null ? [name] : [],
      ),
    );
    // A coordinator whose row is gone has ended. Crawlers that it did not report are found later.
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
    return replaced;
  }

  /** A coordinator that was killed and restarted at the same address counts as the same one. */
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
    this.#isReady = this.#hooks === null;
    this.#log.warn({ term: this.#term, before: lead }, "this coordinator leads from now on");
  }

  async #lead(): Promise<void> {
    const hooks = this.#hooks;
    if (hooks === null) return;
    const isNew = !this.#isReady;
    const nowMs = this.#nowMs();
    const ended = [...this.#seen].filter(([, { goneMs }]) => goneMs !== null);
    const isAbsent = ([, { goneMs }]: (typeof ended)[number]) => nowMs - goneMs! >= absentMs;
    const gone = ended.filter(isAbsent).map(([number]) => number);
    const going = ended.filter((one) => !isAbsent(one)).map(([number]) => number);
    if (gone.length > 0 || isNew) {
      const crawlers = await this.#takeOver({ gone, going }, hooks.now());
      if (crawlers > 0) await hooks.onTakenOver(crawlers);
    }
    if (!isNew) return;
    await hooks.onLead();
    this.#isReady = true;
  }

  /** Takes over the crawlers of these coordinators and of unknown ones. */
  async #takeOver(
    { gone, going }: { readonly gone: readonly number[]; readonly going: readonly number[] },
    now: Date,
  ): Promise<number> {
    const { rowCount } = await this.#pool.query(
      `update crawler
       set ${absent},
           coordinator_number = $3
       where state <> 'offline'
         and (
           coordinator_number = any($4) or coordinator_number is null
           or coordinator_number not in (select coordinator_number from running_coordinator)
             and coordinator_number <> all ($5)
         )`,
      ["the coordinator that it was connected to is gone", now, this.number, gone, going],
    );
    await this.#pool.query("delete from running_coordinator where coordinator_number = any($1)", [gone]);
    for (const number of gone) this.#seen.delete(number);
    return rowCount ?? 0;
  }

  #loseLead(): void {
    if (this.#term === null) return;
    this.#log.warn({ term: this.#term }, "another coordinator leads by now");
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
          this.#log.error({ error }, "the other coordinators could not be looked at, will look again");
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
    client.on("error", (error) => this.#drop(client, error));
    try {
      // Waits while Postgres has not yet noticed that the former connection is lost.
      const lock = client.query(`select pg_advisory_lock(${lockKey}, $1)`, [this.number]);
      if ((await within(lockMs, lock)) === null) throw new Error(`no lock within ${lockMs / 1000} s`);
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
        (error: unknown) => {
          if (error instanceof Replaced) this.#noteReplaced();
        },
      );
    }
  }
}

/** Returns no row if this coordinator was replaced. */
const lookSql = `
  with beat as (
    update running_coordinator set beats = beats + 1
    where coordinator_number = $1
    returning coordinator_number
  )
  select l.coordinator_number as lead, coalesce(l.term, 0)::float8 as term,
    coalesce((
      select jsonb_agg(jsonb_build_object(
        'number', o.coordinator_number, 'beats', o.beats, 'name', o.name
      ))
      from running_coordinator o
      where o.coordinator_number <> $1
    ), '[]') as others
  from beat
  left join fleet_lead l on true`;
