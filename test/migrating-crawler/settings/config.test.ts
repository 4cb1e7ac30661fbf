/** The settings of a crawler: defaults, and every fault in one error. */
import { describe, expect, it } from "vitest";
import { ConfigError } from "#core/errors";
import { crawlerConfig } from "#crawler/settings/config";
import { softwareVersion } from "#protocol/software-version";
import packageJson from "../../../package.json" with { type: "json" };

const least = {
  coordinatorUrl: "wss://search.example/crawler",
  key: "0123456789abcdef",
  name: "athens",
  home: "/tmp/athens",
};

function faultsOf(settings: unknown): readonly string[] {
  try {
    crawlerConfig(settings);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).faults;
  }
}

describe("a crawler's settings", () => {
  it("need four values; the rest has defaults, and nothing can be changed afterwards", () => {
    const config = crawlerConfig(least);

    expect(config).toMatchObject({
      proxy: null,
      resolvers: [],
      politenessFloorMs: 1000,
      limits: { concurrentHosts: 32, kilobytesPerSecond: null },
      probeMethods: ["head", "connect", "icmp"],
    });
    expect(Object.isFrozen(config.limits)).toBe(true);
  });

  it("name every fault at once", () => {
    const faults = faultsOf({
      ...least,
      coordinatorUrl: "ws://search.example/",
      name: "Athens!",
      proxy: "ftp://x",
      resolvers: ["127.0.0.1"],
      limits: { pagesPerDay: -1, pagesPerWeek: 7 },
      colour: "blue",
    });

    expect(faults.map((fault) => fault.split(":")[0]).sort()).toEqual([
      "colour",
      "coordinatorUrl",
      "limits.pagesPerDay",
      "limits.pagesPerWeek",
      "name",
      "proxy",
      "resolvers.0",
    ]);
  });

  it("take a fastest rest that is less than the floor", () => {
    expect(crawlerConfig({ ...least, politenessFastestMs: 250 }).politenessFastestMs).toBe(250);
    expect(faultsOf({ ...least, politenessFastestMs: 2000 })).toEqual([
      "politenessFastestMs: 2000 is more than politenessFloorMs (1000); it can only be less",
    ]);
  });

  it.each([
    ["http://127.0.0.1:3128", true],
    ["socks5://user:secret@[2001:db8::1]:1080", true],
    ["https://proxy.example:443", false],
    ["http://proxy.example/path", false],
    ["127.0.0.1:3128", false],
  ])("take the proxy %s: %s", (proxy, taken) => {
    expect(faultsOf({ ...least, proxy })).toHaveLength(taken ? 0 : 1);
  });

  it("take no User-Agent, which the coordinator states, but a contact that can stand in its comment", () => {
    expect(faultsOf({ ...least, userAgent: "Nearcrawl/1 (+https://x.example)" })).toEqual([
      "userAgent: the coordinator states it; your own address goes into contact",
    ]);
    expect(faultsOf({ ...least, contact: "abuse@partner.example" })).toEqual([]);
    expect(faultsOf({ ...least, contact: "ours) Mozilla/5.0 (" })).toHaveLength(1);
    expect(faultsOf({ ...least, contact: "a\r\nX: y" })).toHaveLength(1);
    expect(faultsOf({ ...least, contact: "x".repeat(79) })).toHaveLength(1);
  });

  it("state the package's version", () => {
    expect(softwareVersion).toBe(packageJson.version);
  });
});
