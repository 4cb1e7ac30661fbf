/**
 * Table out_link, the web graph. A page's links are packed into one row, and a visit that finds the same links writes
 * nothing. A batch's URLs are leased to its crawler, so nobody else writes these rows.
 */

import { createHash } from "node:crypto";
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, type UrlAddress } from "#core/url-key";
import { clean, columnsOf, rowsGiven } from "../../database/transaction.ts";
import type { ArrivedResult, CountedResult } from "../batch/accepted-result.ts";
import type { ChangedLink } from "../batch/found-urls.ts";
import { fetchedAtOf, type LinkFacts, replacesPage } from "../batch/result-rows.ts";

interface WrittenLinks {
  /** What the frontier learns about each URL, by name. */
  readonly facts: ReadonlyMap<string, LinkFacts>;
  readonly added: readonly ChangedLink[];
  readonly removed: readonly ChangedLink[];
}

/** Replaces the pages' former links. A page may have none now. */
export async function writeLinks(
  client: PoolClient,
  results: readonly CountedResult[],
  now: Date,
): Promise<WrittenLinks> {
  const facts = new Map<string, LinkFacts>();
  const [added, removed]: [ChangedLink[], ChangedLink[]] = [[], []];
  const seen = results.filter(({ result }) => replacesPage(result.outcome) || isUnchanged({ result }));
  const known = await knownLinks(client, seen);
  const visits = seen.flatMap((counted) => {
    const before = known.get(nameOf(counted.key)) ?? null;
    if (!isUnchanged(counted)) return [{ counted, before, packed: packOutLinks(counted.key, counted.links) }];
    const same = before === null ? null : before.links === 0 ? 1 : 0;
    facts.set(nameOf(counted.key), { outLinks: null, changeRatio: same });
    return [];
  });
  const differing = visits.filter(({ before, packed }) => before !== null && before.digest !== packed.digest);
  const targetsBefore = await readTargets(
    client,
    differing.map(({ counted }) => counted.key),
  );
  const rows: OutLinkRow[] = [];
  for (const { counted, before, packed } of visits) {
    const { key, links, result } = counted;
    const name = nameOf(key);
    const outLinks = packed.urls.length;
    const previous = before?.digest === packed.digest ? links : (targetsBefore.get(name) ?? null);
    const ratio =
      previous === null ? null : previous === links ? ratioOfSame(outLinks) : changeRatio(previous, links);
    facts.set(name, { outLinks, changeRatio: ratio });
    if (previous === links) continue;
    const { hostHash, urlHash } = key;
    const isSameSet =
      before !== null && previous !== null && (ratio === 0 || previous.length + outLinks === 0);
    const visit = isSameSet ? before.visit : Math.max(counted.before.visits, before?.visit ?? 0) + 1;
    const visitedAt = isSameSet ? before.visitedAt : fetchedAtOf(result, now);
    rows.push({ hostHash, urlHash, visit, visitedAt, ...packed });
    if (isSameSet) continue;
    const change = (link: UrlAddress) => ({
      from: hostHash,
      fromUrl: urlHash,
      hostHash: link.hostHash,
      urlHash: link.urlHash,
    });
    added.push(...without(links, previous).map(change));
    removed.push(...without(previous ?? [], links).map(change));
  }
  await writeOutLinks(client, rows);
  return { facts, added, removed };
}

/** Whether the server said that the page is unchanged. */
function isUnchanged({ result }: Pick<CountedResult, "result">): boolean {
  return result.outcome.type === "unchanged";
}

function without(links: readonly UrlAddress[], others: readonly UrlAddress[] | null): readonly UrlAddress[] {
  if (others === null || others.length === 0) return links;
  const known = new Set(others.map(({ urlHash }) => urlHash));
  return links.filter(({ urlHash }) => !known.has(urlHash));
}

/** The columns of a row. Lists are Postgres array literals. */
interface PackedLinks {
  readonly digest: string;
  readonly ownLinks: number;
  /** Distinct targets, those on the page's own host first. */
  readonly urls: readonly UrlHash[];
  readonly urlList: string;
  readonly hosts: string;
  readonly places: string;
  readonly nofollows: string | null;
  readonly anchors: string;
}

interface OutLinkRow extends PackedLinks, UrlAddress {
  readonly visit: number;
  readonly visitedAt: Date;
}

/** Packs links in the order of the page, but those to its own host first. */
export function packOutLinks(
  { hostHash: own }: Pick<UrlAddress, "hostHash">,
  links: ArrivedResult["links"],
): PackedLinks {
  const urls = new Set<UrlHash>();
  const placeOf = new Map<HostHash, number>();
  const places: number[] = [];
  const nofollows: number[] = [];
  let anchors = "";
  const add = ({ urlHash, anchor, nofollow }: ArrivedResult["links"][number]) => {
    if (urls.has(urlHash)) return false;
    if (urls.size > 0) anchors += "\n";
    urls.add(urlHash);
    anchors += anchor.includes("\n") ? anchor.replaceAll("\n", " ") : anchor;
    if (nofollow) nofollows.push(urls.size);
    return true;
  };
  for (const link of links) if (link.hostHash === own) add(link);
  const ownLinks = urls.size;
  for (const link of links) {
    if (link.hostHash === own || !add(link)) continue;
    const place = placeOf.get(link.hostHash) ?? placeOf.size + 1;
    placeOf.set(link.hostHash, place);
    places.push(place);
  }
  const lists = {
    urlList: `{${[...urls].join()}}`,
    hosts: `{${[...placeOf.keys()].join()}}`,
    places: `{${places.join()}}`,
    nofollows: nofollows.length === 0 ? null : `{${nofollows.join()}}`,
    anchors: clean(anchors),
  };
  return { ...lists, ownLinks, urls: [...urls], digest: digestOf(lists) };
}

