/**
 * Headers, bodies, redirects and parts that no site should send: each has its own outcome in limited time and memory.
 */
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { brotliCompressSync, crc32, createGzip, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { decodeBody } from "#crawler/fetch/content-codings";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { fetchAll, fetchOne } from "../support/fetch-one.ts";
import { startRawOrigin, startRawPages } from "../support/origin.ts";

const hostile = async (behave: Behave) => `${(await startRawPages(behave)).url}/page`;

type Behave = (socket: Socket) => unknown;
const raw =
  (text: string): Behave =>
  (socket) =>
    socket.write(Buffer.from(text, "latin1"));
const ends =
  (text: string): Behave =>
  (socket) =>
    socket.end(text);
/** Sends `start` and then `piece` endlessly. */
const pours =
  (start: string, piece: string): Behave =>
  (socket) => {
    socket.write(start);
    pour(socket, piece);
  };
const answer = (status: string, lines: readonly string[], body = "") =>
  raw([`HTTP/1.1 ${status}`, ...lines, `content-length: ${body.length}`, "", body].join("\r\n"));
const patient = { timeouts: { connectMs: 5000, firstByteMs: 5000, idleMs: 5000, totalMs: 10_000 } };
const head = (...lines: string[]) =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;

/** Only the expected timeout is short, so a busy machine does not affect the result. */
function patience(expected: string) {
  const ms = (code: string, long: number) => (code === expected ? 300 : long);
  return {
    timeouts: {
      connectMs: 5000,
      firstByteMs: ms("first-byte-timeout", 5000),
      idleMs: ms("idle-timeout", 5000),
      totalMs: ms("total-timeout", 10_000),
    },
  };
}

/** Writes until the other side has had enough, and counts the bytes. */
function pour(socket: Socket, piece: string): { readonly bytes: number } {
  const written = { bytes: 0 };
  const more = () => {
    while (!socket.destroyed && socket.write(piece)) written.bytes += piece.length;
  };
  socket.on("drain", more);
  more();
  return written;
}

const html = "content-type: text/html";
const half = gzipSync("<p>whole".repeat(1000)).subarray(0, 40).toString("latin1");

const failures: Readonly<Record<string, readonly (readonly [what: string, behave: Behave])[]>> = {
  "headers-too-large": [
    ["600 headers", answer("200 OK", Array(600).fill("x-more: 1"))],
    ["an endless header", pours("HTTP/1.1 200 OK\r\n", `x-more: ${"v".repeat(1000)}\r\n`)],
    ["a header of one megabyte", ends(head(`x-big: ${"v".repeat(1 << 20)}`))],
    ["a first line of one megabyte", ends(`HTTP/1.1 200 ${"O".repeat(1 << 20)}\r\n${html}\r\n\r\n<p>x`)],
    ["an endless first line", pours("HTTP/1.1 200 O", "K".repeat(1000))],
    [
      "a first line that is too long, in one piece with the page",
      ends(head().replace("OK", "O".repeat(5000))),
    ],
    ["endless empty lines", pours("", "\r\n".repeat(1000))],
    [
      "an endless informational answer",
      pours("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 103 ", "Early".repeat(1000)),
    ],
  ],
  "bad-response": [
    ["a hundred informational answers", raw("HTTP/1.1 103 Early\r\n\r\n".repeat(100))],
    ["an unrequested protocol switch", raw("HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")],
    ["two lengths", raw("HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 9\r\n\r\n<p>x")],
    ["an invalid status", raw("HTTP/1.1 000 X\r\ncontent-length: 0\r\n\r\n")],
    ["a negative length", raw("HTTP/1.1 200 OK\r\ncontent-length: -4\r\n\r\n<p>x")],
    ["no header at all", raw("<html><body>HTTP/0.9</body></html>")],
    ["something other than HTTP", ends("BANANA/9.9 hello\r\n\r\n<p>x")],
    ["a middle part", answer("206 Partial", [html, "content-range: bytes 4-7/8"], "<p>x")],
    [
      "an endless chunk size",
      raw(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${"F".repeat(40)}\r\n`),
    ],
    ["an invalid chunk size", ends(`${head("transfer-encoding: chunked")}ZZZ\r\n<p>x\r\n0\r\n\r\n`)],
  ],
  "bad-encoding": [
    ["a body with four codings", answer("200 OK", [html, "content-encoding: gzip, gzip, gzip, gzip"], "x")],
    ["a valid type and a broken coding", answer("200 OK", [html, "content-encoding: br"], "plain")],
    ["half a gzip stream", raw(head("content-encoding: gzip", `content-length: ${half.length}`) + half)],
    [
      "a coding that was not asked for",
      ends(`${head("content-encoding: compress", "content-length: 3")}abc`),
    ],
  ],
  "idle-timeout": [["a body that stalls in the middle", raw(`${head("content-length: 1000")}<p>half`)]],
  "first-byte-timeout": [["no answer", () => {}]],
  "total-timeout": [
    [
      "a body that trickles",
      (socket) => {
        socket.write(head("content-length: 100000"));
        const drip = setInterval(() => socket.write("x"), 50);
        socket.on("close", () => clearInterval(drip));
      },
    ],
  ],
  "connection-lost": [
    ["a connection that is closed", (socket) => socket.end()],
    ["a body shorter than its stated length", ends(`${head("content-length: 1000")}<p>cut`)],
    [
      "a body that is reset",
      (socket) => socket.write(head("content-length: 1000"), () => socket.resetAndDestroy()),
    ],
  ],
};

describe.each(Object.entries(failures))("%s:", (code, rows) => {
  it.each(rows)("%s", async (_what, behave) => {
    const result = await fetchOne({ url: await hostile(behave) }, patience(code));

    const blame = /^(?:bad-|headers-)/.test(code) ? { blame: "target" } : {};
    expect(result.outcome).toMatchObject({ type: "failed", code, ...blame });
    expect(result.page).toBeNull();
  });
});

describe("an answer", () => {
  it.each([
    [
      "the whole page declared as a part",
      answer("206 Partial", [html, "content-range: bytes 0-3/4"], "<p>x"),
      false,
    ],
    ["the beginning of a page", answer("206 Partial", [html, "content-range: bytes 0-3/9"], "<p>x"), true],
    [
      "in chunks of one byte",
      raw(`${head("transfer-encoding: chunked")}${"1\r\na\r\n".repeat(50_000)}0\r\n\r\n`),
      false,
    ],
    ["without a type", answer("200 OK", [], "<html><p>x"), false],
    [
      "with headers named like object properties",
      answer("200 OK", [html, "constructor: x", "__proto__: y", "toString: z"], "<p>x"),
      false,
    ],
  ])("that is %s is read", async (_what, behave, truncated) => {
    const url = await hostile(behave);

    expect((await fetchOne({ url }, patient)).outcome).toMatchObject({ type: "fetched", truncated });
  });

  it.each([
    ["a download", [html, "content-disposition: attachment; filename=x.html"], "<p>x"],
    ["an image declared as HTML", ["content-type: text/html"], "\x89PNG\r\n\x1a\n0000"],
    ["a program without a type", [], "\x7fELF\x01\x01\x01\x00\x00\x00"],
  ])("that is %s is not read", async (_what, lines, body) => {
    const url = await hostile(answer("200 OK", lines, body));

    expect((await fetchOne({ url }, patient)).outcome.type).toBe("unsupported");
  });

  it("followed by an unrequested one is never attributed to the next page", async () => {
    let served = 0;
    const url = await hostile((socket) => {
      const title = `<title>Page ${++served}</title>`;
      const head = `HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: ${title.length}\r\n\r\n`;
      socket.write(`${head}${title}HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nPOISON`);
    });

    const { results } = await fetchAll([{ url: `${url}/1` }, { url: `${url}/2` }], patient);

    expect(results.map((result) => result.page?.title)).toEqual(["Page 1", "Page 2"]);
  });

  it("that the index already has is unchanged, by the digest of the decoded body", async () => {
    const page = "<title>Same</title><p>as ever";
    const packed = gzipSync(page).toString("latin1");
    const lines = ["content-type: text/html", "content-encoding: gzip"];
    const url = await hostile(answer("200 OK", lines, packed));

    const digest = createHash("sha256").update(page).digest("hex");
    const same = await fetchOne({ url, digest }, patient);
    const other = await fetchOne({ url, digest: digest.replace(/./g, "0") }, patient);

    expect(same).toMatchObject({ outcome: { type: "unchanged", status: 200 }, page: null });
    expect(same.bodyBytes).toBe(page.length);
    expect(other.outcome.type).toBe("fetched");
    expect(other.page?.digest).toBe(digest);
  });
});

describe("a packed body", () => {
  const page = `<title>Whole</title><p>${"every word of it ".repeat(20)}`;
  const long = `<title>Whole</title>${Array.from({ length: 60_000 }, (_, at) => `<p>${(at * 7919) % 99_991}`).join("")}`;
  const packed = gzipSync(page);
  const served = (coding: string, ...parts: readonly (Buffer | string)[]) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
    return answer(
      "200 OK",
      ["content-type: text/html", `content-encoding: ${coding}`],
      body.toString("latin1"),
    );
  };
  const [head, rest] = [page.slice(0, 40), page.slice(40)];

  // RFC 1952 section 2.2: a file is a sequence of members. Trailing data is ignored, as gzip does.
  it.each([
    ["gzip followed by a line break", page, served("gzip", packed, "\r\n")],
    ["gzip followed by one byte", page, served("gzip", packed, "\x1f")],
    ["gzip followed by zeros", page, served("gzip", packed, Buffer.alloc(512))],
    ["gzip followed by an uncompressed page", page, served("gzip", packed, "<!-- cache -->".repeat(9000))],
    ["gzip of two members", page, served("gzip", gzipSync(head), gzipSync(rest))],
    ["gzip of two members followed by text", page, served("gzip", gzipSync(head), gzipSync(rest), "OK")],
    ["gzip with every header field", page, served("gzip", headed(packed), "OK")],
    ["gzip of 300 KB followed by text", long, served("gzip", gzipSync(long, { level: 0 }), "OK")],
    [
      "gzip applied twice, each followed by text",
      page,
      served("gzip, gzip", gzipSync(Buffer.concat([packed, Buffer.from("in")])), "out"),
    ],
    ["deflate followed by text", page, served("deflate", deflateSync(page), "OK")],
    ["bare deflate followed by text", page, served("deflate", deflateRawSync(page), "OK")],
    ["brotli followed by text", page, served("br", brotliCompressSync(page), "OK")],
  ])("of %s is read whole", async (_what, sent, behave) => {
    const result = await fetchOne({ url: await hostile(behave) }, patient);

    expect(result.outcome).toEqual({ type: "fetched", status: 200, truncated: false });
    expect(result.page?.digest).toBe(createHash("sha256").update(sent).digest("hex"));
  });

  const wrongSum = Buffer.from(packed);
  wrongSum[packed.length - 8]! ^= 1;
  it.each([
    ["that ends early", packed.subarray(0, -12), ""],
    ["whose checksum is wrong", wrongSum, ""],
    ["whose checksum is wrong, followed by text", wrongSum, "OK"],
    ["whose second member ends early", Buffer.concat([packed, packed.subarray(0, -12)]), ""],
    ["whose second member is broken", Buffer.concat([packed, wrongSum]), "OK"],
    ["of a thousand members followed by text", Buffer.concat(Array(1001).fill(gzipSync("x"))), "OK"],
  ])("%s is broken, never truncated silently", async (_what, body, behind) => {
    const result = await fetchOne({ url: await hostile(served("gzip", body, behind)) }, patient);

    expect(result.outcome).toMatchObject({ type: "failed", code: "bad-encoding", blame: "target" });
  });
});

/** Adds a file name, comment, extra field and header checksum (RFC 1952 section 2.3). */
function headed(member: Buffer): Buffer {
  const fixed = Buffer.from(member.subarray(0, 10));
  fixed[3] = 4 | 8 | 16 | 2;
  const head = Buffer.concat([fixed, Buffer.from("\x04\x00abcdname\x00comment\x00", "latin1")]);
  const sum = Buffer.alloc(2);
  sum.writeUInt16LE(crc32(head) & 0xffff);
  return Buffer.concat([head, sum, member.subarray(10)]);
}

describe("a redirect", () => {
  const redirect = (...locations: string[]) =>
    answer(
      "302 Found",
      locations.map((location) => `location: ${location}`),
    );

  it.each([
    ["/next?a=1#part", "/next?a=1"],
    ["?page=2", "/page?page=2"],
    ["//127.0.0.1:1/x", "http://127.0.0.1:1/x"],
    ["/\xc3\xbcber", "/%C3%BCber"],
    ["/\xfcber", "/%C3%BCber"],
    ["/a b", "/a%20b"],
    ["HTTPS://Other.Example", "https://other.example/"],
  ])("to %j leads to %s", async (location, target) => {
    const url = await hostile(redirect(location));

    const { outcome } = await fetchOne({ url }, patient);

    expect(outcome).toEqual({ type: "redirected", status: 302, location: new URL(target, url).href });
  });

  it.each([
    ["another scheme", redirect("ftp://127.0.0.1/x")],
    ["a script", redirect("javascript:alert(1)")],
    ["no URL", redirect("http://[::1")],
    ["an address that is too long", redirect(`/${"r".repeat(9000)}`)],
    ["two places", redirect("/one", "/two")],
  ])("to %s is invalid", async (_what, behave) => {
    const url = await hostile(behave);

    expect((await fetchOne({ url }, patient)).outcome).toMatchObject({
      type: "failed",
      code: "bad-redirect",
    });
  });

  it("to itself is a loop after one request", async () => {
    let requests = 0;
    const url = await hostile((socket) => {
      requests++;
      socket.write("HTTP/1.1 302 Found\r\nlocation: /page#again\r\ncontent-length: 0\r\n\r\n");
    });

    const result = await fetchOne({ url });

    expect(result.outcome).toMatchObject({ type: "failed", blame: "target", code: "redirect-loop" });
    expect(requests).toBe(1);
  });

  it("to another spelling of its own URL is also a loop", async () => {
    const url = await hostile((socket) =>
      socket.write("HTTP/1.1 301 Moved\r\nlocation: /%70age\r\ncontent-length: 0\r\n\r\n"),
    );

    const result = await fetchOne({ url });

    expect(result.outcome).toMatchObject({
      code: "redirect-loop",
      reason: expect.stringContaining("another spelling of its own URL"),
    });
  });

  it("after five in a row is too many", async () => {
    const url = await hostile((socket) =>
      socket.write("HTTP/1.1 302 Found\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n"),
    );

    const fifth = await fetchOne({ url, redirects: 4 });
    const sixth = await fetchOne({ url, redirects: 5 });

    expect(fifth.outcome.type).toBe("redirected");
    expect(sixth.outcome).toMatchObject({ type: "failed", blame: "target", code: "too-many-redirects" });
  });

  it("with an endless body is abandoned", async () => {
    let written = { bytes: 0 };
    const url = await hostile((socket) => {
      socket.write("HTTP/1.1 302 Found\r\nlocation: /next\r\ntransfer-encoding: chunked\r\n\r\n");
      written = pour(socket, `4000\r\n${"z".repeat(0x4000)}\r\n`);
    });

    expect((await fetchOne({ url }, patient)).outcome).toMatchObject({
      type: "failed",
      code: "bad-redirect",
    });
    expect(written.bytes).toBeLessThan(20e6);
  });

  it.each([305, 306, 399])("with status %i is not followed", async (status) => {
    const url = await hostile(answer(`${status} X`, ["location: /next"]));

    expect((await fetchOne({ url }, patient)).outcome).toMatchObject({ type: "http-error", status });
  });

  it("without a Location is an error of the site", async () => {
    const url = await hostile(answer("302 Found", []));

    expect((await fetchOne({ url }, patient)).outcome).toMatchObject({ type: "http-error", status: 302 });
  });
});

it("users and passwords in URLs are removed from redirects, links, lists and failures", async () => {
  const to = (location: string) => answer("302 Found", [`location: ${location}`]);
  const page = `<link rel="canonical" href="//user:secret@site.example/a"><base href="http://user:secret@site.example/">
    <a href="b">b</a> <a href="https://user:secret@other.example/@c">c</a> <a href="https:secret@other.example/d">d</a>
    <meta http-equiv="refresh" content="0; url=https://:secret@other.example/e">
    <link rel="alternate" type="application/rss+xml" href="https://secret@site.example/feed">`;
  const robots = "User-agent: *\nAllow: /\nSitemap: https://user:secret@site.example/map.xml\n";
  const origin = await startRawOrigin((socket, head) => {
    const behave = head.startsWith("GET /robots.txt ")
      ? answer("200 OK", ["content-type: text/plain"], robots)
      : head.startsWith("GET /redirect ")
        ? to("https://us%20er:se@cret:secret@other.example/@a?b@c")
        : head.startsWith("GET /nowhere ")
          ? to("ftp://user:secret@other.example/")
          : head.startsWith("GET /map ")
            ? answer(
                "200 OK",
                ["content-type: application/xml"],
                "<urlset><url><loc>https://user:secret@site.example/x</loc></url></urlset>",
              )
            : answer("200 OK", ["content-type: text/html"], page);
    behave(socket);
  });

  const urls = ["/redirect", "/nowhere", "/map", "/page"].map((path) => ({ url: origin.url + path }));
  const { results } = await fetchAll(urls, patient);

  expect(JSON.stringify(results)).not.toContain("secret");
  const [redirect, nowhere, , read] = results;
  expect(redirect?.outcome).toMatchObject({ location: "https://other.example/@a?b@c" });
  expect(nowhere?.outcome).toMatchObject({ reason: "not a URL that is crawled: ftp://other.example/" });
  expect(read?.page).toMatchObject({
    canonicalUrl: "http://site.example/a",
    feeds: ["https://site.example/feed"],
  });
  expect(read?.page?.links.map(({ url }) => url)).toEqual(
    expect.arrayContaining(["http://site.example/b", "https://other.example/@c", "https://other.example/d"]),
  );
});

describe("a body", () => {
  it("that is endless is cut at five megabytes and marked", async () => {
    const before = process.memoryUsage.rss();
    const url = await hostile((socket) => {
      socket.write(head());
      pour(socket, "<p>never ends</p>".repeat(1000));
    });

    const result = await fetchOne({ url });

    expect(result.outcome).toEqual({ type: "fetched", status: 200, truncated: true });
    expect(result.bodyBytes).toBe(5 * 1024 * 1024);
    expect(process.memoryUsage.rss() - before).toBeLessThan(150e6);
  });

  it("that inflates to a thousand times its size is a bomb", async () => {
    const bomb = await manyZeros();
    const before = process.memoryUsage.rss();
    const url = await hostile((socket) => {
      socket.write(head("content-encoding: gzip", `content-length: ${bomb.length}`));
      socket.write(bomb);
    });

    const result = await fetchOne({ url });

    expect(bomb.length).toBeLessThan(200_000);
    expect(result.outcome).toMatchObject({ type: "failed", blame: "target", code: "decompression-bomb" });
    expect(process.memoryUsage.rss() - before).toBeLessThan(150e6);
  });

  it.each([
    ["a chunk's extension", "5;x="],
    ["trailers", "0\r\nx-trailer: "],
  ])("with endless %s is abandoned at once", async (_what, start) => {
    let written = { bytes: 0 };
    const url = await hostile((socket) => {
      socket.write(head("transfer-encoding: chunked"));
      socket.write(start);
      written = pour(socket, "v".repeat(64 * 1024));
    });

    const result = await fetchOne({ url }, patience("bad-response"));

    expect(result.outcome).toMatchObject({ type: "failed", blame: "target" });
    // The buffers of both sockets.
    expect(written.bytes).toBeLessThan(16e6);
  });

  it("of an unwanted type is not read", async () => {
    let written = { bytes: 0 };
    const url = await hostile((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 1000000000\r\n\r\n");
      written = pour(socket, "\0".repeat(64 * 1024));
    });

    const result = await fetchOne({ url });

    expect(result.outcome).toEqual({ type: "unsupported", status: 200, contentType: "video/mp4" });
    expect(written.bytes).toBeLessThan(20e6);
  });
});

describe("an unwanted body", () => {
  it.each([
    ["of an error", "404 Not Found", []],
    ["of a redirect", "302 Found", ["location: /next"]],
    ["of another type", "200 OK", ["content-type: video/mp4"]],
    ["in an unrequested coding", "200 OK", ["content-type: text/html", "content-encoding: sdch"]],
  ])("%s counts towards the day's bytes with its headers", async (_what, status, lines) => {
    const url = await hostile(answer(status, lines, "x".repeat(40_000)));
    const home = temporaryFolder("nearcrawl-bytes-");

    await fetchOne({ url }, { ...patient, home });

    const { bytes } = JSON.parse(readFileSync(join(home, "day-count.json"), "utf8")) as { bytes: number };
    expect(bytes).toBeGreaterThan(40_000);
    expect(bytes).toBeLessThan(41_000);
    rmSync(home, { recursive: true });
  });
});

async function manyZeros(): Promise<Buffer> {
  const gzip = createGzip({ level: 9 });
  const pieces: Buffer[] = [];
  gzip.on("data", (piece: Buffer) => pieces.push(piece));
  const zeros = Buffer.alloc(1 << 20);
  for (let megabytes = 0; megabytes < 128; megabytes++) {
    if (!gzip.write(zeros)) await new Promise((resolve) => gzip.once("drain", resolve));
  }
  gzip.end();
  await new Promise((resolve) => gzip.once("end", resolve));
  return Buffer.concat(pieces);
}

// The length in a gzip file is only the sender's claim (RFC 1952 section 2.3.1).

const limit = 5 * 1024 * 1024;
const page = Buffer.from("<p>a page of some length</p>".repeat(6000));

describe("a compressed body", () => {
  it("of gzip is decoded into one buffer that is one byte longer than the page", async () => {
    const { bytes, truncated } = await decodeBody("gzip", { bytes: gzipSync(page), cut: false, limit });

    expect(bytes.equals(page)).toBe(true);
    expect(truncated).toBe(false);
    expect(bytes.buffer.byteLength).toBe(page.length + 1);
  });

  it.each([0, 1, page.length - 1, 2 ** 32 - 1])(
    "whose gzip trailer claims %d bytes is not believed",
    async (claim) => {
      const packed = gzipSync(page);
      packed.writeUInt32LE(claim, packed.length - 4);

      const decoding = decodeBody("gzip", { bytes: packed, cut: false, limit });

      await expect(decoding).rejects.toMatchObject({ code: "bad-encoding" });
    },
  );

  it.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
    ["br", brotliCompressSync],
  ] as const)("of %s is decoded, and cut at the limit", async (coding, pack) => {
    const bytes = pack(page);

    const whole = await decodeBody(coding, { bytes, cut: false, limit });
    const decoded = await decodeBody(coding, { bytes, cut: false, limit: 10_000 });

    expect([whole.bytes.equals(page), whole.truncated]).toEqual([true, false]);
    expect(decoded.bytes.equals(page.subarray(0, 10_000))).toBe(true);
    expect(decoded.truncated).toBe(true);
  });
});
