/** `nearcrawl release` on a real database and real files: from the first key to a revoked release. */
import { createHash, createPrivateKey } from "node:crypto";
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { createReleaseFleetStore } from "#coordinator/run/releases/fleet-store";
import type { ReleaseLine } from "#coordinator/run/releases/versions-ask";
import { writeNewKey } from "#ops/cli/release/release-key-file";
import { followRoles, type ReleaseManifest } from "#protocol/release";
import { anyOf, readEnvelope } from "#protocol/release-envelope";
import type { Outcome } from "../../support/built-command.ts";
import { commandNamed, inProcess, said } from "../../support/command-in-process.ts";
import { newFlowWorld } from "../../support/flow-world.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const world = await forThisFile(newFlowWorld());
let folder: string;
beforeEach(async () => {
  await world.reset();
  await world.pool.query(
    "truncate release_key, release_key_rotation, release_revocation, release_timestamp, release_bundle, release, release_offer",
  );
  folder = temporaryFolder("nearcrawl-release-");
  writeFileSync(at("bundle.mjs"), "console.log('a crawler');\n");
  return () => rmSync(folder, { recursive: true, force: true });
});

describe("a new fleet", () => {
  test("takes no release before it trusts a key", async () => {
    await run("keygen", "--out", at("key.pem"));
    await signed("1.0.0");

    expect(await refused(...publishing("1.0.0"))).toEqual(
      usage("no release key yet: nearcrawl release trust KEY"),
    );
  });
});

describe("a key", () => {
  test("is locked by its passphrase, readable only by its owner, and never overwritten", async () => {
    writeFileSync(at("passphrase"), "wind in the sails\n");
    writeFileSync(at("wrong"), "no wind\n");
    await run("keygen", "--out", at("key.pem"), "--passphrase-file", at("passphrase"));
    const pem = readFileSync(at("key.pem"), "utf8");
    const { mode } = statSync(at("key.pem"));
    const sign = [
      "sign",
      at("bundle.mjs"),
      "--key",
      at("key.pem"),
      "--version",
      "1.0.0",
      "--out",
      at("m.json"),
    ];

    expect(mode & 0o777).toBe(0o600);
    expect(() => createPrivateKey(pem)).toThrow();
    expect(createPrivateKey({ key: pem, passphrase: "wind in the sails" }).asymmetricKeyType).toBe("ed25519");
    expect(await refused(...sign, "--passphrase-file", at("wrong"))).toEqual(
      usage("or the passphrase is wrong"),
    );
    expect(await refused("keygen", "--out", at("key.pem"))).toEqual(usage("never overwritten"));
    await run(...sign, "--passphrase-file", at("passphrase"));
    chmodSync(at("key.pem"), 0o640);
    expect(await refused(...sign, "--passphrase-file", at("passphrase"))).toEqual(usage("chmod 600"));
  });

  test("never has a public half that looks like an option", () => {
    const halves = Array.from({ length: 400 }, (_, number) => writeNewKey(at(`${number}.pem`), null));

    expect(halves.filter((half) => half.startsWith("-"))).toEqual([]);
  });

  test("that replaces another is accepted from a file, and the old one's releases are no longer offered", async () => {
    const [old, next] = [await newKey("old.pem"), await newKey("next.pem")];
    await run("trust", old);
    await signed("1.0.0", "old.pem");
    await publish("1.0.0");
    await run("stage", "1.0.0", "--to", "all");
    const rotate = [
      "rotate-key",
      "--old",
      at("old.pem"),
      "--new",
      at("next.pem"),
      "--out",
      at("rotation.json"),
    ];
    await run(...rotate);

    const words = await run("accept", at("rotation.json"));
    const rotation = readEnvelope(readFileSync(at("rotation.json"), "utf8"));
    await signed("1.1.0", "old.pem");
    await signed("1.2.0", "next.pem");

    expect(words).toContain("the keys are rotated");
    expect(
      "refused" in rotation ? rotation : followRoles(anyOf([old]), [rotation]).roles.releases.keys,
    ).toEqual([next]);
    expect((await list())[0]).toMatchObject({ version: "1.0.0", trusted: false });
    expect(await run("list")).toMatch(/1\.0\.0.*its key was retired: sign it again/s);
    expect(await refused(...publishing("1.1.0"))).toEqual(usage("not signed by a trusted key"));
    expect(await run(...publishing("1.2.0"))).toContain("release 1.2.0 is published");
    expect(await refused("accept", at("rotation.json"))).toEqual(usage("sign it with a higher one"));
    await run(...rotate);
    expect(await refused("accept", at("rotation.json"))).toEqual(usage("not signed by a valid key"));
  });
});

