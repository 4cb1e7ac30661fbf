/**
 * Inserts URLs new to the frontier in bulk by COPY, which logs the rows of a block as one record. Their hosts are
 * locked, so nobody else writes the same.
 */
import type { PoolClient } from "pg";
import { writeCopy } from "#db/copy";
import type { PlacedUrl } from "./place-urls.ts";

export interface NewUrl extends PlacedUrl {
  /** Net change of links to it. */
  readonly links: number;
  /** Now, when absent. */
  readonly foundAt?: Date;
}

const columns = [
  "host_hash",
  "url_hash",
  "url",
  "state",
  "depth",
  "redirects",
  "lists",
  "back_links",
  "discovered_at",
  "next_fetch_at",
  "last_outcome",
  "last_reason",
];

/** The largest depth that the column holds. */
export const deepest = 32_767;
const mostLinks = 2_147_483_647;
export const linksIn = (links: number): number => Math.max(0, Math.min(mostLinks, links));

/** Sorted by host, since the indexes are written in that order. */
export async function writeNewUrls(client: PoolClient, urls: readonly NewUrl[], now: Date): Promise<void> {
  if (urls.length === 0) return;
  await writeCopy(client, { table: "frontier_url", columns }, async (rows) => {
    for (const { url, state, reason, links, foundAt = now } of urls) {
      const { key, depth, redirects = 0, lists = 0 } = url;
      rows.row();
      rows.bigint(key.hostHash);
      rows.bigint(key.urlHash);
      rows.text(key.url);
      rows.text(state);
      rows.int16(Math.min(deepest, depth));
      rows.int16(redirects);
      rows.int16(lists);
      rows.int32(linksIn(links));
      rows.timestamp(foundAt);
      rows.timestamp(foundAt);
      if (state === "refused") rows.text("refused-address");
      else rows.null();
      if (reason === null || reason === "") rows.null();
      else rows.text(reason);
      if (rows.isFull) await rows.flush();
    }
  });
}
