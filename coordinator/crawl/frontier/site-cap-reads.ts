/** Table site_cap, as far as the frontier needs it: the limits for new hosts. */
import type { PoolClient } from "pg";
import { domainsAbove } from "#core/url-key";
import { prepared } from "../../database/transaction.ts";
import { isOfSite } from "./back-link-writes.ts";

/** SQL: the longest delay of the caps on host `h`, or null. */
export const capOfHost = `(select max(s.delay_ms) from site_cap s where ${isOfSite("h.host", "s.site")})`;

/** Delays of capped hosts. Call after `withoutOptedOut`, whose lock also keeps caps unchanged. */
export async function capDelaysMs(
  client: PoolClient,
  keys: readonly { readonly host: string }[],
): Promise<ReadonlyMap<string, number>> {
  const domains = new Map(keys.map(({ host }) => [host, domainsAbove(host)]));
  const { rows } = await prepared<{ site: string; delay_ms: number }>(
    client,
    "select site, delay_ms from site_cap where site = any($1::text[])",
    [[...new Set([...domains.values()].flat())]],
  );
  if (rows.length === 0) return new Map();
  const delays = new Map(rows.map((row) => [row.site, row.delay_ms]));
  const capped = [...domains].map(([host, above]) => [
    host,
    Math.max(0, ...above.map((site) => delays.get(site) ?? 0)),
  ]);
  return new Map(capped.filter(([, delayMs]) => delayMs !== 0) as [string, number][]);
}
