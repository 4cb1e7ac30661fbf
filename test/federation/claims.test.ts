/** What a coordinator may own, what two of them share, and whose a URL is. */
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
} from "#coordinator/federation/claims";

function claims(...texts: string[]): Claims {
  const read = readClaims(texts);
  if (typeof read === "string") throw new Error(read);
  return read;
}

const at = (host: string, address: string | null = null) => ({ host, address });

describe("claims", () => {
  it.each([
    [
      [".gr", "192.0.2.0/24"],
      /192\.0\.2\.0\/24 is a block of addresses and \.gr a domain set: .* one kind or the other/,
    ],
    [["lang:el"], /"lang:el" names a language/],
    [["300.0.0.0/8"], /"300\.0\.0\.0\/8" is not an address block/],
    [["gr"], /"gr" is one word: write \.gr/],
    [[], /it names nothing/],
  ])("%j is refused with the reason", (texts, reason) => {
    expect(readClaims(texts)).toMatch(reason);
  });

  it("by name, hold a domain and what is below it but for what is excepted; by address, what lies in a block", () => {
    const greek = claims(".gr not shop.gr", "example.org");
    const block = claims("192.0.2.0/24", "2001:db8::/32");

    expect(
      ["a.gr", "shop.gr", "www.shop.gr", "www.example.org", "example.com"].map((host) =>
        claimOf(greek, at(host)),
      ),
    ).toEqual([".gr not shop.gr", null, null, "example.org", null]);
    expect(claimOf(block, at("a.example", "192.0.2.9"))).toBe("192.0.2.0/24");
    expect(claimOf(block, at("2001:db8::1"))).toBe("2001:db8::/32");
    expect(claimOf(block, at("a.example"))).toBeNull();
  });

  it.each([
    [[".gr"], ["uoa.gr"], "uoa.gr"],
    [[".gr not uoa.gr"], ["uoa.gr"], null],
    [[".gr"], [".de", "a.com"], null],
    [["not .gr"], ["not .de"], "every name that neither mentions"],
    [["192.0.2.0/24"], ["192.0.0.0/16"], "192.0.2.0/24"],
    [["192.0.2.0/25"], ["192.0.2.128/25"], null],
  ])("%j and %j share %s", (one, other, shared) => {
    expect(overlapOf(claims(...one), claims(...other))).toBe(shared);
    expect(overlapOf(claims(...other), claims(...one))).toBe(shared);
  });

  it("as many as may be claimed are looked up by name, so that no message keeps a coordinator busy", () => {
    const many = (first: number) =>
      claims(
        ...Array.from({ length: 999 }, (_, set) =>
          Array.from({ length: 5 }, (_, term) => `h${first + 5 * set + term}.example`).join(" "),
        ),
      );
    const [ours, theirs, both] = [many(0), many(5000), many(4990)];
    const hosts = Array.from({ length: 20_000 }, (_, host) => `a.b.h${host}.example`);

    const owned = hosts.filter((host) => claimOf(ours, at(host)) !== null);

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

  it("that only take out are looked at beside every other", () => {
    expect(claimOf(claims("a.gr", "not .gr"), at("b.de"))).toBe("not .gr");
    expect(overlapOf(claims("a.gr", "b.de"), claims("c.com", "not .gr"))).toBe("b.de");
    expect(overlapOf(claims("not .gr"), claims("a.gr", "b.de"))).toBe("b.de");
    expect(claimBeyond(claims("b.de"), claims("x.com", "not .gr"))).toBeNull();
  });

  it.each([
    [["uoa.gr"], [".gr"], null],
    [[".gr"], ["uoa.gr", "ntua.gr"], ".gr"],
    [["shop.gr"], [".gr not shop.gr"], "shop.gr"],
    [["not .com"], ["not .com", ".de"], null],
    [["192.0.2.0/25"], ["192.0.2.0/24"], null],
    [["192.0.2.0/24"], [".gr"], "192.0.2.0/24"],
  ])("%j within %j: beyond it is %s", (inner, outer, beyond) => {
    expect(claimBeyond(claims(...inner), claims(...outer))).toBe(beyond);
  });
});

describe("whose a URL is", () => {
  const children = [{ peerId: 1, name: "uoa", claims: claims("uoa.gr") }];

  it("a child's before one's own, one's own before the parent's; without a parent, the rest is one's own", () => {
    const middle = { own: claims(".gr"), children };

    expect(["www.uoa.gr", "a.gr", "x.com"].map((host) => ownerOf(at(host), middle, "here"))).toEqual([
      1,
      "here",
      0,
    ]);
    expect(["www.uoa.gr", "x.com"].map((host) => ownerOf(at(host), { own: null, children }, "here"))).toEqual(
      [1, "here"],
    );
    expect(ownerOf(at("x.com"), middle, 0)).toBe(0);
  });

  it("by address: here until it is known, and for good where the parent has looked it up", () => {
    const block = { own: claims("192.0.2.0/24"), children: [] };

    expect(ownerOf(at("a.example"), block, "here")).toBe("here");
    expect(ownerOf(at("a.example", "203.0.113.1"), block, "here")).toBe(0);
    expect(ownerOf(at("a.example", "203.0.113.1"), block, 0)).toBe("here");
    expect(ownerOf(at("203.0.113.1"), block, "here")).toBe(0);
  });

  it("nobody is below itself", () => {
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

  it("are few, and have no parent by default", () => {
    expect(readCoordinatorConfig({}).parent).toBeNull();
    expect(read({ url: "https://top.example/" })().parent).toEqual({ ...parent, certificatePin: null });
  });

  it.each([
    [{ url: "http://top.example" }, {}, /parent\.url: "http:\/\/top\.example" must be https:/],
    [{ key: "secret" }, {}, /parent\.key: is not a key from nearcrawl coordinators invite/],
    [{ owns: [] }, {}, /parent\.owns: must name a domain set/],
    [
      { owns: [".gr", "192.0.2.0/24"] },
      {},
      /parent\.owns: 192\.0\.2\.0\/24 is a block of addresses and \.gr a domain set/,
    ],
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
