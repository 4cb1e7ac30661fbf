/**
 * Tables domain_count and deferred_link: how many new hosts links may add per registrable domain and per linking site
 * (the registrable domain of the linking page). Hosts beyond the daily limit wait for their day, as far as there is
 * room.
 *
 * Counts change in the step's transaction, which one coordinator runs at a time, so restarts and takeovers grant
 * nothing extra.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import type { UrlKey } from "#core/url-key";
import { listOf, prepared } from "../../database/transaction.ts";
import {
  daysUntilLetIn,
  firstHosts,
  mostDaysWaiting,
  type NewHostBudget,
  type NewHostKind,
  newDomainCost,
  newHostsADay,
} from "./budgets.ts";
import type { CrawlScope } from "./frontier.ts";
import type { HostReport } from "./frontier-reports-api.ts";
import { type LinkEffect, type Namer, packEffects } from "./link-outbox.ts";

const dayMs = 86_400_000;
const dayOf = (now: Date, later = 0) => new Date(now.getTime() + later * dayMs).toISOString().slice(0, 10);

interface DomainCounts {
  hosts: number;
  newHosts: number;
  linked: number;
  leftOut: number;
}

const none: DomainCounts = { hosts: 0, newHosts: 0, linked: 0, leftOut: 0 };

/** Registrable domains for which hosts named in one step had to wait or were dropped. */
export interface DomainFlood {
  readonly domain: string;
  readonly as: "domain" | "linking-site";
  readonly waiting: number;
  readonly leftOut: number;
}

/** Number of hosts named by one crawler's results. Those dropped because the day's budget is used up are not counted. */
type Spent = Record<NewHostKind | "left-out", number>;

export interface NewHosts {
  /** One key per host, with the number of hosts its domain has before it. */
  readonly welcome: readonly UrlKey[];
  readonly places: ReadonlyMap<HostHash, number>;
  readonly spent: ReadonlyMap<CrawlerId, Readonly<Spent>>;
  readonly floods: readonly DomainFlood[];
}

interface NewHostTerms {
  /** Stands for people. Hosts named by them are always admitted. */
  readonly people: CrawlerId;
  readonly namers: ReadonlyMap<HostHash, readonly Namer[]>;
  readonly scope: CrawlScope;
  readonly budget: NewHostBudget | undefined;
  readonly effects: readonly LinkEffect[];
  readonly now: Date;
}

/** Returns the unknown hosts (one key each) that may be admitted now. Stores those that wait, and updates the counts. */
export async function chooseNewHosts(
  client: PoolClient,
  keys: readonly UrlKey[],
  terms: NewHostTerms,
): Promise<NewHosts> {
  if (keys.length === 0) return { welcome: [], places: new Map(), spent: new Map(), floods: [] };
  const known = await countsOf(client, keys, terms);
  const choice = new Choice(known, terms);
  for (const key of keys) choice.add(key);
  const floods = await choice.keepRefused(client);
  await writeCounts(client, choice.changed(), terms.now);
  return { welcome: choice.welcome, places: choice.places, spent: choice.spent, floods };
}

class Choice {
  readonly welcome: UrlKey[] = [];
  readonly places = new Map<HostHash, number>();
  readonly spent = new Map<CrawlerId, Spent>();
  readonly #terms: NewHostTerms;
  readonly #known: ReadonlyMap<string, DomainCounts>;
  readonly #changes = new Map<string, DomainCounts>();
  readonly #refused = new Map<string, { as: DomainFlood["as"]; hosts: { key: UrlKey; by: CrawlerId }[] }>();

  constructor(known: ReadonlyMap<string, DomainCounts>, terms: NewHostTerms) {
    this.#known = known;
    this.#terms = terms;
  }

