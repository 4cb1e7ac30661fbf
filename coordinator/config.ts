/**
 * The coordinator's settings, from a JSON file and flags. They are checked once and frozen; all faults are reported together,
 * and unknown names are refused. setting-words describes each. The command reads the environment.
 */
import { isIPv4, isIPv6 } from "node:net";
import type { Pool } from "pg";
import { z } from "zod";
import { ConfigError } from "#core/errors";
import { parseRange } from "#core/ip/range";
import { hostInUrl } from "#core/ip/url-host";
import type { Log } from "#core/log";
import type { MachineClock } from "#core/own-clock";
import { type DeepReadonly, seconds } from "#core/policy";
import type { Database } from "#db/server-database";
import { isLoopbackHost } from "#protocol/invitation";
import { userAgentVersion } from "#protocol/software-version";
import { reachableContact } from "#protocol/user-agent";
import { suspiciousShare } from "#rir-import/shrinkage";
import { coordinatorsSettings, parentFaults, parentSettings } from "./crawl/federation/exchange.ts";
import { accuracySettings, finerSettings } from "./place/delegation/delegation-settings.ts";
import { readLayer } from "./place/domain-sets/partition.ts";
import type { RegistryHost } from "./run/registry/registry-view.ts";
import { policySections } from "./run/settings/schema.ts";
import { alertsSettings } from "./tell/overview/alerts/alert-settings.ts";

const usualPort = 7411;

const listen = z.strictObject({
  host: z.string().min(1).max(253).default("127.0.0.1"),
  port: z.int().min(0).max(65_535).default(usualPort),
  pagesPort: z.int().min(0).max(65_535).nullable().default(null),
});

const tls = z.strictObject({ certificateFile: z.string().min(1), keyFile: z.string().min(1) });

/** Settings for registry imports that are started from the pages. */
const registry = z.strictObject({
  filesFolder: z.string().min(1).max(4096).nullable().default(null),
  /** Memory limit of one job. Importing 10 million objects took 1.9 GB (test/bench/results/rir-import.md). */
  jobMegabytes: z.int().min(256).max(1_000_000).default(4096),
  jobMinutes: z.int().min(1).max(10_080).default(720),
  shrinkageWarningShare: z.number().min(0).max(1).default(suspiciousShare),
});

const resolver = z
  .string()
  .max(60)
  .refine(isResolver, {
    error: ({ input }) => `"${input}" is not an address with an optional port, such as 192.0.2.1:53`,
  });

const specialRange = z
  .string()
  .max(100)
  .refine((text) => parseRange(text) !== null, {
    error: ({ input }) => `"${input}" is no range, such as 10.0.0.0/8`,
  });

const domainSets = z.array(z.string()).superRefine((texts, context) => {
  const layer = readLayer(texts);
  if (typeof layer === "string") context.addIssue({ code: "custom", message: layer });
});

const search = z
  .strictObject({
    engine: z.enum(["fts5", "opensearch"]).default("fts5"),
    url: z.string().max(2000).nullable().default(null),
    ca: z.string().max(4000).nullable().default(null),
  })
  .refine(({ engine, url }) => (engine === "opensearch") === (url !== null), {
    path: ["url"],
    error: "is needed for the engine opensearch, and only for it",
  });

const backup = z.strictObject({
  warnAfterHours: z.number().min(0).max(8760).nullable().default(48),
});

/** What anonymous visitors may read. Changes always need a sign-in. */
const access = z.strictObject({
  anonymous: z.enum(["read", "nothing"]).nullable().default(null),
});

export const configSchema = z.strictObject({
  listen: listen.prefault({}),
  tls: tls.nullable().default(null),
  behindProxy: z.boolean().default(false),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .max(300)
    .nullable()
    .default(null),
  access: access.prefault({}),
  resolvers: z.array(resolver).max(8).default([]),
  /** Special-purpose networks that may be crawled (a partner's own, tests). */
  allowSpecialPurpose: z.union([z.boolean(), z.array(specialRange).min(1).max(100)]).default(false),
  delegation: policySections.delegation.prefault({}),
  probe: policySections.probe.prefault({}),
  scope: policySections.scope.prefault({}),
  lease: policySections.lease.prefault({}),
  frontier: policySections.frontier.prefault({}),
  balance: policySections.balance.prefault({}),
  recalibration: policySections.recalibration.prefault({}),
  finer: finerSettings.prefault({}),
  accuracy: accuracySettings.prefault({}),
  trust: policySections.trust.prefault({}),
  recrawl: policySections.recrawl.prefault({}),
  changes: policySections.changes.prefault({}),
  retention: policySections.retention.prefault({}),
  pace: policySections.pace.prefault({}),
  registry: registry.prefault({}),
  search: search.prefault({}),
  backup: backup.prefault({}),
  alerts: alertsSettings.prefault({}),
  /** The parent coordinator, which receives the URLs that this coordinator does not own (WEB-SAILOR section 4.4), or null. */
  parent: parentSettings.nullable().default(null),
  coordinators: coordinatorsSettings.prefault({}),
  heartbeatSeconds: seconds(600).default(10),
  departureSeconds: seconds(86_400).default(120),
  userAgent: z
    .string()
    .regex(
      /^Nearcrawl\/\S+ \(\+(https?:\/\/|mailto:)\S+\)$/,
      "must look like: Nearcrawl/0.2 (+https://example.org/crawler)",
    )
    .max(200)
    .optional(),
  contact: z.string().min(3).max(200).nullable().default(null),
  /**
   * Whether crawlers with an identity sign their requests to sites (Web Bot Auth, RFC 9421). The key set is at publicUrl
   * (default: the origin of the User-Agent's page), which must reach this coordinator by https.
   */
  signRequests: z.boolean().default(false),
  signingKeyDays: z.int().min(1).max(365).default(30),
  domainSets: domainSets.default([]),
  databaseGigabytes: z.number().positive().max(1e9).nullable().default(null),
  logLevel: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
});

