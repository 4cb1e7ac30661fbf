/** The length in a gzip file is only the sender's claim (RFC 1952 section 2.3.1). */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { decodeBody } from "#crawler/fetch/content-codings";

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
