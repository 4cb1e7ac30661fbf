/** The part of the partner's deny-list in a hello. */
import { expect, it } from "vitest";
import { toldDenials } from "#crawler/link/crawler-hello";
import { encodeMessage, maxHelloBytes } from "#protocol/codec";
import { crawlerHello, maxHeldLeases } from "#protocol/messages";
import { hello } from "../../support/flow-world.ts";

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
