/**
 * The operator's settings for downloads: a JSON file that adds, changes or switches off sources and sets the contact,
 * the proxy and the time limits. Unknown keys are refused, and all faults are listed at once with their positions. The
 * file never contains secrets but names the files that do. Paths are relative to its folder.
 *
 *   { "contact": "noc@example.org",
 *     "sources": {
 *       "arin-bulk": { "queryFiles": { "apikey": "/etc/nearcrawl/arin-api-key" } },
 *       "ripencc-inetnum": { "mirrors": ["https://mirror.example.org/ripe.db.inetnum.gz"] },
 *       "lacnic-database": { "enabled": false } },
 *     "geofeeds": { "most": 1000 } }
 */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import type { PublishedKind } from "#coordinator/place/subnets/published-ranges";
import { type Registry, registries } from "#coordinator/place/subnets/subnet";
import { ConfigError } from "#core/errors";
import { parseRange } from "#core/ip/range";
import { canParseUrl } from "#core/ip/url-host";
import {
  isPublishedFormat,
  mostListBytes,
  type PublishedFormat,
  publishedFormats,
} from "../formats/published.ts";

/** The kinds of downloaded files, in the order in which they are imported. */
export const downloadKinds = [
  "iana-registry",
  "statistics",
  /** One object type of a WHOIS database: `….db.inetnum.gz`. */
  "rpsl-split",
  "whole-database",
  /** ARIN's bulk WHOIS data, a ZIP of XML and text. */
  "arin-bulk",
  /** Places that a network publishes for its ranges: a geofeed, or a cloud's ranges by region. */
  ...publishedFormats,
] as const;
export type DownloadKind = (typeof downloadKinds)[number];

const name = /^[a-z0-9][a-z0-9-]{0,62}$/;
const fileName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,120}$/;

const webAddress = z
  .string()
  .max(2000)
  .refine(isPlainUrl, { error: "must be an http or https URL without user, password or fragment" });

const secretFiles = z.record(z.string().regex(/^[A-Za-z0-9_-]{1,80}$/), z.string().min(1).max(4096));

const sourceSchema = z.strictObject({
  enabled: z.boolean().optional(),
  registry: z.enum(registries).optional(),
  kind: z.enum(downloadKinds).optional(),
  url: webAddress.optional(),
  mirrors: z.array(webAddress).max(10).optional(),
  file: z
    .string()
    .regex(fileName, { error: "must be a plain file name" })
    .refine((text) => !/\.(part|json|previous|lock|md5)$/.test(text), { error: "has an ending of our own" })
    .optional(),
  hasMd5: z.boolean().optional(),
  headerFiles: secretFiles.optional(),
  queryFiles: secretFiles.optional(),
  smallestShare: z.number().min(0).max(1).optional(),
  maxBytes: z.int().min(1).max(1e13).optional(),
});

const limitsSchema = z.strictObject({
  /** The limit for connecting and for every pause within an answer. */
  idleSeconds: z.number().positive().max(3600).default(60),
  /** The limit for all tries of one source. A database of some hundred MB takes less than an hour on a slow line. */
  totalMinutes: z
    .number()
    .positive()
    .max(24 * 60)
    .default(240),
  tries: z.int().min(1).max(100).default(6),
  /** RFC 9110 sets no limit. Registries use none to two. */
  redirects: z.int().min(0).max(20).default(5),
  /** A longer Retry-After ends the tries of that source until the next fetch. */
  longestWaitSeconds: z.number().min(0).max(86_400).default(900),
});

const geofeedSchema = z.strictObject({
  /** Whether to fetch the geofeeds that registry objects name (RFC 9632). */
  enabled: z.boolean().default(true),
  /** Maximum number of geofeeds, in the order of their URLs. Registry objects name some four thousand in 2026. */
  most: z.int().min(0).max(20_000).default(5000),
  maxBytes: z.int().min(1).max(mostListBytes).default(mostListBytes),
  /** The limit for all geofeeds together. Those left over are fetched the next time. */
  totalMinutes: z
    .number()
    .positive()
    .max(24 * 60)
    .default(60),
});

