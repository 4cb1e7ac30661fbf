/** Sites that do what no site should: each ends with a recorded outcome, in bounded time and memory. */
import type { Socket } from "node:net";
import { createGzip, gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { fetchOne } from "../support/fetch-one.ts";
import { startRawPages } from "../support/origin.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Only the time-out that is looked for is short, so that a busy machine decides nothing. */
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
const head = (...lines: string[]) =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`;

/** The URL of a page that is answered so. */
async function hostile(behave: (socket: Socket, head: string) => void): Promise<string> {
  const origin = await startRawPages(behave);
  cleanups.push(() => origin.close());
  return `${origin.url}/page`;
}

/** Writes pieces until the other side has enough. */
function pour(socket: Socket, piece: Buffer | string): void {
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", more);
  more();
}

describe("a body", () => {
  it("without an end is cut at five megabytes and marked", async () => {
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
    [
      "stalls in the middle",
      "idle-timeout",
      (socket: Socket) => socket.write(`${head("content-length: 1000")}<p>half`),
    ],
    [
      "trickles",
      "total-timeout",
      (socket: Socket) => {
        socket.write(head("content-length: 100000"));
        const drip = setInterval(() => socket.write("x"), 50);
        socket.on("close", () => clearInterval(drip));
      },
    ],
    ["never begins", "first-byte-timeout", () => {}],
    [
      "is reset",
      "connection-lost",
      (socket: Socket) => socket.write(head("content-length: 1000"), () => socket.resetAndDestroy()),
    ],
    [
      "is shorter than it says",
      "connection-lost",
      (socket: Socket) => socket.end(`${head("content-length: 1000")}<p>cut`),
    ],
    [
      "has garbage for a chunk size",
      "bad-response",
      (socket: Socket) => socket.end(`${head("transfer-encoding: chunked")}ZZZ\r\n<p>x\r\n0\r\n\r\n`),
    ],
    [
      "is half a gzip stream",
      "bad-encoding",
      (socket: Socket) => {
        const half = gzipSync("<p>whole".repeat(1000)).subarray(0, 40);
        socket.write(head("content-encoding: gzip", `content-length: ${half.length}`));
        socket.write(half);
      },
    ],
    [
      "has a coding that was not asked for",
      "bad-encoding",
      (socket: Socket) => socket.end(`${head("content-encoding: compress", "content-length: 3")}abc`),
    ],
  ] as const)("that %s fails with %s", async (_what, code, behave) => {
    const url = await hostile(behave as (socket: Socket) => void);

    const result = await fetchOne({ url }, patience(code));

    expect(result.outcome).toMatchObject({ type: "failed", code });
    expect(result.page).toBeNull();
  });

  it("of six megabytes of nested elements is cut and read", async () => {
    const body = "<b>".repeat(2_000_000);
    const url = await hostile((socket) => socket.end(`${head(`content-length: ${body.length}`)}${body}`));

    const result = await fetchOne({ url });

    expect(result.outcome).toEqual({ type: "fetched", status: 200, truncated: true });
  });

  it.each([
    ["a chunk's extension", "5;x="],
    ["trailers", "0\r\nx-trailer: "],
  ])(
    "with %s that has no end is given up as it comes, not a quarter of a second later",
    async (_what, start) => {
      let written = 0;
      const url = await hostile((socket) => {
        socket.write(head("transfer-encoding: chunked"));
        socket.write(start);
        const piece = "v".repeat(64 * 1024);
        const more = () => {
          while (!socket.destroyed && socket.write(piece)) written += piece.length;
        };
        socket.on("drain", more);
        more();
      });

      const result = await fetchOne({ url }, patience("bad-response"));

      expect(result.outcome).toMatchObject({ type: "failed", blame: "target" });
      // What the sockets of both sides hold.
      expect(written).toBeLessThan(16e6);
    },
  );

  it("of an unwanted type is not read past its header", async () => {
    let written = 0;
    const url = await hostile((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 1000000000\r\n\r\n");
      const piece = Buffer.alloc(64 * 1024);
      const more = () => {
        while (!socket.destroyed && socket.write(piece)) written += piece.length;
      };
      socket.on("drain", more);
      more();
    });

    const result = await fetchOne({ url });

    expect(result.outcome).toEqual({ type: "unsupported", status: 200, contentType: "video/mp4" });
    expect(written).toBeLessThan(20e6);
  });
});

describe("a header", () => {
  it.each([
    [
      "without an end",
      "headers-too-large",
      (socket: Socket) => {
        socket.write("HTTP/1.1 200 OK\r\n");
        pour(socket, `x-more: ${"v".repeat(1000)}\r\n`);
      },
    ],
    [
      "of one megabyte",
      "headers-too-large",
      (socket: Socket) => socket.end(head(`x-big: ${"v".repeat(1 << 20)}`)),
    ],
    [
      "whose first line is one megabyte",
      "headers-too-large",
      (socket: Socket) =>
        socket.end(`HTTP/1.1 200 ${"O".repeat(1 << 20)}\r\ncontent-type: text/html\r\n\r\n<p>x`),
    ],
    [
      "whose first line has no end",
      "headers-too-large",
      (socket: Socket) => {
        socket.write("HTTP/1.1 200 O");
        pour(socket, "K".repeat(1000));
      },
    ],
    [
      "whose first line is longer than it may be, in one piece with the page",
      "headers-too-large",
      (socket: Socket) =>
        socket.end(`HTTP/1.1 200 ${"O".repeat(5000)}\r\ncontent-type: text/html\r\n\r\n<p>x`),
    ],
    [
      "that begins with empty lines without end",
      "headers-too-large",
      (socket: Socket) => pour(socket, "\r\n".repeat(1000)),
    ],
    [
      "that has an informational one without end before it",
      "headers-too-large",
      (socket: Socket) => {
        socket.write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 103 ");
        pour(socket, "Early".repeat(1000));
      },
    ],
    ["that is not HTTP", "bad-response", (socket: Socket) => socket.end("BANANA/9.9 hello\r\n\r\n<p>x")],
    ["that is absent", "connection-lost", (socket: Socket) => socket.end()],
  ] as const)("%s fails with %s", async (_what, code, behave) => {
    const url = await hostile(behave as (socket: Socket) => void);

    const result = await fetchOne({ url }, patience(code));

    expect(result.outcome).toMatchObject({ type: "failed", code });
  });
});

describe("a redirect", () => {
  it("is reported, not followed", async () => {
    const url = await hostile((socket) =>
      socket.write("HTTP/1.1 302 Found\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n"),
    );

    const result = await fetchOne({ url });

    expect(result.outcome).toEqual({ type: "redirected", status: 302, location: new URL("/next", url).href });
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

  it("to another spelling of its own URL is one, too, and says so", async () => {
    const url = await hostile((socket) =>
      socket.write("HTTP/1.1 301 Moved\r\nlocation: /%70age\r\ncontent-length: 0\r\n\r\n"),
    );

    const result = await fetchOne({ url });

    expect(result.outcome).toMatchObject({
      code: "redirect-loop",
      reason: expect.stringContaining("another spelling of its own URL"),
    });
  });

  it("after five in a row is one too many", async () => {
    const url = await hostile((socket) =>
      socket.write("HTTP/1.1 302 Found\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n"),
    );

    const fifth = await fetchOne({ url, redirects: 4 });
    const sixth = await fetchOne({ url, redirects: 5 });

    expect(fifth.outcome.type).toBe("redirected");
    expect(sixth.outcome).toMatchObject({ type: "failed", blame: "target", code: "too-many-redirects" });
  });

  it("to something that is no web address leads nowhere", async () => {
    const url = await hostile((socket) =>
      socket.write("HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\n\r\n"),
    );

    expect((await fetchOne({ url })).outcome).toMatchObject({ type: "failed", code: "bad-redirect" });
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
