/**
 * The settings of one crawler: its coordinator, and the limits that its host sets and nobody else can raise. Values come from
 * the command or a settings file and are checked only here. setting-words.ts explains each. Unknown keys are refused, and one
 * error lists every fault.
 */
import { resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "#core/errors";
import { type IpRange, parseRange } from "#core/ip/range";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import { isCoordinatorUrl } from "#protocol/invitation";
import { maxDomainSetCharacters, maxDomainSetsInHello, probeMethod } from "#protocol/messages";
import { partnerContact } from "#protocol/user-agent";
import { readMembership } from "../core/membership.ts";
import { limitsSchema } from "./limits-config.ts";
import { releasePolicy } from "./release-policy.ts";

/** Default floor between two requests to one host. One second is the usual courtesy of search engines. */
const defaultPolitenessFloorMs = 1000;

/** The wait before the next request, as a multiple of the last answer time (Heritrix's default). */
const defaultResponseTimeFactor = 5;

const mebibyte = 1024 * 1024;

const hostAndPort = /^(\[[0-9a-fA-F:.]+\]|[^\s:/@]+):(\d{1,5})$/;

const dnsServer = z.string().refine(
  (text) => {
    const port = Number(hostAndPort.exec(text)?.[2]);
    return port >= 1 && port <= 65_535;
  },
  { error: "must be a DNS server, as address:port" },
);

const addressRange = z
  .string()
  .refine((text) => parseRange(text) !== null, { error: "must be an address, a/prefix or first-last" });

const allowance = z.string().refine((text) => parseAllowance(text) !== null, {
  error: "must be an address, a/prefix or first-last, with :port or :port-port after it if need be",
});

/** The DNS form, with xn-- labels for letters beyond ASCII. */
const domain = z
  .string()
  .max(253)
  .regex(/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i, {
    error: "must be a domain such as example.org (which stands for everything below it, too)",
  })
  .transform((text) => text.toLowerCase());

/** The coordinator parses it in full. If it is invalid, the coordinator refuses the crawler with the reason. */
const domainSet = z
  .string()
  .trim()
  .max(maxDomainSetCharacters)
  .regex(/^(not\s+)?(lang:|\*?\.|[^\s,]+\.)[^\s,]/i, {
    error:
      "must begin with a domain such as .gr or example.org, or a language such as lang:el, or not before it",
  });

const timeouts = z.strictObject({
  connectMs: z.int().min(10).max(120_000).default(10_000),
  firstByteMs: z.int().min(10).max(300_000).default(20_000),
  idleMs: z.int().min(10).max(300_000).default(10_000),
  totalMs: z.int().min(10).max(900_000).default(60_000),
});

/** The partner's own copy of fetched pages, as WARC/1.1 files with each record compressed separately. */
const warc = z.strictObject({
  folder: z.string().min(1),
  /** Maximum size of all files together. Writing then stops, or the oldest file is removed. */
  maxBytes: z
    .int()
    .min(mebibyte)
    .max(1e15)
    .default(10 * 1024 * mebibyte),
  whenFull: z.enum(["stop", "remove-oldest"]).default("stop"),
  /** A file of this size is followed by the next one. 1 GB is usual (WARC/1.1, annex C). */
  fileBytes: z.int().min(mebibyte).max(1e12).default(1_000_000_000),
});

/** The list of requests, one line each, with which the partner can answer a complaint. */
const fetched = z.strictObject({
  days: z.int().min(0).max(3650).default(30),
  maxBytes: z
    .int()
    .min(mebibyte)
    .max(1e12)
    .default(256 * mebibyte),
});

const coordinatorUrl = z.string().refine(isCoordinatorUrl, {
  error: "must be wss://host[:port][/path], or ws:// where the host is loopback",
});

const configSchema = z.strictObject({
  coordinatorUrl,
  otherCoordinatorUrls: z.array(coordinatorUrl).max(16).default([]),
  key: z.string().min(16).max(200),
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, {
    error: "must be 1 to 63 of a-z, 0-9, '.', '_', '-', and begin with a letter or digit",
  }),
  home: z.string().min(1),
  publicAddress: z
    .string()
    .refine((text) => parseRange(text) !== null && !/[-/]/.test(text), { error: "must be an IP address" })
    .nullable()
    .default(null),
  place: z
    .strictObject({
      name: z.string().max(80),
      country: z
        .string()
        .regex(/^[A-Z]{2}$/, { error: "must be two capital letters (ISO 3166)" })
        .nullable()
        .default(null),
      latitude: z.number().min(-90).max(90),
      longitude: z.number().min(-180).max(180),
    })
    .nullable()
    .default(null),
  proxy: z
    .string()
    .refine((text) => parseProxy(text) !== null, {
      error: "must be http://host:port or socks5://host:port, with an optional user:password@",
    })
    .nullable()
    .default(null),
  resolvers: z.array(dnsServer).max(8).default([]),
  limits: limitsSchema.prefault({}),
  timeouts: timeouts.prefault({}),
  politenessFloorMs: z.number().min(0).max(3_600_000).default(defaultPolitenessFloorMs),
  politenessFastestMs: z.number().min(50).max(3_600_000).nullable().default(null),
  responseTimeFactor: z.number().min(0).max(1000).default(defaultResponseTimeFactor),
  requestsPerAddress: z.int().min(1).max(64).default(1),
  /**
   * An origin's tdmrep.json is fetched once a day if this many of its URLs are leased at once. 1 fetches it always, 0 never.
   * With 10, it takes at most a tenth of a lease's requests.
   */
  tdmFileFromUrls: z.int().min(0).max(1000).default(10),
  contact: partnerContact.nullable().default(null),
  listAddress: z.boolean().default(true),
  allowRanges: z.array(allowance).max(100).default([]),
  denyRanges: z.array(addressRange).max(10_000).default([]),
  denyDomains: z.array(domain).max(10_000).default([]),
  domainSets: z.array(domainSet).max(maxDomainSetsInHello).default([]),
  probeMethods: z.array(probeMethod).default(["head", "connect", "icmp"]),
  ipv6: z.boolean().nullable().default(null),
  certificateFile: z.string().nullable().default(null),
  coordinatorCertificateFile: z.string().nullable().default(null),
  coordinatorProxy: z
    .string()
    .refine((text) => text === "as-sites" || text === "none" || parseProxy(text) !== null, {
      error: "must be as-sites, none, http://host:port or socks5://host:port",
    })
    .default("as-sites"),
  warc: warc.nullable().default(null),
  fetched: fetched.prefault({}),
  status: z.strictObject({ port: z.int().min(0).max(65_535).default(7412) }).prefault({}),
  releases: releasePolicy.prefault({}),
});

