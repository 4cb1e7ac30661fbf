/** The coordinator's settings: what is refused, with every fault at once. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { listeningAt, readCoordinatorConfig } from "#coordinator/config";
import { takeResultsSettings } from "#coordinator/crawl/results/take-results";
import {
  type CrawlerRecord,
  crawlersWithoutRoom,
  DayBudget,
  watchRoom,
} from "#coordinator/place/crawlers/crawler";
import { queueSettings, recalibrationRule } from "#coordinator/place/delegation/delegation-settings";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { gatewaySettings } from "#coordinator/run/gateway/gateway-settings";
import { contactFault, contactWarnings } from "#coordinator/run/opt-outs/start";
import { portToListenAt } from "#coordinator/start-web";
import { ConfigError } from "#core/errors";
import type { CrawlerId } from "#core/ids";

function faultsOf(values: unknown): readonly string[] {
  try {
    readCoordinatorConfig(values);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

describe("settings", () => {
  it("have a default each, on loopback", () => {
    const config = readCoordinatorConfig({});

    expect(config.listen).toEqual({ host: "127.0.0.1", port: 7411, pagesPort: null });
    expect(config.delegation).toMatchObject({ policy: "nearest", thresholdMs: 50, lambdaMs: 2 });
    expect(config.allowSpecialPurpose).toBe(false);
  });

  it("name the contact page at the port where it is served, unless a public URL is set", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const stated = readCoordinatorConfig({ listen: { port } });

    const free = await portToListenAt(stated.listen);
    taken.close();
    const moved = listeningAt(stated, free);
    const behind = listeningAt(readCoordinatorConfig({ publicUrl: "https://search.seedcrawl.net" }), free);

    expect(stated.userAgent).toContain(`(+http://127.0.0.1:${port}/about-crawler)`);
    expect(free).toBeGreaterThan(port);
    expect(moved.userAgent).toContain(`(+http://127.0.0.1:${free}/about-crawler)`);
    expect(moved.listen.port).toBe(free);
    expect(behind.userAgent).toContain("(+https://search.seedcrawl.net/about-crawler)");
  });

  it("cannot be changed once they are read, at no depth", () => {
    const config = readCoordinatorConfig({ resolvers: ["192.0.2.1"] });

    expect(() => Object.assign(config, { logLevel: "debug" })).toThrow(TypeError);
    expect(() => Object.assign(config.probe, { tries: 9 })).toThrow(TypeError);
    expect(() => (config.resolvers as string[]).push("192.0.2.2")).toThrow(TypeError);
  });

  it("are refused with every fault at once, each with its name", () => {
    const faults = faultsOf({
      listen: { host: "0.0.0.0", port: 70_000 },
      delegation: { policy: "closest", treshold: 50 },
      probe: { tries: 0 },
      resolvers: ["192.0.2.1", "dns.example:53"],
      recrawl: { intervalHours: "daily" },
      colour: "red",
    });

    expect(faults).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^listen\.host: 0\.0\.0\.0 is reachable from outside/),
        expect.stringMatching(/^listen\.port: /),
        expect.stringMatching(/^delegation\.policy: /),
        "delegation.treshold: there is no such setting",
        expect.stringMatching(/^probe\.tries: /),
        expect.stringMatching(/^resolvers.*"dns\.example:53" is not an address/),
        expect.stringMatching(/^recrawl\.intervalHours: /),
        "colour: there is no such setting",
      ]),
    );
    expect(faults).toHaveLength(8);
  });

  it("that are not an object are refused", () => {
    for (const values of [null, [], "{}", 3]) expect(faultsOf(values)).toHaveLength(1);
  });
});

describe("listening beyond loopback", () => {
  it.each(["0.0.0.0", "::", "192.0.2.7", "crawl.example.org", "127.0.0.1.example.org", "127.example"])(
    "at %s needs TLS, or a proxy that does it",
    (host) => {
      const tls = { certificateFile: "/etc/cert.pem", keyFile: "/etc/key.pem" };

      expect(faultsOf({ listen: { host } })).toEqual([expect.stringMatching(/^listen\.host: /)]);
      expect(faultsOf({ listen: { host }, tls })).toEqual([]);
      expect(faultsOf({ listen: { host }, behindProxy: true })).toEqual([]);
    },
  );

  it.each(["127.0.0.1", "127.8.8.8", "::1", "localhost"])("does not include %s", (host) => {
    expect(faultsOf({ listen: { host } })).toEqual([]);
  });
});

describe("resolvers", () => {
  it.each(["192.0.2.1", "192.0.2.1:5353", "[2001:db8::1]", "[2001:db8::1]:53"])("may be %s", (resolver) => {
    expect(faultsOf({ resolvers: [resolver] })).toEqual([]);
  });

  it.each(["", "dns", "300.0.2.1", "192.0.2.1:0", "192.0.2.1:65536", "[192.0.2.1]", "2001:db8::1", "1.1:53"])(
    'cannot be "%s"',
    (resolver) => {
      expect(faultsOf({ resolvers: [resolver] })).toEqual([expect.stringMatching(/^resolvers/)]);
    },
  );
});

describe("the settings reach the parts", () => {
  const config = readCoordinatorConfig({
    delegation: { policy: "ipmicra", thresholdMs: 25, lambdaMs: 0.5, concurrentRounds: 7 },
    recalibration: { slowerThanFactor: 2, timesInARow: 3 },
    recrawl: { intervalHours: 2 },
    scope: { followNofollow: true },
    heartbeatSeconds: 4,
  });

  it("of delegation, recalibration, recrawl and the gateway", () => {
    expect(queueSettings(config)).toMatchObject({
      concurrentRounds: 7,
      round: { policy: "ipmicra", parameters: { thresholdMs: 25, lambdaMs: 0.5 }, probe: config.probe },
    });
    expect(recalibrationRule(config)).toMatchObject({ factor: 2, inARow: 3 });
    const taking = takeResultsSettings(config);
    expect(taking.scope).toEqual({ ...readCoordinatorConfig({}).scope, followNofollow: true });
    expect(taking.recrawl).toMatchObject({ intervalSeconds: 7200 });
    expect(gatewaySettings(config)).toMatchObject({ heartbeatMs: 4000, userAgent: config.userAgent });
  });

  it("and crawlers that are draining or have used up their day's pages or bytes count as without room", () => {
    const crawler = (crawlerId: number, state: CrawlerRecord["state"]) =>
      ({ crawlerId: crawlerId as CrawlerId, pagesPerDay: 10, bytesPerDay: 1e9, state }) as CrawlerRecord;
    const now = new Date("2030-01-01T12:00:00Z");
    const state = new CoordinatorState();
    state.setCrawlers([
      crawler(1, "online"),
      crawler(2, "draining"),
      crawler(3, "online"),
      crawler(4, "online"),
    ]);
    const budget = new DayBudget();
    budget.spend(1 as CrawlerId, { pages: 9, bytes: 9 }, now);
    budget.spend(4 as CrawlerId, { pages: 10, bytes: 9 }, now);
    budget.spend(3 as CrawlerId, { pages: 1, bytes: 1e9 }, now);

    expect([...crawlersWithoutRoom(state, budget, now)]).toEqual([2, 3, 4]);
  });

  it.each([
    ["after a moment", 2, 200],
    ["of a fleet of 10,000 after 2 s", 10_000, 2000],
  ])(
    "and the crawlers without room are computed again %s, or when the crawlers change",
    (_, count, keptMs) => {
      const crawlers = Array.from({ length: count }, (_, index) => ({
        ...{ crawlerId: (index + 1) as CrawlerId, pagesPerDay: 10, bytesPerDay: 1e9, state: "online" },
      })) as CrawlerRecord[];
      const now = new Date("2030-01-01T12:00:00Z");
      const later = (ms: number) => new Date(now.getTime() + ms);
      const [state, budget] = [new CoordinatorState(), new DayBudget()];
      state.setCrawlers(crawlers);
      const room = watchRoom(state, budget);

      const before = room(now);
      budget.spend(1 as CrawlerId, { pages: 10, bytes: 9 }, now);

      expect([...before]).toEqual([]);
      expect(room(later(keptMs - 1))).toBe(before);
      expect([...room(later(keptMs))]).toEqual([1]);
      budget.spend(2 as CrawlerId, { pages: 10, bytes: 9 }, now);
      expect([...room(later(-60_000))]).toEqual([1, 2]);
      state.setCrawlers([]);
      expect([...room(later(-60_000))]).toEqual([]);
    },
  );
});

describe("who crawls the public web", () => {
  const warned = (settings: object) => contactWarnings(readCoordinatorConfig(settings)).length;

  const isRefused = (settings: object) => contactFault(readCoordinatorConfig(settings)) !== null;

  it("is refused where requests name no contact that a webmaster can reach", () => {
    expect(isRefused({})).toBe(true);
    for (const publicUrl of ["http://127.0.0.1:7411", "http://10.1.2.3", "https://crawl", "http://[fd00::1]"])
      expect([publicUrl, isRefused({ publicUrl })]).toEqual([publicUrl, true]);
    for (const contact of [
      "nobody",
      "me@localhost",
      "http://127.0.0.1/",
      "https://a.test/",
      "a@b.org\r\nX: y",
    ])
      expect([contact, isRefused({ contact })]).toEqual([contact, true]);
    expect(isRefused({ contact: "me@example.org", userAgent: "Nearcrawl/1 (+http://127.0.0.1/)" })).toBe(
      true,
    );

    expect(isRefused({ publicUrl: "https://crawl.example.org" })).toBe(false);
    expect(isRefused({ contact: "me@example.org" })).toBe(false);
    expect(isRefused({ userAgent: "Nearcrawl/1 (+https://example.org/crawler)" })).toBe(false);
  });

  it("may still crawl an own network, or an emulated one", () => {
    expect(isRefused({ allowSpecialPurpose: true })).toBe(false);
    expect(isRefused({ resolvers: ["127.0.0.1:5353"] })).toBe(false);
    expect(isRefused({ resolvers: ["127.0.0.1:53"] })).toBe(true);
  });

  it("gets warnings about what else webmasters would miss", () => {
    expect(warned({})).toBe(1);
    expect(warned({ publicUrl: "https://crawl.example.org" })).toBe(1);
    expect(warned({ publicUrl: "https://crawl.example.org", contact: "crawl@example.org" })).toBe(0);
    expect(warned({ publicUrl: "http://crawl.example.org", contact: "x@y.z", signRequests: true })).toBe(1);
    expect(warned({ allowSpecialPurpose: true })).toBe(0);
    expect(warned({ resolvers: ["127.0.0.1:5353"] })).toBe(0);
    expect(warned({ resolvers: ["127.0.0.1:53"] })).toBe(1);
  });

  it("says by default that the contact page is at the public address", () => {
    const { userAgent } = readCoordinatorConfig({ publicUrl: "https://crawl.example.org/" });

    expect(userAgent).toBe("Nearcrawl/0.2 (+https://crawl.example.org/about-crawler)");
    const said = (settings: object) => readCoordinatorConfig(settings).userAgent;
    expect(said({ publicUrl: "http://127.0.0.1", contact: "me@example.org" })).toBe(
      "Nearcrawl/0.2 (+mailto:me@example.org)",
    );
    // Issue 41: with another port the page that was named was a dead one.
    expect(said({ listen: { port: 8080 } })).toBe("Nearcrawl/0.2 (+http://127.0.0.1:8080/about-crawler)");
    expect(said({ listen: { port: 8080, pagesPort: 8081 } })).toBe(
      "Nearcrawl/0.2 (+http://127.0.0.1:8081/about-crawler)",
    );
    expect(said({ contact: "https://example.org/us" })).toBe("Nearcrawl/0.2 (+https://example.org/us)");
  });
});

it("the coordinator's own domain sets are read at the start, and refused with the reason", () => {
  expect(readCoordinatorConfig({ domainSets: [".gr not shop.gr"] }).domainSets).toEqual([".gr not shop.gr"]);
  expect(() => readCoordinatorConfig({ domainSets: [".gr not .gr"] })).toThrow(
    "domainSets: the domain set has both .gr and not .gr: it can hold neither",
  );
});
