/**
 * Where the registries publish, as they document it: RIPE's and APNIC's split databases, AFRINIC's and LACNIC's
 * databases, everybody's extended statistics (with an MD5 file beside each), IANA's address space registries
 * and RDAP bootstrap files (RFC 9224). ARIN's bulk data and LACNIC's bulk copy are handed out on request.
 */
import type { Registry } from "#coordinator/subnets/subnet";
import type { DownloadKind, DownloadSource } from "./download-source.ts";

/** Losing more than this of a registry's data in one quarter has never been an honest change. */
export const defaultSmallestShare = 0.7;
const mebibyte = 2 ** 20;
/** Several times the largest file of each kind in 2026. */
const maxBytesOf: Readonly<Record<DownloadKind, number>> = {
  "iana-registry": 16 * mebibyte,
  statistics: 512 * mebibyte,
  "rpsl-split": 8192 * mebibyte,
  "whole-database": 16_384 * mebibyte,
  "arin-bulk": 16_384 * mebibyte,
  "rdap-bootstrap": 16 * mebibyte,
};

const arinRequest =
  "ARIN gives bulk WHOIS data to operators and researchers on request: sign the Bulk Whois Terms of Use and send it as an Ask ARIN ticket (www.arin.net/reference/research/bulkwhois); then make an API key in ARIN Online and name the file that holds it in queryFiles.apikey";
const lacnicRequest =
  "LACNIC gives a bulk copy of its WHOIS data for operations and research by agreement (policy manual, Bulk WHOIS); LACNIC then tells the URL to put into the settings";

/** A source with the defaults of its kind. */
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
  bootstrap("rdap-ipv4", "https://data.iana.org/rdap/ipv4.json"),
  bootstrap("rdap-ipv6", "https://data.iana.org/rdap/ipv6.json"),
];

/** The last part of a URL's path, as a file name that is safe everywhere. */
export function fileNameOf(url: string): string {
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

function bootstrap(name: string, url: string): DownloadSource {
  return sourceOf({ name, registry: "iana", kind: "rdap-bootstrap", url, file: `${name}.json` });
}
