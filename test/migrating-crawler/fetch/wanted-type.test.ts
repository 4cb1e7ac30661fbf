/** Which bodies are read, by header and by first bytes (WHATWG MIME Sniffing). */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { contentTypeOf, judgeHeader, sniffMediaType, typeOfBody } from "#crawler/fetch/wanted-type";
import { sharedData } from "../../support/shared-data.ts";

describe("a content type", () => {
  it.each([
    ["text/html; charset=utf-8", "text/html; charset=utf-8"],
    [["text/html", "image/png"], "image/png"],
    ["text/html, nonsense", "text/html"],
    ["html", ""],
    [undefined, ""],
  ])("of %j counts as %j", (header, type) => {
    expect(contentTypeOf(header)).toBe(type);
  });

  it.each([
    ["text/html", "read"],
    ["TEXT/HTML ;charset=x", "read"],
    ["application/xhtml+xml", "read"],
    ["application/rss+xml", "read"],
    ["text/xml", "read"],
    ["", "look"],
    ["application/octet-stream", "look"],
    ["application/x-gzip", "look"],
    ["image/svg+xml", "leave"],
    ["application/json", "leave"],
    ["video/mp4", "leave"],
    ["application/pdf", "leave"],
  ])("of %j means: %s", (type, verdict) => {
    expect(judgeHeader(type, {})).toBe(verdict);
  });

  it("of a page is left where it is a download, a feed's is not", () => {
    const headers = { "content-disposition": 'Attachment; filename="page.html"' };

    expect(judgeHeader("text/html", headers)).toBe("leave");
    expect(judgeHeader("application/xml", headers)).toBe("read");
  });
});

describe("a body", () => {
  const typeOf = (body: string | Buffer, type: string, headers = {}) =>
    typeOfBody(Buffer.isBuffer(body) ? body : Buffer.from(body, "latin1"), type, headers);

  it.each([
    ["<!doctype html><p>x", "", "text/html"],
    ["\xef\xbb\xbf<HTML>", "application/octet-stream", "text/html"],
    ["<!-- made by hand --><rss>", "", "application/xml"],
    ["<?xml version='1.0'?><urlset>", "application/octet-stream", "application/xml"],
    ["just words", "", "text/plain"],
    ["<html>", "text/plain; charset=koi8-r", "text/html; charset=koi8-r"],
    ["a < b", "text/plain", "text/plain"],
    ["<title>nul\0bytes</title>\0<p>a\0b", "text/html", "text/html"],
  ])("of %j said to be %j is read as %s", (body, said, type) => {
    expect(typeOf(body, said)).toBe(type);
  });

  it("of HTML stays plain text where the site insists", () => {
    expect(typeOf("<html>", "text/plain", { "x-content-type-options": "nosniff" })).toBe("text/plain");
  });

  it("in UTF-16 is text, with a byte order mark and without", () => {
    const page = Buffer.from("<!DOCTYPE html><title>Привет</title>", "utf16le");

    expect(typeOf(page, "text/html")).toBe("text/html");
    expect(typeOf(Buffer.concat([Buffer.from([0xff, 0xfe]), page]), "")).toBe("text/html");
    expect(typeOf(Buffer.from("words only", "utf16le"), "text/plain; charset=utf-16le")).not.toBeNull();
  });

  it("that is packed is read when text is inside", () => {
    expect(typeOf(gzipSync("<urlset>"), "application/octet-stream")).toBe("application/gzip");
    expect(typeOf(gzipSync(Buffer.alloc(2000, 1)), "application/x-gzip")).toBeNull();
  });

  it.each([
    ["a PNG", "\x89PNG\r\n\x1a\n....."],
    ["a PDF", "%PDF-1.7 words, many words"],
    ["a JPEG", "\xff\xd8\xff\xe0 JFIF"],
    ["a ZIP", "PK\x03\x04............"],
    ["a program", "\x7fELF............"],
    ["noise", noise(1445)],
  ])("that is %s is not read, whatever the header says", (_what, body) => {
    expect(typeOf(body, "text/html")).toBeNull();
    expect(typeOf(body, "text/plain")).toBeNull();
    expect(typeOf(body, "")).toBeNull();
  });
});

it("the public cases of content detection hold", ({ skip }) => {
  const path = sharedData("suites/content/mime-detect.json");
  if (path === null) return skip();
  const cases = JSON.parse(readFileSync(path, "utf8")) as {
    name: string;
    content_b64: string;
    mime: string;
  }[];

  const found = cases.map((one) => [one.name, sniffMediaType(Buffer.from(one.content_b64, "base64"))]);

  expect(found).toEqual(cases.map((one) => [one.name, one.mime]));
});

/** Uniform pseudo-random bytes from a fixed seed. */
function noise(length: number): Buffer {
  let state = 12345;
  return Buffer.from(
    Array.from({ length }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 16) & 255;
    }),
  );
}
