import { expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { PairIndex } from "#rir-import/tree/pair-index";

it("numbers many at once as it does one by one", () => {
  const random = seededRandom(12);
  const [oneByOne, atOnce] = [new PairIndex(), new PairIndex()];
  const firsts = Int32Array.from({ length: 5000 }, () => Math.floor(random() * 6) - 1);
  const seconds = Int32Array.from({ length: 5000 }, () => Math.floor(random() * 700));
  const numbers = new Int32Array(5000);

  atOnce.internMany(firsts, seconds, numbers, 5000);

  expect([...numbers]).toEqual([...firsts].map((first, at) => oneByOne.intern(first, seconds[at] as number)));
});

it("numbers pairs as a map of texts does, over 100,000 pairs with repeats and negative numbers", () => {
  const random = seededRandom(11);
  const index = new PairIndex();
  const expected = new Map<string, number>();
  const wrong: string[] = [];

  for (let round = 0; round < 100_000; round += 1) {
    const [first, second] = [Math.floor(random() * 6) - 1, Math.floor(random() * 15_000)];
    const key = `${first} ${second}`;
    if (!expected.has(key)) {
      if (index.find(first, second) !== -1) wrong.push(`${key} before it was seen`);
      expected.set(key, expected.size);
    }
    if (index.intern(first, second) !== expected.get(key)) wrong.push(key);
  }

  expect(wrong).toEqual([]);
  expect(index.count).toBe(expected.size);
  for (const [key, number] of expected) {
    if (`${index.firstAt(number)} ${index.secondAt(number)}` !== key) wrong.push(`${number} is not ${key}`);
  }
  expect(wrong).toEqual([]);
});
