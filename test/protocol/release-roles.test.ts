/** Who signs what: rotations and roots, including stolen keys. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { expect, test } from "vitest";
import { followRoles, type RootRoles, rootRoles } from "#protocol/release";
import { coSign, type Envelope, openEnvelope, rawPublicKey, signBody } from "#protocol/release-envelope";

const createdAt = "2030-03-01T12:00:00.000Z";
const product = "nearcrawl-crawler";
const newKey = () => generateKeyPairSync("ed25519").privateKey;
const [a, b, c, d, release, revoking, stating] = Array.from({ length: 7 }, newKey) as [
  KeyObject,
  KeyObject,
  KeyObject,
  KeyObject,
  KeyObject,
  KeyObject,
  KeyObject,
];
const roleOf = (threshold: number, ...keys: KeyObject[]) => ({ keys: keys.map(rawPublicKey), threshold });

const roles: RootRoles["roles"] = {
  root: roleOf(2, a, b, c),
  releases: roleOf(1, release),
  revocations: roleOf(1, revoking),
  timestamp: roleOf(1, stating),
};
const root = (sequence: number, stated: RootRoles["roles"], ...[first, ...more]: KeyObject[]): Envelope =>
  more.reduce(
    (signed, key) => coSign(signed, "root", key),
    signBody("root", { product, sequence, createdAt, roles: stated }, first as KeyObject),
  );
const rotation = (sequence: number, to: KeyObject, by: KeyObject, retires: KeyObject | null = null) =>
  signBody(
    "key",
    {
      ...{ product, sequence, createdAt, newKey: rawPublicKey(to) },
      retires: retires === null ? null : rawPublicKey(retires),
    },
    by,
  );
const pinned = roleOf(1, a);
const first = root(1, roles, a, b);

test("a root is followed when the keys before it and enough of its own have signed it", () => {
  expect(followRoles(pinned, [first])).toMatchObject({ roles, hasRoot: true, followed: [first] });
  expect(followRoles(pinned, [root(1, roles, a)]).followed).toEqual([]);
  expect(followRoles(pinned, [root(1, roles, b, c)]).followed).toEqual([]);
});

test("domains of coordinators count as the last root states them", () => {
  const [domains, none] = [{ ...roles, coordinators: ["crawl.example.net"] }, roles];
  const stated = root(2, domains, a, b);

  expect(followRoles(pinned, [first, stated]).roles.coordinators).toEqual(["crawl.example.net"]);
  expect(followRoles(pinned, [first, stated, root(3, none, a, b)]).roles.coordinators).toBeUndefined();
});

test("one stolen key of three changes nothing, even when used twice", () => {
  const thiefs: RootRoles["roles"] = { ...roles, releases: roleOf(1, d) };
  const alone = root(2, thiefs, c);
  const twice = { ...alone, signatures: [...alone.signatures, ...alone.signatures] };
  const beside = root(2, { ...thiefs, root: roleOf(2, c, d) }, c, d);

  const { roles: held, followed } = followRoles(pinned, [
    first,
    ...[alone, twice, beside, rotation(3, d, c, a), rotation(4, d, release), root(5, thiefs, release, d)],
  ]);

  expect(held).toEqual(roles);
  expect(followed).toEqual([first]);
});

test("two of three replace the stolen key, which no longer counts", () => {
  const without: RootRoles["roles"] = { ...roles, root: roleOf(2, a, b, d) };
  const second = root(2, without, a, b);

  const back = root(3, roles, c, a);

  const after = followRoles(pinned, [first, second, back, first, root(2, roles, a, b, c)]);

  expect(after.roles).toEqual(without);
  expect(after.followed).toEqual([first, second]);
  expect(followRoles(pinned, [first, second, coSign(back, "root", d)]).roles).toEqual(roles);
});

test("after a root no rotation is followed, even where one root key is enough", () => {
  const one = root(1, { ...roles, root: roleOf(1, a) }, a);

  expect(followRoles(pinned, [one, rotation(2, d, a)]).followed).toEqual([one]);
  expect(followRoles(pinned, [rotation(1, d, a), root(2, roles, d, a, b)]).roles).toEqual(roles);
});

test("a later supervisor pins the root keys and their threshold", () => {
  const later = roleOf(2, a, b, c);

  expect(followRoles(later, [first]).roles).toEqual(roles);
  expect(followRoles(later, [root(1, { ...roles, root: roleOf(1, c) }, c)]).followed).toEqual([]);
  expect(followRoles(later, [rotation(1, d, c)]).followed).toEqual([]);
  expect(followRoles(later, [coSign(rotation(1, d, c), "key", b)]).roles.releases).toEqual(
    roleOf(2, a, b, c, d),
  );
});

test("each key signs its own kind alone", () => {
  const schema = rootRoles.partial();
  const signedBy = (key: KeyObject, kind: "release" | "revocations" | "timestamp") => signBody(kind, {}, key);
  const opened = (["release", "revocations", "timestamp"] as const).map((kind) =>
    [release, revoking, stating].map((key) => {
      const role = { release: roles.releases, revocations: roles.revocations, timestamp: roles.timestamp }[
        kind
      ];
      return !("refused" in openEnvelope(signedBy(key, kind), { kind, role, schema }));
    }),
  );

  expect(opened).toEqual([
    [true, false, false],
    [false, true, false],
    [false, false, true],
  ]);
});

test.each([
  ["a threshold beyond its keys", { ...roles, root: roleOf(3, a, b) }],
  ["a threshold of none", { ...roles, releases: roleOf(0, release) }],
  ["a key named twice", { ...roles, root: roleOf(2, a, a) }],
  ["nobody to sign", { ...roles, timestamp: { keys: [], threshold: 1 } }],
] satisfies [string, RootRoles["roles"]][])("a root with %s is not followed", (_, stated) => {
  expect(followRoles(pinned, [root(1, stated, a, b)]).followed).toEqual([]);
});
