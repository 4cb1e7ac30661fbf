/** Which sources are processed at the same time. */
import { expect, it } from "vitest";
import { spreadOverHosts } from "#rir-import/download/fetch-sources";

/** Starts work on items such as `a1` (host a); the test ends each. */
function started(items: readonly string[]) {
  const underWay = new Map<string, () => void>();
  const results = spreadOverHosts(
    items,
    (item) => item[0]!,
    (item) => new Promise<string>((resolve) => underWay.set(item, () => resolve(`${item} done`))),
  );
  const end = async (item: string) => {
    underWay.get(item)!();
    underWay.delete(item);
    await new Promise((resolve) => setImmediate(resolve));
    return [...underWay.keys()];
  };
  return { results, end, underWay: () => [...underWay.keys()] };
}

it("two at a time, of two hosts; a busy host is passed over for the next", async () => {
  const { results, end, underWay } = started(["a1", "a2", "b1", "c1"]);

  expect(underWay()).toEqual(["a1", "b1"]);
  expect(await end("b1")).toEqual(["a1", "c1"]);
  expect(await end("c1")).toEqual(["a1"]);
  expect(await end("a1")).toEqual(["a2"]);
  await end("a2");

  expect(await results).toEqual(["a1 done", "a2 done", "b1 done", "c1 done"]);
});
