/** Published lists of places: what is taken of each line and entry, and what is refused, with its position. */
import { describe, expect, it } from "vitest";
import { formatRange } from "#core/ip/range";
import { type CloudFormat, readCloudRanges } from "#rir-import/formats/cloud-ranges";
import { GeofeedReader, geofeedUrlIn } from "#rir-import/formats/geofeed";
import type { PublishedSink } from "#rir-import/formats/published";

function collected() {
  const ranges: string[] = [];
  const refused: string[] = [];
  const ignored: string[] = [];
  let facts: Record<string, string> = {};
  const sink: PublishedSink = {
    range: ({ range, place }) => void ranges.push(`${formatRange(range)} ${place ?? "–"}`),
    ignore: (reason) => void ignored.push(reason),
    malformed: ({ line, reason, value }) => void refused.push(`${line}: ${reason}: ${value}`),
    facts: (stated) => {
      facts = { ...facts, ...stated };
    },
  };
  return { sink, ranges, refused, ignored, facts: () => facts };
}

function geofeed(text: string | Buffer, chunkBytes = 7) {
  const read = collected();
  const reader = new GeofeedReader(read.sink);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) reader.push(bytes.subarray(at, at + chunkBytes));
  reader.end();
  return read;
}

function cloud(format: CloudFormat, value: unknown) {
  const read = collected();
  readCloudRanges("list.json", format, JSON.stringify(value, null, 1), read.sink);
  return read;
}

describe("a geofeed (RFC 8805 section 2.1)", () => {
  it("gives prefixes and addresses with country, region and city; comments and postal codes are skipped", () => {
    const { ranges, refused } = geofeed(
      [
        "\uFEFF# ours, since 2020",
        "193.0.0.0/21,NL,NL-NH,Amsterdam,1016 AB",
        "193.0.8.0/23,gr,gr-i,  Athens ,,more, and more",
        "193.0.10.1,DE,,,",
        '2001:db9::/32,FR,FR-IDF,"Paris, La Défense",',
        "193.0.12.0/22,,,, # not to be located",
        "193.0.16.7/24,,SE-AB",
        "193.0.17.0/24,UK,UK-LND,London",
        "193.0.18.0/24,GB,UK-LND,London",
        "",
      ].join("\r\n"),
    );

    expect(refused).toEqual([]);
    expect(ranges).toEqual([
      "193.0.0.0/21 NL-NH Amsterdam",
      "193.0.8.0/23 GR-I Athens",
      "193.0.10.1/32 DE",
      "2001:db9::/32 FR-IDF Paris, La Défense",
      "193.0.12.0/22 –",
      "193.0.16.0/24 SE-AB",
      "193.0.17.0/24 GB-LND London",
      "193.0.18.0/24 GB-LND London",
    ]);
  });

  it("has its wrong lines refused one by one, by line and value", () => {
    const { ranges, refused } = geofeed(
      [
        "193.0.0.0/33,NL,,,",
        "no prefix,NL,,,",
        "193.0.0.0 - 193.0.0.255,NL,,,",
        "193.0.0.0/24,Netherlands,,,",
        "193.0.0.0/24,NL,GR-I,Athens,",
        "193.0.0.0/24,NL,Noord-Holland,,",
        "10.0.0.0/24,NL,,,",
        "0.0.0.0/0,US,,,",
        `193.0.0.0/24,NL,,${"x".repeat(200)},`,
        `193.0.0.0/24,NL,,${"x".repeat(2000)},`,
        `193.0.0.0/24,NL,,${"y".repeat(100_000)},`,
        "193.0.1.0/24,NL,,,",
      ].join("\n"),
      4096,
    );

    expect(ranges).toEqual(["193.0.1.0/24 NL"]);
    expect(refused.map((text) => text.slice(0, 90))).toEqual([
      "1: the prefix length is not between 0 and 32: 193.0.0.0/33,NL,,,",
      "2: not an address range: no prefix,NL,,,",
      "3: not a prefix: 193.0.0.0 - 193.0.0.255,NL,,,",
      "4: no country by two letters (ISO 3166-1): 193.0.0.0/24,Netherlands,,,",
      "5: a region of another country: 193.0.0.0/24,NL,GR-I,Athens,",
      "6: no region of the form ISO 3166-2: 193.0.0.0/24,NL,Noord-Holland,,",
      "7: special-purpose addresses, 10.0.0.0/8 private use (RFC 1918): 10.0.0.0/24,NL,,,",
      "8: a prefix shorter than /8: 0.0.0.0/0,US,,,",
      expect.stringMatching(/^9: a city of more than 110 characters: 193\.0\.0\.0/),
      expect.stringMatching(/^10: a line longer than 1000 characters: 193\.0\.0\.0/),
      expect.stringMatching(/^11: a line longer than 1000 characters: 193\.0\.0\.0/),
    ]);
  });

  it("is named by https URLs alone, in the attribute or a remark (RFC 9632 section 3)", () => {
    expect(geofeedUrlIn("https://Example.net/geofeed.csv")).toBe("https://example.net/geofeed.csv");
    expect(geofeedUrlIn("Geofeed https://example.net:8443/g?x=1#y")).toBe("https://example.net:8443/g?x=1");
    for (const text of [
      "http://example.net/geofeed.csv",
      "Geofeed see https://example.net/",
      "geofeed https://user:pass@example.net/",
      `https://example.net/${"x".repeat(500)}`,
    ])
      expect(geofeedUrlIn(text), text).toBeNull();
  });
});

