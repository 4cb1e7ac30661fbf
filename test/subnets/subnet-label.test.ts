import { expect, it } from "vitest";
import { countryOf, packLabel, registries, registryOf } from "#coordinator/place/subnets/subnet";

const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
const countries = [null, ...letters.flatMap((first) => letters.map((second) => first + second))];

it("every country, or none, with every registry has a label of its own below 2^12", () => {
  const labels = new Set<number>();
  for (const country of countries) {
    for (const registry of registries) {
      const label = packLabel(country, registry);
      labels.add(label);
      expect([countryOf(label), registryOf(label)]).toEqual([country, registry]);
    }
  }

  expect(labels.size).toBe(677 * 6);
  expect(Math.max(...labels)).toBeLessThan(2 ** 12);
});

it.each(["eu", "E", "EUR", "", "É1", "A["])("%j is no country", (text) => {
  expect(() => packLabel(text, "arin")).toThrow(`not a country code of two capital letters: ${text}`);
});

it("a registry that is none is refused", () => {
  expect(() => packLabel(null, "internic" as "arin")).toThrow("not a registry: internic");
});
