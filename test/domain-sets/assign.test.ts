import { expect, it } from "vitest";
import { domainSetFault } from "#coordinator/place/domain-sets/assign";

it("a crawler whose partner's domain sets cannot be read is refused with the reason, and no other", () => {
  expect(domainSetFault({})).toBeNull();
  expect(domainSetFault({ domainSets: [".gr", "lang:el"] })).toBeNull();
  expect(domainSetFault({ domainSets: [".gr", ".gr not .gr"] })).toEqual({
    code: "bad-message",
    reason:
      "domainSets in the crawler's settings: the domain set has both .gr and not .gr: it can hold neither",
    retry: false,
  });
});

it("refuses more sets than there may be", () => {
  const sets = Array.from({ length: 17 }, (_, at) => `s${at}.gr`);

  expect(domainSetFault({ domainSets: sets.slice(1) })).toBeNull();
  expect(domainSetFault({ domainSets: sets })?.reason).toMatch(/17 domain sets are given: at most 16/);
});
