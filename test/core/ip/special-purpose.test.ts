import { readFileSync } from "node:fs";
import { Address4, Address6 } from "ip-address";
import { describe, expect, it } from "vitest";
import { formatAddress, type IpAddress, parseAddress } from "#core/ip/address";
import { firstAddress, type IpRange, lastAddress, parseRange } from "#core/ip/range";
import { refusedBlockOf, specialPurposeOf, specialPurposeOfRange } from "#core/ip/special-purpose";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import { seededRandom } from "#core/random";
import { sharedData } from "../../support/shared-data.ts";

const ip = (text: string): IpAddress => parseAddress(text) as IpAddress;
const range = (text: string): IpRange => parseRange(text) as IpRange;

describe("an address that is never crawled", () => {
  it.each([
    ["0.0.0.0", "this network"],
    ["10.255.255.255", "private use"],
    ["100.64.0.1", "carrier-grade NAT"],
    ["127.0.0.1", "loopback"],
    ["169.254.169.254", "metadata"],
    ["168.63.129.16", "Azure platform"],
    ["172.31.255.255", "private use"],
    ["192.0.0.8", "IETF protocol assignments"],
    ["192.0.2.1", "TEST-NET-1"],
    ["192.88.99.1", "6to4 relay"],
    ["192.168.1.1", "private use"],
    ["198.19.255.255", "benchmarking"],
    ["198.51.100.7", "TEST-NET-2"],
    ["199.36.153.11", "private.googleapis.com"],
    ["100.100.100.200", "carrier-grade NAT"],
    ["192.0.0.192", "IETF protocol assignments"],
    ["203.0.113.7", "TEST-NET-3"],
    ["239.255.255.255", "multicast"],
    ["240.0.0.1", "future use"],
    ["255.255.255.255", "limited broadcast"],
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["::8.8.8.8", "IPv4-compatible"],
    ["::ffff:8.8.8.8", "IPv4-mapped"],
    ["::ffff:0:8.8.8.8", "IPv4-translated"],
    ["64:ff9b::8.8.8.8", "NAT64"],
    ["64:ff9b:1::8.8.8.8", "local use"],
    ["100::1", "discard"],
    ["2001::4136:e378:8000:63bf:3fff:fdd2", "Teredo"],
    ["2001:2::1", "benchmarking"],
    ["2001:10::1", "ORCHID"],
    ["2001:1ff:ffff::", "IETF protocol assignments"],
    ["2001:db8::1", "documentation"],
    ["2002:0808:0808::1", "6to4"],
    ["3fff:fff::1", "documentation"],
    ["4000::1", "outside the global unicast space"],
    ["5f00::1", "segment routing"],
    ["2600:2d00:2:1000::1", "restricted.googleapis.com"],
    ["fd00:ec2::254", "unique local"],
    ["fc00::1", "unique local"],
    ["fd12:3456::1", "unique local"],
    ["fe80::1", "link-local"],
    ["fec0::1", "site-local"],
    ["ff02::1", "multicast"],
  ])("%s is named with its block: %s", (text, words) => {
    expect(specialPurposeOf(ip(text))).toContain(words);
  });

  it("is named with prefix, name and document", () => {
    expect(specialPurposeOf(ip("10.1.2.3"))).toBe("10.0.0.0/8 private use (RFC 1918)");
  });
});

describe("a globally reachable address", () => {
  it.each([
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.0.9",
    "192.0.1.0",
    "192.31.196.1",
    "223.255.255.255",
    "2000::",
    "2001:1::1",
    "2001:4:112::1",
    "2001:200::1",
    "2001:db7:ffff:ffff::",
    "2003::1",
    "2606:4700::1111",
    "3fff:1000::",
  ])("%s has no special purpose", (text) => {
    expect(specialPurposeOf(ip(text))).toBeNull();
  });

  it("is what ip-address calls global, on 5,000 random addresses, but for those that carry an IPv4 address", () => {
    const random = seededRandom(6890);
    const word = () => Math.floor(random() * 65_536).toString(16);
    const starts = [
      "2001:0",
      "2001:1",
      "2001:3",
      "2001:20",
      "2001:db8",
      "100:0",
      "3fff:0",
      "5f00:0",
      "fc00:0",
      "2a02:0",
    ];

    for (let round = 0; round < 2500; round += 1) {
      const v4 = ip(Array.from({ length: 4 }, () => Math.floor(random() * 256)).join("."));
      const start = random() < 0.5 ? `${word()}:${word()}` : starts[Math.floor(random() * starts.length)];
      const v6 = ip(`${start}:${word()}:0:0:0:0:1`);

      // The registry leaves the reachability of 192.88.99.0/24 open; we refuse it.
      const relay = formatAddress(v4).startsWith("192.88.99.");
      expect
        .soft(specialPurposeOf(v4) === null, formatAddress(v4))
        .toBe(!relay && new Address4(formatAddress(v4)).isGlobal());
      const carriesIpv4 = /^2002:|^2001:0?:/.test(formatAddress(v6));
      expect
        .soft(specialPurposeOf(v6) === null, formatAddress(v6))
        .toBe(!carriesIpv4 && new Address6(formatAddress(v6)).isGlobal());
    }
  });
});