describe("a cloud's list of ranges by region", () => {
  it("AWS: local zones are places, GLOBAL is not", () => {
    const { ranges, facts } = cloud("aws-ranges", {
      syncToken: "1772355603",
      createDate: "2026-03-01-09-00-03",
      prefixes: [
        {
          ip_prefix: "3.64.0.0/12",
          region: "eu-central-1",
          service: "EC2",
          network_border_group: "eu-central-1",
        },
        {
          ip_prefix: "15.220.0.0/24",
          region: "us-west-2",
          service: "EC2",
          network_border_group: "us-west-2-lax-1",
        },
        { ip_prefix: "3.5.0.0/24", region: "GLOBAL", service: "AMAZON", network_border_group: "GLOBAL" },
      ],
      ipv6_prefixes: [{ ipv6_prefix: "2600:1f14::/35", region: "us-west-2", service: "EC2" }],
    });
    expect(ranges).toEqual([
      "3.64.0.0/12 aws eu-central-1",
      "15.220.0.0/24 aws us-west-2-lax-1",
      "3.5.0.0/24 –",
      "2600:1f14::/35 aws us-west-2",
    ]);
    expect(facts()).toEqual({ listDate: "2026-03-01", version: "1772355603" });
  });

  it("Google: the scope is the region", () => {
    const { ranges, facts } = cloud("google-ranges", {
      syncToken: "17723",
      creationTime: "2026-03-01T05:03:15.88",
      prefixes: [
        { ipv4Prefix: "34.1.208.0/20", service: "Google Cloud", scope: "africa-south1" },
        { ipv6Prefix: "2600:1900:8000::/44", service: "Google Cloud", scope: "global" },
      ],
    });
    expect(ranges).toEqual(["34.1.208.0/20 google africa-south1", "2600:1900:8000::/44 –"]);
    expect(facts()).toEqual({ listDate: "2026-03-01", version: "17723" });
  });

  it("Azure: tags of regions alone", () => {
    const { ranges, ignored, facts } = cloud("azure-ranges", {
      changeNumber: 312,
      cloud: "Public",
      values: [
        { name: "AzureCloud", properties: { region: "", addressPrefixes: ["4.144.0.0/17"] } },
        {
          name: "AzureCloud.westeurope",
          properties: { region: "westeurope", addressPrefixes: ["4.175.0.0/16", "2603:1020::/40"] },
        },
      ],
    });
    expect(ranges).toEqual(["4.175.0.0/16 azure westeurope", "2603:1020::/40 azure westeurope"]);
    expect(ignored).toEqual(["service tag without a region"]);
    expect(facts()).toEqual({ version: "312" });
  });

  it("Oracle and Cloudflare", () => {
    const oracle = cloud("oracle-ranges", {
      last_updated_timestamp: "2026-03-01T17:11:05.123456",
      regions: [{ region: "us-phoenix-1", cidrs: [{ cidr: "129.146.0.0/21", tags: ["OCI"] }] }],
    });
    expect(oracle.ranges).toEqual(["129.146.0.0/21 oracle us-phoenix-1"]);
    expect(oracle.facts()).toMatchObject({ listDate: "2026-03-01" });
    const cloudflare = cloud("cloudflare-ranges", {
      result: { ipv4_cidrs: ["173.245.48.0/20"], ipv6_cidrs: ["2400:cb00::/32"], etag: "38f7" },
      success: true,
    });
    expect(cloudflare.ranges).toEqual(["173.245.48.0/20 –", "2400:cb00::/32 –"]);
    expect(cloudflare.facts()).toEqual({ version: "38f7" });
  });

  it("has its wrong entries refused one by one, by line and value", () => {
    const { ranges, refused } = cloud("aws-ranges", {
      syncToken: 1,
      createDate: "2026-99-99-00-00-00",
      prefixes: [
        { ip_prefix: "3.64.0.0/99", region: "eu-central-1" },
        { ip_prefix: "192.168.0.0/16", region: "eu-central-1" },
        { ip_prefix: "3.64.0.0/12", region: 7 },
        { region: "eu-central-1" },
        null,
        { ip_prefix: "3.80.0.0/12", region: "us-east-1" },
      ],
      ipv6_prefixes: [],
    });
    expect(ranges).toEqual(["3.80.0.0/12 aws us-east-1"]);
    expect(refused).toEqual([
      "6: the prefix length is not between 0 and 32: 3.64.0.0/99",
      "10: special-purpose addresses, 192.168.0.0/16 private use (RFC 1918): 192.168.0.0/16",
      "14: an entry without a region's name: 3.64.0.0/12",
      "0: an entry without a prefix: ",
      "0: an entry of prefixes that is no object: null",
    ]);
  });

  it("is refused as a whole where it is another file, and the error names the file", () => {
    const { sink } = collected();
    expect(() => readCloudRanges("aws.json", "aws-ranges", "{", sink)).toThrow(/^aws\.json: not JSON/);
    expect(() => readCloudRanges("aws.json", "aws-ranges", '{"prefixes": 7}', sink)).toThrow(
      "aws.json: prefixes is no list",
    );
    expect(() => readCloudRanges("o.json", "oracle-ranges", "[]", sink)).toThrow(
      "o.json: the list is no object",
    );
  });
});