describe("a release", () => {
  test("states its version, bundle, end, oldest supervisor and commit", async () => {
    const digest = createHash("sha256")
      .update(readFileSync(at("bundle.mjs")))
      .digest("hex");
    writeFileSync(at("bundle.mjs.json"), JSON.stringify({ digest, builtFrom: "a".repeat(40) }));
    await newKey("key.pem");

    const manifest = await signed("1.4.0", "key.pem", "--expires-days", "10", "--notes", "fewer «questions»");

    const days = (Date.parse(manifest.expiresAt) - Date.parse(manifest.createdAt)) / 86_400_000;
    expect(manifest).toMatchObject({ digest, builtFrom: "a".repeat(40), oldestDock: "1.0.0", bytes: 26 });
    expect([days, manifest.notes, manifest.version]).toEqual([10, "fewer «questions»", "1.4.0"]);
  });

  test("is verified before it is published, and can be verified by anyone", async () => {
    const key = await newKey("key.pem");
    const other = await newKey("other.pem");
    await run("trust", key);
    await signed("1.4.0");
    const verify = (...more: string[]) => outcome("verify", at("crawler-1.4.0.manifest.json"), ...more);

    expect(await verify(at("bundle.mjs"))).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^genuine: release 1\.4\.0/),
    });
    expect(await verify("--trust", other)).toMatchObject({
      code: 1,
      out: expect.stringContaining("not genuine: it is not signed by a trusted key"),
    });
    writeFileSync(at("bundle.mjs"), "console.log('A crawler');\n");
    expect(await refused(...publishing("1.4.0"))).toEqual(usage("the bundle's SHA-256 is"));
  });

  test("goes to one crawler, is counted there, is held, and is revoked", async () => {
    const crawlerId = await world.arrived("athens");
    const fleet = createReleaseFleetStore(world.pool);
    const runs = { version: "1.3.0", digest: "0".repeat(64), dockVersion: "1.0.0", policy: "newest" };
    await fleet.arrived(crawlerId, runs);
    await run("trust", await newKey("key.pem"));
    await signed("1.4.0");
    await publish("1.4.0");

    const staged = await run("stage", "1.4.0", "--to", "one");
    await fleet.reported(crawlerId, { version: "1.4.0", state: "running", reason: "" }, new Date());
    const running = await run("list");
    await run("hold", "1.4.0", "--reason", "the notes are wrong");
    const held = await run("list");
    await run("revoke", "1.4.0", "--key", at("key.pem"), "--reason", "it loses results");
    const revoked = await run("list");

    expect(staged).toContain("1.4.0 is offered to athens.");
    expect(running).toMatch(/1\.4\.0.*Offered to one \(athens\)\..*running 1/s);
    expect(held).toMatch(/1\.4\.0.*Offered to nobody\..*the notes are wrong/s);
    expect(revoked).toMatch(/1\.4\.0.*it loses results/s);
    expect(await refused("stage", "1.4.0", "--to", "all")).toEqual(usage("it was revoked"));
  });

  test("that moves by itself says so, and a list of revoked releases signed elsewhere continues the previous one", async () => {
    await createReleaseFleetStore(world.pool).arrived(await world.arrived("athens"), {
      version: "1.3.0",
      digest: "0".repeat(64),
      dockVersion: "1.0.0",
      policy: "newest",
    });
    await run("trust", await newKey("key.pem"));
    await signed("1.4.0");
    await publish("1.4.0");
    const revoke = ["--key", at("key.pem"), "--reason", "bad", "--out"];

    const automatic = await run("auto", "1.4.0", "--soak-minutes", "5").then(() => run("list"));
    await run("revoke", "1".repeat(64), ...revoke, at("first.json"));
    await run("accept", at("first.json"));
    const [release] = await list();
    const both = [
      "revoke",
      release?.digest ?? "",
      ...revoke,
      at("second.json"),
      "--previous",
      at("first.json"),
    ];
    const second = JSON.parse(await run(...both, "--json")) as { digests: string[] };

    expect(automatic).toMatch(/one .*no crawler runs it yet/s);
    expect(second.digests).toEqual(["1".repeat(64), release?.digest]);
  });
});

