/** Bodies that the partner's rate delays while their sites end, cut or reset the connection. */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { fetchAll, fetchOne } from "../support/fetch-one.ts";
import { startRawPages } from "../support/origin.ts";

/** Exceeds a second's allowance, so it waits for the rate several times. */
const slowed = {
  limits: { kilobytesPerSecond: 400 },
  timeouts: { connectMs: 5000, firstByteMs: 5000, idleMs: 5000, totalMs: 20_000 },
};
const page = Buffer.from(`<title>Slow</title><p>${randomBytes(300_000).toString("hex")}`);
const packed = gzipSync(page);

const answer = (lines: readonly string[], body: Buffer) =>
  Buffer.concat([
    Buffer.from(["HTTP/1.1 200 OK", "content-type: text/html", ...lines, "", ""].join("\r\n")),
    body,
  ]);

function inChunks(body: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; at += 5000) {
    const piece = body.subarray(at, at + 5000);
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
  }
  return Buffer.concat([...pieces, Buffer.from("0\r\n\r\n")]);
}

const site = async (behave: (socket: Socket) => void) => `${(await startRawPages(behave)).url}/page`;
const long = { timeout: 20_000 };
const length = `content-length: ${page.length}`;

describe("a body that waits for the rate", () => {
  it.each([
    ["ended by the connection's end", answer([], page)],
    ["packed and ended by the connection's end", answer(["content-encoding: gzip"], packed)],
    ["in chunks before the connection's end", answer(["transfer-encoding: chunked"], inChunks(page))],
    ["of a stated length before the connection's end", answer([length], page)],
    ["of a stated length before an announced end", answer([length, "connection: close"], page)],
  ])("%s is read whole", long, async (_what, bytes) => {
    const url = await site((socket) => socket.end(bytes));

    const result = await fetchOne({ url }, slowed);

    expect(result.outcome).toEqual({ type: "fetched", status: 200, truncated: false });
    expect(result.bodyBytes).toBe(page.length);
  });

  it("on a kept connection leaves it usable for the next page", long, async () => {
    const url = await site((socket) => socket.write(answer([length], page)));

    const { results } = await fetchAll([{ url: `${url}/1` }, { url: `${url}/2` }], slowed);

    expect(results.map(({ bodyBytes }) => bodyBytes)).toEqual([page.length, page.length]);
  });

  it.each([
    ["shorter than its stated length", answer([`content-length: ${page.length + 9}`], page)],
    ["without its last chunk", answer(["transfer-encoding: chunked"], inChunks(page).subarray(0, -5))],
  ])("%s is lost", long, async (_what, bytes) => {
    const url = await site((socket) => socket.end(bytes));

    expect((await fetchOne({ url }, slowed)).outcome).toMatchObject({
      type: "failed",
      code: "connection-lost",
    });
  });

  it("and is reset meanwhile does no harm", long, async () => {
    const url = await site((socket) => {
      socket.write(answer([], page), () => socket.resetAndDestroy());
    });

    expect((await fetchOne({ url }, slowed)).outcome.type).toMatch(/^(failed|fetched)$/);
  });
});
