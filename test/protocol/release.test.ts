import { createHash, generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  compareVersions,
  followRoles,
  type KeyRotation,
  type ManifestConditions,
  type ReleaseManifest,
  verifyManifest,
  verifyRevocations,
} from "#protocol/release";
import {
  anyOf,
  type Envelope,
  formatEnvelope,
  rawPublicKey,
  readEnvelope,
  signBody,
} from "#protocol/release-envelope";

const bundle = Buffer.from("export const crawler = 'small';\n".repeat(20));
const now = new Date("2030-03-01T12:00:00Z");
const [first, second, stranger] = [newKey(), newKey(), newKey()];

const manifest: ReleaseManifest = {
  product: "nearcrawl-crawler",
  version: "1.2.0",
  sequence: 7,
  digest: createHash("sha256").update(bundle).digest("hex"),
  bytes: bundle.length,
  builtFrom: "0123456789abcdef",
  createdAt: "2030-02-28T12:00:00.000Z",
  expiresAt: "2030-05-28T12:00:00.000Z",
  oldestDock: "1.0.0",
  protocolVersions: [3, 2, 1],
  notes: "Ταχύτερο: 'quoted', \"escaped\" and \\ kept",
};

const conditions: ManifestConditions = {
  role: anyOf([rawPublicKey(first)]),
  now,
  newestSequence: 7,
  revocations: null,
  dockVersion: "1.0.0",
  bundle,
};

describe("a release's manifest", () => {
  test("is accepted when everything holds, and reads as it was written", () => {
    const verified = verifyText(formatEnvelope(signBody("release", manifest, first)));

    expect(verified).toEqual({ ok: true, manifest, signers: [rawPublicKey(first)] });
  });

  test("is refused with any one byte of its file changed, taken out or doubled", () => {
    const file = Buffer.from(formatEnvelope(signBody("release", manifest, first)), "latin1");
    const changed = [...file.keys()].flatMap((at) => [
      ...[0x01, 0x08, 0x20, 0x80].map((bit) => withByte(file, at, (file[at] ?? 0) ^ bit)),
      Buffer.concat([file.subarray(0, at), file.subarray(at + 1)]),
      Buffer.concat([file.subarray(0, at + 1), file.subarray(at)]),
    ]);

    const believed = changed.filter(
      (bytes) => !bytes.equals(file) && "ok" in verifyText(bytes.toString("latin1")),
    );

    expect(believed).toEqual([]);
  });

  test("is refused with any one byte of the bundle changed, or one more or less", () => {
    const signed = signBody("release", manifest, first);
    const changed = [
      ...[...bundle.keys()].map((at) => withByte(bundle, at, (bundle[at] ?? 0) ^ 1)),
      bundle.subarray(1),
      Buffer.concat([bundle, Buffer.from(" ")]),
    ];

    const believed = changed.filter(
      (other) => "ok" in verifyManifest(signed, { ...conditions, bundle: other }),
    );

    expect(believed).toEqual([]);
  });

  test.each([
    ["signed by a stranger", signBody("release", manifest, stranger), {}, "not signed by a trusted key"],
    ["signed as something else", signBody("revocations", manifest, first), {}, "the signature by"],
    ["expired", signed({}), { now: new Date(manifest.expiresAt) }, "1.2.0 expired at 2030-05-28"],
    ["of a day that has not come", signed({ createdAt: "2030-03-02T12:00:01Z" }), {}, "clock"],
    ["older than what was here", signed({ sequence: 6 }), {}, "number 6, not 7 or more"],
    [
      "for a newer dock",
      signed({ oldestDock: "1.0.1" }),
      {},
      "needs supervisor 1.0.1 or newer, this one is 1.0.0",
    ],
    ["with a field too many", signBody("release", { ...manifest, run: "sh" }, first), {}, "not as expected"],
    ["of another product", signBody("release", { ...manifest, product: "x" }, first), {}, "product"],
    ["with notes without end", signed({ notes: "x".repeat(501) }), {}, "notes"],
  ] satisfies [string, Envelope, Partial<ManifestConditions>, string][])(
    "%s is refused",
    (_, made, other, words) => {
      const verified = verifyManifest(made, { ...conditions, ...other });

      expect(verified).toMatchObject({ refused: expect.stringContaining(words) });
    },
  );

  test("that was revoked is refused with the reason", () => {
    const list = { product: "nearcrawl-crawler", sequence: 1, createdAt: manifest.createdAt };
    const revocations = { ...list, digests: [manifest.digest], reason: "it loses results" } as const;
    const file = signBody("revocations", revocations, first);

    const checked = verifyRevocations(file, { role: conditions.role, newestSequence: 0 });
    const known = "ok" in checked ? checked.revocations : null;

    expect(verifyManifest(signed({}), { ...conditions, revocations: known })).toEqual({
      refused: "1.2.0 was revoked: it loses results",
    });
    expect(verifyRevocations(file, { role: conditions.role, newestSequence: 2 })).toHaveProperty("refused");
  });

  test("is accepted when an unknown key has signed beside a trusted one, not when a trusted signature is wrong", () => {
    const [ours, theirs, other] = [
      signed({}),
      signBody("release", manifest, stranger),
      signed({ sequence: 8 }),
    ];
    const both = { ...ours, signatures: [...theirs.signatures, ...ours.signatures] };
    const wrong = { ...ours, signatures: [...ours.signatures, ...other.signatures] };

    expect(verifyManifest(both, conditions)).toHaveProperty("ok");
    expect(verifyManifest(wrong, conditions)).toHaveProperty("refused");
  });

  test("in a file too long, too deep or of another form is refused before any key is tried", () => {
    const file = formatEnvelope(signed({}));

    const hostile = [" ".repeat(2_000_000), "[".repeat(500_000), `${file} `, file.trim(), "{}", "null", ""];

    for (const text of hostile) expect(readEnvelope(text)).toHaveProperty("refused");
  });
});

