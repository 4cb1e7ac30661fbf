/** What the index has of one URL. */
import type { Pool } from "pg";
import type { UrlKey } from "#core/url-key";
import { isoOrNull } from "../database/cached-read.ts";
import type { PageReport } from "../frontier/frontier-reports.ts";

interface PageRow {
  title: string;
  language: string | null;
  words: number;
  declared_language: string | null;
  detected_language: string | null;
  published_at: Date | null;
  modified_at: Date | null;
  structured: PageReport["structured"];
  duplicate_of: string | null;
}

/** Null: it has no page. What the page nearly equalled once is told as long as that still has this text. */
export async function pageReport(pool: Pool, key: UrlKey): Promise<PageReport | null> {
  const { rows } = await pool.query<PageRow>(
    `select p.title, p.language, p.words, p.declared_language, p.detected_language, p.published_at,
       p.modified_at, p.structured, q.url as duplicate_of
     from page p
     left join page q
       on q.host_hash = p.duplicate_host_hash
       and q.url_hash = p.duplicate_url_hash
       and q.text_group = p.text_group
     where p.host_hash = $1 and p.url_hash = $2`,
    [key.hostHash, key.urlHash],
  );
  const row = rows[0];
  if (!row) return null;
  return {
    title: row.title,
    language: row.language,
    words: row.words,
    declaredLanguage: row.declared_language,
    detectedLanguage: row.detected_language,
    publishedAt: isoOrNull(row.published_at),
    modifiedAt: isoOrNull(row.modified_at),
    structured: row.structured,
    duplicateOf: row.duplicate_of,
  };
}
