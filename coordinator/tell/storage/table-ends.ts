/**
 * How long each table keeps its rows, and what bounds tables without an age limit. A test (test/storage) fails if a table is
 * missing here, so that whoever adds one states its limit.
 */

import { incidentDays } from "#core/incidents";
import type { TableSize } from "#db/table-sizes";
import type { ChangeSettings } from "../../crawl/changes/change-settings.ts";
import { mostSiteCaps } from "../../crawl/site-caps/site-cap.ts";
import { submissionBounds } from "../../crawl/submissions/submission.ts";
import { evidenceDays } from "../../crawl/trust/double-checks.ts";
import { type Epoch, journalDays, replayedRows } from "../../run/journal/epoch.ts";
import type { RetentionSettings } from "../../run/settings/schema.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import { crawlerDays, gaugeDays } from "../overview/minute-figures.ts";
import type { storage as storageSchema, storedTable as storedTableSchema } from "./storage-api.ts";

type KeepPolicy = `retention.${keyof RetentionSettings}` | "changes.keepDays";

type TableEnd =
  /** Rows are deleted at the age stated by a policy. */
  | {
      readonly type: "policy";
      readonly policy: KeepPolicy;
      readonly words: string;
      /** The column that has the rows' age, and which rows expire by it. If absent, a room deletes them itself. */
      readonly by?: { readonly column: string; readonly condition?: string };
    }
  /** Rows are deleted after this many days. */
  | { readonly type: "days"; readonly days: number; readonly words: string }
  /** Rows belong to a row of another table and are deleted with it, if at all. */
  | { readonly type: "each"; readonly words: string }
  /** The table has at most this many rows; null means that rows are in transit. */
  | { readonly type: "bounded"; readonly mostRows: number | null; readonly words: string };

const each = (words: string): TableEnd => ({ type: "each", words });
const bounded = (words: string, mostRows: number | null = null): TableEnd => ({
  ...{ type: "bounded", mostRows, words },
});
const days = (count: number, words: string): TableEnd => ({ type: "days", days: count, words });
const policy = (name: KeepPolicy, words: string): TableEnd => ({ type: "policy", policy: name, words });
/** The end of a record of people's actions, or of their outcome. */
const record = (column: string, words: string, condition?: string): TableEnd => ({
  ...{ type: "policy", policy: "retention.recordDays", words },
  by: { column, ...(condition === undefined ? {} : { condition }) },
});

const oneRow = bounded("one row", 1);
const rangesRegistered = each("range that a registry ever held: it can return with its delegation");
const registryChanges = each("range or holder that an import changed: every import can be undone");
const crawlersRegistered = each("crawler that was ever registered");
const byHand = each("change made by a person");

