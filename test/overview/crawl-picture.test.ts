/** The picture of the crawl: crawlers around, and their subnets as dots. */
import { expect, it } from "vitest";
import { crawlPicture } from "#coordinator/tell/overview/crawl-picture-page";

type Pictured = Parameters<typeof crawlPicture>[0];

const pictureOf = (
  fleet: readonly (readonly [name: string, subnets: number, longitude?: number])[],
  urls = 1,
) =>
  crawlPicture({
    fleet: fleet.map(([name, subnets, longitude = null], at) => ({
      crawlerId: at + 1,
      name,
      subnets,
      longitude,
      state: "online",
    })),
    totals: {
      subnetsDelegated: fleet.reduce((sum, [, subnets]) => sum + subnets, 0),
      generation: null,
      urls,
    },
  } as unknown as Pictured).markup;

const dotsOf = (markup: string) =>
  [...markup.matchAll(/<path stroke="(#\w+)"[^>]* d="([^"]*)"/g)].map(
    ([, , d = ""]) => d.split("h0").length - 1,
  );

it("has a dot per subnet, for crawlers from west to east", () => {
  const markup = pictureOf([
    ["tokyo", 7, 139.7],
    ["berlin", 30, 13.4],
    ["nowhere", 2],
  ]);

  expect(dotsOf(markup)).toEqual([30, 7, 2]);
  expect([...markup.matchAll(/href="\/crawlers\/(\w+)"/g)].map(([, name]) => name)).toEqual([
    "berlin",
    "tokyo",
    "nowhere",
  ]);
  expect(markup).toContain("Each dot is a subnet,");
});

it("shows twelve wedges of ten thousand crawlers, and says how many subnets a dot is", () => {
  const markup = pictureOf(
    Array.from({ length: 10_000 }, (_, at) => [`crawler-${at}`, 100 + (at % 500), at % 180] as const),
  );

  expect(dotsOf(markup)).toHaveLength(12);
  expect(dotsOf(markup).every((dots) => dots < 100)).toBe(true);
  expect(markup).toMatch(/Each dot is [\d,]+ subnets,/);
  expect(markup).toContain(">9,989 more</text>");
  expect(markup.length).toBeLessThan(30_000);
});

it("escapes and shortens names", () => {
  const markup = pictureOf([[`<b>"${"x".repeat(2000)}`, 3]]);

  expect(markup).not.toContain("<b>");
  expect(markup).toContain("…</text>");
});

it("shows the next step of a new system", () => {
  const [empty, invited] = [pictureOf([]), pictureOf([["athens", 0]])];

  expect(empty).toMatch(/<li aria-current="step"><a href="\/fleet\/invite">/);
  expect(invited).toMatch(/<li aria-current="step"><a href="\/registry">/);
});
