/** What the index has of one page, from its row, its URL's and its host's. */
import type { Pool } from "pg";
import { isoOrNull } from "../database/cached-read.ts";
import { linksShown, type NoPage, type PageFacts, type PageKey, type PageOffsets } from "./page-facts.ts";
import { alikePages, fetchesOf, inLinks, outLinks } from "./page-lists.ts";

interface Row {
  url: string;
  host: string;
  host_hash: PageFacts["hostHash"];
  url_hash: PageFacts["urlHash"];
  title: string;
  description: string;
  headings: PageFacts["headings"];
  excerpt: string;
  language: string | null;
  declared_language: string | null;
  detected_language: string | null;
  text_search_config: string;
  content_type: string;
  status: number;
  canonical_url: string | null;
  published_at: Date | null;
  modified_at: Date | null;
  structured: PageFacts["structured"];
  fetched_at: Date;
  crawler: string | null;
  country: string | null;
  words: number;
  lexemes: number;
  body_bytes: number;
  wire_bytes: number;
  shipped_bytes: number;
  digest: string;
  simhash: string;
  popularity: number;
  tier: number;
  noindex: boolean;
  opted_out: boolean;
  etag: string | null;
  last_modified: string | null;
  robots_state: string | null;
  robots_at: Date | null;
  discovered_at: Date | null;
  next_fetch_at: Date | number | null;
  visits: number | null;
  depth: number | null;
}

export async function pageOf(pool: Pool, key: PageKey, offsets: PageOffsets): Promise<PageFacts | NoPage> {
  const { rows } = await pool.query<Row>(pageSql, [key.hostHash, key.urlHash]);
  const row = rows[0];
  if (row === undefined) return await withoutPage(pool, key);
  if (row.opted_out) return { type: "opted-out" };
  if (row.noindex) return { type: "noindex" };
  const [alike, fetches, out, into] = await Promise.all([
    alikePages(pool, key),
    fetchesOf(pool, key, { offset: offsets.fetches, limit: linksShown }),
    outLinks(pool, key, { offset: offsets.outLinks, limit: linksShown }),
    inLinks(pool, key, { offset: offsets.inLinks, limit: linksShown }),
  ]);
  return { ...factsOf(row), alike, fetches, outLinks: out, inLinks: into };
}

const pageSql = `
  select p.url, p.host, p.host_hash, p.url_hash, p.title, p.description, p.headings, p.excerpt, p.language,
    p.declared_language, p.detected_language, p.text_search_config, p.content_type, p.status, p.canonical_url,
    p.published_at, p.modified_at, p.structured, p.fetched_at, c.name as crawler, s.country, p.words,
    length(p.lexemes) as lexemes, p.body_bytes, p.wire_bytes, p.shipped_bytes, p.digest, p.simhash, p.popularity,
    p.tier, p.noindex, h.opt_out_id is not null as opted_out, u.etag, u.last_modified, h.robots_state, h.robots_at,
    u.discovered_at, u.next_fetch_at, u.visits, u.depth
  from page p
  left join frontier_url u using (host_hash, url_hash)
  left join frontier_host h using (host_hash)
  left join subnet s using (subnet_id)
  left join crawler c using (crawler_id)
  where p.host_hash = $1 and p.url_hash = $2`;

async function withoutPage(pool: Pool, key: PageKey): Promise<NoPage> {
  const { rows } = await pool.query<{ outcome: string | null; at: Date | null; opted_out: boolean }>(
    `select u.last_outcome as outcome, u.last_fetched_at as at, h.opt_out_id is not null as opted_out
     from frontier_url u
     left join frontier_host h using (host_hash)
     where u.host_hash = $1 and u.url_hash = $2`,
    [key.hostHash, key.urlHash],
  );
  const row = rows[0];
  if (row === undefined) return { type: "unknown" };
  if (row.opted_out) return { type: "opted-out" };
  return { type: "no-page", outcome: row.outcome, at: isoOrNull(row.at) };
}

function factsOf(row: Row): Omit<PageFacts, "alike" | "fetches" | "outLinks" | "inLinks"> {
  const robotsAt = isoOrNull(row.robots_at);
  return {
    url: row.url,
    host: row.host,
    hostHash: row.host_hash,
    urlHash: row.url_hash,
    title: row.title,
    description: row.description,
    headings: row.headings,
    excerpt: row.excerpt,
    language: row.language,
    declaredLanguage: row.declared_language,
    detectedLanguage: row.detected_language,
    textSearchConfig: row.text_search_config,
    contentType: row.content_type,
    status: row.status,
    canonicalUrl: row.canonical_url,
    publishedAt: isoOrNull(row.published_at),
    modifiedAt: isoOrNull(row.modified_at),
    structured: row.structured,
    fetchedAt: row.fetched_at.toISOString(),
    crawler: row.crawler,
    country: row.country,
    words: row.words,
    lexemes: row.lexemes,
    bodyBytes: row.body_bytes,
    wireBytes: row.wire_bytes,
    shippedBytes: row.shipped_bytes,
    digest: row.digest,
    simhash: row.simhash,
    linkingHosts: row.popularity,
    firstTier: row.tier === 0,
    validators: { etag: row.etag, lastModified: row.last_modified },
    robots: row.robots_state === null || robotsAt === null ? null : { state: row.robots_state, at: robotsAt },
    discoveredAt: isoOrNull(row.discovered_at),
    nextFetchAt: isoOrNull(row.next_fetch_at),
    visits: row.visits ?? 0,
    depth: row.depth,
  };
}
