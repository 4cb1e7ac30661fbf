import { describe, expect, it } from "vitest";
import { formatRange } from "#core/ip/range";
import { readRegistryRange } from "#rir-import/formats/registry-range";

const read = (text: string) => {
  const reading = readRegistryRange(text);
  return "range" in reading ? formatRange(reading.range) : reading.reason;
};

describe("ranges as registries spell them", () => {
  it.each([
    ["193.0.0.0 - 193.0.7.255", "193.0.0.0/21"],
    ["193.0.0.0-193.0.7.254", "193.0.0.0 - 193.0.7.254"],
    ["  193.0.0.0\t -  193.0.7.255 # RIPE", "193.0.0.0/21"],
    ["193.0.0.0/21", "193.0.0.0/21"],
    ["192.0.0.1/24", "192.0.0.0/24"],
    ["193.0.0.1", "193.0.0.1/32"],
    ["010.0.00.000 - 010.255.255.255", "10.0.0.0/8"],
    ["200.3.12/22", "200.3.12.0/22"],
    ["1.1/16", "1.1.0.0/16"],
    ["041/8", "41.0.0.0/8"],
    ["0/0", "0.0.0.0/0"],
    ["255.255.255.255", "255.255.255.255/32"],
    ["2001:0638:0501::/48", "2001:638:501::/48"],
    ["2001:600::/64# comment", "2001:600::/64"],
    ["2C0F:F100:: - 2C0F:F100:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF", "2c0f:f100::/32"],
    ["::/0", "::/0"],
    ["2001:db8::1", "2001:db8::1/128"],
    ["::ffff:193.0.0.0/120", "193.0.0.0/24"],
    ["::ffff:c100:0 - ::ffff:c100:ff", "193.0.0.0/24"],
  ])("%j is %s", (text, range) => {
    expect(read(text)).toBe(range);
  });

  it.each([
    ["", "no range"],
    ["# nothing but a comment", "no range"],
    ["{0}", "not an address range"],
    ["193.0.0.256 - 193.0.1.0", "not an address range"],
    ["193.0.0 - 193.0.1.0", "not an address range"],
    ["193.0.0", "not an address range"],
    ["193..0.0/24", "not an address range"],
    ["193.0.0.0.0/24", "not an address range"],
    ["0193.0.0.0/24", "not an address range"],
    ["0x7f.0.0.1", "not an address range"],
    ["-1.0.0.0/8", "not an address range"],
    ["193.0.0.0/33", "the prefix length is not between 0 and 32"],
    ["193.0.0.0/", "the prefix length is not between 0 and 32"],
    ["193.0.0.0/1e1", "the prefix length is not between 0 and 32"],
    ["193.0.1.0 - 193.0.0.255", "the range is reversed"],
    ["2001:GHJ::/64", "not an address range"],
    ["2001:db8::/129", "the prefix length is not between 0 and 128"],
    ["2001:db9:: - 2001:db8::", "the range is reversed"],
    ["2001:db8:: - 193.0.0.0", "not an address range"],
    [`2001:db8::${"0".repeat(100_000)}`, "not an address range"],
  ])("%.40j is not a range: %s", (text, reason) => {
    expect(read(text)).toBe(reason);
  });
});
