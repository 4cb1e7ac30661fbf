/** Which addresses may be contacted, in every spelling and transition form, including the public suites. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import { Failure } from "#crawler/core/failure";
import { addressGuard, literalAddress, nat64PrefixesOf } from "#crawler/net/address-guard";
import { Connector } from "#crawler/net/connector";
import { parseAllowance } from "#crawler/settings/config";
import { startDns } from "#ops/world/main";
import { atEnd } from "../../support/at-end.ts";
import { startMailDns } from "../../support/mail-dns.ts";
import { sharedData } from "../../support/shared-data.ts";
import { testConfig } from "../support/test-config.ts";

const nothing = { allowRanges: [], denyRanges: [], denyDomains: [] };
const strict = addressGuard(nothing);

/** Classifies a URL: invalid, a name, or a refused or allowed address. */
function fate(text: string): "invalid-url" | "name" | "refuse" | "allow" {
  if (!canParseUrl(text)) return "invalid-url";
  if (!/^https?:$/.test(new URL(text).protocol)) return "refuse";
  const address = literalAddress(urlHost(text));
  if (address === null) return "name";
  return strict.refusal(address) === null ? "allow" : "refuse";
}

function rowsOf<Row>(file: string): Row[] | null {
  const path = sharedData(`suites/ip/${file}`);
  return path === null ? null : (JSON.parse(readFileSync(path, "utf8")) as Row[]);
}

