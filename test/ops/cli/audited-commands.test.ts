/** Every command that changes something records it in the audit log: real database, in this process. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createReleaseKeyStore } from "#coordinator/run/releases/release-store";
import type { Database } from "#db/server-database";
import { commandActor } from "#ops/cli/audit-command-change";
import { coordinatorCommand } from "#ops/cli/commands/coordinator";
import { writeNewKey } from "#ops/cli/release/release-key-file";
import { commandNamed, inProcess, said } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { testReleaseKey } from "../../support/releases.ts";
import { seedWorld } from "../../support/seed-world.ts";
import { signIn } from "../../support/signed-in.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let database: Database;
let folder: string;
beforeAll(async () => {
  folder = temporaryFolder("nearcrawl-audit-");
  database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query("update crawler set public_key = 'key of ' || name");
  await stateCoordinatorPlace(
    database.pool,
    { webUrl: "http://127.0.0.1:7411", certificatePin: null },
    new Date(),
  );
});
afterEach(async () => {
  await database.pool.query("truncate audit_entry");
});
afterAll(async () => {
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

const placed = (args: readonly string[]) => [
  ...args,
  ...["--database-url", database.url, "--schema", database.schema, "--home", folder],
];
/** What a command prints. */
const run = (command: Command | Promise<Command>, ...args: readonly string[]) => said(command, placed(args));
const outcome = (command: Command | Promise<Command>, ...args: readonly string[]) =>
  inProcess(command, placed(args));

/** Its entries in the log, oldest first. */
async function logged(): Promise<string[]> {
  const { rows } = await database.pool.query<{ actor: string; via: string; action: string; target: string }>(
    "select actor, via, action, target from audit_entry order by entry_id",
  );
  expect(rows.map(({ actor, via }) => [actor, via])).toEqual(rows.map(() => [commandActor(), "command"]));
  return rows.map(({ action, target }) => `${action} ${target}`);
}

it("of the fleet", async () => {
  await run(commandNamed("fleet"), "drain", "athens");
  await run(commandNamed("fleet"), "resume", "athens");
  await run(commandNamed("fleet"), "believe", "athens");
  await createReleaseKeyStore(database.pool).trustFirst(testReleaseKey.publicKey, new Date());
  await run(commandNamed("fleet"), "invite", "--name", "cairo");
  await run(commandNamed("fleet"), "reinvite", "athens");
  await database.pool.query("delete from release_key");
  await run(commandNamed("fleet"), "revoke-invitation", "1");
  await run(commandNamed("fleet"), "rotate", "athens");
  await database.pool.query("update crawler set signing_keys_since = now() where name = 'athens'");
  await run(commandNamed("fleet"), "renew-signing-key", "athens");
  await run(commandNamed("fleet"), "revoke", "tokyo");
  await run(commandNamed("fleet"), "kill", "berlin");
  await run(coordinatorCommand(), "add-crawler", "delhi", "--pages-per-day", "100");

  expect(await logged()).toEqual([
    "crawler-drained athens",
    "crawler-resumed athens",
    "crawler-trust-restored athens",
    "crawler-invited cairo",
    "crawler-reinvited athens",
    "invitation-revoked invitation 1",
    "crawler-key-rotated athens",
    "crawler-signing-key-asked athens",
    "crawler-revoked tokyo",
    "crawler-killed berlin",
    "crawler-key-issued delhi",
  ]);
});

it("of access, opt-outs and complaints, without what opens anything", async () => {
  const token = await run(commandNamed("operator-token"), "create", "ci", "--scope", "read");
  await run(commandNamed("operator-token"), "revoke", "ci");
  const link = await run(commandNamed("sign-in"), "--role", "staff", "--name", "anna");
  await run(commandNamed("opt-outs"), "add", "www.example.org", "--yes-remove", "0");
  await run(commandNamed("opt-outs"), "confirm", "1", "--yes-remove", "0");
  await run(commandNamed("opt-outs"), "lift", "1");
  const report = ["--target", "www.example.org", "--from", "abuse@isp.example", "--text", "too fast"];
  await run(commandNamed("complaints"), "add", ...report);
  await run(commandNamed("complaints"), "close", "1", "--words", "answered");

  expect(await logged()).toEqual([
    "token-created ci",
    "token-revoked ci",
    "sign-in-link-issued anna",
    "opted-out www.example.org",
    "opt-out-confirmed www.example.org",
    "opt-out-lifted www.example.org",
    "complaint-added www.example.org",
    "complaint-closed www.example.org",
  ]);
  const { rows } = await database.pool.query("select json_agg(a)::text as everything from audit_entry a");
  for (const secret of [/nco_[\w-]+/.exec(token)?.[0], /ncl_[\w-]+/.exec(link)?.[0]]) {
    expect(secret).toMatch(/^nc[ol]_[\w-]{43}$/);
    expect(rows[0].everything).not.toContain(secret);
  }
});

