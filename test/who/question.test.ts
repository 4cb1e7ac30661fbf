import { expect, it } from "vitest";
import { readQuestion } from "#coordinator/tell/who/answer";

const tooLong = `http://a/${"x".repeat(3000)}`;
const noAddress = "it is no address and no range of addresses";

it.each<readonly [text: string, question: object]>([
  ["HTTP://WWW.Example.org:80/a#b", { type: "url", text: "http://www.example.org/a" }],
  ["www.example.org:8080", { type: "url" }],
  [" 1.2.3.4 ", { type: "address", text: "1.2.3.4" }],
  ["[2A00:1::5]", { type: "address", text: "2a00:1::5" }],
  ["::ffff:1.2.3.4", { type: "address", text: "1.2.3.4" }],
  ["1.2.3.4/32", { type: "address", text: "1.2.3.4" }],
  ["1.2.3.77/24", { type: "range", text: "1.2.3.0/24" }],
  ["1.2.9.0 - 1.2.9.9", { type: "range", text: "1.2.9.0 - 1.2.9.9" }],
  ["2a00:1::/32", { type: "range", text: "2a00:1::/32" }],
  ["www.Example.org.", { type: "name", host: "www.example.org" }],
  ["bücher.example", { type: "name", host: "xn--bcher-kva.example" }],
  ["ORG-EX1-RIPE", { type: "name", text: "ORG-EX1-RIPE", host: null, country: null }],
  ["Example Networks Ltd.", { type: "name", host: null }],
  ["Example\0Net\nworks", { text: "Example Net works" }],
  ["  ", { type: "unreadable", reason: "nothing was asked" }],
  ["ftp://example.org/", { reason: "only http and https are crawled" }],
  ["http://", { reason: "it cannot be parsed as a URL" }],
  [tooLong, { reason: "it is longer than 2048 characters" }],
  ...["300.1.2.3", "1.2.3.4/99", "1.2.3", "2a00:::1", "2a00:1::/129"].map(
    (text) => [text, { reason: noAddress }] as const,
  ),
])("%j is understood", (text, question) => {
  expect(readQuestion(text)).toMatchObject(question);
});

it("a URL without a scheme is tried with https before http", () => {
  const question = readQuestion("www.example.org/a?b");

  expect(question.type === "url" && question.keys.map((key) => key.url)).toEqual([
    "https://www.example.org/a?b",
    "http://www.example.org/a?b",
  ]);
});

it("text of hostile length is parsed at once", () => {
  for (const text of ["a.".repeat(1000), "-".repeat(2000), "a".repeat(100_000), ":".repeat(2000)])
    expect(readQuestion(text).type).toMatch(/name|unreadable|url/);
});
