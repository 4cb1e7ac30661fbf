/** Writes changes into the inbox, as results do; the test numbers them. */
import type { Pool, PoolClient } from "pg";
import type { ChangeKind } from "#coordinator/crawl/changes/page-change";
import { urlKeyOf } from "#core/url-key";

export const seenAt = new Date("2030-01-01T12:00:00Z");

export interface SeededChange {
  readonly url: string;
  readonly kind?: ChangeKind;
  readonly language?: string | null;
  readonly title?: string;
}

export async function seedChange(
  client: Pool | PoolClient,
  { url, kind = "changed", language = null, title = "A page" }: SeededChange,
): Promise<void> {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(key);
  await client.query(
    `insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at, language, title_after, words_after,
       links_after, simhash_distance)
     values ($1, $2, $3, $4, $5, $6, $7, 120, 8, 5)`,
    [key.hostHash, key.urlHash, key.url, kind, seenAt, language, title],
  );
}
