/**
 * Tables link_outbox and link_outbox_bite: effects of results on other hosts wait here until they are applied
 * (frontier/link-outbox.ts). A bite is the part that fits into memory. It is summed and applied in steps of one transaction
 * each, so that hosts are not locked for long. Each step locks the bite's row and advances it, so every effect counts once,
 * despite crashes and concurrent coordinators.
 */

import type { Pool, PoolClient } from "pg";
import { asCrawlerId, type CrawlerId, type HostHash, type UrlHash } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import { following } from "../../core/policy.ts";
import { inTransaction, isFaultyValue, listOf, prepared } from "../../database/transaction.ts";
import { type AddedUrls, addUrls, lockHosts, welcomeHosts } from "./admission-writes.ts";
import { NewHostBudget } from "./budgets.ts";
import { chooseNewHosts, type DomainFlood, type NewHosts, releaseDeferred } from "./domain-store.ts";
import { noteForeign, splitByOwner } from "./foreign-url-store.ts";
import type { CrawlScope } from "./frontier.ts";
import type { ScopeSettings } from "./frontier-settings.ts";
import type { KnownUrls } from "./known-urls.ts";
import {
  isAfter,
  type LinkEffect,
  packEffects,
  type SummedEffects,
  sumEffects,
  unpackEffects,
} from "./link-outbox.ts";
import { withoutOptedOut } from "./site-rule-writes.ts";

/** Runs in the results' transaction. Returns the number of effects. */
export async function postEffects(
  client: PoolClient,
  crawlerId: CrawlerId,
  effects: readonly LinkEffect[],
): Promise<number> {
  if (effects.length === 0) return 0;
  await client.query("insert into link_outbox (crawler_id, effects, packed) values ($1, $2, $3)", [
    crawlerId,
    effects.length,
    packEffects(effects),
  ]);
  return effects.length;
}

export interface OutboxSettings {
  readonly scope: CrawlScope;
  readonly newHosts?: NewHostBudget;
  readonly known?: KnownUrls;
  /** Maximum URLs of a bite before summing, at some 400 bytes of memory each. One row is always taken. */
  readonly biteEffects: number;
  /** Maximum URLs per transaction, which bounds how long hosts are locked. */
  readonly stepUrls: number;
  /** A bite without progress for this long may be taken over by anyone. */
  readonly stalledMs: number;
}

export const defaultOutboxBounds = { biteEffects: 100_000, stepUrls: 500, stalledMs: 5000 };

export interface AppliedLinks {
  readonly effects: number;
  readonly newUrls: number;
  readonly newHosts: number;
  readonly floods: readonly CrawlerId[];
  /** Domains and linking sites whose hosts had to wait or were dropped. */
  readonly domains: readonly DomainFlood[];
  /** Why effects that the database cannot store were dropped. */
  readonly faults: readonly string[];
  readonly isFull: boolean;
}

/**
 * Applies one bite. Returns null if nothing waits or another coordinator is applying one. If `stopping` aborts, the next run
 * applies what is left.
 */
export async function applyLinks(
  pool: Pool,
  settings: OutboxSettings,
  now: Date,
  stopping: AbortSignal | null = null,
): Promise<AppliedLinks | null> {
  const bite = await inTransaction(pool, async (client) => await openBite(client, settings, now));
  if (bite === null) return null;
  const read = await readRows(pool, bite);
  if (read === null) return null;
  const total = { newUrls: 0, newHosts: 0, floods: new Set<CrawlerId>(), faults: [] as string[] };
  const domains = new Map<string, DomainFlood>();
  const { namers } = read.sums;
  const left = read.sums.effects.filter((effect) => isAfter(effect, bite.reached));
  let { reached } = bite;
  let done = 0;
  /** Up to this position, effects are applied one by one, so that a faulty one drops no other. */
  let singlyUntil = 0;
  do {
    const end = done + (done < singlyUntil ? 1 : settings.stepUrls);
    const step: Step = { bite, reached, effects: left.slice(done, end), isLast: end >= left.length };
    const applied = await applyStep(pool, { step, namers, settings, now }).catch(async (error: unknown) => {
      if (!isFaultyValue(error)) throw error;
      if (step.effects.length > 1) return "singly";
      total.faults.push((error as Error).message);
      return await inTransaction(pool, async (client) => await leaveOut(client, step));
    });
    if (applied === null) return null;
    if (applied === "singly") {
      singlyUntil = done + step.effects.length;
      continue;
    }
    total.newUrls += applied.newUrls;
    total.newHosts += applied.newHosts;
    for (const crawlerId of applied.floods) total.floods.add(crawlerId);
    for (const flood of applied.domains) {
      const { waiting = 0, leftOut = 0 } = domains.get(flood.domain) ?? {};
      const sum = { waiting: flood.waiting + waiting, leftOut: flood.leftOut + leftOut };
      domains.set(flood.domain, { ...flood, ...sum });
    }
    reached = step.effects.at(-1) ?? reached;
    done = end;
  } while (done < left.length && stopping?.aborted !== true);
  return {
    ...total,
    effects: read.effects,
    floods: [...total.floods],
    domains: [...domains.values()],
    isFull: read.effects >= settings.biteEffects,
  };
}