describe("an address", () => {
  it.each([
    ["10.1.2.3", "private"],
    ["100.64.0.1", "shared address space"],
    ["127.255.255.254", "loopback"],
    ["169.254.169.254", "link-local"],
    ["192.0.2.1", "documentation"],
    ["198.18.0.1", "benchmarking"],
    ["224.0.0.251", "multicast"],
    ["::", "unspecified"],
    ["fd00:ec2::254", "unique local"],
    ["fe80::1", "link-local"],
    ["2001:db8::1", "documentation"],
  ])("%s is refused as %s", (address, block) => {
    expect(strict.refusal(address)).toContain(block);
  });

  it.each(["8.8.8.8", "2606:4700::1111", "192.0.0.9", "2001:67c:2e8::1"])("%s is public", (address) => {
    expect(strict.refusal(address)).toBeNull();
  });

  it.each([
    ["IPv4-mapped", "::ffff:10.0.0.1"],
    ["IPv4-compatible", "::10.0.0.1"],
    ["IPv4-translated", "::ffff:0:10.0.0.1"],
    ["NAT64", "64:ff9b::10.0.0.1"],
    ["local NAT64", "64:ff9b:1::10.0.0.1"],
    ["local NAT64 around bit 64", "64:ff9b:1:a00:0:100:808:808"],
    ["6to4", "2002:a00:1::"],
    ["Teredo's client", "2001:0:808:808::f5ff:fffe"],
    ["Teredo's server", "2001:0:a00:1::f7f7:f7f7"],
    ["ISATAP", "2606:4700::5efe:10.0.0.1"],
    ["ISATAP, universal", "2606:4700::200:5efe:10.0.0.1"],
  ])(
    "of the form %s is refused for the private address in it, even when the form is allowed",
    (_form, address) => {
      const ownTranslator = addressGuard({
        ...nothing,
        allowRanges: ["::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
      });

      expect(strict.refusal(address)).not.toBeNull();
      expect(ownTranslator.refusal(address)).toContain("10.0.0.0/8");
    },
  );

  it.each([
    ["2001:db8:122:344::/96", "2001:db8:122:344::c000:aa", "2001:db8:122:344::a01:203"],
    ["2001:db8:122:344::/64", "2001:db8:122:344:c0:0:aa00:0", "2001:db8:122:344:a:102:300:0"],
    ["2001:db8:122:300::/56", "2001:db8:122:3c0:0:aa:0:0", "2001:db8:122:30a:1:203:0:0"],
    ["2001:db8:122::/48", "2001:db8:122:c000:0:ab00:0:0", "2001:db8:122:a01:2:300:0:0"],
    ["2001:db8:100::/40", "2001:db8:1c0:0:aa:0:0:0", "2001:db8:10a:102:3:0:0:0"],
    ["2001:db8::/32", "2001:db8:c000:aa:0:0:0:0", "2001:db8:a01:203:0:0:0:0"],
  ])("under the network's own NAT64 prefix %s counts as the address behind it", (_, shown, inner) => {
    const outside = (text: string) => text.replace("2001:db8", "2a00:db8");
    const prefixes = nat64PrefixesOf([outside(shown)]);
    const guard = addressGuard({ ...nothing, nat64Prefixes: prefixes, denyRanges: ["8.8.8.0/24"] });

    expect(prefixes).toHaveLength(1);
    expect(strict.refusal(outside(inner))).toBeNull();
    expect(guard.refusal(outside(inner))).toContain("10.0.0.0/8");
    expect(guard.refusal("2a00:1450::1")).toBeNull();
  });

  it("of the well-known name reveals nothing without NAT64", () => {
    expect(nat64PrefixesOf(["192.0.0.170", "2606:4700::1111", "nonsense"])).toEqual([]);
  });

  it.each([22, 25, 110, 465, 5060, 6379, 5432, 6667, 10080])(
    "is refused at port %i of another service unless the partner names that port",
    (port) => {
      const guard = addressGuard({ ...nothing, allowRanges: ["9.9.9.0/24", `9.9.8.8:${port}`] });

      expect(strict.refusal("8.8.8.8", port)).toContain(`port ${port}`);
      expect(guard.refusal("9.9.9.9", port)).toContain(`port ${port}`);
      expect(guard.refusal("9.9.8.8", port)).toBeNull();
    },
  );

  it.each([80, 443, 8000, 8080, 8443, 3000, 9200, 65_535])("is allowed at port %i", (port) => {
    expect(strict.refusal("8.8.8.8", port)).toBeNull();
  });

  it("in a transition form is denied when the partner denies the embedded one", () => {
    const guard = addressGuard({ ...nothing, denyRanges: ["8.8.8.0/24"] });

    expect(guard.refusal("2606:4700::5efe:8.8.8.8")).toBe("the partner's deny-list");
    expect(guard.denial({ address: "::ffff:8.8.8.8" })).toContain("8.8.8.8");
    expect(guard.refusal("2606:4700::5efe:8.8.4.4")).toBeNull();
  });

  it.each([
    ["::ffff:127.0.0.1/128", "127.0.0.1", true],
    ["::ffff:127.0.0.1/128", "::ffff:127.0.0.1", true],
    ["::ffff:127.0.0.1/128", "127.0.0.2", false],
    ["::ffff:7f00:0/104", "127.9.9.9", true],
    ["::ffff:127.0.0.1", "127.0.0.1", true],
    ["::ffff:127.0.0.0 - ::ffff:127.0.0.9", "127.0.0.9", true],
    ["127.0.0.0/8", "64:ff9b::127.0.0.1", true],
    ["127.0.0.0/8", "2002:7f00:1::1", true],
    ["::ffff:127.0.0.0/104", "64:ff9b::127.0.0.1", true],
    ["::ffff:127.0.0.0/104", "2002:7f00:1::1", true],
    ["64:ff9b::/96", "127.0.0.1", false],
    ["64:ff9b::127.0.0.0/104", "64:ff9b::7f00:1", true],
    ["2002:7f00:1::/48", "2002:7f00:1::80", true],
  ])("in the deny-list as %s covers %s: %s", (range, address, isDenied) => {
    const guard = addressGuard({ ...nothing, allowRanges: ["127.0.0.0/8", "::/0"], denyRanges: [range] });

    expect(guard.refusal(address, 8080)).toBe(isDenied ? "the partner's deny-list" : null);
    expect(guard.denial({ address }) !== null).toBe(isDenied);
  });

  it("allowed in the mapped form is the IPv4 address", () => {
    const guard = addressGuard({
      ...nothing,
      allowRanges: ["[::ffff:127.0.0.1]:8080", "[::ffff:10.0.0.0/104]"],
    });

    expect(guard.refusal("127.0.0.1", 8080)).toBeNull();
    expect(guard.refusal("127.0.0.1", 8081)).toMatch(/loopback/);
    expect(guard.refusal("10.1.2.3", 8081)).toBeNull();
  });

  it("can be allowed at some ports only", () => {
    const guard = addressGuard({
      ...nothing,
      allowRanges: ["127.0.0.1:8000-8010", "[fd00::/8]:443", "10.0.0.0/8"],
    });

    expect(guard.refusal("127.0.0.1", 8010)).toBeNull();
    expect(guard.refusal("::ffff:127.0.0.1", 8000)).toBeNull();
    expect(guard.refusal("127.0.0.1", 8011)).toContain("loopback");
    expect(guard.refusal("127.0.0.2", 8000)).toContain("loopback");
    expect(guard.refusal("fd00::1", 443)).toBeNull();
    expect(guard.refusal("fd00::1", 80)).toContain("unique local");
    expect(guard.refusal("10.9.8.7", 8080)).toBeNull();
  });

  const noAllowances = "127.0.0.1:0 127.0.0.1:99999 127.0.0.1:9-8 [fd00::1 fd00::/8:443 localhost:80 ".split(
    " ",
  );
  it.each(noAllowances)("cannot be allowed as %j", (text) => {
    expect(parseAllowance(text)).toBeNull();
  });
});

describe("a spelling", () => {
  const spellings =
    "0x7f.1 2130706433 0177.0.0.1 127.1 127.0.0.1. １２７.０.０.１ ①②⑦.⓪.⓪.① [::ffff:7f00:1] " +
    "[0:0:0:0:0:ffff:127.0.0.1] 127。0。0。1 %31%32%37.0.0.1 user@127.0.0.1:80";
  it.each(spellings.split(" "))("of loopback such as %s is recognised", (host) => {
    expect(fate(`http://${host}/`)).toBe("refuse");
  });

  it.each(["http://[fe80::1%25eth0]/", "http://127.0.0.256/", "http://0x100000000/", "http://[::1/"])(
    "such as %s is an invalid URL",
    (url) => {
      expect(fate(url)).toBe("invalid-url");
    },
  );
});

describe("the public suites", () => {
  it("host forms have the verdict of the suite", ({ skip }) => {
    const rows = rowsOf<{ name: string; input: string; verdict: string }>("host-forms.json");
    if (rows === null) return skip();

    const found = rows.map(({ name, input }) => [name, fate(input)]);

    // NAT64 is refused entirely, even with a public address inside, because it would be a second name for a host.
    const isNat64 = (input: string) => input.includes("64:ff9b::");
    expect(found).toEqual(
      rows.map(({ name, input, verdict }) => [name, isNat64(input) ? "refuse" : verdict]),
    );
  });

  it("SSRF payloads are refused as addresses or once their names are resolved", async ({ skip }) => {
    type Payload = {
      name: string;
      input: string;
      verdict: string;
      whatwgHostname: string;
      resolvesTo?: string;
    };
    const rows = rowsOf<Payload>("ssrf-payloads.json");
    if (rows === null) return skip();
    const names = new Map(rows.map((row) => [row.whatwgHostname, row.resolvesTo ?? null]));
    const dns = await startDns((name) => names.get(name) ?? null);
    const connector = new Connector(testConfig({ allowRanges: [], resolvers: [dns.address] }));
    atEnd(dns.close, () => connector.close());

    const found: unknown[] = [];
    for (const { name, input } of rows) found.push([name, await verdictOf(input, connector)]);

    const wanted = (row: Payload) => (row.verdict === "depends" ? "no such name" : row.verdict);
    expect(found).toEqual(rows.map((row) => [row.name, wanted(row)]));
  });
});

describe("a connector", () => {
  const own = (connector: Connector, host: string) =>
    connector.pick({ host }).then(
      () => "allowed",
      (failure: Failure) => `${failure.code}: ${failure.message}`,
    );

  it("learns the network's NAT64 prefix from DNS and checks the addresses behind it", async () => {
    const dns = await startMailDns();
    const config = { allowRanges: [], denyRanges: ["9.9.9.0/24"], resolvers: [dns.address], ipv6: true };
    const connector = new Connector(testConfig(config));
    atEnd(dns.close, () => connector.close());
    const translated = ["2a00:db8:64::a00:1", "2a00:db8:64::909:909", "2a00:db8:64::808:808"];

    const before = await Promise.all(translated.map((host) => own(connector, host)));
    await connector.learnIpv6();
    const after = await Promise.all(translated.map((host) => own(connector, host)));

    expect(before).toEqual(["allowed", "allowed", "allowed"]);
    expect(after[0]).toMatch(/^refused-address: .*10\.0\.0\.0\/8/);
    expect(after[1]).toMatch(/^not-allowed: .*deny-list/);
    expect(after[2]).toBe("allowed");
  });

  it("does not contact its own public address, even through a translator, unless its network is allowed", async () => {
    const connector = new Connector(testConfig({ allowRanges: [] }));
    const open = new Connector(
      testConfig({ allowRanges: [], limits: { ...testConfig({}).limits, ownNetwork: true } }),
    );
    atEnd(
      () => connector.close(),
      () => open.close(),
    );

    const before = await own(connector, "203.0.112.9");
    for (const one of [connector, open]) one.seenFrom(["203.0.112.9"]);

    expect(before).toBe("allowed");
    expect(await own(connector, "203.0.112.9")).toMatch(/own network/);
    expect(await own(connector, "64:ff9b::203.0.112.9")).not.toBe("allowed");
    expect(await own(connector, "2606:4700::5efe:203.0.112.9")).toMatch(/own network/);
    expect(await own(connector, "203.0.112.10")).toBe("allowed");
    expect(await own(open, "203.0.112.9")).toBe("allowed");
  });

  it("never connects to a port of another service", async () => {
    const connector = new Connector(testConfig({ allowRanges: [] }));
    atEnd(() => connector.close());
    const opened = connector.open({ host: "8.8.8.8", port: 6379, secure: false, timeoutMs: 500 });

    await expect(opened).rejects.toMatchObject({
      code: "refused-address",
      message: expect.stringContaining("6379"),
    });
  });
});

async function verdictOf(input: string, connector: Connector): Promise<string> {
  const plain = fate(input);
  if (plain === "invalid-url") return "refuse";
  if (plain !== "name") return plain;
  const host = new URL(input).hostname;
  const failure = await connector.pick({ host }).catch((error: unknown) => error);
  if (!(failure instanceof Failure)) return "allow";
  if (failure.code !== "refused-address") return "no such name";
  return host === "localhost" ? "refuse" : "refuse-after-dns";
}
