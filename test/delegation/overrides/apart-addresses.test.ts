/** Which addresses of a leaf are suspected to be elsewhere, by their connect times. */
import { expect, it } from "vitest";
import { apartAddresses, isAlike } from "#coordinator/place/delegation/overrides/sub-ranges";
import { seededRandom } from "#core/random";

const of = (address: string, ...timesMs: number[]) => ({ address, timesMs });
const names = (list: readonly { readonly address: string }[]) => list.map(({ address }) => address);

it("suspects the address that takes far longer than the leaf was measured at", () => {
  const verdict = apartAddresses([of("a", 21, 20, 24, 20), of("b", 101, 99, 100, 104)], 20);

  expect(names(verdict.alike)).toEqual(["a"]);
  expect(verdict.apart).toEqual([{ address: "b", levelMs: 99 }]);
});

it("suspects the address that is far nearer, too", () => {
  const verdict = apartAddresses([of("a", 101, 99, 100, 104), of("b", 21, 20, 24, 20)], 100);

  expect(names(verdict.apart)).toEqual(["b"]);
});

it("takes the middle address for the usual when nothing was measured", () => {
  const times = [of("a", 20, 20, 20, 20), of("b", 22, 22, 22, 22), of("c", 90, 90, 90, 90)];

  const verdict = apartAddresses(times, null);

  expect(verdict.usualMs).toBe(22);
  expect(names(verdict.apart)).toEqual(["c"]);
});

it("says nothing of an address with fewer than three times", () => {
  expect(apartAddresses([of("a", 20, 20, 20), of("b", 90, 90)], 20).apart).toEqual([]);
});

it("is not misled by times that a busy crawler made long", () => {
  expect(apartAddresses([of("a", 20, 20, 20, 20), of("b", 20, 250, 400, 390)], 20).apart).toEqual([]);
});

it("asks for a share of the usual on long paths, besides the 15 ms", () => {
  expect(isAlike(20, 34)).toBe(true);
  expect(isAlike(20, 36)).toBe(false);
  expect(isAlike(200, 240)).toBe(true);
  expect(isAlike(200, 260)).toBe(false);
});

it("leaves it to recalibration when no address is as it was measured", () => {
  const verdict = apartAddresses([of("a", 80, 80, 80, 80), of("b", 150, 150, 150, 150)], 20);

  expect(verdict.apart).toEqual([]);
});

it("ignores what is no time", () => {
  expect(apartAddresses([of("a", 20, 20, 20, 20), of("b", -1, Number.NaN, 90, 90)], 20).apart).toEqual([]);
});

it("suspects less than one of a thousand leaves in one place under 4 ms of exponential noise", () => {
  const random = seededRandom(3);
  const noisy = () => 30 - 4 * Math.log(1 - random());
  const alarms = Array.from({ length: 10_000 }, () => {
    const times = ["a", "b", "c"].map((name) => of(name, noisy(), noisy(), noisy()));
    return apartAddresses(times, 30).apart.length;
  });

  expect(alarms.filter((apart) => apart > 0).length / alarms.length).toBeLessThan(0.001);
});