interface Bite {
  readonly number: string;
  readonly rows: readonly string[];
  readonly reached: { readonly hostHash: HostHash; readonly urlHash: UrlHash } | null;
}

const mostRows = 5000;

async function openBite(client: PoolClient, bounds: OutboxSettings, now: Date): Promise<Bite | null> {
  const { rows } = await client.query<{
    bite_number: string;
    outbox_numbers: string[];
    reached_host: HostHash | null;
    reached_url: UrlHash | null;
    is_stalled: boolean;
  }>(
    `select bite_number, outbox_numbers, reached_host, reached_url,
       moved_at not between clock_timestamp() - $1 * interval '1 millisecond' and clock_timestamp() as is_stalled
     from link_outbox_bite
     for update skip locked`,
    [bounds.stalledMs],
  );
  const [known] = rows;
  if (known === undefined) return null;
  if (known.outbox_numbers.length > 0) {
    if (!known.is_stalled) return null;
    await client.query("update link_outbox_bite set moved_at = clock_timestamp()");
    const { reached_host: hostHash, reached_url: urlHash } = known;
    const reached = hostHash === null || urlHash === null ? null : { hostHash, urlHash };
    return { number: known.bite_number, rows: known.outbox_numbers, reached };
  }
  await releaseDeferred(client, now);
  const chosen = await oldestRows(client, bounds.biteEffects);
  if (chosen.length === 0) return null;
  const { rows: begun } = await client.query<{ bite_number: string }>(
    `update link_outbox_bite
     set bite_number = bite_number + 1, outbox_numbers = $1, moved_at = clock_timestamp()
     returning bite_number`,
    [chosen],
  );
  return { number: begun[0]!.bite_number, rows: chosen, reached: null };
}

async function oldestRows(client: PoolClient, biteEffects: number): Promise<string[]> {
  const { rows } = await client.query<{ outbox_number: string }>(
    `select outbox_number
     from (
       select outbox_number, sum(effects) over (order by outbox_number) - effects as effects_before
       from (
         select outbox_number, effects from link_outbox order by outbox_number limit ${mostRows}
       ) oldest
     ) summed
     where effects_before < $1
     order by outbox_number`,
    [biteEffects],
  );
  return rows.map((row) => row.outbox_number);
}

/** Null if another coordinator has finished the bite. */
async function readRows(
  pool: Pool,
  bite: Bite,
): Promise<{ readonly sums: SummedEffects; readonly effects: number } | null> {
  const { rows } = await pool.query<{ crawler_id: number; packed: Buffer }>(
    `select crawler_id, packed
     from link_outbox
     where outbox_number = any($1::bigint[])
     order by outbox_number`,
    [bite.rows],
  );
  if (rows.length < bite.rows.length) return null;
  const unpacked = rows.map(({ crawler_id, packed }) => ({
    crawlerId: asCrawlerId(crawler_id),
    effects: unpackEffects(packed),
  }));
  const effects = unpacked.reduce((sum, row) => sum + row.effects.length, 0);
  return { sums: sumEffects(unpacked), effects };
}

interface Step {
  readonly bite: Bite;
  readonly reached: Bite["reached"];
  readonly effects: readonly LinkEffect[];
  readonly isLast: boolean;
}

interface StepAt {
  readonly step: Step;
  readonly namers: SummedEffects["namers"];
  readonly settings: OutboxSettings;
  readonly now: Date;
}

interface Applied {
  readonly newUrls: number;
  readonly newHosts: number;
  readonly floods: readonly CrawlerId[];
  readonly domains: readonly DomainFlood[];
}

/** Null if another coordinator has advanced the bite. */
async function applyStep(pool: Pool, at: StepAt): Promise<Applied | null> {
  const { newHosts } = at.settings;
  const done = await inTransaction(pool, async (client) => {
    if (!(await holdBite(client, at.step))) return null;
    const applied = await applyEffects(client, at);
    await moveOn(client, at.step);
    return applied;
  });
  if (done === null) return null;
  at.settings.known?.add(done.held, at.now);
  const floods = [...done.chosen.spent].flatMap(([crawlerId, spent]) => {
    newHosts?.spend(crawlerId, spent.any, at.now);
    newHosts?.spend(crawlerId, spent["of-large-domains"], at.now, "of-large-domains");
    newHosts?.spend(crawlerId, spent.waiting, at.now, "waiting");
    return spent["left-out"] > 0 || newHosts?.left(crawlerId, at.now) === 0 ? [crawlerId] : [];
  });
  return { newUrls: done.newUrls, newHosts: done.newHosts, floods, domains: done.chosen.floods };
}