describe("the rights of signers", () => {
  test("accepts two of three for a root, one key only for lists, and another for the newest release", async () => {
    const keys = new Map<string, string>();
    for (const name of ["release", "a", "b", "revoking", "stating"])
      keys.set(name, await newKey(`${name}.pem`));
    const publicKey = (name: string) => keys.get(name) ?? "";
    const role = (threshold: number, ...names: string[]) => ({ keys: names.map(publicKey), threshold });
    await run("trust", publicKey("release"));
    await signed("1.0.0", "release.pem");
    await publish("1.0.0");
    await run("stage", "1.0.0", "--to", "all");
    const unstated = await run("keys");
    writeFileSync(
      at("roles.json"),
      JSON.stringify({
        root: role(2, "release", "a", "b"),
        releases: role(1, "release"),
        revocations: role(1, "revoking"),
        timestamp: role(1, "stating"),
      }),
    );
    const revoke = ["revoke", "1".repeat(64), "--reason", "it lies", "--yes", "--key"];

    const half = await run("root", at("roles.json"), "--key", at("release.pem"), "--out", at("root.json"));
    const early = await refused("accept", at("root.json"));
    await run("cosign", at("root.json"), "--key", at("b.pem"));
    const accepted = await run("accept", at("root.json"));

    expect(unstated).not.toContain("stated until");
    expect(half).toContain("signed by 1 of the 2 root keys that it takes: nearcrawl release cosign");
    expect(early).toEqual(usage("or by too few of the root keys that it names"));
    expect(accepted).toContain("the root is in force");
    expect(await refused("trust", publicKey("a"))).toEqual(usage("a root says who signs"));
    expect(await refused("timestamp", "--key", at("release.pem"))).toEqual(
      usage("not signed by a trusted key"),
    );
    expect(await refused(...revoke, at("release.pem"))).toEqual(usage("not signed by a trusted key"));
    expect(await run(...revoke, at("revoking.pem"))).toContain("is revoked");
    expect(await run("timestamp", "--key", at("stating.pem"), "--days", "30")).toMatch(
      /^release 1\.0\.0 is the newest for all, the list of revoked ones has number \d+; good until /,
    );
    expect(await run("keys")).toMatch(
      new RegExp(`root .*threshold 2\nreleases +keys ${publicKey("release")}, .*stated until +2`, "s"),
    );
    const rotate = ["rotate-key", "--old", at("a.pem"), "--new", at("b.pem"), "--out", at("rotation.json")];
    await run(...rotate);
    expect(await refused("accept", at("rotation.json"))).toEqual(usage("only a root changes who signs here"));
  });

  test.each([
    ["cut off", "{", "JSON"],
    ["without a key", '{"root":{"keys":[],"threshold":1}}', "root.keys"],
    ["of 64 KiB and a byte", " ".repeat(65_537), "it has more than 65536 bytes"],
  ])("roles %s are refused with the file and the field", async (_what, text, words) => {
    await newKey("key.pem");
    writeFileSync(at("roles.json"), text);

    const [code, err] = await refused("root", at("roles.json"), "--key", at("key.pem"));

    expect([code, err]).toEqual([2, expect.stringContaining("roles.json: ")]);
    expect(err).toContain(words);
  });
});

const at = (name: string) => join(folder, name);

async function outcome(...args: string[]): Promise<Outcome> {
  return await inProcess(commandNamed("release"), placed(args));
}

async function run(...args: string[]): Promise<string> {
  return await said(commandNamed("release"), placed(args));
}

/** Its exit code and standard error. */
async function refused(...args: string[]): Promise<[code: number, err: string]> {
  const { code, err } = await outcome(...args);
  return [code, err];
}

const usage = (words: string) => [2, expect.stringContaining(words)];

function placed(args: readonly string[]): string[] {
  const { url, schema } = world.database;
  const local = new Set(["keygen", "build", "sign", "rotate-key", "root", "cosign"]);
  const where = local.has(args[0] ?? "") ? [] : ["--database-url", url, "--schema", schema, "--home", folder];
  return [...args, ...where];
}

async function list(): Promise<ReleaseLine[]> {
  return JSON.parse(await run("list", "--json")).releases as ReleaseLine[];
}

async function newKey(name: string): Promise<string> {
  return (JSON.parse(await run("keygen", "--out", at(name), "--json")) as { publicKey: string }).publicKey;
}

async function signed(version: string, key = "key.pem", ...more: string[]): Promise<ReleaseManifest> {
  const sign = ["sign", at("bundle.mjs"), "--key", at(key), "--version", version, "--json", ...more];
  return (JSON.parse(await run(...sign)) as { manifest: ReleaseManifest }).manifest;
}

async function publish(version: string): Promise<string> {
  return await run(...publishing(version));
}

const publishing = (version: string) => ["publish", at(`crawler-${version}.manifest.json`), at("bundle.mjs")];
