/** The rate that a site tolerates: what lowers and raises it, and what never happens whatever sites answer. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import {
  type AddressAnswer,
  addressAfterAnswer,
  addressAfterProbe,
  addressKey,
  newAddressPace,
} from "#crawler/limits/address-pace";
import { afterAnswer, boundsOf, newPace, type PaceSettings, withCrawlDelay } from "#crawler/limits/host-pace";
import {
  afterGoodAnswer,
  afterRefusal,
  rateNow,
  type ToleratedRate,
  unlimitedRate,
} from "#crawler/limits/tolerated-rate";

const minute = 60_000;
const day = 86_400_000;
const bounds = { startPerHour: 3600, mostPerHour: 3600 };

/** Good, quick answers at the maximum rate for this long from `fromMs` on. */
function asked(rate: ToleratedRate, { fromMs, forMs }: { fromMs: number; forMs: number }, within = bounds) {
  let [now, known, answers] = [fromMs, rate, 0];
  for (;;) {
    const gapMs = 3_600_000 / rateNow(known, within, now);
    if (now + gapMs > fromMs + forMs) return { rate: known, answers, perHour: rateNow(known, within, now) };
    now += gapMs;
    known = afterGoodAnswer(known, { gapMs, nowMs: now, isQuick: true }, within);
    answers += 1;
  }
}

const refusedAt = (rate: ToleratedRate, nowMs: number, gapMs = 0) =>
  afterRefusal(rate, { gapMs, nowMs }, { bounds, limitedBy: "refused" });

describe("a refusal", () => {
  it("halves the rate, and good answers add a sixtieth of the start's every minute", () => {
    const refused = refusedAt(unlimitedRate, 0);
    const { perHour } = asked(refused, { fromMs: 0, forMs: 10 * minute });

    expect(refused.perHour).toBe(1800);
    expect(perHour).toBeGreaterThan(1800 + 9 * 60);
    expect(perHour).toBeLessThanOrEqual(1800 + 10 * 60);
  });

  it("limits the rate at first, and fades over days", () => {
    const { perHour: soon } = asked(refusedAt(unlimitedRate, 0), { fromMs: 0, forMs: 90 * minute });
    const low = { ...refusedAt(unlimitedRate, 0), refusedPerHour: 1000, perHour: 500 };
    const at = (forMs: number) => Math.round(asked(low, { fromMs: 0, forMs }).perHour);

    expect(soon).toBeLessThan(3600 * 0.93);
    expect(at(3 * 60 * minute)).toBeLessThan(1000);
    expect(at(day)).toBeLessThan(1300);
    expect(at(4 * day)).toBe(3600);
  });

  it("sets the rate to what got through since the previous one, pauses included, when that is known", () => {
    const { rate } = asked(
      { ...refusedAt(unlimitedRate, 0), perHour: 1200 },
      { fromMs: 0, forMs: 10 * minute },
    );
    const quota = { ...rate, activeMs: 20 * minute };

    const known = refusedAt(quota, 20 * minute).perHour;

    expect(known).toBeCloseTo(quota.answers * 3 * 0.95, 0);
    expect(known).not.toBeCloseTo(rateNow(quota, bounds, 20 * minute) / 2, 0);
  });

  it("lowers the actual rate when other limits kept it below the tolerated one", () => {
    expect(refusedAt(unlimitedRate, minute, 10_000)).toMatchObject({ refusedPerHour: 360, perHour: 180 });
  });
});

it("climbs to the fastest rest in the settings while all goes well, and no further", () => {
  const faster = boundsOf(newPace, { floorMs: 1000, fastestMs: 250, responseTimeFactor: 0 });

  const half = asked(unlimitedRate, { fromMs: 0, forMs: 60 * minute }, faster).perHour;
  const whole = asked(unlimitedRate, { fromMs: 0, forMs: 400 * minute }, faster).perHour;

  expect(Math.round(half)).toBeGreaterThan(6900);
  expect(Math.round(half)).toBeLessThanOrEqual(7200);
  expect(whole).toBe(14_400);
  expect(
    boundsOf(withCrawlDelay(newPace, 2), { floorMs: 1000, fastestMs: 250, responseTimeFactor: 0 }),
  ).toEqual({
    startPerHour: 1800,
    mostPerHour: 1800,
  });
});