/** The ends by table, which includes its partitions. */
export const tableEnds: Readonly<Record<string, TableEnd>> = {
  frontier_host: each("host known"),
  site: each("host known, as the list of sites has it"),
  site_touch: bounded("hosts that changed, until the list of sites has them"),
  site_upkeep: oneRow,
  site_cap: bounded("a cap on a site that an operator set", mostSiteCaps),
  frontier_url: each("URL known"),
  named_sitemap: each("host whose robots.txt names sitemaps of other hosts, 50 at most"),
  held_urls: each("host with URLs over its budget, a thousand at most, 64 to a row"),
  page: each("page in the index"),
  document: each("page in the index: its text"),
  text_band: each("text in the index, four rows"),
  preference_set: each("list of preferences that a page in the index, or a change in the feed, has"),
  out_link: each("page with links, all of them in one row"),
  link_outbox: bounded("effects of results on other hosts, until applied"),
  link_outbox_bite: oneRow,
  deferred_link: bounded("effects on new hosts, two days' hosts of each domain and of each linking site"),
  domain_count: each("registrable domain whose hosts or links brought in hosts"),
  url_shortlist: bounded("600 URLs of each host leased in the last ten minutes"),
  url_rank: each("URL known, as last ranked"),
  recrawl_host: each("host and channel known"),
  host_disagreement: each("host with compared pages"),
  foreign_url: bounded("a fixed number of URLs of other coordinators, sent or waiting"),
  page_fetch: policy("retention.fetchDays", "dropped by day; the counts per URL, host and day stay"),
  lease: policy("retention.leaseHours", "after it was closed; the daily figures count it"),
  crawler_denies: each("crawler whose partner denies something"),
  fleet_lead: oneRow,
  running_coordinator: bounded("running coordinators"),
  coordinator_address: bounded("running coordinators, and where crawlers reach them"),
  round_request: bounded("rounds requested by coordinators that do not lead"),
  address_turn: bounded("addresses leased in the last hour"),
  page_change: policy("changes.keepDays", "readers that were away longer start over"),
  page_change_inbox: bounded("changes without a number yet"),
  change_feed: oneRow,
  rejected_url: policy("retention.rejectedDays", "after it was last named"),
  submission: days(submissionBounds.keepDays, "receipts"),
  submission_url: days(submissionBounds.keepDays, "with their receipts"),
  channel: byHand,
  delegation: each("subnet delegated"),
  anycast_check: each("region, or range without a region, of the clouds' lists"),
  finer_delegation: each("host or sub-range delegated to another crawler"),
  probe_round: policy(
    "retention.roundDays",
    "the latest of each subnet, and those that decide a delegation, stay",
  ),
  probe: policy("retention.roundDays", "with their rounds"),
  move_rate: each("holder and country among the latest 200,000 rounds"),
  delegation_history: policy("retention.historyDays", "who had a subnet before"),
  accuracy_sample: days(90, "three times as long as they count"),
  crawler: crawlersRegistered,
  crawler_trust: crawlersRegistered,
  crawler_rtt: each("pair of crawlers that measured each other"),
  crawler_key: each("key that a crawler stored"),
  crawler_signing_key: record("expires_at", "after it ended: which key signed requests, and when"),
  crawler_absence: each("crawler, only its latest absences"),
  crawler_move: record(
    "changed_at",
    "after it ended",
    "step not in ('asked', 'emptying', 'packing', 'sending')",
  ),
  spool: each("spool that a crawler ever started, 40 bytes"),
  invitation: record("expires_at", "after it expired"),
  double_check: days(evidenceDays, "after the verdict"),
  check_outcome: days(evidenceDays, "with their checks"),
  release: each("release published"),
  release_bundle: each("release published"),
  release_offer: each("crawler and release that it was offered"),
  release_key: each("key that signed releases"),
  release_key_rotation: each("change of the keys that sign releases"),
  release_revocation: each("list of revoked releases"),
  release_timestamp: oneRow,
  registry_generation: each("import"),
  registry_source: each("file of an import"),
  registry_job: bounded("the latest hundred jobs", 100),
  published_list: bounded("geofeeds and clouds' lists of the latest eight imports, a row for each content"),
  published_range: bounded("a million ranges of each of these imports; what did not change is shared"),
  published_list_in: bounded("the lists of each of the latest eight imports"),
  subnet: rangesRegistered,
  holder: each("holder that a registry ever named"),
  subnet_before: registryChanges,
  subnet_after: registryChanges,
  holder_before: registryChanges,
  holder_after: registryChanges,
  minute_figures: days(90, "the daily figures stay"),
  day_figures: each("day, one row"),
  coverage_day: record("day", "one row per day, country and language"),
  crawler_figures: days(7, "per quarter of an hour and crawler; the daily sums stay"),
  crawler_day_figures: days(crawlerDays, "by day and crawler"),
  gauge_sample: days(gaugeDays, "every five minutes for two weeks, then hourly"),
  incident: days(incidentDays, "by hour, kind and crawler"),
  disk_sample: days(14, "how fast the disk fills"),
  alert_mute: days(30, "after it ended"),
  alert_state: bounded("rules that have fired recently"),
  alert_channel: bounded("channels that the coordinator's file names"),
  graph_summary: bounded("the latest hundred rankings", 100),
  recrawl_plan: bounded("the latest thousand plans", 1000),
  run: record("started_at", "runs of nearcrawl up", "finished_at is not null"),
  journal_entry: days(journalDays, "the latest thousand stay; all are in files beside the database"),
  database_epoch: each("time that the database went back"),
  audit_entry: record("at", "who changed what"),
  opt_out: record("ended_at", "after it ended; one in force stays"),
  complaint: record("closed_at", "after it was closed; an open one stays"),
  operator_token: record("coalesce(revoked_at, expires_at)", "after it was revoked or expired"),
  sign_in_link: days(30, "after it expired"),
  web_session: days(30, "after it ended"),
  setting: byHand,
  policy_version: byHand,
  policy_file: oneRow,
  coordinator_self: oneRow,
  claims_settling: oneRow,
  coordinator_place: oneRow,
  coordinator_version: each("version of the software"),
  related_coordinator: byHand,
  migration: each("version of the tables"),
};

