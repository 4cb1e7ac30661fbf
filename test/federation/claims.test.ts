/** Claims of coordinators, their overlaps, and the owner of a URL. */
import { describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import {
  type Claims,
  claimBeyond,
  claimOf,
  cycleFault,
  overlapOf,
  ownerOf,
  readClaims,
} from "#coordinator/crawl/frontier/claims";

function claims(...texts: string[]): Claims {
  const read = readClaims(texts);
  if (typeof read === "string") throw new Error(read);
  return read;
}

describe("claims", () => {
  it.each([
    [["lang:el"], /"lang:el" names a language/],
    [[".gr", "192.0.2.0/24"], /192\.0\.2\.0\/24/],
    [["gr"], /"gr" is one word: write \.gr/],
    [[], /it names nothing/],
  ])("%j is refused with the reason", (texts, reason) => {
    expect(readClaims(texts)).toMatch(reason);
  });

  it("hold a domain and its subdomains without the exceptions", () => {
    const greek = claims(".gr not shop.gr", "example.org");

    expect(
      ["a.gr", "shop.gr", "www.shop.gr", "www.example.org", "example.com"].map((host) =>
        claimOf(greek, host),
      ),
    ).toEqual([".gr not shop.gr", null, null, "example.org", null]);
  });

  it.each([
    [[".gr"], ["uoa.gr"], "uoa.gr"],
    [[".gr not uoa.gr"], ["uoa.gr"], null],
    [[".gr"], [".de", "a.com"], null],
    [["not .gr"], ["not .de"], "every name that neither mentions"],
  ])("%j and %j share %s", (one, other, shared) => {
    expect(overlapOf(claims(...one), claims(...other))).toBe(shared);
    expect(overlapOf(claims(...other), claims(...one))).toBe(shared);
  });

  it("up to the maximum number are looked up by name, so that no message keeps a coordinator busy", () => {
    const many = (first: number) =>
      claims(
        ...Array.from({ length: 999 }, (_, set) =>
          Array.from({ length: 5 }, (_, term) => `h${first + 5 * set + term}.example`).join(" "),
        ),
      );
    const [ours, theirs, both] = [many(0), many(5000), many(4990)];
    const hosts = Array.from({ length: 20_000 }, (_, host) => `a.b.h${host}.example`);

    const owned = hosts.filter((host) => claimOf(ours, host) !== null);

    expect(owned).toHaveLength(4995);
    expect([overlapOf(ours, theirs), claimBeyond(ours, ours)]).toEqual([null, null]);
    expect(overlapOf(ours, both)).toBe(
      "h4990.example, h4991.example, h4992.example, h4993.example, h4994.example",
    );
    expect(
      readClaims(
        Array.from(
          { length: 501 },
          (_, at) => `h${at}.gr not ${Array.from({ length: 9 }, (_, n) => `n${n}.h${at}.gr`).join(" not ")}`,
        ),
      ),
    ).toBe("5010 names are claimed: at most 5000 in all");
  });

  it("that only exclude are compared with all others", () => {
    expect(claimOf(claims("a.gr", "not .gr"), "b.de")).toBe("not .gr");
    expect(overlapOf(claims("a.gr", "b.de"), claims("c.com", "not .gr"))).toBe("b.de");
    expect(overlapOf(claims("not .gr"), claims("a.gr", "b.de"))).toBe("b.de");
    expect(claimBeyond(claims("b.de"), claims("x.com", "not .gr"))).toBeNull();
  });

  it.each([
    [["uoa.gr"], [".gr"], null],
    [[".gr"], ["uoa.gr", "ntua.gr"], ".gr"],
    [["shop.gr"], [".gr not shop.gr"], "shop.gr"],
    [["not .com"], ["not .com", ".de"], null],
  ])("%j within %j: beyond it is %s", (inner, outer, beyond) => {
    expect(claimBeyond(claims(...inner), claims(...outer))).toBe(beyond);
  });
});

describe("the owner of a URL", () => {
  const children = [{ peerId: 1, name: "uoa", claims: claims("uoa.gr") }];

  it("is a child, then this coordinator, then the parent; without a parent the rest stays here", () => {
    const middle = { own: claims(".gr"), children };

    expect(["www.uoa.gr", "a.gr", "x.com"].map((host) => ownerOf(host, middle))).toEqual([1, "here", 0]);
    expect(["www.uoa.gr", "x.com"].map((host) => ownerOf(host, { own: null, children }))).toEqual([
      1,
      "here",
    ]);
  });

  it("is never below itself", () => {
    expect(cycleFault("a", ["b", "c"])).toBeNull();
    expect(cycleFault("b", ["b", "c"])).toMatch(/it is this coordinator itself/);
    expect(cycleFault("c", ["b", "c"])).toBe("it is above this coordinator already (1 step up)");
  });
});

describe("settings of a parent", () => {
  const parent = { url: "https://top.example", key: `ncc_${"k".repeat(43)}`, owns: [".gr"] };
  const read =
    (differences: object, others: object = {}) =>
    () =>
      readCoordinatorConfig({ parent: { ...parent, ...differences }, ...others });

  it("name no parent by default", () => {
    expect(readCoordinatorConfig({}).parent).toBeNull();
    expect(read({ url: "https://top.example/" })().parent).toEqual({ ...parent, certificatePin: null });
  });

  it.each([
    [{ url: "http://top.example" }, {}, /parent\.url: "http:\/\/top\.example" must be https:/],
    [{ key: "secret" }, {}, /parent\.key: is not a key from nearcrawl coordinators invite/],
    [{ owns: [] }, {}, /parent\.owns: must name a domain set/],
    [{ owns: ["192.0.2.0/24"] }, {}, /parent\.owns: .*192\.0\.2\.0\/24/],
    [
      {},
      { publicUrl: "https://top.example/" },
      /parent\.url: https:\/\/top\.example is this coordinator itself/,
    ],
    [
      {},
      { domainSets: [".de"] },
      /parent\.owns: \.gr has nothing in common with domainSets, which says what is crawled: \.de/,
    ],
  ])("%j, %j: refused with the reason", (differences, others, reason) => {
    expect(read(differences, others)).toThrow(reason);
  });
});
