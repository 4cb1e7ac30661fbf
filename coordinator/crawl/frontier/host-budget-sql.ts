/** The host's budget (frontier/budgets.ts) as SQL, for statements over many hosts. */
import {
  badUrls,
  fewestUrls,
  firstUrls,
  goodPageUrls,
  type HostPages,
  outsideLinkUrls,
  trappedLinksPerUrl,
} from "./budgets.ts";

/** Maps the rule's figures to columns of frontier_host. */
export const hostPageColumns: Readonly<Record<keyof HostPages, string>> = {
  good: "good_pages",
  nearDuplicates: "near_duplicates",
  notFound: "not_found_pages",
  empty: "empty_pages",
  failed: "failed_urls",
  trappedLinks: "trapped_links",
  outsideLinks: "outside_links",
};

/** `host` is the alias of frontier_host, `limit` an SQL expression. */
export function hostBudgetSql(host: string, limit: string): string {
  const { good, nearDuplicates, notFound, empty, failed, trappedLinks, outsideLinks } = hostPageColumns;
  const bad = [nearDuplicates, notFound, empty, failed].map((column) => `${host}.${column}`).join(" + ");
  return `least(${limit}, greatest(${fewestUrls}, ${firstUrls} + ${goodPageUrls} * ${host}.${good}
    + ${outsideLinkUrls} * least(${host}.${good}, ${host}.${outsideLinks})
    - ${badUrls} * (${bad}) - ${host}.${trappedLinks} / ${trappedLinksPerUrl}))`;
}
