/**
 * A file that a registry publishes and that we keep a copy of. `defaultSources` lists them; the operator's settings
 * (source-settings.ts) change the list.
 */
import type { Registry } from "#coordinator/place/subnets/subnet";
import { publishedFormats } from "../formats/published.ts";

export const downloadKinds = [
  "iana-registry",
  "statistics",
  /** One object type of a WHOIS database: `….db.inetnum.gz`. */
  "rpsl-split",
  "whole-database",
  /** ARIN's bulk WHOIS data, a ZIP of XML and text. */
  "arin-bulk",
  /** The published places of a network's ranges: a geofeed, or a cloud's ranges by region. */
  ...publishedFormats,
] as const;
export type DownloadKind = (typeof downloadKinds)[number];

/** Who may download it. For restricted sources, `how` says what to do first. */
type SourceAccess = { readonly type: "public" } | { readonly type: "on-request"; readonly how: string };

/**
 * `on`: fetched. `waiting`: restricted and not set up, so skipped. `off`: switched off by the operator; a copy is no
 * longer imported.
 */
type SourceState = "on" | "waiting" | "off";

export interface DownloadSource {
  readonly name: string;
  /** Null for what networks publish themselves. */
  readonly registry: Registry | null;
  readonly kind: DownloadKind;
  readonly state: SourceState;
  readonly access: SourceAccess;
  /** Contains no secrets. Null when the registry reveals the place only after granting access. */
  readonly url: string | null;
  readonly mirrors: readonly string[];
  readonly file: string;
  /** True when `<url>.md5` is published. */
  readonly hasMd5: boolean;
  /** Headers and query parameters whose values (keys, passwords) are in these files. */
  readonly headerFiles: Readonly<Record<string, string>>;
  readonly queryFiles: Readonly<Record<string, string>>;
  /** A file below this share of the last one's size is refused. */
  readonly smallestShare: number;
  readonly maxBytes: number;
}

/** The import order of a cache folder's files: earlier kinds first. */
export const importOrder: readonly DownloadKind[] = [
  "iana-registry",
  "statistics",
  "rpsl-split",
  "whole-database",
  "arin-bulk",
  ...publishedFormats,
];
