/** C of the Anansi thesis, section 4.3.3 and equation 4.2. */
import { describe, expect, it } from "vitest";
import { changeRatio } from "#coordinator/crawl/results/link-writes";
import type { HostHash, UrlHash } from "#core/ids";

const links = (...urls: number[]) =>
  urls.map((url) => ({ hostHash: "1" as HostHash, urlHash: `${url}` as UrlHash }));

describe("the change ratio", () => {
  it("is the share of links that two visits do not have in common, as the thesis' text says", () => {
    expect(changeRatio(links(1, 2, 3), links(1, 2, 3))).toBe(0);
    expect(changeRatio(links(1, 2, 3), links(2, 3, 4))).toBe(0.5);
    expect(changeRatio(links(1, 2), links(3, 4))).toBe(1);
    expect(changeRatio(links(), links(3))).toBe(1);
  });

  it("is 1 when neither visit found a link", () => {
    expect(changeRatio([], [])).toBe(1);
  });

  it("counts a link once however often the page has it", () => {
    expect(changeRatio(links(1, 1, 1, 2), links(1, 2, 2))).toBe(0);
  });
});