  add(key: UrlKey): void {
    const { namers, people } = this.#terms;
    const by = namers.get(key.hostHash) ?? [];
    if (by.some(({ crawlerId }) => crawlerId === people)) {
      this.welcome.push(key);
      return;
    }
    const domain = registrableDomain(key.host);
    const payers = by.filter(({ crawlerId }) => this.#left(crawlerId, "any") > 0);
    if (payers.length === 0) {
      for (const crawlerId of new Set(by.map((one) => one.crawlerId))) this.#of(crawlerId)["left-out"] += 1;
      return;
    }
    const place = this.#count(domain, "hosts");
    const cost = place === 0 ? newDomainCost : 1;
    const isLarge = place >= firstHosts;
    if (this.#count(domain, "newHosts") >= this.#mostOf(domain)) {
      this.#refuse(key, { waitsFor: domain, as: "domain", by: payers[0]!.crawlerId });
      return;
    }
    const linked = payers.filter(
      ({ site }) => site === null || this.#count(site, "linked") < this.#mostLinked(),
    );
    const payer = linked.find(({ crawlerId }) => !isLarge || this.#left(crawlerId, "of-large-domains") > 0);
    if (payer === undefined) {
      const { site, crawlerId } = payers[0]!;
      const isOfSite = linked.length === 0 && site !== null;
      const waitsFor = isOfSite ? site : domain;
      this.#refuse(key, { waitsFor, as: isOfSite ? "linking-site" : "domain", by: crawlerId });
      return;
    }
    this.#of(payer.crawlerId).any += 1;
    if (isLarge) this.#of(payer.crawlerId)["of-large-domains"] += 1;
    const change = this.#change(domain);
    change.hosts += 1;
    change.newHosts += 1;
    if (payer.site !== null) this.#change(payer.site).linked += cost;
    this.welcome.push(key);
    if (place > 0) this.places.set(key.hostHash, place);
  }

  changed(): ReadonlyMap<string, DomainCounts> {
    return this.#changes;
  }

  /** Stores refused hosts for their day as long as there is room. */
  async keepRefused(client: PoolClient): Promise<readonly DomainFlood[]> {
    if (this.#refused.size === 0) return [];
    const { effects, scope, now } = this.#terms;
    const byHost = new Map<HostHash, LinkEffect[]>();
    for (const effect of effects)
      byHost.set(effect.hostHash, [...(byHost.get(effect.hostHash) ?? []), effect]);
    const waiting = await waitingFor(client, [...this.#refused.keys()]);
    const floods: DomainFlood[] = [];
    const rows: { waitsFor: string; dueOn: string; crawlerId: CrawlerId; effects: LinkEffect[] }[] = [];
    for (const [waitsFor, { as, hosts }] of this.#refused) {
      const limit =
        (as === "domain" ? scope.newHostsPerDomainAndDay : scope.newHostsPerLinkingSiteAndDay) ??
        Number.POSITIVE_INFINITY;
      const days = new Map<string, (typeof rows)[number]>();
      let ahead = waiting.get(waitsFor) ?? 0;
      const before = ahead;
      let leftOut = 0;
      for (const { key, by } of hosts) {
        const theirs = byHost.get(key.hostHash) ?? [];
        const hasRoom = ahead + theirs.length <= Math.max(1, mostDaysWaiting * limit);
        if (!hasRoom || this.#left(by, "waiting") < theirs.length) {
          leftOut += theirs.length;
          continue;
        }
        const known = as === "domain" ? this.#count(waitsFor, "hosts") : limit;
        const dueOn = dayOf(now, daysUntilLetIn(ahead, known, limit));
        const row = days.get(`${dueOn} ${by}`) ?? { waitsFor, dueOn, crawlerId: by, effects: [] };
        days.set(`${dueOn} ${by}`, row);
        row.effects.push(...theirs);
        ahead += theirs.length;
        this.#of(by).waiting += theirs.length;
      }
      rows.push(...days.values());
      if (leftOut > 0) this.#change(waitsFor).leftOut += leftOut;
      floods.push({ domain: waitsFor, as, waiting: ahead - before, leftOut });
    }
    await client.query(
      `insert into deferred_link (waits_for, due_on, crawler_id, effects, packed)
       select * from unnest($1::text[], $2::date[], $3::int[], $4::int[], $5::bytea[])`,
      [
        rows.map((row) => row.waitsFor),
        rows.map((row) => row.dueOn),
        rows.map((row) => row.crawlerId),
        rows.map((row) => row.effects.length),
        rows.map((row) => packEffects(row.effects)),
      ],
    );
    return floods;
  }

  #refuse(
    key: UrlKey,
    { waitsFor, as, by }: { waitsFor: string; as: DomainFlood["as"]; by: CrawlerId },
  ): void {
    const refused = this.#refused.get(waitsFor) ?? { as, hosts: [] };
    this.#refused.set(waitsFor, refused);
    refused.hosts.push({ key, by });
  }

  #mostOf(domain: string): number {
    const limit = this.#terms.scope.newHostsPerDomainAndDay ?? Number.POSITIVE_INFINITY;
    const hostsBefore = this.#count(domain, "hosts") - this.#count(domain, "newHosts");
    return limit === Number.POSITIVE_INFINITY ? limit : newHostsADay(hostsBefore, limit);
  }

  #mostLinked(): number {
    return this.#terms.scope.newHostsPerLinkingSiteAndDay ?? Number.POSITIVE_INFINITY;
  }

  #left(crawlerId: CrawlerId, kind: NewHostKind): number {
    const { budget, now } = this.#terms;
    return budget === undefined
      ? Number.POSITIVE_INFINITY
      : budget.left(crawlerId, now, kind) - this.#of(crawlerId)[kind];
  }

  #of(crawlerId: CrawlerId): Spent {
    const known = this.spent.get(crawlerId) ?? { any: 0, "of-large-domains": 0, waiting: 0, "left-out": 0 };
    this.spent.set(crawlerId, known);
    return known;
  }

