/**
 * The coordinator's settings: checked once, all faults listed together, unknown names refused, frozen.
 * What each does says coordinator/setting-words. The values come from a JSON file
 * and from flags; the environment is read by the command, not here.
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

/** Importing the registries' data, as it is asked for on the pages. */
const registry = z.strictObject({
  filesFolder: z.string().min(1).max(4096).nullable().default(null),
  /** Of memory for one job: 10 million objects took 1.9 GB (test/bench/results/rir-import.md). */
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

/** Where searches are answered from. */
const search = z.strictObject({
  index: z.enum(["memory", "database"]).nullable().default(null),
  indexMegabytes: z.int().min(100).max(10_000_000).nullable().default(null),
});

/** What is expected of backups. */
const backup = z.strictObject({
  warnAfterHours: z.number().min(0).max(8760).nullable().default(48),
});

/** The web pages; what changes something is for those who have signed in, wherever it listens. */
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
  /** Networks that may be crawled although they are special-purpose (a partner's own, tests). */
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
  /** The coordinator above this one, which gets what is not its own (WEB-SAILOR section 4.4); null: there is none. */
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
   * Crawlers with an identity sign their requests to sites (Web Bot Auth, RFC 9421), naming the key set at publicUrl
   * (left out: at the origin of the User-Agent's page), where this coordinator must be reached by https.
   */
  signRequests: z.boolean().default(false),
  signingKeyDays: z.int().min(1).max(365).default(30),
  domainSets: domainSets.default([]),
  databaseGigabytes: z.number().positive().max(1e9).nullable().default(null),
  logLevel: z.enum(["debug", "info", "warn", "error", "silent"]).default("info"),
});

export type CoordinatorConfig = DeepReadonly<z.infer<typeof configSchema> & { userAgent: string }>;

/** Checks the settings; throws one ConfigError that lists every fault. */
export function readCoordinatorConfig(values: unknown): CoordinatorConfig {
  const checked = configSchema.safeParse(withoutFormer(values));
  const faults = [...(checked.error?.issues.flatMap(faultsOf) ?? []), ...exposureFaults(values)];
  if (!checked.success || faults.length > 0) throw new ConfigError(faults);
  const { parent, userAgent = defaultUserAgent(checked.data) } = checked.data;
  const ofParent = parentFaults(parent, checked.data);
  if (ofParent.length > 0) throw new ConfigError(ofParent);
  return frozen({ ...checked.data, userAgent });
}

/** A file that an earlier version wrote goes on working: hints are gone, and the strategy *ncis* is *optimal* now. */
function withoutFormer(values: unknown): unknown {
  if (typeof values !== "object" || values === null || Array.isArray(values)) return values;
  const { hints: _, ...kept } = values as Record<string, unknown>;
  const recrawl = kept.recrawl as { readonly strategy?: unknown } | null | undefined;
  return recrawl?.strategy === "ncis" ? { ...kept, recrawl: { ...recrawl, strategy: "optimal" } } : kept;
}

/** Of the page and the contact, what somebody outside can reach. */
function defaultUserAgent({ publicUrl, contact, listen, tls }: z.infer<typeof configSchema>): string {
  const here = `${tls === null ? "http" : "https"}://${hostInUrl(listen.host)}:${listen.pagesPort || listen.port}`;
  const page = `${(publicUrl ?? here).replace(/\/+$/, "")}/about-crawler`;
  const reachable = reachableContact(page) ?? reachableContact(contact ?? "") ?? page;
  return `Nearcrawl/${userAgentVersion} (+${reachable})`;
}

/** The settings of a coordinator that listens at another port than they say: its page is there. */
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

/** What exposure depends on, read by itself: whatever else is wrong, this is told too. */
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
  /** Of this software, shown on pages. */
  readonly version: string;
  /** Where the tree is kept between two starts; null: it is built from the database each time. */
  readonly snapshotFolder?: string | null;
  /** The folder of the journals beside the database (coordinator/journal); null: none is kept. */
  readonly journalRoot?: string | null;
  /** Where commands of the home reach it; null: by the database alone. */
  readonly socketPath?: string | null;
  /** Runs the registry's jobs; left out: none can be started from the pages. */
  readonly registryHost?: RegistryHost | null;
  /** Sees to it that there is a release of the crawler: before it listens, and now and then. Left out: operators do. */
  readonly keepReleases?: (now: Date, pool: Pool) => Promise<void>;
  /** The machine's clock, which is watched (core/own-clock); left out: the system's. */
  readonly machineClock?: MachineClock;
  /** Somebody has looked at the clock: how long ago the database was last written does not matter. */
  readonly clockIsRight?: boolean;
  /** A clock by which days pass as somebody wants; left out: the machine's. It is compared with nothing. */
  readonly now?: () => Date;
  /** A clock that never goes back, by which the other coordinators of this database are watched. */
  readonly nowMs?: () => number;
}