/** Sites that answer anything at any time. */
describe.each(Array.from({ length: 12 }, (_, seed) => seed))("whatever a site answers (seed %i)", (seed) => {
  const random = seededRandom(seed);
  const settings: PaceSettings = {
    floorMs: [0, 20, 1000, 30_000][seed % 4]!,
    ...(seed % 3 === 0 ? { fastestMs: 250 } : {}),
    responseTimeFactor: seed % 2 === 0 ? 5 : 0,
  };
  const crawlDelay = seed % 5 === 0 ? 3 : 0;
  const answer = () => {
    const kind = random();
    const status = kind < 0.3 ? 429 : kind < 0.4 ? 503 : kind < 0.6 ? null : 200;
    const retryAfterSeconds = random() < 0.8 ? null : Math.floor(31_536_000 * random() ** 9);
    return { status, tookMs: 60_000 * random() ** 3, retryAfterSeconds, isSmall: random() < 0.1 };
  };

  it("it is never asked faster than floor and Crawl-delay or before Retry-After, is asked again within a day, and recovers", () => {
    const leastMs = Math.max(
      crawlDelay * 1000,
      Math.min(settings.floorMs, settings.fastestMs ?? settings.floorMs),
    );
    let pace = withCrawlDelay(newPace, crawlDelay);
    let nowMs = 1;
    for (let turn = 0; turn < 300; turn++) {
      const given = answer();
      nowMs = Math.max(nowMs, pace.notBeforeMs) + given.tookMs + (random() < 0.1 ? day * random() : 0);
      pace = afterAnswer(pace, given, { settings, nowMs, random: random() });
      const waitMs = pace.notBeforeMs - nowMs;
      const statedMs = given.status === null ? 0 : (given.retryAfterSeconds ?? 0) * 1000;
      // Up to the rounding of a millisecond clock that counts from 1970.
      expect(waitMs).toBeGreaterThanOrEqual(Math.max(leastMs, statedMs) - 0.01);
      expect(waitMs).toBeLessThanOrEqual(Math.max(day, statedMs) + 0.01);
    }
    const quick = { status: 200, tookMs: 40, retryAfterSeconds: null };
    const freeMs = Math.max(settings.floorMs, crawlDelay * 1000, settings.responseTimeFactor * 40) + 0.01;
    // Nobody asks for a week, and then for two hours.
    nowMs = pace.notBeforeMs + 7 * day;
    const untilMs = nowMs + 120 * minute;
    do {
      nowMs = Math.max(nowMs, pace.notBeforeMs) + 40;
      pace = afterAnswer(pace, quick, { settings, nowMs, random: random() });
    } while (pace.notBeforeMs - nowMs > freeMs && nowMs < untilMs);

    expect(nowMs).toBeLessThan(untilMs);
  });
});

// How fast one address may be asked, and what counts as one.

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

  it("after a probe as after a quick answer, and never less than before", () => {
    const probed = (pace = newAddressPace) => addressAfterProbe(pace, { settings, nowMs: 0, domain: "" });
    const strained = rest({ tookMs: 5000 });

    expect(probed().notBeforeMs).toBe(250);
    expect(probed(strained)).toMatchObject({ notBeforeMs: strained.notBeforeMs, rate: strained.rate });
  });

  it("as before after one host's refusal, and twice as long after another's within ten minutes", () => {
    const once = rest({ status: 429 });
    const again = rest({ status: 503 }, once, 1000);
    const other = rest({ status: 429, host: "b.example" }, again, 2000);
    const late = rest({ status: 429, host: "b.example" }, again, 700_000);

    expect([once.notBeforeMs, again.notBeforeMs - 1000]).toEqual([250, 250]);
    expect(other.notBeforeMs - 2000).toBe(2000);
    expect(late.notBeforeMs - 700_000).toBe(250);
  });

  it("longer after answers that are slow for their hosts, and gradually as before when they are quick again", () => {
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

  it("ten seconds at most, however low the rate, and recovers from there", () => {
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