export type CoordinatorConfig = DeepReadonly<z.infer<typeof configSchema> & { userAgent: string }>;

/** Throws one ConfigError with every fault. */
export function readCoordinatorConfig(values: unknown): CoordinatorConfig {
  const checked = configSchema.safeParse(withoutFormer(values));
  const faults = [...(checked.error?.issues.flatMap(faultsOf) ?? []), ...exposureFaults(values)];
  if (!checked.success || faults.length > 0) throw new ConfigError(faults);
  const { parent, userAgent = defaultUserAgent(checked.data) } = checked.data;
  const ofParent = parentFaults(parent, checked.data);
  if (ofParent.length > 0) throw new ConfigError(ofParent);
  return frozen({ ...checked.data, userAgent });
}

/**
 * Accepts files of earlier versions, which have hints and an index in memory (no longer used) and call the strategy *optimal*
 * *ncis*.
 */
function withoutFormer(values: unknown): unknown {
  if (!isTable(values)) return values;
  const { hints: _, ...others } = values;
  const kept = {
    ...others,
    ...(isTable(others.search) && { search: withoutIndex(others.search) }),
  } as typeof others;
  const recrawl = kept.recrawl as { readonly strategy?: unknown } | null | undefined;
  return recrawl?.strategy === "ncis" ? { ...kept, recrawl: { ...recrawl, strategy: "optimal" } } : kept;
}

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const withoutIndex = ({ index: _, indexMegabytes: __, ...search }: Record<string, unknown>) => search;

/** Prefers an address that outsiders can reach. */
function defaultUserAgent({ publicUrl, contact, listen, tls }: z.infer<typeof configSchema>): string {
  const here = `${tls === null ? "http" : "https"}://${hostInUrl(listen.host)}:${listen.pagesPort || listen.port}`;
  const page = `${(publicUrl ?? here).replace(/\/+$/, "")}/about-crawler`;
  const reachable = reachableContact(page) ?? reachableContact(contact ?? "") ?? page;
  return `Nearcrawl/${userAgentVersion} (+${reachable})`;
}

/** Adapts the settings when the coordinator listens on another port than they name. */
export function listeningAt(config: CoordinatorConfig, port: number): CoordinatorConfig {
  const values = config as z.infer<typeof configSchema> & { userAgent: string };
  const moved = { ...values, listen: { ...values.listen, port } };
  const isDefault = values.userAgent === defaultUserAgent(values);
  return frozen({ ...moved, userAgent: isDefault ? defaultUserAgent(moved) : values.userAgent });
}

function faultsOf(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${path ? `${path}.` : ""}${key}: there is no such setting`);
  }
  return [`${path || "settings"}: ${issue.message}`];
}

/** This schema is separate, so that an exposed address is reported whatever else is wrong. */
const exposureSchema = z.object({
  listen: z.object({ host: listen.shape.host }).prefault({}),
  tls: z.unknown().optional(),
  behindProxy: z.unknown().optional(),
});

function exposureFaults(values: unknown): string[] {
  const { data } = exposureSchema.safeParse(values);
  if (!data) return [];
  const { host } = data.listen;
  if (isLoopbackHost(host) || (data.tls ?? null) !== null || data.behindProxy === true) return [];
  return [
    `listen.host: ${host} is reachable from outside, so tls must be set (or behindProxy, when something in front does TLS)`,
  ];
}

function isResolver(text: string): boolean {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(text);
  const [, v6, v4, portText = "53"] = match ?? [];
  const port = Number(portText);
  return (isIPv6(v6 ?? "") || isIPv4(v4 ?? "")) && port >= 1 && port <= 65_535;
}

function frozen<Value>(value: Value): DeepReadonly<Value> {
  if (typeof value === "object" && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value) as DeepReadonly<Value>;
}

export interface CoordinatorOptions {
  readonly config: CoordinatorConfig;
  readonly database: Database;
  readonly log: Log;
  /** The software's version, shown on pages. */
  readonly version: string;
  /** The folder for tree snapshots. If null, the tree is built from the database at every start. */
  readonly snapshotFolder?: string | null;
  /** The folder of the search's index. If null, the index is in memory and is built at every start. */
  readonly searchFolder?: string | null;
  /** The header's value by which OpenSearch knows this coordinator, or null. */
  readonly searchAuthorization?: string | null;
  /** The folder of the journals beside the database (coordinator/run/journal), or null. */
  readonly journalRoot?: string | null;
  /** The socket for the home's commands. If null, they use the database alone. */
  readonly socketPath?: string | null;
  /** Runs registry jobs. If absent, none can be started from the pages. */
  readonly registryHost?: RegistryHost | null;
  /** Keeps a crawler release available; called before listening and regularly. If absent, operators do this. */
  readonly keepReleases?: (now: Date, pool: Pool) => Promise<void>;
  /** The watched clock (core/own-clock); default: the system's. */
  readonly machineClock?: MachineClock;
  /** An operator has checked the clock, so the age of the database's last write does not matter. */
  readonly clockIsRight?: boolean;
  /** A simulated clock, which is not compared with any other. Default: the machine's. */
  readonly now?: () => Date;
  /** A monotonic clock for watching the other coordinators of this database. */
  readonly nowMs?: () => number;
}
