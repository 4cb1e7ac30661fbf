/**
 * Table page_links: what a page linked to at its latest visits. A visit that finds the links as they were adds nothing;
 * one that finds others is kept whole, and the one before it becomes a difference to it.
 */
import type { PoolClient } from "pg";
import { type LinkTarget, nameOf, packDifference, packLinks, unpackLinks } from "#core/link-set";
import type { UrlAddress } from "#core/url-key";
import { columnsOf } from "../database/transaction.ts";
import type { CountedResult } from "./accepted-result.ts";
import { changeRatio } from "./link-writes.ts";
import { fetchedAtOf, type LinkFacts, replacesPage } from "./result-rows.ts";

/** Visits of a page that found its links changed; earlier ones are forgotten. */
export const mostKeptVisits = 5;

/**
 * Notes the links of the visits that saw any page, or that there is none; gives what the frontier learns of each URL, by
 * its name (core/link-set). The URLs are under a lease of this crawler: nobody else writes their rows.
 */
export async function notePageLinks(
  client: PoolClient,
  results: readonly CountedResult[],
  now: Date,
): Promise<ReadonlyMap<string, LinkFacts>> {
  const seen = results.filter(({ result }) => replacesPage(result.outcome) || isUnchanged({ result }));
  const known = await latestVisits(client, seen);
  const facts = new Map<string, LinkFacts>();
  const rows: NewVisit[] = [];
  for (const counted of seen) {
    const before = known.get(nameOf(counted.key)) ?? null;
    const noted = noteVisit(counted, before, now);
    facts.set(nameOf(counted.key), noted.facts);
    if (noted.row !== null) rows.push(noted.row);
  }
  await writeVisits(client, rows);
  return facts;
}

/** The kept visits of a page, the latest first. */
export async function readPageLinks(
  client: Pick<PoolClient, "query">,
  { hostHash, urlHash }: UrlAddress,
): Promise<{ visit: number; visitedAt: Date; links: readonly LinkTarget[] }[]> {
  const { rows } = await client.query<{ visit: number; visited_at: Date; adjacency: Buffer }>(
    `select visit, visited_at, adjacency
     from page_links
     where host_hash = $1 and url_hash = $2
     order by visit desc
     limit ${mostKeptVisits}`,
    [hostHash, urlHash],
  );
  let after: readonly LinkTarget[] | null = null;
  return rows.map(({ visit, visited_at: visitedAt, adjacency }) => {
    const links: readonly LinkTarget[] = unpackLinks(adjacency, after);
    after = links;
    return { visit, visitedAt, links };
  });
}

interface KnownVisit {
  readonly visit: number;
  readonly linkCount: number;
  /** Null: not asked for. */
  readonly links: readonly LinkTarget[] | null;
}

interface NewVisit extends UrlAddress {
  readonly visit: number;
  readonly visitedAt: Date;
  readonly linkCount: number;
  readonly adjacency: Uint8Array;
  /** The visit before it and what that one differs by; null: none is known. */
  readonly visitBefore: number | null;
  readonly difference: Uint8Array | null;
}

function noteVisit(
  counted: CountedResult,
  before: KnownVisit | null,
  now: Date,
): { facts: LinkFacts; row: NewVisit | null } {
  if (isUnchanged(counted)) {
    const same = before === null ? null : before.linkCount === 0 ? 1 : 0;
    return { facts: { outLinks: null, changeRatio: same }, row: null };
  }
  const { key, links, result } = counted;
  const previous = before?.links ?? null;
  const linkCount = new Set(links.map(nameOf)).size;
  const ratio = previous === null ? null : changeRatio(previous, links);
  const facts = { outLinks: linkCount, changeRatio: ratio };
  const isSame = ratio === 0 || (previous?.length === 0 && linkCount === 0);
  if (isSame) return { facts, row: null };
  const row = {
    hostHash: key.hostHash,
    urlHash: key.urlHash,
    visit: Math.max(counted.before.visits, before?.visit ?? 0) + 1,
    visitedAt: fetchedAtOf(result, now),
    linkCount,
    adjacency: packLinks(links),
    visitBefore: before?.visit ?? null,
    difference: previous === null ? null : packDifference(previous, links),
  };
  return { facts, row };
}

/** By the page's name. Those that are seen for the first time have none. */
async function latestVisits(
  client: PoolClient,
  seen: readonly CountedResult[],
): Promise<ReadonlyMap<string, KnownVisit>> {
  const asked = seen.filter(({ before }) => before.visits > 0);
  if (asked.length === 0) return new Map();
  const { rows } = await client.query<
    UrlAddress & { visit: number; linkCount: number; adjacency: Buffer | null }
  >(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.visit, p.link_count as "linkCount",
       case when given.compares then p.adjacency end as adjacency
     from unnest($1::bigint[], $2::bigint[], $3::boolean[]) as given (host_hash, url_hash, compares)
     join page_links p on p.host_hash = given.host_hash and p.url_hash = given.url_hash
     where not exists (
       select from page_links later
       where later.host_hash = p.host_hash and later.url_hash = p.url_hash and later.visit > p.visit
     )`,
    [
      asked.map(({ key }) => key.hostHash),
      asked.map(({ key }) => key.urlHash),
      asked.map((counted) => !isUnchanged(counted)),
    ],
  );
  return new Map(
    rows.map((row) => {
      const links = row.adjacency === null ? null : unpackLinks(row.adjacency, null);
      return [nameOf(row), { visit: row.visit, linkCount: row.linkCount, links }];
    }),
  );
}

async function writeVisits(client: PoolClient, rows: readonly NewVisit[]): Promise<void> {
  if (rows.length === 0) return;
  await client.query(
    `insert into page_links (host_hash, url_hash, visit, visited_at, link_count, adjacency)
     select * from unnest($1::bigint[], $2::bigint[], $3::int[], $4::timestamptz[], $5::int[], $6::bytea[])`,
    columnsOf(rows, ["hostHash", "urlHash", "visit", "visitedAt", "linkCount", "adjacency"]),
  );
  const compared = rows.filter(({ difference }) => difference !== null);
  if (compared.length === 0) return;
  await client.query(
    `update page_links p
     set adjacency = given.difference
     from unnest($1::bigint[], $2::bigint[], $3::int[], $4::bytea[]) as given (host_hash, url_hash, visit, difference)
     where p.host_hash = given.host_hash and p.url_hash = given.url_hash and p.visit = given.visit`,
    columnsOf(compared, ["hostHash", "urlHash", "visitBefore", "difference"]),
  );
  await client.query(
    `delete from page_links p
     using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where p.host_hash = given.host_hash
       and p.url_hash = given.url_hash
       and p.visit <= (
         select k.visit
         from page_links k
         where k.host_hash = given.host_hash and k.url_hash = given.url_hash
         order by k.visit desc
         offset ${mostKeptVisits}
         limit 1
       )`,
    columnsOf(compared, ["hostHash", "urlHash"]),
  );
}

/** The server said that the page is as it was. */
function isUnchanged({ result }: Pick<CountedResult, "result">): boolean {
  return result.outcome.type === "unchanged";
}
