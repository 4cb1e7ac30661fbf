/** What is read from bytes says the same as `holderOf` does from texts, or leaves it to that. */
import { describe, expect, it } from "vitest";
import { AsciiHolderNames } from "#coordinator/subnets/ascii-holder-names";
import { holderOf } from "#coordinator/subnets/holder-name";
import { seededRandom } from "#core/random";

const seed = 4711;
const random = seededRandom(seed);
const oneOf = (texts: readonly string[]): string => texts[Math.floor(random() * texts.length)] as string;
const names = new AsciiHolderNames();

const words = [
  ..."Example Examplenet Networks NETWORK telecom data Center 365 42 0 x xx XXX A b. S.A. c.a pt, PT".split(
    " ",
  ),
  ..."pte Ltd Ltd. LLC Inc. B.V. gmbh co kg OOO SC SRL the Private public none unknown IANA Reserved".split(
    " ",
  ),
  ..."mnt MNT-EX EX-MNT O'Neil AT&T & / , - ( ) # customer not administered to various sociedad anonyme".split(
    " ",
  ),
  ..."C.A. C. A. S. a/s a.b.cd a.b.1 3.5 x.1 G.m.b.H. GmbH&Co and & S.A.R.L S.p.A".split(" "),
];
const randomName = () => {
  const count = 1 + Math.floor(random() * 4);
  return Array.from({ length: count }, () => oneOf(words)).join(
    oneOf([" ", " ", " ", "-", ", ", "  ", ".", "é"]),
  );
};
const randomId = () =>
  Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
    oneOf([
      "ORG",
      "EX1",
      "RIPE",
      "IANA",
      "IANA1",
      "RESERVED",
      "NOT",
      "ALLOCATED",
      "MNT",
      "C0",
      "x",
      "000",
      "n/a",
      "é",
    ]),
  ).join(oneOf(["-", "-", "-", "", " ", ":"]));

/** How often a test said yes; each must be the answer of `holderOf`. */
function count(
  times: number,
  make: () => string,
  check: (text: string, bytes: Uint8Array) => boolean,
): number {
  let agreed = 0;
  for (let round = 0; round < times; round += 1) {
    const text = make();
    if (check(text, Buffer.from(text))) agreed += 1;
  }
  return agreed;
}

describe("names in plain ASCII", () => {
  it("that are shown as they are, are shown so", () => {
    const shown = count(20_000, randomName, (name, bytes) => {
      if (!names.isShown(bytes, 0, bytes.length)) return false;
      const holder = holderOf({ registry: "ripencc", handle: "ORG-EX1-RIPE", name });
      expect([seed, name, holder?.name]).toEqual([seed, name, name]);
      return true;
    });

    expect(shown).toBeGreaterThan(5000);
  });

  it("come to the same key", () => {
    const [registry, country] = ["apnic", "JP"];
    const normalised = count(20_000, randomName, (name, bytes) => {
      const { length } = bytes;
      if (!names.isShown(bytes, 0, length) || !names.normalise(bytes, 0, length)) return false;
      const text = Buffer.from(names.text.subarray(names.start, names.end)).toString();
      const key = names.isDistinctive ? `name:${text}` : `name:${registry}:${country}:${text}`;
      expect([seed, name, key]).toEqual([seed, name, holderOf({ registry, country, name })?.key]);
      return true;
    });

    expect(normalised).toBeGreaterThan(3000);
  });
});

describe("handles and ids in plain ASCII", () => {
  it("are the same handle and the same id", () => {
    const handles = count(5000, randomId, (handle, bytes) => {
      if (!names.isHandle(bytes, 0, bytes.length)) return false;
      const holder = holderOf({ registry: "ripencc", handle });
      expect(holder).toEqual({ key: `ripencc:org-handle:${handle}`, name: handle, handle });
      return true;
    });
    const ids = count(5000, randomId, (opaqueId, bytes) => {
      if (!names.isOpaqueId(bytes, 0, bytes.length)) return false;
      const holder = holderOf({ registry: "ripencc", opaqueId });
      expect(holder).toEqual({ key: `ripencc:opaque-id:${opaqueId}`, name: opaqueId, handle: null });
      return true;
    });

    expect(handles).toBeGreaterThan(500);
    expect(ids).toBeGreaterThan(500);
  });

  it("are left to texts where they are not written in capitals", () => {
    const bytes = Buffer.from("org-ex1-ripe");

    expect(names.isHandle(bytes, 0, bytes.length)).toBe(false);
  });
});
