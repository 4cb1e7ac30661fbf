/** Several coordinators: which is next, who may announce one, and a link that moves between them over real sockets. */
import { describe, expect, it, test, vi } from "vitest";
import { asCrawlerId } from "#core/ids";
import { CoordinatorAddresses } from "#crawler/link/coordinator-addresses";
import { CoordinatorLink } from "#crawler/link/coordinator-link";
import { toldDenials } from "#crawler/link/crawler-hello";
import { encodeMessage, maxHelloBytes } from "#protocol/codec";
import { crawlerHello, maxHeldLeases } from "#protocol/messages";
import { helloOf, type LoopbackGateway, startGateway } from "../../gateway/gateway-on-loopback.ts";
import { atEnd } from "../../support/at-end.ts";
import { hello } from "../../support/flow-world.ts";

const at = (host: string) => `wss://${host}.fleet.example/crawler`;
const [athens, berlin, cairo] = [at("a"), at("b"), at("c")];

describe("which coordinator is next", () => {
  test("each of the others in turn, then the first again", () => {
    const addresses = new CoordinatorAddresses({ own: [athens, berlin], learned: [cairo] });
    const asked = [addresses.current];
    for (let times = 0; times < 3; times += 1) {
      expect(addresses.next(0)).toBe(0);
      asked.push(addresses.current);
    }

    expect(asked).toEqual([athens, berlin, cairo, athens]);
  });

  test("the one that is available soonest", () => {
    const addresses = new CoordinatorAddresses({ own: [athens, berlin] });
    addresses.comeBackTo(5000, 0);
    addresses.next(0);
    const first = addresses.current;
    addresses.comeBackTo(9000, 0);
    const waitMs = addresses.next(1000);

    expect([first, addresses.current, waitMs]).toEqual([berlin, athens, 4000]);
  });
});

describe("announced coordinators", () => {
  test("replace those announced before", () => {
    const kept: (readonly string[])[] = [];
    const addresses = new CoordinatorAddresses({ own: [athens], keep: (urls) => kept.push(urls) });

    addresses.learn([athens, berlin]);
    addresses.learn([berlin, athens]);
    addresses.learn([cairo]);

    expect(kept).toEqual([[berlin], [cairo]]);
    expect(addresses.all).toEqual([athens, cairo]);
  });

  const coUk = "wss://a.fleet.example.co.uk/crawler";
  test.each([
    ["of the same registrable domain", coUk, [], "wss://b.other.example.co.uk/crawler", true],
    ["of another below the same public suffix", coUk, [], "wss://b.evil.co.uk/crawler", false],
    ["of another tenant of a platform", "wss://a.github.io/crawler", [], "wss://b.github.io/crawler", false],
    ["in the partner's network, by name", athens, [], "wss://router.lan/crawler", false],
    ["in the partner's network, by address", athens, [], "wss://192.168.1.1/crawler", false],
    ["another port of an address", "wss://203.0.113.7:1/crawler", [], "wss://203.0.113.7:2/crawler", true],
    ["another address", "wss://203.0.113.7/crawler", [], "wss://203.0.113.8/crawler", false],
    ["of a domain that root keys signed", athens, ["fleet.example.net"], "wss://c.example.net/crawler", true],
  ])("%s: %s, %j → %s %s", (_what, given, domains, named, isTaken) => {
    const addresses = new CoordinatorAddresses({ own: [given], domains });

    addresses.learn([named]);

    expect(addresses.all).toEqual(isTaken ? [given, named] : [given]);
  });

  test("are encrypted like the first, with the same path, and at most 16", () => {
    const addresses = new CoordinatorAddresses({ own: [athens] });
    const many = Array.from({ length: 40 }, (_, at) => `wss://c${at}.fleet.example/crawler`);

    addresses.learn([
      "ws://127.0.0.1:7411/crawler",
      "http://b.fleet.example/",
      "wss://u:p@b.fleet.example/",
      "no",
      "wss://b.fleet.example/admin?delete=all",
      berlin,
    ]);
    const few = addresses.all;
    addresses.learn(many);

    expect(few).toEqual([athens, berlin]);
    expect(addresses.size).toBe(17);
  });
});

async function gateway(options: Partial<Parameters<typeof startGateway>[0]> = {}): Promise<LoopbackGateway> {
  return await startGateway({ zlibSync: null, ...options });
}

/** Welcomes announce these coordinators. */
const naming = (coordinators: readonly string[]) => ({
  handlers: {
    onArrive: async () => ({ acknowledgedSequence: 0, welcome: { coordinators: [...coordinators] } }),
  },
});