export interface KeepSettings {
  readonly retention: RetentionSettings;
  readonly changes: ChangeSettings;
}

/** Returns null if the table's rows do not expire by age. */
export function keptDays(end: TableEnd, { retention, changes }: KeepSettings): number | null {
  if (end.type === "days") return end.days;
  if (end.type !== "policy") return null;
  switch (end.policy) {
    case "changes.keepDays":
      return changes.keepDays;
    case "retention.leaseHours":
      return retention.leaseHours / 24;
    default:
      return retention[
        end.policy.slice("retention.".length) as Exclude<keyof typeof retention, "leaseHours">
      ];
  }
}

// The size of a table, now and at its final state.

export type StoredTable = ToldOf<typeof storedTableSchema>;

export type StorageAnswer = ToldOf<typeof storageSchema>;

export interface StorageFacts {
  readonly sizes: readonly TableSize[];
  readonly oldest: ReadonlyMap<string, Date>;
  /** How many rows were added in the last day, by table. */
  readonly addedADay: ReadonlyMap<string, number>;
  readonly delegations: number;
  /** Latest first. */
  readonly epochs: readonly Epoch[];
}

export function storageAnswer(facts: StorageFacts, settings: KeepSettings, now: Date): StorageAnswer {
  const tables = facts.sizes
    .map((size) => storedTable(size, facts, { settings, now }))
    .sort((a, b) => sizeOf(b) - sizeOf(a) || a.table.localeCompare(b.table));
  const bytes = tables.reduce((sum, table) => sum + sizeOf(table), 0);
  const expected = tables.map((table) => (table.keptDays === null ? sizeOf(table) : table.expectedBytes));
  const isKnown = expected.every((one) => one !== null);
  return {
    now: now.toISOString(),
    bytes,
    expectedBytes: isKnown ? expected.reduce((sum: number, one) => sum + (one ?? 0), 0) : null,
    tables,
    wentBack: facts.epochs.filter(({ cause }) => cause !== "created").map(wentBack),
  };
}

function wentBack({ epoch, beganAt, words, replay }: Epoch): StorageAnswer["wentBack"][number] {
  return {
    ...{ epoch, beganAt: beganAt.toISOString(), words },
    replayed: replay === null ? null : replayedRows(replay),
    failed: replay?.failed ?? [],
  };
}

export const sizeOf = ({ bytes, indexBytes }: Pick<TableSize, "bytes" | "indexBytes">) => bytes + indexBytes;

const unknownEnd = bounded("not known to this version");

function storedTable(
  size: TableSize,
  facts: StorageFacts,
  { settings, now }: { readonly settings: KeepSettings; readonly now: Date },
): StoredTable {
  const end = tableEnds[size.table] ?? unknownEnd;
  const kept = keptDays(end, settings);
  const since = facts.oldest.get(size.table) ?? null;
  return {
    ...size,
    keptDays: kept,
    policy: end.type === "policy" ? end.policy : null,
    end: endWords(end),
    since: since?.toISOString() ?? null,
    expectedBytes: kept === null ? null : expectedBytes(size, kept, { facts, since, now }),
  };
}

function endWords(end: TableEnd): string {
  return end.type === "each" ? `for each ${end.words}` : end.words;
}

const dayMs = 86_400_000;

/** A table with fewer rows says nothing about the size of a row. */
const fewRows = 1000;

function expectedBytes(
  size: TableSize,
  kept: number,
  { facts, since, now }: { readonly facts: StorageFacts; readonly since: Date | null; readonly now: Date },
): number | null {
  const total = sizeOf(size);
  if (size.rows < fewRows) return total;
  const added = facts.addedADay.get(size.table);
  const rowBytes = total / size.rows;
  if (added !== undefined) {
    const staying = size.table === "probe_round" ? facts.delegations : 0;
    return Math.round((added * kept + staying) * rowBytes);
  }
  if (since === null) return null;
  const agedDays = (now.getTime() - since.getTime()) / dayMs;
  // Less than a day is too short for a growth rate.
  if (agedDays < Math.min(1, kept)) return null;
  return Math.round(total * Math.max(1, kept / agedDays));
}
