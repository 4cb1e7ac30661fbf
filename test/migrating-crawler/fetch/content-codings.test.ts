/** RFC 1952 section 2.3.1: what a gzip file says of its length is the sender's word, and only ever a guess. */
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { decodeBody } from "#crawler/fetch/content-codings";

const limit = 5 * 1024 * 1024;
const page = Buffer.from("<p>a page of some length</p>".repeat(6000));

describe("a packed body", () => {
  it("of gzip is decoded into one piece of memory a byte longer than the page: nothing is copied together", async () => {
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
    ["br", brotliCompressSync],
  ] as const)("of %s that is longer than the limit is cut there", async (coding, pack) => {
    const bytes = pack(page);

    const decoded = await decodeBody(coding, { bytes, cut: false, limit: 10_000 });

    expect(decoded.bytes.equals(page.subarray(0, 10_000))).toBe(true);
    expect(decoded.truncated).toBe(true);
  });

  it("of two gzip members is whole, though its trailer tells of the last alone", async () => {
    const packed = Buffer.concat([gzipSync(page), gzipSync(Buffer.from("<p>the end</p>"))]);

    const { bytes } = await decodeBody("gzip", { bytes: packed, cut: false, limit });

    expect(bytes.toString()).toBe(`${page}<p>the end</p>`);
  });
});