describe("rotated keys", () => {
  const [one, two, other] = [rawPublicKey(first), rawPublicKey(second), rawPublicKey(stranger)];
  const toSecond = rotation({ sequence: 1, newKey: two, retires: one }, first);

  test("continue from the pinned ones, and a retired key no longer counts", () => {
    const back = rotation({ sequence: 2, newKey: one, retires: null }, first);

    expect(signersAfter([one], [])).toEqual([one]);
    expect(signersAfter([one], [toSecond])).toEqual([two]);
    expect(followed([one], [toSecond, back])).toEqual({ before: [[one], [two]], followed: [toSecond] });
  });

  test("are followed by a dock that joined when some had been made already", () => {
    const toThird = rotation({ sequence: 2, newKey: other, retires: two }, second);

    expect(followed([two], [toSecond, toThird])).toEqual({ before: [[two], [other]], followed: [toThird] });
    expect(signersAfter([one], [toSecond, toSecond, toThird])).toEqual([other]);
  });

  test("are not followed when signed by an untrusted key, or in place of one that was followed", () => {
    const foreign = rotation({ sequence: 1, newKey: other, retires: one }, stranger);
    const again = rotation({ sequence: 1, newKey: other, retires: two }, second);

    expect(followed([one], [foreign])).toEqual({ before: [[one]], followed: [] });
    expect(followed([one], [toSecond, again])).toEqual({ before: [[one], [two]], followed: [toSecond] });
  });

  const followed = (pinned: readonly string[], links: readonly Envelope[]) => {
    const { before, followed: kept } = followRoles(anyOf(pinned), links);
    return { before: before.map(({ releases }) => releases.keys), followed: kept };
  };
  const signersAfter = (pinned: readonly string[], links: readonly Envelope[]) =>
    followRoles(anyOf(pinned), links).roles.releases.keys;
});

test.each([
  ["1.2.0", "1.10.0"],
  ["1.2.0-beta1", "1.2.0"],
  ["1.2.0-alpha", "1.2.0-beta"],
  ["1.2", "1.2.1"],
])("version %s is older than %s", (older, newer) => {
  expect(compareVersions(older, newer)).toBeLessThan(0);
  expect(compareVersions(newer, older)).toBeGreaterThan(0);
  expect(compareVersions(newer, `${newer}`)).toBe(0);
});

function newKey(): KeyObject {
  return generateKeyPairSync("ed25519").privateKey;
}

function signed(other: Partial<ReleaseManifest>): Envelope {
  return signBody("release", { ...manifest, ...other }, first);
}

function verifyText(text: string): ReturnType<typeof verifyManifest> {
  const read = readEnvelope(text);
  return "refused" in read ? read : verifyManifest(read, conditions);
}

function rotation(said: Pick<KeyRotation, "sequence" | "newKey" | "retires">, key: KeyObject): Envelope {
  return signBody("key", { product: "nearcrawl-crawler", createdAt: manifest.createdAt, ...said }, key);
}

function withByte(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = value;
  return copy;
}