const settingsSchema = z.strictObject({
  /** An e-mail address or URL for registries, sent in the User-Agent. */
  contact: z
    .string()
    .regex(/^[\x21-\x27\x2a-\x7e]{3,200}$/, "must be an address or a URL")
    .optional(),
  proxy: webAddress.optional(),
  proxyAuthorizationFile: z.string().min(1).max(4096).optional(),
  certificateFile: z.string().min(1).max(4096).optional(),
  limits: limitsSchema.prefault({}),
  geofeeds: geofeedSchema.prefault({}),
  /** Special-purpose ranges from which lists of places may be fetched, such as an internal mirror. */
  allowAddresses: z
    .array(z.string().refine((text) => parseRange(text) !== null, { error: "must be a range of addresses" }))
    .max(100)
    .default([]),
  onlyThese: z.boolean().default(false),
  sources: z.record(z.string().regex(name), sourceSchema).default({}),
});

type SourceChanges = z.infer<typeof sourceSchema>;
type GeofeedSettings = Readonly<z.infer<typeof geofeedSchema>>;
export type FetchLimits = Readonly<z.infer<typeof limitsSchema>>;

export interface SourceSettings {
  readonly contact: string | null;
  readonly proxy: string | null;
  readonly proxyAuthorizationFile: string | null;
  readonly certificateFile: string | null;
  readonly limits: FetchLimits;
  readonly geofeeds: GeofeedSettings;
  readonly allowAddresses: readonly string[];
  readonly sources: readonly DownloadSource[];
}

const maxSettingsBytes = 1_000_000;

/** Reads the file, or returns the defaults for null. Throws a ConfigError that lists every fault. */
export async function readSourceSettings(file: string | null): Promise<SourceSettings> {
  if (file === null) return sourceSettings({}, ".");
  const text = await readFile(file, "utf8").catch((error: Error) => {
    throw new ConfigError([`${file}: cannot be read: ${error.message}`]);
  });
  if (text.length > maxSettingsBytes) throw new ConfigError([`${file}: longer than a megabyte`]);
  let values: unknown;
  try {
    values = JSON.parse(text);
  } catch (error) {
    throw new ConfigError([`${file}: not JSON: ${(error as Error).message}`]);
  }
  try {
    return sourceSettings(values, dirname(resolve(file)));
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(error.faults.map((fault) => `${file}: ${fault}`));
    throw error;
  }
}

export function sourceSettings(values: unknown, folder: string): SourceSettings {
  const checked = settingsSchema.safeParse(values);
  if (!checked.success) throw new ConfigError(checked.error.issues.flatMap(faultsOf));
  const { contact, proxy, proxyAuthorizationFile, certificateFile, onlyThese } = checked.data;
  const { limits, geofeeds, allowAddresses } = checked.data;
  const path = (text: string | undefined) => (text === undefined ? null : resolve(folder, text));
  const byName = new Map((onlyThese ? [] : defaultSources).map((source) => [source.name, source]));
  const faults: string[] = [];
  for (const [key, changes] of Object.entries(checked.data.sources)) {
    const source = changedSource(key, { changes, known: byName.get(key), folder });
    if (typeof source === "string") faults.push(`sources.${key}: ${source}`);
    else byName.set(key, source);
  }
  const sources = [...byName.values()];
  faults.push(...sharedFileFaults(sources));
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    contact: contact ?? null,
    proxy: proxy ?? null,
    proxyAuthorizationFile: path(proxyAuthorizationFile),
    certificateFile: path(certificateFile),
    limits,
    geofeeds,
    allowAddresses,
    sources,
  };
}

/** Returns the changed source, or what is missing. A waiting source becomes active when a secret or URL is named. */
function changedSource(
  key: string,
  at: {
    readonly changes: SourceChanges;
    readonly known: DownloadSource | undefined;
    readonly folder: string;
  },
): DownloadSource | string {
  const { enabled, headerFiles, queryFiles, ...plain } = at.changes;
  const secrets = {
    headerFiles: absolute(at.folder, headerFiles) ?? at.known?.headerFiles ?? {},
    queryFiles: absolute(at.folder, queryFiles) ?? at.known?.queryFiles ?? {},
  };
  const kind = plain.kind ?? at.known?.kind;
  const isPublished = kind !== undefined && isPublishedFormat(kind);
  const registry = isPublished ? null : (plain.registry ?? at.known?.registry);
  const url = plain.url ?? at.known?.url ?? null;
  if (registry === undefined || kind === undefined) return "a new source needs registry, kind and url";
  if (enabled === true && url === null) return "url: has to be given, there is no public one";
  const isSetUp = headerFiles !== undefined || queryFiles !== undefined || plain.url !== undefined;
  const usual = at.known?.state === "waiting" && !isSetUp ? "waiting" : "on";
  const state = enabled === false ? "off" : enabled === true ? "on" : usual;
  if (state === "on" && url === null) return "a new source needs registry, kind and url";
  const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
  return sourceOf({ ...at.known, ...given, ...secrets, name: key, registry, kind, url, state });
}

