/** The fast IPv6 reader against the project's strict parser: the same verdict and value on everything. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseAddress } from "#core/ip/address";
import { seededRandom } from "#core/random";
import { readIpv6 } from "#rir-import/formats/registry-range";
import { sharedData } from "../../support/shared-data.ts";

const strict = (text: string) => {
  const address = parseAddress(text);
  return address?.family === 6 ? address.value : null;
};

describe("IPv6 text", () => {
  it.each([
    ["2001:db8::1", 0x20010db8000000000000000000000001n],
    ["2001:0638:0501::", 0x20010638050100000000000000000000n],
    ["::", 0n],
    ["::1", 1n],
    ["FFFF:ffff:FFFF:ffff:FFFF:ffff:FFFF:ffff", (1n << 128n) - 1n],
    ["1:2:3:4:5:6:7::", 0x00010002000300040005000600070000n],
    ["::ffff:192.0.2.1", 0xffffc0000201n],
  ])("%s", (text, value) => {
    expect(readIpv6(text)).toBe(value);
  });

  it.each([
    "",
    ":",
    ":::",
    "1",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1::2::3",
    "1:2:3:4:5:6:7:8::",
    "12345::",
    "g::",
    ":1::",
    "1:2:3:4:5:6:7:",
    "::1%eth0",
    " ::1",
    "1:::2",
  ])("%j is none", (text) => {
    expect(readIpv6(text)).toBeNull();
  });

  it("agrees with the strict parser on a hundred thousand texts, right and mangled (seed 6)", () => {
    const random = seededRandom(6);
    const below = (limit: number) => Math.floor(random() * limit);
    for (let round = 0; round < 20_000; round++) {
      const groups = Array.from({ length: 1 + below(9) }, () =>
        below(0x10000)
          .toString(16)
          .slice(0, 1 + below(4)),
      );
      const text = groups.join(":");
      const at = below(text.length + 1);
      for (const variant of [
        text,
        `${text.slice(0, at)}:${text.slice(at)}`,
        `${text.slice(0, at)}::${text.slice(at)}`,
        `${text}::`,
        `::${text}`,
      ]) {
        expect([variant, readIpv6(variant)]).toEqual([variant, strict(variant)]);
      }
    }
  });
});

const suites = [
  "valid-ipv6-addresses",
  "invalid-ipv6-addresses",
  "intermapper-valid-ipv6-addresses",
  "intermapper-invalid-ipv6-addresses",
];

describe.skipIf(sharedData("suites/ip") === null)("the public suites of spellings", () => {
  it.each(suites)("%s", (name) => {
    const texts =
      JSON.stringify(JSON.parse(readFileSync(sharedData(`suites/ip/${name}.json`)!, "utf8"))).match(
        /"[^"\\]{0,60}:[^"\\]{0,60}"/g,
      ) ?? [];

    expect(texts.length).toBeGreaterThan(20);
    for (const quoted of texts) {
      const text = quoted.slice(1, -1);
      expect([text, readIpv6(text)]).toEqual([text, strict(text)]);
    }
  });
});
