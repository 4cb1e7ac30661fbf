/**
 * The output of every reader: networks and organisations with the number of their first line. The report adds the file.
 * Readers take chunks with arbitrary borders and write to a sink immediately, so memory stays constant.
 */
import type { Registry } from "#coordinator/place/subnets/subnet";
import { codeInForce } from "#core/country-names";
import type { IpRange } from "#core/ip/range";
import type { EncodingCounts } from "./text-decoding.ts";

/** The kind of a source. tree/precedence.ts ranks them. */
export type SourceKind = "whois" | "statistics" | "iana";

/** How a source names a range's holder, before references are joined with organisations. */
export type HolderReference =
  | {
      readonly type: "handle";
      readonly handle: string;
      readonly registry: Registry | null;
      /** The holder's name if the record has it (LACNIC). Otherwise the organisation's object has it. */
      readonly name: string | null;
    }
  | { readonly type: "opaque-id"; readonly id: string; readonly registry: Registry }
  | {
      readonly type: "name";
      readonly name: string;
      /** Set when unrelated holders may share a common name. The holder's key then includes registry and country. */
      readonly registry: Registry | null;
      readonly country: string | null;
    };

export interface NetworkRecord {
  readonly type: "network";
  readonly line: number;
  readonly source: SourceKind;
  readonly range: IpRange;
  /** Null when the file does not say (unknown `source:`). Then the registry responsible for the range applies. */
  readonly registry: Registry | null;
  readonly name: string;
  readonly country: string | null;
  readonly holder: HolderReference | null;
  readonly geofeed?: string | null;
}

/** A registry object that names a geofeed. That geofeed may describe the object's range. */
export interface GeofeedReference {
  readonly url: string;
  readonly range: IpRange;
}

export interface OrganisationRecord {
  readonly type: "organisation";
  readonly line: number;
  readonly registry: Registry | null;
  readonly handle: string;
  readonly name: string;
  readonly country: string | null;
  /** ARIN only: the handle of the parent organisation, or of the organisation whose customer this is. */
  readonly parentHandle?: string | null;
}

export type RegistryRecord = NetworkRecord | OrganisationRecord;

export interface Malformed {
  readonly line: number;
  readonly reason: string;
  readonly value: string;
}

export interface FileFacts {
  readonly registry?: Registry;
  readonly fileDate?: string;
  /** Set at the end of the file, unless all of it was plain ASCII. */
  readonly encoding?: EncodingCounts;
}

export interface RecordSink {
  record(record: RegistryRecord): void;
  ignore(reason: string): void;
  malformed(problem: Malformed): void;
  warn(text: string): void;
  facts(facts: FileFacts): void;
}

export interface RecordReader {
  push(chunk: Buffer): void;
  /** Completes the last object. Throws SourceFileError when the file is visibly truncated. */
  end(): void;
}

export type OpenReader = (file: string, sink: RecordSink) => RecordReader;

/** Contains the names both in lower case and in upper case, as in `source:`. */
const registryNames: ReadonlyMap<string, Registry> = new Map(
  (
    [
      ["iana", "iana"],
      ["afrinic", "afrinic"],
      ["apnic", "apnic"],
      ["arin", "arin"],
      ["lacnic", "lacnic"],
      ["ripencc", "ripencc"],
      ["ripe", "ripencc"],
      ["ripe-ncc", "ripencc"],
      ["ripe ncc", "ripencc"],
    ] as const
  ).flatMap(([name, registry]) => [
    [name, registry],
    [name.toUpperCase(), registry],
  ]),
);

/** Recognises a registry's name (`RIPE`, `ripencc`, `ARIN` …), or returns null. */
export function registryNamed(text: string): Registry | null {
  return registryNames.get(text) ?? registryNames.get(text.toLowerCase()) ?? null;
}

/** Caches codes as spelled in the files: a dump has millions, but only a few hundred different ones. */
const codes = new Map<string, string | null>();

/** Example: `nl` gives `NL`. Returns null for ZZ (unknown) and for anything but two letters. */
export function countryCode(text: string | null): string | null {
  if (text === null || !/^[A-Za-z]{2}$/.test(text)) return null;
  const known = codes.get(text);
  if (known !== undefined) return known;
  const code = text.toUpperCase() === "ZZ" ? null : codeInForce(text.toUpperCase());
  codes.set(text, code);
  return code;
}
