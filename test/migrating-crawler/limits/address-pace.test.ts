/** How fast one address may be asked, and what counts as one. */
import { describe, expect, it } from "vitest";
import {
  addressAfterAnswer,
  addressAfterProbe,
  addressKey,
  newAddressPace,
} from "#crawler/limits/address-pace";

const settings = { floorMs: 1000, responseTimeFactor: 5 };
const rest = (answer: { status: number | null; tookMs: number }, pace = newAddressPace) =>
  addressAfterAnswer(pace, answer, { settings, nowMs: 0 });

describe("an address rests", () => {
  it.each([
    ["a quarter of a host's floor", { status: 200, tookMs: 100 }, 250],
    ["as long as it just worked", { status: 200, tookMs: 700 }, 700],
    ["ten seconds at most", { status: 200, tookMs: 50_000 }, 10_000],
    ["not for an answer that never came", { status: null, tookMs: 20_000 }, 250],
  ])("%s", (_what, answer, expectedMs) => {
    expect(rest(answer).notBeforeMs).toBe(expectedMs);
  });

  it("after a probe as after a quick answer, and never less than it already does", () => {
    const probed = (pace = newAddressPace) => addressAfterProbe(pace, { settings, nowMs: 0 });
    const strained = rest({ status: 429, tookMs: 0 });

    expect(probed()).toEqual({ notBeforeMs: 250, strain: 1 });
    expect(probed(strained)).toEqual(strained);
  });

  it("twice as long after each time that it turns us away, and recovers slowly", () => {
    const once = rest({ status: 429, tookMs: 0 });
    const twice = rest({ status: 503, tookMs: 0 }, once);
    const better = rest({ status: 200, tookMs: 0 }, twice);

    expect([once, twice, better].map(({ notBeforeMs }) => Math.round(notBeforeMs))).toEqual([500, 1000, 900]);
  });
});

it.each([
  ["192.0.2.1", "192.0.2.2", false],
  ["192.0.2.1", "::ffff:192.0.2.1", true],
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true],
  ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
])("%s and %s are one address: %s", (one, other, isOne) => {
  expect(addressKey(one) === addressKey(other)).toBe(isOne);
});