/** 64 bits of the links' SHA-256. 0 is reserved for rows without links. */
function digestOf(links: Omit<PackedLinks, "digest" | "ownLinks" | "urls">): string {
  const { urlList, hosts, places, nofollows, anchors } = links;
  const hash = createHash("sha256").update(`${urlList}${hosts}${places}${nofollows}${anchors}`).digest();
  return hash.readBigInt64BE(0).toString();
}

const given = rowsGiven(
  `host_hash bigint, url_hash bigint, visit int, visited_at timestamptz, digest bigint, own_links smallint, url_list text,
   hosts text, places text, nofollows text, anchors text`,
);

async function writeOutLinks(client: PoolClient, rows: readonly OutLinkRow[]): Promise<void> {
  if (rows.length === 0) return;
  await client.query(
    `insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, nofollows,
       anchors)
     select host_hash, url_hash, visit, visited_at, digest, own_links, url_list::bigint[], hosts::bigint[],
       places::smallint[], nofollows::smallint[], anchors
     from ${given.sql()}
     on conflict (host_hash, url_hash) do update
       set visit = excluded.visit, visited_at = excluded.visited_at, digest = excluded.digest,
         own_links = excluded.own_links, urls = excluded.urls, hosts = excluded.hosts, places = excluded.places,
         nofollows = excluded.nofollows, anchors = excluded.anchors`,
    given.valuesOf(rows),
  );
}

interface KnownLinks {
  readonly visit: number;
  readonly visitedAt: Date;
  readonly digest: string;
  readonly links: number;
}

/** Keyed by page name. A new page has no entry. */
async function knownLinks(
  client: PoolClient,
  seen: readonly CountedResult[],
): Promise<ReadonlyMap<string, KnownLinks>> {
  const asked = seen.filter(({ before }) => before.visits > 0).map(({ key }) => key);
  if (asked.length === 0) return new Map();
  const { rows } = await client.query<UrlAddress & KnownLinks>(
    `select o.host_hash as "hostHash", o.url_hash as "urlHash", o.visit, o.visited_at as "visitedAt", o.digest,
       cardinality(o.urls) as links
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     join out_link o on o.host_hash = given.host_hash and o.url_hash = given.url_hash`,
    columnsOf(asked, ["hostHash", "urlHash"]),
  );
  return new Map(rows.map((row) => [nameOf(row), row]));
}

/** Reads the link targets of these pages, keyed by name. */
async function readTargets(
  client: Pick<PoolClient, "query">,
  pages: readonly UrlAddress[],
): Promise<ReadonlyMap<string, readonly UrlAddress[]>> {
  if (pages.length === 0) return new Map();
  const { rows } = await client.query<
    UrlAddress & { urls: string; hosts: string; places: string; ownLinks: number }
  >(
    `select o.host_hash as "hostHash", o.url_hash as "urlHash", o.own_links as "ownLinks", o.urls::text,
       o.hosts::text, o.places::text
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     join out_link o on o.host_hash = given.host_hash and o.url_hash = given.url_hash`,
    columnsOf(pages, ["hostHash", "urlHash"]),
  );
  return new Map(
    rows.map((row) => {
      const [hosts, places] = [listed(row.hosts), listed(row.places)];
      const targets = listed(row.urls).map((urlHash, at) => ({
        hostHash: (at < row.ownLinks
          ? row.hostHash
          : hosts[Number(places[at - row.ownLinks]) - 1]) as HostHash,
        urlHash: urlHash as UrlHash,
      }));
      return [nameOf(row), targets];
    }),
  );
}

/** Splits a Postgres array literal of numbers into its items. */
const listed = (text: string): string[] => (text === "{}" ? [] : text.slice(1, -1).split(","));

// How much of a page's links changed between two visits: C of the Anansi thesis (section 4.3.3). Its text calls C
// "the ratio of changed links between two continuous visits" and gives pages with more change a higher priority.
// Equation 4.2 prints |previous ∩ latest| / |previous ∪ latest|, the ratio of unchanged links, which would put pages
// that never change first. The code follows the text: 1 - |∩| / |∪|. Both give 1 for a page without links on either
// visit, as the thesis says.

/** Returns 0 to 1. Repeated links count once. */
export function changeRatio(previous: readonly UrlAddress[], latest: readonly UrlAddress[]): number {
  const before = new Set(previous.map(nameOf));
  const now = new Set(latest.map(nameOf));
  if (before.size === 0 && now.size === 0) return 1;
  let inCommon = 0;
  for (const name of now) if (before.has(name)) inCommon += 1;
  return 1 - inCommon / (before.size + now.size - inCommon);
}

/** The ratio when no link changed. */
const ratioOfSame = (links: number) => (links === 0 ? 1 : 0);