function linkTo(addresses: CoordinatorAddresses) {
  const up: string[] = [];
  const stops: string[] = [];
  const link = new CoordinatorLink({
    url: addresses.current,
    addresses,
    hello: () => helloOf("amber"),
    heartbeat: () => ({
      ...{ type: "crawler:heartbeat", openHosts: 0, spooledResults: 0, pages: 0 },
      ...{ fetchedBytes: 0, shippedBytes: 0, holdingBack: [] },
    }),
    handlers: {
      onWelcome: () => up.push(addresses.current),
      onMessage: () => {},
      onRoom: () => {},
      onDown: () => {},
      onStopped: (reason) => stops.push(reason),
    },
    log: { info() {}, warn() {} },
    random: () => 0,
    backOff: { firstMs: 10, mostMs: 40 },
  });
  atEnd(() => link.stop({ reason: "the test is over" }));
  link.start();
  return { link, up, stops };
}

describe("a link", () => {
  test("goes to the coordinator that the lost one announced in its welcome", async () => {
    const second = await gateway();
    const first = await gateway(naming([second.url]));
    const { up } = linkTo(new CoordinatorAddresses({ own: [first.url] }));
    await vi.waitFor(() => expect(up).toEqual([first.url]));

    await first.close();

    await vi.waitFor(() => expect(up).toEqual([first.url, second.url]));
  });

  test("goes to one announced during the session, also after a restart", async () => {
    const [first, second] = [await gateway(), await gateway()];
    let kept: readonly string[] = [];
    const keep = (urls: readonly string[]) => {
      kept = urls;
    };
    const { link, up } = linkTo(new CoordinatorAddresses({ own: [first.url], keep }));
    await vi.waitFor(() => expect(up.length).toBe(1));

    first.gateway.send(asCrawlerId(1), { type: "coordinator:addresses", urls: [first.url, second.url] });
    await vi.waitFor(() => expect(kept).toEqual([second.url]));
    await link.stop({ reason: "a new life begins" });
    await first.close();
    const { up: later } = linkTo(new CoordinatorAddresses({ own: [first.url], learned: kept }));

    await vi.waitFor(() => expect(later).toEqual([second.url]));
  });

  test("asks another coordinator when one sends it away", async () => {
    const refuse = {
      code: "internal-error",
      reason: "many wait",
      retry: true,
      retryAfterMs: 60_000,
    } as const;
    const full = await gateway({ handlers: { admit: async () => ({ refuse }) } });
    const second = await gateway();
    const { up } = linkTo(new CoordinatorAddresses({ own: [full.url, second.url] }));

    await vi.waitFor(() => expect(up).toEqual([second.url]));
  });

  test("stops when one coordinator refuses it for good", async () => {
    const refuse = { code: "revoked", reason: "shut out", retry: false } as const;
    const first = await gateway({ handlers: { admit: async () => ({ refuse }) } });
    const second = await gateway();
    const { up, stops } = linkTo(new CoordinatorAddresses({ own: [first.url, second.url] }));
    await vi.waitFor(() => expect(stops.length).toBe(1));

    expect([up, second.seen.arrivals]).toEqual([[], []]);
  });
});

// The part of the partner's deny-list in a hello.

it("reports a short list completely, in the partner's order", () => {
  const lists = { denyRanges: ["192.0.2.0/24", "2001:db8::/32"], denyDomains: ["b.example", "a.example"] };

  expect(toldDenials(lists)).toEqual({ networks: lists.denyRanges, domains: lists.denyDomains });
});

it("keeps a hello with many leases within its limit, however long the list is", () => {
  const denyRanges = Array.from({ length: 10_000 }, (_, number) => `2001:db8:${number.toString(16)}::/48`);
  const denyDomains = Array.from(
    { length: 10_000 },
    (_, number) => `shop-${number}.${"x".repeat(200)}.example`,
  );

  const told = {
    ...hello("amber"),
    heldLeases: Array.from(
      { length: maxHeldLeases },
      (_, number) => `9223372036854775${100 + (number % 900)}`,
    ),
    denies: toldDenials({ denyRanges, denyDomains }),
  };

  expect(crawlerHello.parse(told).denies?.networks.slice(0, 2)).toEqual(denyRanges.slice(0, 2));
  expect(Buffer.byteLength(encodeMessage(told))).toBeLessThanOrEqual(maxHelloBytes);
});

it("may be absent", () => {
  expect(crawlerHello.parse(hello("amber")).denies).toBeUndefined();
});
