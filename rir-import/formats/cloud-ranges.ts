/**
 * Reads the clouds' JSON lists of ranges by region, as their publishers describe them: AWS `ip-ranges.json`, Google
 * `cloud.json`, Azure Service Tags, Oracle `public_ip_ranges.json`, and Cloudflare's anycast ranges, which have no
 * place. A region's name starts with its cloud: `aws eu-central-1`. A list is small enough to be read whole. Invalid
 * entries are reported one by one.
 */

import { SourceFileError } from "#core/errors";
import { foreignDateMs } from "#core/foreign-dates";
import { maxPlaceLength, type PublishedFormat, type PublishedSink, readPublishedRange } from "./published.ts";

export type CloudFormat = Exclude<PublishedFormat, "geofeed">;

export function readCloudRanges(file: string, format: CloudFormat, text: string, sink: PublishedSink): void {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new SourceFileError(file, null, `not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  const list = new ListReader(file, text, sink);
  readers[format](list, list.object(value, "the list"));
}

const readers: Readonly<Record<CloudFormat, (list: ListReader, value: JsonObject) => void>> = {
  "aws-ranges": readAws,
  "google-ranges": readGoogle,
  "azure-ranges": readAzure,
  "oracle-ranges": readOracle,
  "cloudflare-ranges": readCloudflare,
};

/** A local zone is not in the same place as its region. `network_border_group` names it. */
function readAws(list: ListReader, value: JsonObject): void {
  list.facts(datedAs(value.createDate, /^(\d{4}-\d\d-\d\d)/), value.syncToken);
  for (const [key, prefix] of [
    ["prefixes", "ip_prefix"],
    ["ipv6_prefixes", "ipv6_prefix"],
  ] as const) {
    for (const entry of list.entries(value[key], key)) {
      const region = entry.network_border_group ?? entry.region;
      list.range(entry[prefix], region === "GLOBAL" ? null : list.place("aws", region));
    }
  }
}

function readGoogle(list: ListReader, value: JsonObject): void {
  list.facts(datedAs(value.creationTime, /^(\d{4}-\d\d-\d\d)/), value.syncToken);
  for (const entry of list.entries(value.prefixes, "prefixes")) {
    const place = entry.scope === "global" ? null : list.place("google", entry.scope);
    list.range(entry.ipv4Prefix ?? entry.ipv6Prefix, place);
  }
}

/** Tags without a region repeat the ranges of all regions. The list has a number but no date. */
function readAzure(list: ListReader, value: JsonObject): void {
  list.facts(null, value.changeNumber);
  for (const tag of list.entries(value.values, "values")) {
    const properties = list.object(tag.properties, "properties");
    const { region, addressPrefixes } = properties;
    if (region === "" || region === undefined) {
      list.ignore("service tag without a region");
      continue;
    }
    const place = list.place("azure", region);
    for (const prefix of list.list(addressPrefixes, "addressPrefixes")) list.range(prefix, place);
  }
}

function readOracle(list: ListReader, value: JsonObject): void {
  list.facts(datedAs(value.last_updated_timestamp, /^(\d{4}-\d\d-\d\d)/), value.last_updated_timestamp);
  for (const entry of list.entries(value.regions, "regions")) {
    const place = list.place("oracle", entry.region);
    for (const cidr of list.entries(entry.cidrs, "cidrs")) list.range(cidr.cidr, place);
  }
}

function readCloudflare(list: ListReader, value: JsonObject): void {
  const result = list.object(value.result, "result");
  list.facts(null, result.etag);
  for (const key of ["ipv4_cidrs", "ipv6_cidrs"] as const) {
    for (const cidr of list.list(result[key], key)) list.range(cidr, null);
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Example: `2026-03-01-21-05-03` or `2026-03-01T…` gives `2026-03-01`. */
function datedAs(value: unknown, form: RegExp): string | null {
  const date = typeof value === "string" ? (form.exec(value)?.[1] ?? null) : null;
  return date !== null && foreignDateMs(date) !== null ? date : null;
}

class ListReader {
  readonly #file: string;
  readonly #text: string;
  readonly #sink: PublishedSink;
  /** The position of the previous entry in the text. Most entries come in the order of the text. */
  #at = 0;
  #linesLooked = 0;

  constructor(file: string, text: string, sink: PublishedSink) {
    this.#file = file;
    this.#text = text;
    this.#sink = sink;
  }

  facts(listDate: string | null, version: unknown): void {
    const isVersion = typeof version === "string" || typeof version === "number";
    this.#sink.facts({
      ...(listDate !== null && { listDate }),
      ...(isVersion && { version: String(version).slice(0, 80) }),
    });
  }

  ignore(reason: string): void {
    this.#sink.ignore(reason);
  }

  object(value: unknown, name: string): JsonObject {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
    throw new SourceFileError(this.#file, null, `${name} is no object`);
  }

  list(value: unknown, name: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    throw new SourceFileError(this.#file, null, `${name} is no list`);
  }

  *entries(value: unknown, name: string): Generator<JsonObject> {
    for (const entry of this.list(value, name)) {
      if (typeof entry === "object" && entry !== null) yield entry as JsonObject;
      else this.#malformed(`an entry of ${name} that is no object`, entry);
    }
  }

  /** Returns undefined for an invalid region, which `range` reports. */
  place(cloud: string, region: unknown): string | undefined {
    const isName = typeof region === "string" && /^[\x21-\x7e]+$/.test(region);
    return isName && region.length <= maxPlaceLength - 20 ? `${cloud} ${region}` : undefined;
  }

  range(prefix: unknown, place: string | null | undefined): void {
    const reading =
      typeof prefix === "string" ? readPublishedRange(prefix) : { reason: "an entry without a prefix" };
    if ("reason" in reading) this.#malformed(reading.reason, prefix);
    else if (place === undefined) this.#malformed("an entry without a region's name", prefix);
    else this.#sink.range({ line: 0, range: reading.range, place });
  }

  #malformed(reason: string, value: unknown): void {
    const shown = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    this.#sink.malformed({ line: this.#lineOf(shown), reason, value: shown.slice(0, 200) });
  }

  /** Locates only the first few values, since reports show no more. Returns 0 for one that is spelled differently. */
  #lineOf(value: string): number {
    if (value === "" || this.#linesLooked++ >= 20) return 0;
    const found = this.#text.indexOf(JSON.stringify(value), this.#at);
    if (found < 0) return 0;
    this.#at = found + 1;
    let line = 1;
    for (let at = this.#text.indexOf("\n"); at >= 0 && at < found; at = this.#text.indexOf("\n", at + 1))
      line += 1;
    return line;
  }
}
