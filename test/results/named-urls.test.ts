/** Which of the URLs that a result names are to be fetched, where links were asked for their type. */
import { expect, it } from "vitest";
import { namedUrls } from "#coordinator/crawl/results/take-results";
import { arrivedResult, keyOf } from "../support/store-world.ts";

it("a link whose type no crawler reads stays a link, and is not to be fetched", () => {
  const page = "http://a.example/";
  const links = [
    { url: `${page}film`, anchor: "film", nofollow: false, contentType: "video/mp4" },
    { url: `${page}next`, anchor: "next", nofollow: false },
  ];
  const { result } = arrivedResult({ sequence: 1, leaseId: "1", url: page });
  const told = { ...result, page: { ...result.page!, links } };

  const named = namedUrls(told, keyOf(page), false);

  expect(named.links.map(({ anchor }) => anchor)).toEqual(["film", "next"]);
  expect(named.admit.map(({ key }) => key.url)).toEqual([`${page}next`]);
});