it("of releases", async () => {
  const bundle = join(folder, "bundle.mjs");
  writeFileSync(bundle, "console.log('a crawler');\n");
  const key = join(folder, "release-key.pem");
  await run(commandNamed("release"), "trust", writeNewKey(key, null));
  await said(commandNamed("release"), ["sign", bundle, "--key", key, "--version", "1.0.0"]);
  await run(commandNamed("release"), "publish", join(folder, "crawler-1.0.0.manifest.json"), bundle);
  await run(commandNamed("release"), "stage", "1.0.0", "--to", "all");
  await run(commandNamed("release"), "hold", "1.0.0", "--reason", "slow");
  await run(commandNamed("release"), "stage", "1.0.0", "--to", "all");
  await run(commandNamed("release"), "revoke", "1.0.0", "--key", key, "--reason", "it loses results");

  expect((await logged()).map((line) => line.replace(/[\w-]{43,}/, "…"))).toEqual([
    "release-key-trusted release keys",
    "release-published release 1.0.0",
    "release-staged release 1.0.0",
    "release-held release 1.0.0",
    "release-staged release 1.0.0",
    "release-revoked bundle …",
  ]);
});

it("and nothing where nothing was changed", async () => {
  const outcomes = [
    await outcome(commandNamed("fleet"), "drain", "nobody"),
    await outcome(commandNamed("fleet"), "trust"),
    await outcome(commandNamed("operator-token"), "revoke", "nobody"),
    await outcome(commandNamed("opt-outs"), "lift", "99"),
  ];

  expect(outcomes.map(({ code }) => code)).toEqual([3, 0, 3, 3]);
  expect(await logged()).toEqual([]);
});

it("lists who changed what, what was before, and says when nothing fits", async () => {
  await run(commandNamed("fleet"), "drain", "athens");
  await run(commandNamed("fleet"), "resume", "athens");

  const text = await run(commandNamed("audit"), "--target", "athens", "--limit", "1");
  const json = JSON.parse(await run(commandNamed("audit"), "--action", "crawler-drained", "--json"));
  const none = await outcome(commandNamed("audit"), "--actor", "nobody");
  const noDay = await outcome(commandNamed("audit"), "--since", "2026-13-01");

  expect(text).toMatch(/crawler-resumed +athens/);
  expect(text).toContain("Earlier ones: --before");
  expect(json).toMatchObject({ entries: [{ action: "crawler-drained", via: "command" }], more: false });
  expect(none).toMatchObject({ code: 3, out: expect.stringContaining("No entries match.") });
  expect([noDay.code, noDay.err]).toEqual([2, expect.stringContaining("not a day such as")]);
});

it("of who has access, as the page lists them", async () => {
  await signIn(database, "staff", { name: "ben", now: new Date() });
  await run(commandNamed("sign-in"), "--name", "dora", "--role", "partner", "--crawler", "athens");

  const access: {
    sessions: { name: string; sessionId: number }[];
    links: { name: string; linkId: number }[];
  } = JSON.parse(await run(commandNamed("access"), "list", "--json"));
  const session = access.sessions.find(({ name }) => name === "ben")?.sessionId;
  const link = access.links.find(({ name }) => name === "dora")?.linkId;
  const text = await run(commandNamed("access"), "list");
  const [ended, withdrawn] = [
    await run(commandNamed("access"), "end", String(session)),
    await run(commandNamed("access"), "withdraw", String(link)),
  ];
  const again = await outcome(commandNamed("access"), "end", String(session));

  expect(text).toMatch(/ben +staff/);
  expect(text).toMatch(/dora +partner \(athens\)/);
  expect([ended, withdrawn]).toEqual([
    "A session of ben was ended.\n",
    "The link for dora no longer works.\n",
  ]);
  expect(again.code).toBe(3);
  expect(await logged()).toEqual([
    "sign-in-link-issued dora",
    "session-ended ben",
    "sign-in-link-revoked dora",
  ]);
});
