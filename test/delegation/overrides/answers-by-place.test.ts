/** GeoDNS told from rotation, by what vantage points were told one after the other. */
import { describe, expect, it } from "vitest";
import { type AnswerArea, placeVerdict } from "#coordinator/delegation/overrides/hosts";
import { asHolderId, asSubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

/** Subnet and holder of the same number, or of the holder that is named. */
const area = (subnet: number, holder: number | null = subnet): AnswerArea => ({
  subnetId: asSubnetId(subnet),
  holderId: holder === null ? null : asHolderId(holder),
});
/** A vantage point that was told so many times of the same areas. */
const steady = (times: number, ...areas: AnswerArea[]) => ({
  answers: Array.from({ length: times }, () => areas),
});

describe("GeoDNS", () => {
  it("is seen when two vantage points are told of different places, five times each", () => {
    expect(placeVerdict([steady(5, area(1)), steady(5, area(2))])).toBe("differs");
  });

  it("is seen sooner with more vantage points, each heard twice", () => {
    const crawlers = Array.from({ length: 7 }, (_, index) => steady(2, area(index % 3)));

    expect(placeVerdict([steady(2, area(0)), ...crawlers])).toBe("differs");
  });

  it("is seen when each place has several addresses, of which answers name some", () => {
    const near = {
      answers: [
        [area(1), area(2)],
        [area(2), area(3)],
        [area(3), area(1)],
      ],
    };
    const far = Array.from({ length: 3 }, () => steady(3, area(8), area(9)));

    expect(placeVerdict([near, ...far])).toBe("differs");
  });

  it("is not certain yet while each was heard four times only", () => {
    expect(placeVerdict([steady(4, area(1)), steady(4, area(2))])).toBe("unclear");
  });

  it("needs two vantage points that were heard more than once", () => {
    expect(placeVerdict([steady(20, area(1))])).toBe("unclear");
    expect(placeVerdict([steady(20, area(1)), steady(1, area(2))])).toBe("unclear");
  });

  it("needs twice as much when all addresses are of one holder", () => {
    expect(placeVerdict([steady(5, area(1, 7)), steady(5, area(2, 7))])).toBe("unclear");
    expect(placeVerdict([steady(9, area(1, 7)), steady(9, area(2, 7))])).toBe("differs");
  });

  it("takes unknown holders for different ones", () => {
    expect(placeVerdict([steady(5, area(1, null)), steady(5, area(2, null))])).toBe("differs");
  });
});

describe("what is no GeoDNS", () => {
  it("is one answer set in every order", () => {
    const a = {
      answers: [
        [area(1), area(2)],
        [area(2), area(1)],
        [area(1), area(2)],
      ],
    };
    const b = {
      answers: [
        [area(2), area(1)],
        [area(1), area(2)],
        [area(2), area(1)],
      ],
    };

    expect(placeVerdict([a, b])).toBe("same");
  });

  it("is another address of the same subnet", () => {
    expect(placeVerdict([steady(6, area(1)), steady(6, area(1))])).toBe("same");
  });

  it("is an answer that changes from time to time", () => {
    const turning = { answers: [[area(1)], [area(2)], [area(1)], [area(2)]] };

    expect(placeVerdict([turning, steady(3, area(3))])).toBe("rotates");
  });

  it("is a name that moved once, for all", () => {
    const moved = { answers: [[area(1)], [area(1)], [area(2)], [area(2)]] };

    expect(placeVerdict([moved, moved, moved])).toBe("same");
  });

  it.each([2, 3, 5, 10, 30])("is hardly ever seen in answers drawn from %i places", (places) => {
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
});
