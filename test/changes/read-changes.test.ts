/** Queries of the change feed, as typed: cursors and numbers at their limits, hosts and beginnings in other forms. */
import { describe, expect, it } from "vitest";
import { readChangeQuery, readSince } from "#coordinator/crawl/changes/changes-ask";

const query = (asked: Omit<Parameters<typeof readChangeQuery>[0], "limit">) =>
  readChangeQuery({ ...asked, limit: 100 });

describe("a cursor", () => {
  it.each(["-1", "1.5", "1e9", "0x10", "12345678901234567", "٣", "now!", "x".repeat(10_000)])(
    "%j is none, and said so in few words",
    (text) => {
      expect(() => readSince(text)).toThrow(/^since: .{1,120}is not a cursor/);
    },
  );

  it("is a number of the feed, its beginning or its end", () => {
    expect(["999999999999999", "007", " now ", "earliest", ""].map(readSince)).toEqual([
      999_999_999_999_999,
      7,
      "now",
      "earliest",
      "latest",
    ]);
  });
});

describe("a query", () => {
  it.each([
    [{ host: "a.example/x" }, /is not a host name/],
    [{ host: "a\u0000.example" }, /is not a host name/],
    [{ host: "\ud800.example" }, /is not a host name/],
    [{ host: `${"a".repeat(100_000)}.example` }, /^host: .{1,150}$/],
    [{ prefix: "javascript:alert(1)" }, /is not a URL prefix/],
    [{ host: "b.example", prefix: "http://a.example/" }, /nothing matches both/],
    [{ kind: "changed,constructor" }, /"constructor" is none of/],
    [{ dset: ".gr ".repeat(2000) }, /^dset: /],
  ])("%j is refused with the value, in few words", (changed, words) => {
    expect(() => query(changed)).toThrow(words);
  });

  it("accepts hosts as URLs do: by IDN, by address in any form", () => {
    const hosts = ["BÜCHER.example", "0x7f000001", "2130706433", "[::FFFF:7f00:1]", "::1", "a.example."];

    expect(hosts.map((host) => query({ host }).filter.host)).toEqual([
      "xn--bcher-kva.example",
      "127.0.0.1",
      "127.0.0.1",
      "::ffff:7f00:1",
      "::1",
      "a.example",
    ]);
  });
});
