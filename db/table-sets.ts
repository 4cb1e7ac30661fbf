/**
 * The two sets of tables. A slice of the web is a share of the hosts, with all tables that grow with them, in a schema of its
 * own, which may be on another server than the rest: what there is once for the whole crawl is shared. With one slice, which
 * is how every crawl begins, both sets lie in one schema.
 *
 *   shared   who crawls, who owns which subnet, what is set, who may: written on the server of the shared tables alone;
 *            slices on other servers read a replica of what their statements need (`replicatedTables`)
 *   slice    whatever has a host: no statement sees the tables of two slices
 *
 * Citus knows the same division as distributed schemas and reference tables (ops/runbook/scaling.md).
 */

/** In the order in which rows are copied where one refers to another. */
export const sliceTables = [
  // The frontier.
  ...["frontier_host", "frontier_url", "held_urls", "url_shortlist", "named_sitemap"],
  ...["lease", "link_outbox", "link_outbox_bite", "deferred_link", "domain_count", "foreign_url"],
  // Results and the index.
  ...["spool", "result_seal", "preference_set", "page", "text_band", "page_fetch", "page_touch"],
  ...["search_word", "search_upkeep"],
  // The graph.
  ...["out_link", "page_links", "url_rank", "graph_summary"],
  // The change feed.
  ...["change_feed", "page_change_inbox", "page_change"],
  // Recrawling.
  "recrawl_host",
  // Comparisons of what crawlers fetched.
  ...["double_check", "check_outcome", "host_disagreement"],
  // The list of sites.
  ...["site", "site_touch", "site_upkeep"],
  // The slice itself.
  ...["slice_self", "slice_shipment", "slice_arrival"],
  ...["closed_lease_day", "closed_lease_report"],
  ...["claims_settling", "exchange_arrival"],
] as const;

/** Shared tables that statements of slices read beside their own. */
export const replicatedTables = [
  ...["crawler", "crawler_trust", "crawler_figures"],
  ...["subnet", "holder", "delegation", "delegation_history", "finer_delegation"],
  ...["channel", "opt_out", "address_turn", "site_cap", "submission", "submission_url"],
  ...["coordinator_self", "related_coordinator"],
] as const;

const ofSlices: ReadonlySet<string> = new Set(sliceTables);

export const isSliceTable = (name: string): boolean => ofSlices.has(name);
