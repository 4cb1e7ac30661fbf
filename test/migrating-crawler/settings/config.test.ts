/** The settings of a crawler: defaults, and every fault in one error. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { ConfigError } from "#core/errors";
import { settingsTemplate } from "#crawler/cli/join-command";
import { type CrawlerConfig, crawlerConfig } from "#crawler/settings/config";
import { settingTables } from "#crawler/settings/setting-words";
import { readSettingsFile, settingsFileConfig } from "#crawler/settings/settings-file";
import { softwareVersion } from "#protocol/software-version";
import packageJson from "../../../package.json" with { type: "json" };
import { temporaryFolder } from "../../support/temporary-folder.ts";

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
  it("need four values; the rest has defaults, and all are frozen", () => {
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

  it("report every fault at once", () => {
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

  it("take no User-Agent, which the coordinator sets, but a contact that is valid in its comment", () => {
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

/** A settings file edited by hand is applied, and its faults are reported with their lines. */
describe("the settings file", () => {
  let folder: string;
  beforeEach(() => {
    folder = temporaryFolder("nearcrawl-settings-");
  });

  const connection = {
    coordinatorUrl: "wss://search.example/crawler",
    key: "0123456789abcdef",
    name: "athens",
    home: "/tmp/athens",
  };

  function written(text: string, name = "settings.toml"): string {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  }

  function faultsOf(text: string, name?: string): string[] {
    const file = written(text, name);
    try {
      settingsFileConfig(file, connection);
      return [];
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      return (error as ConfigError).faults.map((fault) => fault.replace(`${folder}/`, ""));
    }
  }

  describe("a settings file", () => {
    it("is read with its limits, hours and lists", () => {
      const file = written(
        [
          'denyDomains = ["example.org"]',
          "[limits]",
          "pagesPerDay = 5_000",
          "kilobytesPerSecond = 12.5",
          'hours = { monday = "22:00-06:00" }',
          "[limits.onlyWhenIdle]",
          "usersAwayMinutes = 5",
        ].join("\n"),
      );

      expect(settingsFileConfig(file, connection)).toMatchObject({
        name: "athens",
        denyDomains: ["example.org"],
        limits: {
          pagesPerDay: 5000,
          kilobytesPerSecond: 12.5,
          hours: { monday: "22:00-06:00", tuesday: "never" },
          onlyWhenIdle: { usersAwayMinutes: 5, loadPerProcessor: 0.5, onMainsPower: true },
        },
      });
    });

    it("may be JSON, as programs write it", () => {
      const file = written('{ "limits": { "pagesPerDay": 7 } }', "settings.json");

      expect(settingsFileConfig(file, connection).limits.pagesPerDay).toBe(7);
    });

    it("reports all faults at once, each with its line, its value and what was probably meant", () => {
      const faults = faultsOf(
        [
          "# limits of the night",
          'denyRanges = ["192.0.2.0/24",',
          '  "not-a-range"]',
          "[limits]",
          'text = """',
          "pagesPerDay = 1",
          '"""',
          "pagesperday = 10",
          "bytesPerDay = -1",
          "",
          "[ limits . 'hours' ]",
          'monday = "25:00-26:00"',
        ].join("\n"),
      );

      expect(faults.sort()).toEqual([
        'settings.toml:12: limits.hours.monday: must be hours such as "22:00-06:00" or "00:00-06:00, 20:00-24:00", "always" or "never" (it is "25:00-26:00")',
        'settings.toml:2: denyRanges.1: must be an address, a/prefix or first-last (it is "not-a-range")',
        "settings.toml:5: limits.text: there is no such setting",
        "settings.toml:8: limits.pagesperday: there is no such setting; is pagesPerDay meant?",
        "settings.toml:9: limits.bytesPerDay: Too small: expected number to be >=0 (it is -1)",
      ]);
    });

    it.each([
      ["settings.toml:2:", "[limits]\npagesPerDay = = 3\n"],
      ["settings.toml:3:", "[limits]\npagesPerDay = 3\npagesPerDay = 4\n"],
      ["settings.toml:1:", "__proto__ = { pagesPerDay = 3 }\n"],
      ["settings.json:", '{ "limits": '],
      ["settings.json:", "[]"],
    ])("that cannot be read is reported as %s", (place, text) => {
      const [fault, ...others] = faultsOf(text, place.split(":")[0]);

      expect(fault).toContain(place);
      expect(others).toEqual([]);
    });

    it("that is JSON reports lines too", () => {
      const faults = faultsOf('{\n  "limits": {\n    "cpuShare": "half"\n  }\n}', "settings.json");

      expect(faults).toEqual([
        expect.stringMatching(/^settings\.json:3: limits\.cpuShare: .*\(it is "half"\)$/),
      ]);
    });

    it("shows no secret in its faults", () => {
      const [fault] = faultsOf('proxy = "ftp://user:secret@proxy.example"');

      expect(fault).toContain("settings.toml:1: proxy");
      expect(fault).not.toContain("secret");
    });

    it("of another type or size is refused", () => {
      expect(() => readSettingsFile(join(folder, "none.toml"))).toThrow(ConfigError);
      expect(() => readSettingsFile(written(`# ${"x".repeat(5_000_000)}`))).toThrow("larger than");
    });
  });

  describe("the settings file that the program writes", () => {
    const given = {
      denyDomains: ["example.org"],
      limits: { pagesPerDay: 5000, cpuShare: 0.25, hours: { monday: "22:00-06:00" } },
    };
    const inForce = (text: string) => readSettingsFile(written(text));
    /** Activates everything behind a #. */
    const uncommented = (text: string) => text.replace(/^# (?=[\w]+ = |\[)/gm, "");

    it("applies what was given, and nothing else", () => {
      const { limits, ...others } = inForce(settingsTemplate(given));

      expect({ limits, ...others }).toEqual({
        ...given,
        releases: {},
        fetched: {},
        status: {},
        timeouts: {},
      });
    });

    it("names the coordinator of a crawler that has not joined", () => {
      expect(inForce(settingsTemplate(connection))).toMatchObject(connection);
    });

    it("shows valid settings, with their defaults", () => {
      const shown = inForce(uncommented(settingsTemplate({})));

      const config = crawlerConfig({ ...connection, ...shown });

      const usual = crawlerConfig(connection);
      const { limits, timeouts } = config;
      expect(timeouts).toEqual(usual.timeouts);
      expect(givenOf(limits, usual.limits)).toEqual(givenOf(usual.limits, usual.limits));
    });

    it("explains every setting that a partner can change", () => {
      const explained = settingTables.map(({ path, names }) => [path, names]);
      const shown = inForce(uncommented(settingsTemplate({})));
      const config = crawlerConfig({ ...connection, ...shown }) as unknown as Record<string, object>;
      const tables = new Set(settingTables.map(({ path }) => path[0]));

      const all = new Set(Object.keys(config).filter((name) => !tables.has(name) && !(name in connection)));

      expect(new Set(explained[0]?.[1] as string[])).toEqual(all);
      expect(explained[1]?.[1]).toEqual(expect.arrayContaining(limitNames(config.limits!)));
    });
  });

  /** Selects limits that have a value by default. */
  function givenOf(limits: CrawlerConfig["limits"], usual: CrawlerConfig["limits"]): object {
    const names = Object.keys(usual) as (keyof typeof usual)[];
    return Object.fromEntries(
      names.filter((name) => usual[name] !== null).map((name) => [name, limits[name]]),
    );
  }

  const limitNames = (limits: object) =>
    Object.keys(limits).filter((name) => name !== "hours" && name !== "onlyWhenIdle");
});
