/**
 * A file that a registry publishes and that we keep a copy of. The list of them is `defaultSources`, changed
 * by the operator's settings (source-settings.ts).
 */
import type { Registry } from "#coordinator/place/subnets/subnet";
import { publishedFormats } from "../formats/published.ts";

export const downloadKinds = [
  /** IANA's registries of address space, XML. */
  "iana-registry",
  /** Delegated (extended) statistics. */
  "statistics",
  /** One object type of a WHOIS database: `….db.inetnum.gz`. */
  "rpsl-split",
  /** A WHOIS database in one file. */
  "whole-database",
  /** ARIN's bulk WHOIS data, a ZIP of XML and text. */
  "arin-bulk",
  /** Where networks publish that their ranges lie: a geofeed, or a cloud's list of ranges by region. */
  ...publishedFormats,
] as const;
export type DownloadKind = (typeof downloadKinds)[number];

/** Who may download it. `how` says what to do first where it is not everybody. */
export type SourceAccess =
  | { readonly type: "public" }
  | { readonly type: "on-request"; readonly how: string };

/**
 * `on`: fetched. `waiting`: not public and not set up by the operator, so passed over. `off`: the operator's
 * settings switch it off; a copy that we have is imported no more.
 */
export type SourceState = "on" | "waiting" | "off";

export interface DownloadSource {
  /** What `rir fetch NAME` calls it. */
  readonly name: string;
  /** Null: what networks publish themselves. */
  readonly registry: Registry | null;
  readonly kind: DownloadKind;
  readonly state: SourceState;
  readonly access: SourceAccess;
  /** Without secrets. Null where the registry tells the place only to those it gave access. */
  readonly url: string | null;
  /** Asked in turn when the URL fails. */
  readonly mirrors: readonly string[];
  /** Its name in the cache folder. */
  readonly file: string;
  /** True where `<url>.md5` is published beside it. */
  readonly hasMd5: boolean;
  /** Request headers and query parameters whose values stand in these files: keys and passwords. */
  readonly headerFiles: Readonly<Record<string, string>>;
  readonly queryFiles: Readonly<Record<string, string>>;
  /** A file smaller than this share of the last one is refused. */
  readonly smallestShare: number;
  /** A larger file is refused. */
  readonly maxBytes: number;
}

/** The order in which the files of a cache folder are imported: earlier kinds first. */
export const importOrder: readonly DownloadKind[] = [
  "iana-registry",
  "statistics",
  "rpsl-split",
  "whole-database",
  "arin-bulk",
  ...publishedFormats,
];
