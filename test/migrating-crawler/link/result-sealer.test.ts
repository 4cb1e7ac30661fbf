/** When a crawler signs what it shipped. */
import { createPublicKey, verify } from "node:crypto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ResultSealer } from "#crawler/link/link-connection";
import { isSignedBy, sealText } from "#protocol/identity";
import { ResultDigest, sealAfter } from "#protocol/result";
import { testIdentity } from "../../gateway/sealing-crawler.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const identity = testIdentity();
const spoolId = "7f0c2f0e-6d0b-4a55-9a43-7e2a1c5d1b11";
const parts = (text: string) => ({ numbers: Buffer.from([1, 2]), text: Buffer.from(text) });

function sealer() {
  const seals: { first: number; last: number; signature: string }[] = [];
  const made = new ResultSealer({
    sign: identity.sign,
    spoolId,
    send: ({ first, last, signature }) => seals.push({ first, last, signature }),
  });
  return { made, seals };
}

test("a seal follows a number of results, or a moment after the first", () => {
  const { made, seals } = sealer();

  for (let sequence = 5; sequence < 5 + sealAfter.results + 2; sequence += 1) made.add(sequence, parts("a"));
  const atOnce = seals.length;
  vi.advanceTimersByTime(sealAfter.ms);

  expect(atOnce).toBe(1);
  expect(seals.map(({ first, last }) => [first, last])).toEqual([
    [5, 36],
    [37, 38],
  ]);
});

test("a seal follows a number of bytes", () => {
  const { made, seals } = sealer();

  made.add(1, parts("a".repeat(sealAfter.bytes)));

  expect(seals).toMatchObject([{ first: 1, last: 1 }]);
});

test("a seal is made on request unless nothing was sent", () => {
  const { made, seals } = sealer();

  made.seal();
  made.add(1, parts("a"));
  made.seal();
  made.seal();
  vi.advanceTimersByTime(2 * sealAfter.ms);

  expect(seals).toMatchObject([{ first: 1, last: 1 }]);
});

test("a seal covers exactly these bytes in this order, of this spool", () => {
  const { made, seals } = sealer();
  const digestOf = (...texts: string[]) => {
    const digest = new ResultDigest();
    for (const text of texts) digest.add(parts(text));
    return digest.take();
  };
  made.add(1, parts("a"));
  made.add(2, parts("bc"));
  made.seal();
  const { signature } = seals[0]!;
  const holds = (digest: string, changes: object = {}) =>
    isSignedBy(identity.publicKey, sealText({ spoolId, first: 1, last: 2, digest, ...changes }), signature);

  expect(holds(digestOf("a", "bc"))).toBe(true);
  expect(holds(digestOf("ab", "c"))).toBe(false);
  expect(holds(digestOf("bc", "a"))).toBe(false);
  expect(holds(digestOf("a", "bc"), { last: 3 })).toBe(false);
  expect(holds(digestOf("a", "bc"), { spoolId: "0b0e7cf4-58ab-4c83-9d0f-2b1a4d6f6a01" })).toBe(false);
});

test("the signature is standard Ed25519 (RFC 8032)", () => {
  const { made, seals } = sealer();
  made.add(1, parts("a"));
  made.seal();
  const digest = new ResultDigest();
  digest.add(parts("a"));

  const text = Buffer.from(sealText({ spoolId, first: 1, last: 1, digest: digest.take() }));
  const der = Buffer.concat([
    Buffer.from("302a300506032b6570032100", "hex"),
    Buffer.from(identity.publicKey, "base64url"),
  ]);
  const key = createPublicKey({ key: der, format: "der", type: "spki" });
  expect(verify(null, text, key, Buffer.from(seals[0]!.signature, "base64url"))).toBe(true);
});
