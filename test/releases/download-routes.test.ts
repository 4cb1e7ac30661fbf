/** Releases over HTTP from a database that commands filled, fetched and verified as by a supervisor. */
import { rmSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterAll, describe, expect, test } from "vitest";
import type { DownloadLimits } from "#coordinator/run/releases/download-routes";
import {
  createReleaseFileStore,
  createReleaseKeyStore,
  createReleaseStore,
  partnerProgram,
} from "#coordinator/run/releases/release-store";
import { currentRelease, keysFile, verifyManifest } from "#protocol/release";
import { anyOf, readEnvelope } from "#protocol/release-envelope";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { publishedRelease, releaseNow, signedRevocations, testReleaseKey } from "../support/releases.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
const folder = temporaryFolder("nearcrawl-dock-");
const app = releaseServer();
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("a release over HTTP", () => {
  test("can be fetched and verified with only the pinned key", async () => {
    const { digest } = await publishedRelease(database.pool, { version: "1.0.0", stage: "all" });

    const bundle = await app.inject(`/releases/${digest}`);
    const manifest = await app.inject(`/releases/${digest}/manifest.json`);
    const signed = readEnvelope(manifest.body);
    const verified =
      "refused" in signed
        ? signed
        : verifyManifest(signed, {
            role: anyOf([testReleaseKey.publicKey]),
            now: releaseNow,
            newestSequence: 0,
            revocations: null,
            dockVersion: "1.0.0",
            bundle: bundle.rawPayload,
          });

    expect(verified).toMatchObject({ ok: true, manifest: { version: "1.0.0", digest } });
    const repr = `sha-256=:${Buffer.from(digest, "hex").toString("base64")}:`;
    expect(bundle.headers).toMatchObject({ etag: `"${digest}"`, "repr-digest": repr });
  });

  test("is not sent again to a client that has it", async () => {
    const { digest } = await publishedRelease(database.pool, { version: "1.0.1", stage: "one" });

    const manifest = await app.inject(`/releases/${digest}/manifest.json`);
    const again = await Promise.all(
      [
        [`/releases/${digest}`, `"${digest}"`],
        [`/releases/${digest}/manifest.json`, `W/${manifest.headers.etag}`],
      ].map(([url, tag]) => app.inject({ url: url ?? "", headers: { "if-none-match": tag } })),
    );

    expect(again.map(({ statusCode, body }) => [statusCode, body])).toEqual([
      [304, ""],
      [304, ""],
    ]);
  });

  test("is not available before it is offered, while it is held, or after it was revoked", async () => {
    const { digest, version } = await publishedRelease(database.pool, { version: "1.1.0", stage: "none" });
    const store = createReleaseStore(database.pool);
    const stage = async (to: "all" | "none") =>
      await store.setStage(version, { stage: to, percent: null, words: "", soakMinutes: null }, releaseNow);
    const answers = async () => {
      const urls = [`/releases/${digest}`, `/releases/${digest}/manifest.json`];
      return (await Promise.all(urls.map((url) => app.inject(url)))).map(({ statusCode }) => statusCode);
    };

    const [before, offered] = [await answers(), await stage("all").then(answers)];
    const held = await stage("none").then(answers);
    await stage("all");
    await store.revoke(signedRevocations(1, [digest]), releaseNow);
    const revoked = await answers();
    const list = await app.inject("/releases/revocations.json");

    expect([before, offered, held, revoked]).toEqual([
      [404, 404],
      [200, 200],
      [404, 404],
      [404, 404],
    ]);
    expect(list.json().body).toContain(digest);
  });

  test.each(["f".repeat(64), "F".repeat(64), "..%2f..%2fetc%2fpasswd", "%00", "1.0.0"])(
    "%s is answered with words and 404",
    async (digest) => {
      const answer = await app.inject({
        url: `/releases/${digest}`,
        headers: { accept: "application/json" },
      });

      expect(answer.statusCode).toBe(404);
      expect(answer.json().error.message).toMatch(/No release with this digest|Nothing is at this address/);
    },
  );

  test("offered to all is what a new supervisor finds, with everything to verify it", async () => {
    await publishedRelease(database.pool, { version: "2.0.0", stage: "all" });
    await publishedRelease(database.pool, { version: "2.1.0", stage: "one" });

    const current = currentRelease.parse((await app.inject("/releases/current.json")).json());
    const keys = keysFile.parse((await app.inject("/releases/keys.json")).json());

    expect(JSON.parse(current.manifest?.body ?? "")).toMatchObject({ version: "2.0.0" });
    expect([current.rotations, keys.rotations]).toEqual([[], []]);
  });
});

test("the partner program is served as it is on disk, or answered with what is missing", async () => {
  const file = join(folder, "nearcrawl-crawler.mjs");

  const missing = await app.inject("/releases/dock.mjs");
  writeFileSync(file, "export const dock = 1;\n");
  const first = await app.inject("/releases/dock.mjs");
  writeFileSync(file, "export const dock = 'another';\n");
  const second = await app.inject("/releases/dock.mjs");

  expect([missing.statusCode, missing.body]).toEqual([404, expect.stringContaining("npm run build")]);
  expect([first.body, second.body]).toEqual(["export const dock = 1;\n", "export const dock = 'another';\n"]);
  expect(first.headers.etag).not.toBe(second.headers.etag);
});

test("readers that take nothing use only their places, and lose them", async () => {
  const large = Buffer.alloc(16 * 1024 * 1024, "x").toString();
  const { digest } = await publishedRelease(database.pool, { version: "3.0.0", stage: "all", bundle: large });
  const server = releaseServer({ downloads: 2, downloadsPerAddress: 1, silenceMs: 2000 });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}/releases/${digest}`;

  const silent = get(url).on("error", () => {});
  const started = await new Promise<IncomingMessage>((resolve) => silent.on("response", resolve));
  started.pause().on("error", () => {});
  const second = await fetch(url);
  const page = await fetch(new URL("/health", url));
  await until(async () => (await fetch(url, { method: "HEAD" })).status === 200, 20_000);
  const third = await fetch(url);
  const bytes = (await third.arrayBuffer()).byteLength;
  silent.destroy();
  await server.close();

  expect([second.status, second.headers.get("retry-after"), page.status]).toEqual([503, "30", 200]);
  expect([third.status, bytes]).toEqual([200, large.length]);
});

function releaseServer(limits: Partial<DownloadLimits> = {}): FastifyInstance {
  const { pool } = database;
  return webServer(database, {
    releaseFiles: {
      files: createReleaseFileStore(pool),
      releases: createReleaseStore(pool),
      keys: createReleaseKeyStore(pool),
      program: partnerProgram([join(folder, "nearcrawl-crawler.mjs")]),
      now: () => releaseNow,
      limits,
    },
  });
}
