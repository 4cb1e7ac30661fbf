/** Joining by invitation, what a connection must prove afterwards, copied folders, and awkward texts. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { afterEach, expect, it } from "vitest";
import { pinOf } from "#protocol/identity";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";
import { comeFrom, folderOf, helloFrom } from "./crawler-folder.ts";
import { helloOf } from "./gateway-on-loopback.ts";
import { newJoiningWorld } from "./joining-world.ts";
import { RawCrawler } from "./raw-crawler.ts";
import { testIdentity } from "./sealing-crawler.ts";

const world = await forThisFile(newJoiningWorld());
afterEach(async () => await world.reset());

it("an invitation becomes a crawler with a key of its own, over the pinned certificate", async () => {
  const invitation = await world.invite("athens", { pagesPerDay: 300 });
  const folder = folderOf("athens", invitation.secret);

  const { crawler, welcome, keyKept } = await world.come(folder);
  const shown = (crawler.socket as unknown as { _socket: TLSSocket })._socket.getPeerX509Certificate();
  const key = await crawler.next("coordinator:key");
  await keyKept();
  await until(async () => (await world.keptKeys("athens")) === 1, 5000);

  expect(invitation.coordinatorUrl).toBe(world.url);
  expect(invitation.certificatePin).toBe(pinOf(shown!));
  expect(welcome).toMatchObject({ protocolVersion: 7, ticket: expect.any(String), time: expect.any(String) });
  expect(key).toMatchObject({ scopes: ["probe", "crawl"], oldKeySeconds: 0 });
  const rows = await world.rows("select public_key, pages_per_day, state from crawler");
  expect(rows).toEqual([{ public_key: folder.identity.publicKey, pages_per_day: 300, state: "online" }]);
  await world.leave(crawler, "athens");
});

it("an invitation may be shown again by its identity until the key is kept, and by nobody else", async () => {
  const folder = folderOf("athens", (await world.invite("athens")).secret);

  const first = await world.come(folder, { forgetful: true });
  const lost = (await first.crawler.next("coordinator:key")).key;
  await world.leave(first.crawler, "athens");
  const stranger = await world.come(folderOf("athens", folder.key));
  const again = await world.come(folder);
  const { key } = await again.crawler.next("coordinator:key");
  await again.keyKept();
  await until(async () => (await world.keptKeys("athens")) === 1, 5000);
  await world.leave(again.crawler, "athens");
  const late = await world.come(folder);
  folder.key = lost;
  const withLostKey = await world.come(folder);
  folder.key = key;
  const withKey = await world.come(folder);

  expect(stranger.refuse).toMatchObject({
    code: "wrong-key",
    retry: false,
    reason: expect.stringContaining("used already"),
  });
  expect(late.refuse).toMatchObject({ code: "wrong-key", reason: expect.stringContaining("used already") });
  expect(withLostKey.refuse).toMatchObject({ code: "wrong-key" });
  expect(withKey.welcome).not.toBeNull();
  await world.leave(withKey.crawler, "athens");
});

it("a kept key whose confirmation was lost is valid, and ends the invitation", async () => {
  const { secret } = await world.invite("athens");
  const folder = folderOf("athens", secret);
  const first = await world.come(folder);
  folder.key = (await first.crawler.next("coordinator:key")).key;
  await world.leave(first.crawler, "athens");

  const second = await world.come(folder);
  await world.leave(second.crawler, "athens");
  folder.key = secret;
  const third = await world.come(folder);

  expect(second.welcome).not.toBeNull();
  expect(third.refuse?.reason).toContain("used already");
});

it("a wrong signature, an old challenge and no identity are refused, right key or not", async () => {
  const folder = await world.joined("athens");
  const instanceId = "5a0e7cf4-58ab-4c83-9d0f-2b1a4d6f6a01";
  const forged = await world.come(folder, {
    change: (hello) => ({ ...hello, identity: { ...hello.identity!, signature: "A".repeat(86) } }),
  });
  const old = await RawCrawler.connect(world.url, world.trusting);
  const replayed = await world.come(folder, {
    change: () => helloFrom(folder, { challenge: old.challenge!, instanceId }),
  });
  const bare = await RawCrawler.connect(world.url, world.trusting);
  await bare.send(helloOf("athens", { key: folder.key }));

  for (const { refuse } of [forged, replayed]) {
    expect(refuse).toMatchObject({
      code: "bad-signature",
      retry: false,
      reason: expect.stringContaining("for this connection"),
    });
  }
  expect(await bare.next("coordinator:refuse")).toMatchObject({ code: "bad-signature", retry: false });
  await until(async () => (await world.incidentKinds()).includes("no-identity"), 5000);
  old.disconnect();
});

it("a hello that an intermediary relays is refused: it is signed for its own TLS connection", async () => {
  const folder = await world.joined("athens");
  const invitation = await world.invite("berlin");
  const pem = (name: string) =>
    readFileSync(new URL(`../fixtures/tls/loopback.${name}.pem`, import.meta.url));
  const { hostname, port } = new URL(world.url);
  const between = createServer({ cert: pem("cert"), key: pem("key") }, (from) => {
    const to = connect({ host: hostname, port: Number(port), ca: pem("cert") });
    from.on("error", () => to.destroy()).pipe(to);
    to.on("error", () => from.destroy()).pipe(from);
  }).listen(0, "127.0.0.1");
  await once(between, "listening");
  const passed = world.url.replace(port, String((between.address() as AddressInfo).port));

  const known = await comeFrom(folder, passed, { options: world.trusting });
  const invited = await comeFrom(folderOf("berlin", invitation.secret), passed, { options: world.trusting });
  const stripped = await comeFrom(folder, passed, {
    options: world.trusting,
    change: (hello) => {
      const { binding: _, ...identity } = hello.identity!;
      return { ...hello, identity };
    },
  });
  const straight = await world.come(folder);
  between.close();

  for (const { refuse, welcome } of [known, invited, stripped]) {
    expect(welcome).toBeNull();
    expect(refuse).toMatchObject({ code: "bad-signature", retry: false });
  }
  expect(known.refuse?.reason).toContain("somebody on the way opens TLS");
  expect(straight.welcome).not.toBeNull();
  await world.leave(straight.crawler, "athens");
});

it("a crawler of before 0.2.0, which does not sign the TLS connection, is admitted", async () => {
  const folder = await world.joined("athens");
  const old = await RawCrawler.connect(world.url, world.trusting);

  await old.send(helloFrom(folder, { challenge: old.challenge!, instanceId: randomUUID() }));

  expect(await old.next("coordinator:welcome")).toMatchObject({ protocolVersion: 7 });
  await world.leave(old, "athens");
});

it("each connection has a challenge of its own", async () => {
  const connections = await Promise.all(
    [1, 2, 3].map(async () => await RawCrawler.connect(world.url, world.trusting)),
  );

  const challenges = connections.map(({ challenge }) => challenge);
  expect(new Set(challenges).size).toBe(3);
  expect(challenges.every((challenge) => Buffer.from(challenge!, "base64url").length === 32)).toBe(true);
  for (const connection of connections) connection.disconnect();
});

it("the operator hears of a removed crawler's key when somebody else uses it, not when the crawler does", async () => {
  const folder = await world.joined("athens");
  await world.rows("update crawler set revoked_at = now() where name = 'athens'");

  const owner = await world.come(folder);
  // Messages of earlier tests may still arrive.
  const own = (await world.incidentKinds()).filter((kind) => kind === "revoked-key");
  const thief = await world.come(folderOf("athens", folder.key, testIdentity()));
  await until(async () => (await world.incidentKinds()).includes("revoked-key"), 5000);

  expect([owner.refuse, thief.refuse]).toMatchObject([{ code: "revoked" }, { code: "revoked" }]);
  expect(own).toEqual([]);
});

it("a stolen key opens nothing without the identity, and the operator hears of it", async () => {
  const folder = await world.joined("athens");

  const thief = await world.come(folderOf("athens", folder.key, testIdentity()));
  await until(async () => (await world.incidentKinds()).includes("stolen-key"), 5000);
  const owner = await world.come(folder);

  expect(thief.refuse).toMatchObject({ code: "bad-signature", retry: false });
  expect(owner.welcome).not.toBeNull();
  await world.leave(owner.crawler, "athens");
});

// Copies of a crawler's folder, and harmless restarts.

it("a copied folder is refused while the original is at work, and the original continues", async () => {
  const folder = await world.joined("athens");
  const copy = { ...folder };
  const original = await world.come(folder);

  const copied = await world.come(copy);
  await until(async () => (await world.incidentKinds()).includes("copied-folder"), 5000);

  expect(copied.refuse).toMatchObject({
    code: "copied-folder",
    retry: false,
    reason: expect.stringContaining("127.0.0.1"),
  });
  expect(await world.stateOf("athens")).toBe("online");
  expect(original.crawler.received).toEqual([]);
  await world.leave(original.crawler, "athens");
});

it("of a folder and its copy one is refused even after the other has left", async () => {
  const folder = await world.joined("athens");
  const copy = { ...folder };
  for (const _ of [1, 2]) await world.leave((await world.come(folder)).crawler, "athens");

  const copied = await world.come(copy);
  const original = await world.come(folder);

  expect(copied.refuse).toMatchObject({ code: "copied-folder", retry: false });
  expect(original.welcome).not.toBeNull();
  await world.leave(original.crawler, "athens");
});

it("a process that ends between its welcome and storing its ticket is admitted again", async () => {
  const folder = await world.joined("athens");

  for (const _ of [1, 2, 3]) {
    const { crawler, welcome } = await world.come(folder, { forgetful: true });
    expect(welcome).not.toBeNull();
    await world.leave(crawler, "athens");
  }
  const { welcome, crawler } = await world.come(folder);

  expect(welcome).not.toBeNull();
  await world.leave(crawler, "athens");
});

it("the previous process's last words and the reason of its absence are kept", async () => {
  const folder = await world.joined("athens");
  await world.leave((await world.come(folder)).crawler, "athens");
  const lastEnd = { at: "2030-01-01T12:00:00.000Z", reason: "out of memory" };

  const { crawler } = await world.come(folder, { change: (hello) => ({ ...hello, lastEnd }) });

  const rows = await world.rows(
    "select last_words, last_end_at, was_offline_reason, host(seen_address) as seen_address from crawler",
  );
  expect(rows).toEqual([
    {
      last_words: "out of memory",
      last_end_at: new Date(lastEnd.at),
      was_offline_reason: expect.stringContaining("closed"),
      seen_address: "127.0.0.1",
    },
  ]);
  await world.leave(crawler, "athens");
});

// Text that an honest crawler may quote from a page it failed on, and extreme numbers, end no session, and a crash with such
// last words locks nobody out.

const nul = "a\u0000b";
const half = "c\ud800d";
const place = { country: "GR", latitude: 5e-324, longitude: -5e-324 };

it.each([
  ["NUL in its last words", { lastEnd: { at: "2026-11-24T12:00:00.000Z", reason: nul } }, "a\ufffdb"],
  [
    "half a pair in its last words",
    { lastEnd: { at: "2026-11-24T12:00:00.000Z", reason: half } },
    "c\ufffdd",
  ],
  ["an end in the year 0", { lastEnd: { at: "0000-01-01T00:00:00.000Z", reason: "x" } }, null],
  ["NUL in its place's name and version", { place: { ...place, name: nul }, softwareVersion: half }, null],
])("a hello with %s is accepted, and so is the next", async (_, more, kept) => {
  const folder = await world.joined("athens");

  const first = await world.come(folder, { change: (hello) => ({ ...hello, ...more }) });
  await world.leave(first.crawler, "athens");
  const second = await world.come(folder);

  expect([first.refuse, second.refuse]).toEqual([null, null]);
  const [row] = await world.rows(
    "select last_words, place, software_version from crawler where name = 'athens'",
  );
  if (kept !== null) expect(row?.last_words).toBe(kept);
  await world.leave(second.crawler, "athens");
});

it("a heartbeat, a goodbye and a probe report with such texts and numbers end no session", async () => {
  const folder = await world.joined("athens");
  await world.joined("berlin");
  const [other] = await world.rows("select crawler_id from crawler where name = 'berlin'");
  const crawlerId = Number(other?.crawler_id);
  const { crawler } = await world.come(folder);
  const figures = { openHosts: 0, spooledResults: 0, pages: 0, fetchedBytes: 0, shippedBytes: 0 };

  await crawler.send({ type: "crawler:heartbeat", ...figures, holdingBack: [nul, half] });
  const outcome = { type: "measured", method: "connect", rttMs: 5e-324, tries: 1 } as const;
  await crawler.send({ type: "crawler:peer-rtts", peers: [{ crawlerId, outcome }] });
  await until(
    async () =>
      (await world.rows("select heartbeat ->> 'holdingBack' as held from crawler where name = 'athens'"))[0]
        ?.held === '["a\ufffdb", "c\ufffdd"]',
    5000,
  );
  await crawler.send({ type: "crawler:goodbye", reason: nul });
  await until(async () => (await world.stateOf("athens")) === "offline", 5000);

  expect(crawler.received.filter(({ type }) => type === "coordinator:refuse")).toEqual([]);
  expect(await world.rows("select offline_reason from crawler where name = 'athens'")).toEqual([
    { offline_reason: expect.stringContaining("a\ufffdb") },
  ]);
});
