/** Invitations, keys and tokens by command: a real database, exit codes. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import type { IssuedInvitation } from "#coordinator/run/access/invitations";
import { createReleaseKeyStore } from "#coordinator/run/releases/release-store";
import { pinOf } from "#protocol/identity";
import { parseInvitation } from "#protocol/invitation";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { publishedRelease, testReleaseKey } from "../../support/releases.ts";
import { newWorld, type World } from "../../support/store-world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
afterAll(async () => await world.close());

const certificate = new URL("../../fixtures/tls/loopback.cert.pem", import.meta.url).pathname;

const nearcrawl = (_name: "fleet", ...args: readonly string[]) => {
  const { url, schema } = world.database;
  return inProcess(commandNamed("fleet"), [...args, "--database-url", url, "--schema", schema]);
};

it("without a release key invitations are refused; with one, a missing release for all is reported", {
  timeout: 120_000,
}, async () => {
  const invite = async (name: string) =>
    await nearcrawl("fleet", "invite", "--name", name, "--url", "wss://search.example/crawler");

  const none = await invite("oslo");
  const kept = await world.rows("select from invitation");
  await createReleaseKeyStore(world.pool).trustFirst(testReleaseKey.publicKey, new Date());
  const waiting = await invite("oslo");
  await publishedRelease(world.pool, {
    ...{ version: "1.0.0", stage: "all" },
    manifest: { expiresAt: new Date(Date.now() + 86_400_000).toISOString() },
  });
  const ready = await invite("paris");
  await world.pool.query("truncate invitation restart identity");

  expect([none.code, kept.length, waiting.code, ready.code]).toEqual([2, 0, 0, 0]);
  expect(none.err).toMatch(/no release key.*nearcrawl release trust/);
  expect(waiting.out).toMatch(/no release is offered to all.*it will wait/i);
  expect(ready.out).toContain("It starts with release 1.0.0");
});

it("an invitation pins its settings, is listed, and is withdrawn", { timeout: 120_000 }, async () => {
  const where = ["--url", "wss://search.example/crawler", "--pin", certificate];
  const [made, nowhere] = await Promise.all([
    nearcrawl(
      "fleet",
      "invite",
      "--name",
      "athens",
      "--capacity",
      "500",
      "--expires-hours",
      "2",
      ...where,
      "--json",
    ),
    nearcrawl("fleet", "invite", "--name", "berlin", "--url", "http://192.0.2.1/crawler"),
  ]);
  const place = { webUrl: "https://search.example", certificatePin: "A".repeat(43), hasPublicUrl: true };
  await stateCoordinatorPlace(world.pool, place, new Date());
  const [unsure, sure] = await Promise.all([
    nearcrawl("fleet", "invite", "--name", "cairo"),
    nearcrawl("fleet", "invite", "--name", "delhi", "--no-pin"),
  ]);
  const pem = (name: string) =>
    readFileSync(new URL(`../../fixtures/tls/loopback.${name}.pem`, import.meta.url));
  const proxy = createServer({ cert: pem("cert"), key: pem("key") }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const webUrl = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const warnings: string[] = [];
  for (const [name, pin] of [
    ["essen", "A".repeat(43)],
    ["fes", pinOf(pem("cert"))],
  ] as const) {
    await stateCoordinatorPlace(world.pool, { ...place, webUrl, certificatePin: pin }, new Date());
    warnings.push((await nearcrawl("fleet", "invite", "--name", name)).err);
  }
  proxy.close();
  const listed = await nearcrawl("fleet", "invitations");
  const withdrawn = await nearcrawl("fleet", "revoke-invitation", "1");

  expect([made.code, nowhere.code, listed.code, withdrawn.code]).toEqual([0, 2, 0, 0]);
  const issued = JSON.parse(made.out) as IssuedInvitation;
  expect(parseInvitation(issued.token)).toMatchObject({
    name: "athens",
    coordinatorUrl: "wss://search.example/crawler",
    certificatePin: pinOf(readFileSync(certificate)),
  });
  expect(issued.commands.installed).toBe("nearcrawl crawler join -");
  expect(JSON.stringify(issued.commands)).not.toContain(issued.token);
  expect(nowhere.err).toContain("publicUrl");
  expect(unsure.err).toContain("search.example cannot be reached from here");
  expect(warnings).toEqual([expect.stringContaining("shows another certificate than the coordinator's"), ""]);
  expect([unsure.code, sure.code, made.err + sure.err]).toEqual([0, 0, ""]);
  expect(listed.out).toMatch(/1 +athens +open .* 500 +crawling/);
});

it("a crawler with signing keys is asked for a new one, and its current key is shown", async () => {
  const oslo = await world.crawler("oslo");
  await world.pool.query(
    "update crawler set public_key = 'o', signing_keys_since = now() where crawler_id = $1",
    [oslo],
  );
  await world.pool.query(
    `insert into crawler_signing_key (public_key, crawler_id, identity_key, announced_at, expires_at)
     values ('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', $1, 'o', '2026-02-01T12:00Z', '2126-03-01T12:00Z')`,
    [oslo],
  );
  await world.crawler("older");

  const [asked, older, shown] = await Promise.all([
    nearcrawl("fleet", "renew-signing-key", "oslo"),
    nearcrawl("fleet", "renew-signing-key", "older"),
    nearcrawl("fleet", "show", "oslo"),
  ]);
  const json = await nearcrawl("fleet", "show", "oslo", "--json");

  expect([asked.code, older.code, shown.code]).toEqual([0, 2, 0]);
  expect(asked.out).toContain("oslo makes another signing key");
  expect(shown.out).toContain("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  expect(JSON.parse(json.out).inside).toMatchObject({
    identity: {
      signingKey: { keyId: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", since: "2026-02-01T12:00:00.000Z" },
    },
  });
  await world.pool.query("delete from crawler where name in ('oslo', 'older')");
});