  #count(domain: string, what: keyof DomainCounts): number {
    return (this.#known.get(domain)?.[what] ?? 0) + (this.#changes.get(domain)?.[what] ?? 0);
  }

  #change(domain: string): DomainCounts {
    const known = this.#changes.get(domain) ?? { ...none };
    this.#changes.set(domain, known);
    return known;
  }
}

async function countsOf(
  client: PoolClient,
  keys: readonly UrlKey[],
  { namers, now }: NewHostTerms,
): Promise<ReadonlyMap<string, DomainCounts>> {
  const domains = new Set(keys.map(({ host }) => registrableDomain(host)));
  for (const { hostHash } of keys)
    for (const { site } of namers.get(hostHash) ?? []) if (site !== null) domains.add(site);
  const { rows } = await prepared<DomainCounts & { domain: string }>(
    client,
    `select domain, hosts, case when counted_on = $2::date then new_hosts else 0 end as "newHosts",
       case when counted_on = $2::date then linked else 0 end as linked, 0 as "leftOut"
     from domain_count
     where domain = any($1::text[])`,
    [[...domains], dayOf(now)],
  );
  return new Map(rows.map((row) => [row.domain, row]));
}

async function writeCounts(
  client: PoolClient,
  changes: ReadonlyMap<string, DomainCounts>,
  now: Date,
): Promise<void> {
  if (changes.size === 0) return;
  const of = (what: keyof DomainCounts) => listOf([...changes.values()].map((one) => one[what]));
  const ofDay = (column: string) =>
    `excluded.${column} + case when d.counted_on = excluded.counted_on then d.${column} else 0 end`;
  await prepared(
    client,
    `insert into domain_count as d (domain, hosts, counted_on, new_hosts, linked, left_out)
     select domain, hosts, $2::date, new_hosts, linked, left_out
     from unnest($1::text[], $3::int[], $4::int[], $5::int[], $6::int[])
       as given (domain, hosts, new_hosts, linked, left_out)
     order by domain
     on conflict (domain) do update
     set hosts = d.hosts + excluded.hosts, counted_on = excluded.counted_on, new_hosts = ${ofDay("new_hosts")},
         linked = ${ofDay("linked")}, left_out = d.left_out + excluded.left_out`,
    [[...changes.keys()], dayOf(now), of("hosts"), of("newHosts"), of("linked"), of("leftOut")],
  );
}

async function waitingFor(
  client: PoolClient,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ waits_for: string; effects: number }>(
    "select waits_for, sum(effects)::float8 as effects from deferred_link where waits_for = any($1) group by waits_for",
    [names],
  );
  return new Map(rows.map((row) => [row.waits_for, row.effects]));
}

/** Maximum days ahead. A later day was written by a wrong clock. */
const mostDaysAhead = 200;

export async function releaseDeferred(client: PoolClient, now: Date): Promise<void> {
  await prepared(
    client,
    `with due as (
       delete from deferred_link
       where due_on <= $1::date or due_on > $1::date + ${mostDaysAhead}
       returning crawler_id, effects, packed
     )
     insert into link_outbox (crawler_id, effects, packed)
     select crawler_id, effects, packed from due`,
    [dayOf(now)],
  );
}

type DomainReport = NonNullable<HostReport["domain"]>;
type HeldBackDomain = Pick<DomainReport, "domain" | "waiting" | "leftOut">;

const heldBackColumns = `d.domain, d.left_out::float8 as "leftOut",
  coalesce((select sum(effects) from deferred_link where waits_for = d.domain), 0)::float8 as waiting`;

/** Null if links have added no hosts of the domain and its pages have named none. */
export async function domainReport(
  pool: Pick<Pool, "query">,
  domain: string,
  now: Date,
): Promise<DomainReport | null> {
  const ofToday = (column: string) => `case when d.counted_on = $2::date then d.${column} else 0 end`;
  const { rows } = await pool.query<DomainReport>(
    `select ${heldBackColumns}, d.hosts, ${ofToday("new_hosts")} as "newToday", ${ofToday("linked")} as "linkedToday"
     from domain_count d
     where d.domain = $1`,
    [domain, dayOf(now)],
  );
  return rows[0] ?? null;
}

export async function heldBackDomains(
  pool: Pick<Pool, "query">,
  most: number,
): Promise<readonly HeldBackDomain[]> {
  const { rows } = await pool.query<HeldBackDomain>(
    `select *
     from (
       select ${heldBackColumns}
       from domain_count d
       where d.domain in (
         (select domain from domain_count where left_out > 0 order by left_out desc limit $1)
         union
         (select waits_for from deferred_link group by waits_for order by sum(effects) desc limit $1))
     ) held_back
     order by waiting + "leftOut" desc, domain
     limit $1`,
    [most],
  );
  return rows;
}
