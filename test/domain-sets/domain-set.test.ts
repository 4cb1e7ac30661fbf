import { describe, expect, it } from "vitest";
import { domainSetFault } from "#coordinator/place/domain-sets/assign";
import {
  type DomainSet,
  domainSetHolds,
  domainSetsOverlap,
  domainSetText,
  parseDomainSet,
  someDomainSetHolds,
} from "#coordinator/place/domain-sets/domain-set";

describe("reading a domain set", () => {
  it.each([
    [".gr", ".gr"],
    [".net, .biz", ".biz .net"],
    ["*.Example.ORG.", "example.org"],
    [".example.org", "example.org"],
    [".ελ bücher.example", ".xn--qxam xn--bcher-kva.example"],
    [".com .com www.example.com", ".com"],
    ["NOT .com", "not .com"],
    [".com not blog.com my.blog.com", ".com my.blog.com not blog.com"],
    [".com not .net", ".com"],
    [".gr LANG:EL lang:el not lang:en", ".gr lang:el"],
    ["not lang:en", "not lang:en"],
  ])("%s is %s", (text, canonical) => {
    expect(domainSetText(setOf(text))).toBe(canonical);

    expect(domainSetText(setOf(canonical))).toBe(canonical);
  });

  it.each([
    ["", "the domain set is empty"],
    [" , ,", "the domain set is empty"],
    [".com not .com", "both .com and not .com"],
    ["lang:el not lang:el", "both lang:el and not lang:el"],
    ["example.org not .org", "example.org and, around it, not .org"],
    [".com not", "nothing follows the last `not`"],
    ["not not .com", '"not" is one word'],
    ["com", '"com" is one word: write .com'],
    ["192.0.2.1", '"192.0.2.1" is an address'],
    ["0x7f.1", '"0x7f.1" is an address'],
    ["::1", '"::1" is no domain'],
    [".", '"." is no domain'],
    ["a..b", '"a..b" is no domain'],
    ["-a.com", '"-a.com" is no domain'],
    ["user@example.org", '"user@example.org" is no domain'],
    ["example.org/path", '"example.org/path" is no domain'],
    ["ex%61mple.org", '"ex%61mple.org" is no domain'],
    ["lang:greek", '"lang:greek" is no language'],
  ])("refuses %j", (text, words) => {
    expect(parseDomainSet(text)).toEqual(expect.stringContaining(words));
  });

  it("refuses names, texts and numbers of terms beyond the bounds", () => {
    const tooMany = Array.from({ length: 65 }, (_, at) => `d${at}.com`).join(" ");

    expect(parseDomainSet(`${"a".repeat(64)}.com`)).toContain("is no domain");
    expect(parseDomainSet(`${"a.".repeat(126)}aa.com`)).toContain("is no domain");
    expect(parseDomainSet("x".repeat(5000))).toContain("5000 characters long: at most 4096");
    expect(parseDomainSet(tooMany)).toContain("65 terms: at most 64");
    expect(parseDomainSet(".com ".repeat(600))).toContain("too many terms");
  });
});

describe("what a domain set holds", () => {
  it.each([
    [".gr", "www.example.gr", true],
    [".gr", "gr", true],
    [".gr", "example.agr", false],
    ["example.org", "example.org", true],
    ["example.org", "notexample.org", false],
    ["not .com", "example.com", false],
    ["not .com", "192.0.2.1", true],
    [".com", "192.0.2.1", false],
    [".com", "::1", false],
    [".com not blog.com my.blog.com", "blog.com", false],
    [".com not blog.com my.blog.com", "a.my.blog.com", true],
    [".com not blog.com my.blog.com", "shop.com", true],
  ])("%s and the host %s: %s", (text, host, held) => {
    expect(domainSetHolds(setOf(text), { host, language: null })).toBe(held);
  });

  it.each([
    ["lang:el", "el", true],
    ["lang:el", "en", false],
    ["lang:el", null, true],
    ["not lang:en", "en", false],
    ["not lang:en", null, true],
    [".com lang:el", "el", false],
  ])("%s and a host in .gr of the language %s: %s", (text, language, held) => {
    expect(domainSetHolds(setOf(text), { host: "example.gr", language })).toBe(held);
  });

  it("several sets hold what one of them holds, and no sets everything", () => {
    const sets = [setOf(".gr"), setOf("lang:el")];

    expect(someDomainSetHolds(sets, { host: "a.gr", language: "en" })).toBe(true);
    expect(someDomainSetHolds(sets, { host: "a.com", language: "el" })).toBe(true);
    expect(someDomainSetHolds(sets, { host: "a.com", language: "en" })).toBe(false);
    expect(someDomainSetHolds([], { host: "a.com", language: "en" })).toBe(true);
  });
});

describe("what two domain sets both claim", () => {
  it.each([
    [".com", ".edu .net", []],
    [".com .net", ".net .org", [".net"]],
    [".com", "example.com", ["example.com"]],
    [".com not example.com", "example.com", []],
    [".com not example.com", "example.com shop.com", ["shop.com"]],
    ["not .com", ".com", []],
    ["not .com", "not .net", ["."]],
    ["not .com", ".com .net", [".net"]],
    [".gr lang:el", ".gr lang:en", []],
    [".gr lang:el", ".gr not lang:en", [".gr"]],
    ["lang:el", ".gr", [".gr"]],
    ["lang:el", "not lang:el", []],
  ])("%s and %s: %j", (a, b, names) => {
    expect(domainSetsOverlap(setOf(a), setOf(b))).toEqual(names);
    expect(domainSetsOverlap(setOf(b), setOf(a))).toEqual(names);
  });
});

function setOf(text: string): DomainSet {
  const set = parseDomainSet(text);
  if (typeof set === "string") throw new Error(set);
  return set;
}

it("only a crawler whose partner's domain sets cannot be read is refused, with the reason", () => {
  expect(domainSetFault({})).toBeNull();
  expect(domainSetFault({ domainSets: [".gr", "lang:el"] })).toBeNull();
  expect(domainSetFault({ domainSets: [".gr", ".gr not .gr"] })).toEqual({
    code: "bad-message",
    reason:
      "domainSets in the crawler's settings: the domain set has both .gr and not .gr: it can hold neither",
    retry: false,
  });
});

it("refuses more than 16 sets", () => {
  const sets = Array.from({ length: 17 }, (_, at) => `s${at}.gr`);

  expect(domainSetFault({ domainSets: sets.slice(1) })).toBeNull();
  expect(domainSetFault({ domainSets: sets })?.reason).toMatch(/17 domain sets are given: at most 16/);
});
