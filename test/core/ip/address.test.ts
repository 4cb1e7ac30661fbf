import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { formatAddress, type IpAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { seededRandom } from "#core/random";
import { sharedData } from "../../support/shared-data.ts";

const ip = (text: string): IpAddress => {
  const address = parseAddress(text);
  if (!address) throw new Error(`not an address: ${text}`);
  return address;
};

describe("an IPv4 text", () => {
  it.each([
    ["0.0.0.0", 0],
    ["1.2.3.4", 0x01020304],
    ["192.0.2.255", 0xc00002ff],
    ["255.255.255.255", 0xffffffff],
  ])("%s is read as an unsigned number", (text, value) => {
    expect(parseAddress(text)).toEqual({ family: 4, value });
  });

  // RFC 6943 section 3.1.1: loose spellings mean different hosts to different software.
  it.each([
    "1.2.3",
    "1.2.3.4.5",
    "01.2.3.4",
    "0x1.2.3.4",
    "1.2.3.256",
    "1.2.3.4 ",
    " 1.2.3.4",
    "1.2.3.4/32",
    "1.2.3.-4",
    "1.2.3.4.",
    "",
    "1",
    "1.2.3.4\n",
    "١.2.3.4",
  ])("%j is refused", (text) => {
    expect(parseAddress(text)).toBeNull();
  });
});

describe("an IPv6 text", () => {
  it.each([
    ["::", 0n],
    ["::1", 1n],
    ["1::", 1n << 112n],
    ["2001:DB8::1", 0x20010db8_0000_0000_0000_0000_0000_0001n],
    ["1:2:3:4:5:6:7:8", 0x0001_0002_0003_0004_0005_0006_0007_0008n],
    ["1:2:3:4:5:6:7::", 0x0001_0002_0003_0004_0005_0006_0007_0000n],
    ["::ffff:192.0.2.1", 0xffff_c000_0201n],
    ["64:ff9b::8.8.8.8", 0x0064_ff9b_0000_0000_0000_0000_0808_0808n],
  ])("%s is read as a bigint", (text, value) => {
    expect(parseAddress(text)).toEqual({ family: 6, value });
  });

  it.each([
    ":",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4::5:6:7:8",
    "12345::",
    "g::",
    ":1:2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7:8:",
    "1.2.3.4::",
    "::1.2.3",
    "::1.2.3.4:5",
    "::01.2.3.4",
    "fe80::1%eth0",
    "[::1]",
    "::1/128",
    " ::1",
    `::${"0".repeat(60)}1`,
  ])("%j is refused", (text) => {
    expect(parseAddress(text)).toBeNull();
  });
});

describe("formatAddress", () => {
  // RFC 5952 section 4: lower case, no leading zeros, the first longest run of two zero groups or more shortened.
  it.each([
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
    ["0:0:0:0:0:0:0:0", "::"],
    ["1:0:0:0:0:0:0:0", "1::"],
    ["::ffff:192.0.2.1", "::ffff:c000:201"],
    ["203.0.113.7", "203.0.113.7"],
  ])("writes %s as %s", (text, canonical) => {
    expect(formatAddress(ip(text))).toBe(canonical);
  });

  it("agrees with Node's own reading of URLs on 2,000 random addresses, which it reads back", () => {
    const random = seededRandom(5952);

    for (let round = 0; round < 2000; round += 1) {
      const groups = Array.from({ length: 8 }, () => (random() < 0.5 ? 0 : Math.floor(random() * 65_536)));
      const text = groups.map((group) => group.toString(16)).join(":");
      const address = ip(text);

      expect(formatAddress(address)).toBe(new URL(`http://[${text}]/`).hostname.slice(1, -1));
      expect(ip(formatAddress(address))).toEqual(address);
    }
  });
});

it("only an IPv4-mapped address is unmapped", () => {
  expect(unmapAddress(ip("::ffff:192.0.2.1"))).toEqual(ip("192.0.2.1"));
  expect(unmapAddress(ip("::192.0.2.1"))).toEqual(ip("::192.0.2.1"));
  expect(unmapAddress(ip("192.0.2.1"))).toEqual(ip("192.0.2.1"));
});

interface Spelling {
  readonly address: string;
}

describe.skipIf(sharedData("suites/ip/valid-ipv6-addresses.json") === null)("the ip-address suites", () => {
  const spellings = (name: string) =>
    (JSON.parse(readFileSync(sharedData(`suites/ip/${name}.json`) as string, "utf8")) as Spelling[]).map(
      (row) => row.address,
    );
  const isPlain = (text: string) => !/[%/]/.test(text);

  it.each(["valid-ipv4-addresses", "valid-ipv6-addresses", "intermapper-valid-ipv6-addresses"])(
    "every spelling of %s is read, except those with a zone or a prefix",
    (name) => {
      const all = spellings(name);

      expect(all.filter((text) => parseAddress(text) === null && isPlain(text))).toEqual([]);
      expect(all.filter((text) => parseAddress(text) !== null && !isPlain(text))).toEqual([]);
    },
  );

  it.each(["invalid-ipv4-addresses", "invalid-ipv6-addresses", "intermapper-invalid-ipv6-addresses"])(
    "every spelling of %s is refused",
    (name) => {
      const accepted = spellings(name).filter((text) => parseAddress(text) !== null);

      // The list of non-IPv6 texts holds IPv4 addresses, which we read as such.
      expect(accepted.filter((text) => text.includes(":") || !/^\d+\.\d+\.\d+\.\d+$/.test(text))).toEqual([]);
    },
  );
});

interface PythonCase {
  readonly fn: string;
  readonly input: unknown;
  readonly expected: { readonly compressed?: string } | null;
}

describe.skipIf(sharedData("suites/ip/cpython-ipaddress.json") === null)("CPython's ipaddress cases", () => {
  it("are read and written alike, except that a zone is refused", () => {
    const cases = JSON.parse(
      readFileSync(sharedData("suites/ip/cpython-ipaddress.json") as string, "utf8"),
    ) as PythonCase[];
    const texts = cases.filter((row) => /^IPv[46]Address$/.test(row.fn) && typeof row.input === "string");

    const differing = texts.filter((row) => {
      const text = row.input as string;
      const address = parseAddress(text);
      const family = row.fn === "IPv4Address" ? 4 : 6;
      if (text.includes("%")) return address !== null;
      if (row.expected === null) return address?.family === family;
      return (
        address === null ||
        (row.expected.compressed !== undefined && compressedByPython(address) !== row.expected.compressed)
      );
    });

    expect(texts.length).toBeGreaterThan(100);
    expect(differing).toEqual([]);
  });
});

/** Python 3.13 writes IPv4-mapped addresses in dotted form. */
function compressedByPython(address: IpAddress): string {
  const inner = unmapAddress(address);
  return inner === address ? formatAddress(address) : `::ffff:${formatAddress(inner)}`;
}
