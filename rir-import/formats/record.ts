/**
 * What every reader yields: networks and organisations, with the line they start at. The file is the same
 * for all records of a reader, so the report adds it.
 * Readers are fed with chunks and answer into a sink at once: memory stays constant whatever the file's
 * size, and the chunk borders may lie anywhere.
 */
import type { Registry } from "#coordinator/place/subnets/subnet";
import type { IpRange } from "#core/ip/range";
import type { EncodingCounts } from "./text-decoding.ts";

/** Which kind of source said it; tree/precedence.ts ranks them. */
export type SourceKind = "whois" | "statistics" | "iana";

/** How a source names the holder of a range, before organisations are joined. */
export type HolderReference =
  | {
      readonly type: "handle";
      readonly handle: string;
      readonly registry: Registry | null;
      /** The holder's name where the record itself has it (LACNIC); else the organisation's object says it. */
      readonly name: string | null;
    }
  | { readonly type: "opaque-id"; readonly id: string; readonly registry: Registry }
  | {
      readonly type: "name";
      readonly name: string;
      /** Where strangers may bear the same common name: the holder's key then has these in it. */
      readonly registry: Registry | null;
      readonly country: string | null;
    };

export interface NetworkRecord {
  readonly type: "network";
  readonly line: number;
  readonly source: SourceKind;
  readonly range: IpRange;
  /** Null where the file does not say (an unknown `source:`); then the authority over the range decides. */
  readonly registry: Registry | null;
  /** The registry's own name for the range; may be empty. */
  readonly name: string;
  /** Upper-case alpha-2, or null. */
  readonly country: string | null;
  readonly holder: HolderReference | null;
  /** The URL of the geofeed that the object names (RFC 9632), https only; null or absent: none. */
  readonly geofeed?: string | null;
}

/** A registry object that names a geofeed, which so may speak of the object's range. */
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
  /** ARIN: the handle of the organisation that this one belongs to, or whose customer it is. */
  readonly parentHandle?: string | null;
}

export type RegistryRecord = NetworkRecord | OrganisationRecord;

/** A record that could not be read: where, why, and the text that was not understood. */
export interface Malformed {
  readonly line: number;
  readonly reason: string;
  readonly value: string;
}

/** What a file says of itself. */
export interface FileFacts {
  readonly registry?: Registry;
  /** ISO date of the data, as far as the file states one. */
  readonly fileDate?: string;
  /** Stated at the file's end, where not everything was plain ASCII. */
  readonly encoding?: EncodingCounts;
}

export interface RecordSink {
  record(record: RegistryRecord): void;
  /** An object that was read and is not wanted, and why. */
  ignore(reason: string): void;
  malformed(problem: Malformed): void;
  warn(text: string): void;
  facts(facts: FileFacts): void;
}

export interface RecordReader {
  /** The chunk may be overwritten when the call has returned. */
  push(chunk: Buffer): void;
  /** The file's end: the last object is finished. Throws SourceFileError when the file is visibly cut off. */
  end(): void;
}

export type OpenReader = (file: string, sink: RecordSink) => RecordReader;

/** In lower case, and in upper case as `source:` has them. */
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

/** The registry that a name means (`RIPE`, `ripencc`, `ARIN` …), or null. */
export function registryNamed(text: string): Registry | null {
  return registryNames.get(text) ?? registryNames.get(text.toLowerCase()) ?? null;
}