function absolute(
  folder: string,
  files: Readonly<Record<string, string>> | undefined,
): Record<string, string> | undefined {
  if (files === undefined) return undefined;
  return Object.fromEntries(Object.entries(files).map(([key, file]) => [key, resolve(folder, file)]));
}

function sharedFileFaults(sources: readonly DownloadSource[]): string[] {
  const owners = new Map<string, string>();
  return sources.flatMap(({ name: own, file }) => {
    const other = owners.get(file);
    owners.set(file, own);
    return other === undefined ? [] : [`sources.${own}.file: ${file} is the file of ${other} too`];
  });
}

function isPlainUrl(text: string): boolean {
  if (!canParseUrl(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  return /^https?:$/.test(protocol) && username === "" && password === "" && hash === "";
}

function faultsOf(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${path === "" ? "" : `${path}.`}${key}: there is no such setting`);
  }
  return [`${path || "settings"}: ${issue.message}`];
}

// Lists where registries publish, as they document it: RIPE's and APNIC's split databases, AFRINIC's and LACNIC's
// databases, everybody's extended statistics (each with an MD5 file), and IANA's registries. ARIN's bulk data and
// LACNIC's bulk copy are given on request.

/** No honest change has removed a larger share of a registry's data within a quarter. */
const defaultSmallestShare = 0.7;

const mebibyte = 2 ** 20;

/** Several times the largest file of each kind in 2026. For lists of places, the limit up to which a list is read. */
const maxBytesOf: Readonly<Record<DownloadKind, number>> = {
  "iana-registry": 16 * mebibyte,
  statistics: 512 * mebibyte,
  "rpsl-split": 8192 * mebibyte,
  "whole-database": 16_384 * mebibyte,
  "arin-bulk": 16_384 * mebibyte,
  ...(Object.fromEntries(publishedFormats.map((format) => [format, mostListBytes])) as Record<
    PublishedFormat,
    number
  >),
};

const arinRequest =
  "ARIN gives bulk WHOIS data to operators and researchers on request: sign the Bulk Whois " +
  "Terms of Use and send it as an Ask ARIN ticket (www.arin.net/reference/research/bulkwhois); " +
  "then make an API key in ARIN Online and name the file that holds it in queryFiles.apikey";

const lacnicRequest =
  "LACNIC gives a bulk copy of its WHOIS data for operations and research by agreement (policy " +
  "manual, Bulk WHOIS); LACNIC then tells the URL to put into the settings";

const azureRequest =
  'Azure gives its list another address every week: take the one of the page "Azure IP Ranges ' +
  'and Service Tags – Public Cloud" (www.microsoft.com/en-us/download/details.aspx?id=56519) ' +
  "into the settings as url, or name the file itself to rir apply";

export function sourceOf(
  facts: Pick<DownloadSource, "name" | "registry" | "kind" | "url"> & Partial<DownloadSource>,
): DownloadSource {
  return {
    state: "on",
    access: { type: "public" },
    mirrors: [],
    file: facts.url === null ? facts.name : fileNameOf(facts.url),
    hasMd5: false,
    headerFiles: {},
    queryFiles: {},
    smallestShare: defaultSmallestShare,
    maxBytes: maxBytesOf[facts.kind],
    ...facts,
  };
}

export const defaultSources: readonly DownloadSource[] = [
  iana("ipv4-address-space"),
  iana("ipv6-unicast-address-assignments"),
  statistics("afrinic", "https://ftp.afrinic.net/pub/stats/afrinic/"),
  statistics("apnic", "https://ftp.apnic.net/stats/apnic/"),
  statistics("arin", "https://ftp.arin.net/pub/stats/arin/"),
  statistics("lacnic", "https://ftp.lacnic.net/pub/stats/lacnic/"),
  statistics("ripencc", "https://ftp.ripe.net/pub/stats/ripencc/"),
  ...split("ripencc", "https://ftp.ripe.net/ripe/dbase/split/ripe.db."),
  ...split("apnic", "https://ftp.apnic.net/apnic/whois/apnic.db."),
  database("afrinic", "https://ftp.afrinic.net/dbase/afrinic.db.gz"),
  database("lacnic", "https://ftp.lacnic.net/lacnic/dbase/lacnic.db.gz"),
  sourceOf({
    name: "arin-bulk",
    registry: "arin",
    kind: "arin-bulk",
    url: "https://accountws.arin.net/public/rest/downloads/bulkwhois",
    file: "arin_db.zip",
    state: "waiting",
    access: { type: "on-request", how: arinRequest },
  }),
  sourceOf({
    name: "lacnic-bulk",
    registry: "lacnic",
    kind: "whole-database",
    url: null,
    file: "lacnic-bulk.db",
    state: "waiting",
    access: { type: "on-request", how: lacnicRequest },
  }),
  cloud("aws", "https://ip-ranges.amazonaws.com/ip-ranges.json"),
  cloud("google", "https://www.gstatic.com/ipranges/cloud.json"),
  sourceOf({
    ...{ name: "azure-ranges", registry: null, kind: "azure-ranges", url: null, file: "azure-ranges.json" },
    ...{ state: "waiting", access: { type: "on-request", how: azureRequest } },
  }),
  cloud("oracle", "https://docs.oracle.com/en-us/iaas/tools/public_ip_ranges.json"),
  cloud("cloudflare", "https://api.cloudflare.com/client/v4/ips"),
  sourceOf({
    ...{ name: "cloudflare-geofeed", registry: null, kind: "geofeed", file: "cloudflare.csv" },
    url: "https://api.cloudflare.com/local-ip-ranges.csv",
  }),
];

function fileNameOf(url: string): string {
  const last = new URL(url).pathname.split("/").pop() ?? "";
  return last.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[.-]+/, "") || "download";
}

function iana(id: string): DownloadSource {
  const url = `https://www.iana.org/assignments/${id}/${id}.xml`;
  return sourceOf({ name: `iana-${id}`, registry: "iana", kind: "iana-registry", url });
}

function statistics(registry: Registry, folder: string): DownloadSource {
  const url = `${folder}delegated-${registry}-extended-latest`;
  return sourceOf({ name: `${registry}-statistics`, registry, kind: "statistics", url, hasMd5: true });
}

function split(registry: Registry, stem: string): DownloadSource[] {
  return ["inetnum", "inet6num", "organisation"].map((type) =>
    sourceOf({ name: `${registry}-${type}`, registry, kind: "rpsl-split", url: `${stem}${type}.gz` }),
  );
}

function database(registry: Registry, url: string): DownloadSource {
  return sourceOf({ name: `${registry}-database`, registry, kind: "whole-database", url });
}

function cloud(name: Exclude<PublishedKind, "geofeed">, url: string): DownloadSource {
  const kind = `${name}-ranges` as const;
  return sourceOf({ name: kind, registry: null, kind, url, file: `${kind}.json` });
}

/** Who may download the source. For restricted sources, `how` says what to do first. */
type SourceAccess = { readonly type: "public" } | { readonly type: "on-request"; readonly how: string };

/**
 * `on` means fetched; `waiting`, restricted and not set up yet, so skipped; `off`, switched off by the operator, and an
 * existing copy is no longer imported.
 */
type SourceState = "on" | "waiting" | "off";

export interface DownloadSource {
  readonly name: string;
  /** Null for lists that networks publish themselves. */
  readonly registry: Registry | null;
  readonly kind: DownloadKind;
  readonly state: SourceState;
  readonly access: SourceAccess;
  /** Contains no secrets. Null when the registry reveals the URL only after granting access. */
  readonly url: string | null;
  readonly mirrors: readonly string[];
  readonly file: string;
  /** True when `<url>.md5` is published. */
  readonly hasMd5: boolean;
  /** Headers and query parameters by name. The files contain their values (keys, passwords). */
  readonly headerFiles: Readonly<Record<string, string>>;
  readonly queryFiles: Readonly<Record<string, string>>;
  /** A file smaller than this share of the last one is refused. */
  readonly smallestShare: number;
  readonly maxBytes: number;
}
