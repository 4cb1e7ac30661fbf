/** Table site_cap, as far as the frontier asks: what hosts that come in have to keep to. */
import type { PoolClient } from "pg";
import { domainsAbove } from "#core/url-key";
import { prepared } from "../../database/transaction.ts";
import { isOfSite } from "./back-link-writes.ts";

/** SQL: the longest delay of the caps that hold for the host `h`; null: there is none. */
export const capOfHost = `(select max(s.delay_ms) from site_cap s where ${isOfSite("h.host", "s.site")})`;

/** By host, those that a cap holds for. After `withoutOptedOut`, whose lock keeps caps as they are, too. */
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