describe("a range", () => {
  it.each([
    ["10.0.0.0/8", "private use"],
    ["10.1.0.0 - 10.1.2.5", "private use"],
    ["192.0.0.0/24", "IETF protocol assignments"],
    ["2001:db8::/32", "documentation"],
  ])("%s inside a special-purpose block is named with it: %s", (text, words) => {
    expect(specialPurposeOfRange(range(text))).toContain(words);
  });

  it.each(["9.0.0.0/8", "10.0.0.0/7", "0.0.0.0/0", "192.0.0.9/32", "2000::/3", "::/0"])(
    "%s is not special-purpose as a whole",
    (text) => {
      expect(specialPurposeOfRange(range(text))).toBeNull();
    },
  );
});

interface RegistryRow {
  readonly prefix: string;
  readonly refuse: boolean;
}

describe("the special-purpose registry", () => {
  const path = sharedData("suites/ip/special-purpose-registry.json");

  it.skipIf(path === null)("is followed at both ends of every block", () => {
    const rows = JSON.parse(readFileSync(path as string, "utf8")) as RegistryRow[];

    for (const { prefix, refuse } of rows) {
      const block = range(prefix);
      // The suite judges NAT64 by the address inside; we refuse it whole (see the source file's head).
      const expected = refuse || prefix === "64:ff9b::/96";
      expect.soft(specialPurposeOf(firstAddress(block)) !== null, prefix).toBe(expected);
      expect.soft(specialPurposeOf(lastAddress(block)) !== null, prefix).toBe(expected);
    }
  });
});

interface HostForm {
  readonly input: string;
  readonly verdict: "refuse" | "allow" | "name" | "invalid-url" | "depends" | "refuse-after-dns";
  readonly reason: string;
}

it("allows requests to allowed special-purpose addresses, and to no others", () => {
  const refused = (address: string, allowed: boolean | readonly string[]) =>
    refusedBlockOf(parseAddress(address)!, allowed) !== null;
  const own = ["10.0.0.0/8", "fd00::/8", "192.168.7.5"];

  expect(["10.1.2.3", "fd00::1", "192.168.7.5", "8.8.8.8"].map((one) => refused(one, own))).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect(["192.168.7.6", "127.0.0.1", "::1"].map((one) => refused(one, own))).toEqual([true, true, true]);
  expect([refused("10.1.2.3", true), refused("10.1.2.3", false), refused("8.8.8.8", false)]).toEqual([
    false,
    true,
    false,
  ]);
});

describe.each(["host-forms", "ssrf-payloads"])("the spellings of %s", (suite) => {
  const path = sharedData(`suites/ip/${suite}.json`);

  it.skipIf(path === null)(
    "are refused and allowed as in the suite, once the URL parser has read them",
    () => {
      const forms = JSON.parse(readFileSync(path as string, "utf8")) as HostForm[];
      const literal = forms.filter(
        (form) =>
          form.verdict === "allow" ||
          (form.verdict === "refuse" && canParseUrl(form.input) && hostAddress(form.input)),
      );

      const differing = literal.filter((form) => {
        const address = hostAddress(form.input);
        if (/64:ff9b::/.test(form.input)) return !address || specialPurposeOf(address) === null;
        return (address && specialPurposeOf(address) === null ? "allow" : "refuse") !== form.verdict;
      });

      expect(literal.length).toBeGreaterThan(10);
      expect(differing).toEqual([]);
    },
  );
});

function hostAddress(url: string): IpAddress | null {
  return parseAddress(urlHost(url));
}