export type CrawlerConfig = Readonly<z.infer<typeof configSchema>>;

/** Fetching does not depend on the crawler's identity or its coordinator. */
export type FetchingConfig = Omit<CrawlerConfig, keyof typeof connection>;

export type CrawlerSettings = z.input<typeof configSchema>;

const connection = { coordinatorUrl: true, key: true, name: true, home: true } as const;
const fetchingSchema = configSchema.omit(connection);

/**
 * Returns settings for fetching single pages under a host's rules. The four settings of a connected crawler are ignored.
 * Throws a ConfigError that lists every fault.
 */
export function fetchingConfig(settings: Readonly<Record<string, unknown>>): FetchingConfig {
  const given = Object.entries(settings).filter(([name]) => !(name in connection));
  const checked = fetchingSchema.safeParse(Object.fromEntries(given));
  if (!checked.success) throw new ConfigError(settingFaults(checked.error, fetchingSchema, settings));
  const faults = paceFaults(checked.data);
  if (faults.length > 0) throw new ConfigError(faults);
  return deepFreeze(checked.data);
}

/**
 * Validates settings and fills in defaults. A membership in the home provides coordinator, name and key. Throws a ConfigError
 * that lists every fault.
 */
export function crawlerConfig(given: unknown): CrawlerConfig {
  const { settings, faults } = joinedSettings(given);
  const checked = configSchema.safeParse(settings);
  faults.push(
    ...(checked.success ? paceFaults(checked.data) : settingFaults(checked.error, configSchema, settings)),
  );
  if (!checked.success || faults.length > 0) throw new ConfigError(faults);
  return deepFreeze({ ...checked.data, home: resolve(checked.data.home) });
}

function paceFaults({ politenessFloorMs, politenessFastestMs }: FetchingConfig): string[] {
  if (politenessFastestMs === null || politenessFastestMs <= politenessFloorMs) return [];
  return [
    `politenessFastestMs: ${politenessFastestMs} is more than politenessFloorMs (${politenessFloorMs}); it can only be less`,
  ];
}

export interface ProxyAddress {
  readonly type: "http" | "socks5";
  readonly host: string;
  readonly port: number;
  readonly user: string | null;
  readonly password: string | null;
}

export function parseProxy(text: string): ProxyAddress | null {
  if (!canParseUrl(text)) return null;
  const url = new URL(text);
  const type = url.protocol === "http:" ? "http" : url.protocol === "socks5:" ? "socks5" : null;
  if (type === null || url.hostname === "" || (url.pathname !== "/" && url.pathname !== "")) return null;
  return {
    type,
    host: urlHost(url),
    port: url.port === "" ? (type === "http" ? 80 : 1080) : Number(url.port),
    user: url.username === "" ? null : decodeURIComponent(url.username),
    password: url.password === "" ? null : decodeURIComponent(url.password),
  };
}

