/** GeoDNS is distinguished from rotation by the vantage points' successive answers. */
import { expect, it } from "vitest";
import { type AnswerArea, placeVerdict } from "#coordinator/place/delegation/overrides/hosts";
import { asHolderId, asSubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

/** Subnet and holder of the same number, or of the holder that is named. */
const area = (subnet: number, holder: number | null = subnet): AnswerArea => ({
  subnetId: asSubnetId(subnet),
  holderId: holder === null ? null : asHolderId(holder),
});
/** A vantage point that repeats its answer. */
const steady = (times: number, ...areas: AnswerArea[]) => ({
  answers: Array.from({ length: times }, () => areas),
});

const told = (...answers: AnswerArea[][]) => ({ answers });
const several = told([area(1), area(2)], [area(2), area(3)], [area(3), area(1)]);
const [both, turned] = [
  [area(1), area(2)],
  [area(2), area(1)],
] as const;
const moved = told([area(1)], [area(1)], [area(2)], [area(2)]);

it.each<[string, Parameters<typeof placeVerdict>[0], ReturnType<typeof placeVerdict>]>([
  [
    "differs where two vantage points get different places, five times each",
    [steady(5, area(1)), steady(5, area(2))],
    "differs",
  ],
  [
    "differs sooner with more vantage points, each heard twice",
    [steady(2, area(0)), ...Array.from({ length: 7 }, (_, index) => steady(2, area(index % 3)))],
    "differs",
  ],
  [
    "differs where each place has several addresses, of which answers name some",
    [several, ...Array.from({ length: 3 }, () => steady(3, area(8), area(9)))],
    "differs",
  ],
  ["is unclear after four answers each", [steady(4, area(1)), steady(4, area(2))], "unclear"],
  ["is unclear with one vantage point", [steady(20, area(1))], "unclear"],
  ["is unclear with two of which one was heard once", [steady(20, area(1)), steady(1, area(2))], "unclear"],
  [
    "needs more answers when all addresses have one holder",
    [steady(5, area(1, 7)), steady(5, area(2, 7))],
    "unclear",
  ],
  [
    "differs within one holder after twice as many",
    [steady(9, area(1, 7)), steady(9, area(2, 7))],
    "differs",
  ],
  ["differs where holders are unknown", [steady(5, area(1, null)), steady(5, area(2, null))], "differs"],
  [
    "is the same for one set of answers in any order",
    [told([...both], [...turned], [...both]), told([...turned], [...both], [...turned])],
    "same",
  ],
  ["is the same for another address of the same subnet", [steady(6, area(1)), steady(6, area(1))], "same"],
  [
    "rotates where an answer changes from time to time",
    [told([area(1)], [area(2)], [area(1)], [area(2)]), steady(3, area(3))],
    "rotates",
  ],
  ["is the same after a move that all vantage points saw", [moved, moved, moved], "same"],
])("a name %s", (_, vantages, verdict) => {
  expect(placeVerdict(vantages)).toBe(verdict);
});

it.each([2, 3, 5, 10, 30])("hardly ever seems to differ when answers are drawn from %i places", (places) => {
  const random = seededRandom(places);
  const draw = () => [area(Math.floor(random() * places))];
  let mistaken = 0;
  for (let name = 0; name < 2000; name++) {
    const vantages = Array.from({ length: 4 }, () => ({ answers: [draw()] }));
    for (let asked = 0; asked < 12; asked++) {
      for (const { answers } of vantages) answers.push(draw());
      const verdict = placeVerdict(vantages);
      if (verdict === "differs") mistaken++;
      if (verdict !== "unclear") break;
    }
  }

  expect(mistaken / 2000).toBeLessThan(0.008);
});