/** Advances past a step whose effects the database cannot store. */
async function leaveOut(client: PoolClient, step: Step): Promise<Applied | null> {
  if (!(await holdBite(client, step))) return null;
  await moveOn(client, step);
  return { newUrls: 0, newHosts: 0, floods: [], domains: [] };
}

/** Waits for the row lock. A reader only holds it briefly, and no other coordinator continues this bite until it has stalled. */
async function holdBite(client: PoolClient, { bite, reached }: Step): Promise<boolean> {
  const { rowCount } = await prepared(
    client,
    `select from link_outbox_bite
     where bite_number = $1
       and outbox_numbers <> '{}'
       and reached_host is not distinct from $2
       and reached_url is not distinct from $3
     for update`,
    [bite.number, reached?.hostHash ?? null, reached?.urlHash ?? null],
  );
  return rowCount === 1;
}

async function moveOn(client: PoolClient, { bite, effects, isLast }: Step): Promise<void> {
  if (isLast) {
    await client.query("delete from link_outbox where outbox_number = any($1::bigint[])", [bite.rows]);
    await client.query(
      "update link_outbox_bite set outbox_numbers = '{}', reached_host = null, reached_url = null",
    );
    return;
  }
  const { hostHash, urlHash } = effects.at(-1)!;
  await prepared(
    client,
    "update link_outbox_bite set reached_host = $1, reached_url = $2, moved_at = clock_timestamp()",
    [hostHash, urlHash],
  );
}

/** Applies effects as results do for their own hosts (results/result-store.ts). */
async function applyEffects(
  client: PoolClient,
  { step, namers, settings, now }: StepAt,
): Promise<Pick<Applied, "newUrls" | "newHosts"> & { chosen: NewHosts; held: AddedUrls["held"] }> {
  const { scope } = settings;
  const { effects } = step;
  const named = effects.flatMap((effect) => effect.named ?? []);
  const found = await splitByOwner(client, named, scope.maxDepth);
  const keys = found.own.map(({ key }) => key);
  const links = effects.filter((effect) => effect.links !== 0);
  const outsideLinks = new Map<HostHash, number>();
  for (const { hostHash, links: count } of links)
    outsideLinks.set(hostHash, (outsideLinks.get(hostHash) ?? 0) + count);
  const limits = { pagesPerHost: scope.pagesPerHost, budgeted: true, links, outsideLinks, now };
  const isOpen = scope.admitNewHosts && keys.length > 0;
  const unknown = isOpen ? await withoutOptedOut(client, await unknownHosts(client, keys)) : [];
  const terms = { people: nobody, namers, scope, budget: settings.newHosts, effects, now };
  const chosen = await chooseNewHosts(client, unknown, terms);
  const { welcome, places } = chosen;
  const welcomed = await welcomeHosts(client, welcome, found.own, { ...limits, places });
  await lockHosts(
    client,
    effects.map(({ hostHash }) => hostHash).filter((hostHash) => !welcomed.hosts.has(hostHash)),
  );
  const { newUrls, held } = await addUrls(client, found.own, { ...limits, welcomed });
  await noteForeign(client, found, { links, now });
  return { newUrls, held, newHosts: welcomed.hosts.size, chosen };
}

/** Stands for people, or for results that linked to hosts but named none. */
export const nobody = asCrawlerId(0);

async function unknownHosts(client: PoolClient, keys: readonly UrlKey[]): Promise<UrlKey[]> {
  const oneOfEach = new Map(keys.map((key) => [key.hostHash, key]));
  const { rows } = await prepared<{ host_hash: HostHash }>(
    client,
    "select host_hash from frontier_host where host_hash = any($1::bigint[])",
    [listOf(oneOfEach.keys())],
  );
  for (const row of rows) oneOfEach.delete(row.host_hash);
  return [...oneOfEach.values()];
}

interface OutboxBacklog {
  readonly rows: number;
  readonly effects: number;
  /** Age of the oldest row. 0 if there is none. */
  readonly ageSeconds: number;
}

export async function outboxBacklog(pool: Pool): Promise<OutboxBacklog> {
  const { rows } = await pool.query<OutboxBacklog>(
    `select count(*)::float8 as rows, coalesce(sum(effects), 0)::float8 as effects,
       coalesce(greatest(0, extract(epoch from clock_timestamp() - min(written_at))), 0)::float8 as "ageSeconds"
     from link_outbox`,
  );
  return rows[0]!;
}

/** Reads the settings at each use. */
export function outboxSettings(
  config: { readonly scope: ScopeSettings },
  ports: Required<Pick<OutboxSettings, "known">>,
): OutboxSettings {
  const newHosts = new NewHostBudget(() => config.scope.newHostsPerCrawlerAndDay);
  return following(() => ({ ...defaultOutboxBounds, scope: config.scope, newHosts, ...ports }));
}