// Parses the special-purpose addresses that a partner allows: an address, a/prefix or first-last, with an optional port or
// port range: `10.1.0.0/16`, `127.0.0.1:8080`, `127.0.0.1:8000-8099`, `[fd00::/8]:443`.

export interface Allowance {
  readonly range: IpRange;
  readonly firstPort: number;
  readonly lastPort: number;
  readonly namesPorts: boolean;
}

const ipv4Form = /^([^:[\]]+)(?::(\d{1,5})(?:-(\d{1,5}))?)?$/;
const ipv6Form = /^\[([^[\]]+)\](?::(\d{1,5})(?:-(\d{1,5}))?)?$/;

export function parseAllowance(text: string): Allowance | null {
  const [, form, first, last] = ipv4Form.exec(text) ?? ipv6Form.exec(text) ?? [null, text];
  const range = parseRange(form ?? "");
  const firstPort = Number(first ?? 1);
  const lastPort = Number(last ?? first ?? 65_535);
  if (range === null || firstPort < 1 || firstPort > lastPort || lastPort > 65_535) return null;
  return { range, firstPort, lastPort, namesPorts: first !== undefined };
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}

// A membership in the crawler's home provides coordinator, name and key, so that the settings file contains no secret and
// cannot contradict it.

const fromMembership = ["coordinatorUrl", "name", "key"] as const;

/** Returns the settings unchanged if there is no membership. A value that differs from the membership is a fault. */
function joinedSettings(settings: unknown): { readonly settings: unknown; readonly faults: string[] } {
  const given = settings as Readonly<Record<string, unknown>> | null;
  if (typeof given !== "object" || given === null || typeof given.home !== "string") {
    return { settings, faults: [] };
  }
  const membership = readMembership(given.home);
  if (membership === null) return { settings, faults: [] };
  const faults = fromMembership
    .filter((name) => given[name] !== undefined && given[name] !== membership[name])
    .map((name) => `${name}: is not what membership.json of ${String(given.home)} has: leave it out here`);
  const { coordinatorUrl, name, key } = membership;
  return { settings: { ...given, coordinatorUrl, name, key }, faults };
}

// Describes faults in settings: which setting, what it must be and what it is. For an unknown name, suggests the one that was
// probably intended.

type Issue = z.core.$ZodIssue;
type Schema = z.core.$ZodType;

/** Longer values are cut. Secrets are never shown. */
const mostShown = 60;

/** Settings of earlier releases, and what replaces them. */
const gone: Readonly<Record<string, string>> = {
  userAgent: "the coordinator states it; your own address goes into contact",
};

const secrets = new Set(["key", "proxy", "coordinatorProxy"]);

/** Each fault starts with the setting's path and a colon: `limits.pagesPerDay: …`. */
function settingFaults(error: z.ZodError, schema: Schema, settings: unknown): string[] {
  return error.issues.flatMap((issue) => faultsOf(issue, schema, settings));
}

function faultsOf(issue: Issue, schema: Schema, settings: unknown): string[] {
  const { path } = issue;
  if (issue.code === "unrecognized_keys") {
    const known = namesAt(schema, path);
    return issue.keys.map((key) => {
      const name = [...path, key].join(".");
      return `${name}: ${gone[name] ?? `there is no such setting${meant(key, known)}`}`;
    });
  }
  return [`${path.join(".") || "settings"}: ${issue.message}${shown(path, settings)}`];
}

function meant(key: string, known: readonly string[]): string {
  const bare = (name: string) => name.toLowerCase().replace(/[^a-z]/g, "");
  const near = known.find((name) => bare(name) === bare(key));
  return near === undefined ? "" : `; is ${near} meant?`;
}

function shown(path: Issue["path"], settings: unknown): string {
  let value = settings;
  for (const step of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[step];
  if (value === undefined || secrets.has(String(path[0]))) return "";
  const text = JSON.stringify(value) ?? String(value);
  return ` (it is ${text.length > mostShown ? `${text.slice(0, mostShown)}…` : text})`;
}

function namesAt(schema: Schema, path: Issue["path"]): string[] {
  let at: Schema | undefined = schema;
  for (const step of path) at = shapeOf(at)?.[String(step)];
  return Object.keys(shapeOf(at) ?? {});
}

/** Finds the shape of an object schema behind defaults and `nullable`. */
function shapeOf(schema: Schema | undefined): Readonly<Record<string, Schema>> | undefined {
  const def = schema?._zod.def as { innerType?: Schema; shape?: Record<string, Schema> } | undefined;
  return def?.shape ?? (def?.innerType === undefined ? undefined : shapeOf(def.innerType));
}
