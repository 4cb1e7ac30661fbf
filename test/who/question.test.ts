import { describe, expect, it } from "vitest";
import { readQuestion } from "#coordinator/tell/who/answer";

const kind = (text: string) => {
  const question = readQuestion(text);
  return [question.type, question.text];
};

describe("a question", () => {
  it("with a scheme is a URL, in its canonical spelling", () => {
    expect(kind("HTTP://WWW.Example.org:80/a#b")).toEqual(["url", "http://www.example.org/a"]);
  });

  it("with a path or port but no scheme is a URL, https tried before http", () => {
    const question = readQuestion("www.example.org/a?b");

    expect(question.type === "url" && question.keys.map((key) => key.url)).toEqual([
      "https://www.example.org/a?b",
      "http://www.example.org/a?b",
    ]);
    expect(kind("www.example.org:8080")[0]).toBe("url");
  });

  it("is an address in either family, also in brackets, mapped or as a range of one", () => {
    expect(kind(" 1.2.3.4 ")).toEqual(["address", "1.2.3.4"]);
    expect(kind("[2A00:1::5]")).toEqual(["address", "2a00:1::5"]);
    expect(kind("::ffff:1.2.3.4")).toEqual(["address", "1.2.3.4"]);
    expect(kind("1.2.3.4/32")).toEqual(["address", "1.2.3.4"]);
  });

  it("is a range as a block or from end to end", () => {
    expect(kind("1.2.3.77/24")).toEqual(["range", "1.2.3.0/24"]);
    expect(kind("1.2.9.0 - 1.2.9.9")).toEqual(["range", "1.2.9.0 - 1.2.9.9"]);
    expect(kind("2a00:1::/32")).toEqual(["range", "2a00:1::/32"]);
  });

  it("is otherwise a name; one that could be a host keeps that in mind, in ASCII", () => {
    expect(readQuestion("www.Example.org.")).toMatchObject({ type: "name", host: "www.example.org" });
    expect(readQuestion("bücher.example")).toMatchObject({ type: "name", host: "xn--bcher-kva.example" });
    expect(readQuestion("ORG-EX1-RIPE")).toEqual({
      ...{ type: "name", text: "ORG-EX1-RIPE", host: null, country: null },
    });
    expect(readQuestion("Example Networks Ltd.")).toMatchObject({ type: "name", host: null });
  });

  it("that cannot be read says why", () => {
    expect(readQuestion("  ")).toMatchObject({ type: "unreadable", reason: "nothing was asked" });
    expect(readQuestion("ftp://example.org/")).toMatchObject({ reason: "only http and https are crawled" });
    expect(readQuestion("http://")).toMatchObject({ reason: "it cannot be parsed as a URL" });
    expect(readQuestion(`http://a/${"x".repeat(3000)}`)).toMatchObject({
      reason: "it is longer than 2048 characters",
    });
  });

  it("that is nearly an address is not taken for a host or a name", () => {
    for (const text of ["300.1.2.3", "1.2.3.4/99", "1.2.3", "2a00:::1", "2a00:1::/129"]) {
      expect(readQuestion(text)).toMatchObject({ reason: "it is no address and no range of addresses" });
    }
  });

  it("loses its control characters", () => {
    expect(readQuestion("Example\0Net\nworks")).toMatchObject({ text: "Example Net works" });
  });

  it("of hostile length is read at once", () => {
    for (const text of ["a.".repeat(1000), "-".repeat(2000), "a".repeat(100_000), ":".repeat(2000)]) {
      expect(readQuestion(text).type).toMatch(/name|unreadable|url/);
    }
  });
});
