/** How fast one address may be asked, and what counts as one. */
import { describe, expect, it } from "vitest";
import {
  type AddressAnswer,
  addressAfterAnswer,
  addressAfterProbe,
  addressKey,
  newAddressPace,
} from "#crawler/limits/address-pace";

const settings = { floorMs: 1000, responseTimeFactor: 5 };
const rest = (answer: Partial<AddressAnswer>, pace = newAddressPace, nowMs = 0) =>
  addressAfterAnswer(
    pace,
    { host: "a.example", domain: "a.example", status: 200, tookMs: 0, speed: "quick", ...answer },
    { settings, nowMs },
  );

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
    const probed = (pace = newAddressPace) => addressAfterProbe(pace, { settings, nowMs: 0, domain: "" });
    const strained = rest({ tookMs: 5000 });

    expect(probed().notBeforeMs).toBe(250);
    expect(probed(strained)).toMatchObject({ notBeforeMs: strained.notBeforeMs, rate: strained.rate });
  });

  it("no longer after one host's refusal, and twice as long after another's within ten minutes", () => {
    const once = rest({ status: 429 });
    const again = rest({ status: 503 }, once, 1000);
    const other = rest({ status: 429, host: "b.example" }, again, 2000);
    const late = rest({ status: 429, host: "b.example" }, again, 700_000);

    expect([once.notBeforeMs, again.notBeforeMs - 1000]).toEqual([250, 250]);
    expect(other.notBeforeMs - 2000).toBe(2000);
    expect(late.notBeforeMs - 700_000).toBe(250);
  });

  it("longer after answers that are slow for their hosts, and as before step by step when they are quick again", () => {
    let pace = rest({}, newAddressPace, 1);
    pace = rest({ speed: "slow", tookMs: 200 }, pace, pace.notBeforeMs + 200);
    const slowMs = pace.notBeforeMs - pace.endedAtMs;
    const rests: number[] = [];
    for (let turn = 0; turn < 20; turn++) {
      pace = rest({}, pace, pace.notBeforeMs);
      rests.push(Math.round(pace.notBeforeMs - pace.endedAtMs));
    }

    expect(slowMs).toBe(2 * (250 + 200) - 200);
    expect(rests).toEqual([...rests].sort((a, b) => b - a));
    expect(rests.at(-1)).toBe(250);
  });

  it("ten seconds at most, however low the rate, and comes back from there", () => {
    let pace = newAddressPace;
    for (let turn = 1; turn <= 12; turn++)
      pace = rest({ status: 429, host: `h${turn % 2}` }, pace, turn * 1000);
    const restMs = pace.notBeforeMs - 12_000;
    let turns = 0;
    while (pace.rate.perHour > 0 && turns++ < 1e5) pace = rest({}, pace, pace.notBeforeMs + 86_400);

    expect(restMs).toBe(10_000);
    expect(turns).toBeLessThan(1e4);
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
