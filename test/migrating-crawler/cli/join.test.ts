/**
 * One command turns an invitation into a member, even when interrupted at any point; it can be refused or run in the
 * wrong folder.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { limitWords, proposedLimits } from "#crawler/check/proposed-limits";
import type { PartnerSurroundings } from "#crawler/cli/partner-commands";
import { readMembership, writeMembership } from "#crawler/core/membership";
import { homeSettings } from "#crawler/membership/home-folder";
import { openIdentity } from "#crawler/membership/identity";
import { Spool } from "#crawler/spool/spool";
import { pinOf } from "#protocol/identity";
import { atEnd } from "../../support/at-end.ts";
import { builtDoors, projectRoot } from "../../support/built-command.ts";
import { testReleaseKey } from "../../support/releases.ts";
import { until } from "../../support/until.ts";
import { partnerConsole } from "../support/partner-console.ts";
import { startConnectProxy, startSocks5Proxy } from "../support/proxies.ts";
import {
  inviteSecret,
  keyGiven,
  type SmallCoordinator,
  type SmallSettings,
  startSmallCoordinator,
} from "../support/small-coordinator.ts";

async function invited(settings?: SmallSettings, changes?: Partial<PartnerSurroundings>) {
  return { world: await startSmallCoordinator(settings), ...partnerConsole(changes) };
}

async function joined() {
  const made = await invited();
  await made.run("join", made.world.invitation());
  return made;
}

const pem = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url));
const tls = { cert: pem("loopback.cert.pem"), key: pem("loopback.key.pem") };
const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);

describe("join", () => {
  it("leaves a folder with identity, key and limits that only its owner can read, and says what comes next", async () => {
    const { world, home, run } = await invited();

    const { code, text } = await run("join", world.invitation());

    expect(code).toBe(0);
    expect(text).toContain("Joined as amber.");
    expect(text).toContain(`nearcrawl-crawler.mjs run --home ${home}`);
    expect(readMembership(home)).toMatchObject({ name: "amber", key: keyGiven, ticket: world.tickets[0] });
    expect(world.hellos[0]).toMatchObject({
      key: inviteSecret,
      identity: { publicKey: openIdentity(home).publicKey },
    });
    expect(world.keysKept).toBe(1);
    expect(world.goodbyes).toEqual([{ code: "joined", reason: "it has joined and will be back" }]);
    expect(modeOf(home)).toBe("700");
    const secrets = ["identity.json", "membership.json", "settings.toml"];
    expect(secrets.map((file) => modeOf(join(home, file)))).toEqual(["600", "600", "600"]);
  });

  it("changes nothing when it is run again, and makes a new member with --again", async () => {
    const { world, home, run } = await joined();
    const before = readFileSync(join(home, "membership.json"), "utf8");
    const { publicKey } = openIdentity(home);

    const second = await run("join", world.invitation());
    const unchanged = readFileSync(join(home, "membership.json"), "utf8");
    const again = await run("join", world.invitation(), "--again");

    expect([second.code, again.code]).toEqual([0, 0]);
    expect(second.text).toContain("has joined already, as amber: nothing was changed");
    expect(unchanged).toBe(before);
    const [first, renewed] = world.hellos.map(({ identity }) => identity!);
    expect(first?.publicKey).toBe(publicKey);
    expect(renewed).toMatchObject({ publicKey: openIdentity(home).publicKey, ticket: null });
    expect(renewed?.publicKey).not.toBe(publicKey);
    expect(readdirSync(home).filter((name) => name.endsWith(".before"))).toEqual([]);
  });

  it("follows a symbolic link to the folder, as systemd's state folders have", async () => {
    const { world, home, run } = await invited();
    mkdirSync(`${home}-private`);
    symlinkSync(`${home}-private`, home);

    const { code } = await run("join", world.invitation());

    expect(code).toBe(0);
    expect(readMembership(`${home}-private`)?.key).toBe(keyGiven);
  });

  it("reports the paths in JSON for programs", async () => {
    const { world, home, run } = await invited();

    const { text } = await run("join", world.invitation(), "--json");

    const settings = join(home, "settings.toml");
    expect(JSON.parse(text)).toEqual({
      joined: "now",
      name: "amber",
      coordinatorUrl: world.url,
      home,
      settings,
    });
  });

  // Issue 41: joining silently allowed 50 GiB a day at any speed.
  it("proposes limits from its measurements, explains them and applies them without a question", async () => {
    const { world, home, run } = await invited({ program: Buffer.alloc(1_000_000) });

    const { code, text } = await run("join", world.invitation());

    const { limits } = homeSettings(home);
    expect(code).toBe(0);
    expect(limits.kilobytesPerSecond).toBeGreaterThan(0);
    expect(limits.bytesPerDay).toBeLessThan(50 * 1024 ** 3);
    expect([limits.cpuShare, limits.memoryBytes, limits.diskBytes]).not.toContain(null);
    expect(world.hellos[0]?.limits.bytesPerDay).toBe(limits.bytesPerDay);
    for (const line of limitWords(limits)) expect(text).toContain(line);
    expect(text.indexOf("MB a day")).toBeLessThan(text.indexOf("Joined as amber."));
  });

  it("takes limits from flags, removes those that may be removed, and refuses invalid ones before it makes anything", async () => {
    const world = await startSmallCoordinator();
    const [named, wrong] = [partnerConsole(), partnerConsole()];
    const flags = ["--kilobytes-per-second", "300.5", "--cpu-share", "0.25", "--memory-bytes", "none"];

    const { code } = await named.run("join", world.invitation(), ...flags);
    const refused = await wrong.run(
      "join",
      world.invitation(),
      "--bytes-per-day",
      "10GB",
      "--disk-bytes",
      "1",
    );

    expect(code).toBe(0);
    expect(homeSettings(named.home).limits).toMatchObject({
      kilobytesPerSecond: 300.5,
      cpuShare: 0.25,
      memoryBytes: null,
    });
    expect([refused.code, existsSync(wrong.home)]).toEqual([2, false]);
    expect(refused.text).toMatch(/bytesPerDay[\s\S]*diskBytes/);
  });

  it("makes nothing when a person rejects the limits, and names the flags for others", async () => {
    const world = await startSmallCoordinator();
    const questions: string[] = [];
    const { home, run } = partnerConsole({ ask: async (question) => questions.push(question) > 99 });

    const { code, text } = await run("join", world.invitation());

    expect([code, existsSync(home), world.hellos.length]).toEqual([1, false, 0]);
    expect(questions.at(-1)).toBe("Join with these limits?");
    expect(text).toContain("--kilobytes-per-second");
  });

  it("keeps settings that are already in the folder", async () => {
    const { world, home, run } = await invited();
    mkdirSync(home);
    writeFileSync(join(home, "settings.toml"), "[limits]\npagesPerDay = 77\n");

    const { code } = await run("join", world.invitation());

    expect(code).toBe(0);
    expect(readFileSync(join(home, "settings.toml"), "utf8")).toBe("[limits]\npagesPerDay = 77\n");
    expect(world.hellos[0]?.limits.pagesPerDay).toBe(77);
  });
});

it.each([
  [
    { linkBytesPerSecond: 1_250_000, processors: 4, memoryBytes: 8 * 1024 ** 3, freeDiskBytes: 100e9 },
    [305, 1, 1024, 4096],
  ],
  [
    { linkBytesPerSecond: 20_000, processors: 1, memoryBytes: 1024 ** 3, freeDiskBytes: 10e9 },
    [16, 0.5, 320, 953],
  ],
  [
    { linkBytesPerSecond: null, processors: 64, memoryBytes: 2 * 1024 ** 3, freeDiskBytes: null },
    [1000, 1, 512, null],
  ],
])("a part of %j is proposed", (measured, proposed) => {
  const { kilobytesPerSecond, cpuShare, memoryBytes, diskBytes } = proposedLimits(measured);

  expect([
    kilobytesPerSecond,
    cpuShare,
    ...[memoryBytes, diskBytes].map((bytes) => bytes && bytes / 1024 ** 2),
  ]).toEqual(proposed);
});

describe("an interrupted join", () => {
  it.each([
    ["after the folder", []],
    ["after the identity", ["identity.json"]],
    ["within the identity's file", ["identity.json.4711.new"]],
    ["after the settings", ["identity.json", "settings.toml"]],
    ["after the invitation's secret", ["identity.json", "settings.toml", "membership.json"]],
  ])("%s continues with the same identity", async (_when, left) => {
    const { world, home, run } = await invited();
    mkdirSync(home);
    if (left.includes("identity.json.4711.new")) writeFileSync(join(home, "identity.json.4711.new"), '{"pub');
    const identity = left.includes("identity.json") ? openIdentity(home).publicKey : null;
    if (left.includes("settings.toml")) writeFileSync(join(home, "settings.toml"), "");
    if (left.includes("membership.json"))
      writeMembership(home, { ...ofInvitation(world), key: inviteSecret });

    const { code } = await run("join", world.invitation());

    expect(code).toBe(0);
    expect(readMembership(home)?.key).toBe(keyGiven);
    if (identity !== null) expect(world.hellos[0]?.identity?.publicKey).toBe(identity);
  });

  it("reports a connection lost between welcome and key, and continues when it is run again", async () => {
    const { world, home, run } = await invited({ cutsAfterWelcome: 1 });

    const first = await run("join", world.invitation());
    const second = await run("join", world.invitation());

    expect(first.code).toBe(1);
    expect(first.text).toMatch(
      /Not joined: the connection was closed .*Run the same command again: it goes on from here/,
    );
    expect(second.code).toBe(0);
    expect(readMembership(home)?.key).toBe(keyGiven);
    expect(new Set(world.hellos.map(({ identity }) => identity?.publicKey)).size).toBe(1);
  });

  it("continues when it is run again after a kill while it waits for its key", async () => {
    const { world, home, run } = await invited({ keyNeverFirst: true });
    await builtDoors();
    const child = spawnJoin(world.invitation(), home);
    await until(() => world.hellos.length === 1, 20_000);

    child.kill("SIGKILL");
    await once(child, "exit");
    const { code } = await run("join", world.invitation());

    expect(code).toBe(0);
    expect(readMembership(home)?.key).toBe(keyGiven);
    expect(new Set(world.hellos.map(({ identity }) => identity?.publicKey)).size).toBe(1);
  });

  function spawnJoin(token: string, home: string): ChildProcess {
    const script = `import { runPartnerProgram } from "#crawler/cli/partner-program";
      import { partnerSurroundings } from "#crawler/cli/partner-commands";
      await runPartnerProgram(["join", ${JSON.stringify(token)}, "--home", ${JSON.stringify(home)}],
        partnerSurroundings({ env: {}, program: "test" }));`;
    const args = ["--input-type=module", "-e", script];
    const child = spawn(process.execPath, args, { cwd: projectRoot, stdio: "ignore" });
    atEnd(() => child.kill("SIGKILL"));
    return child;
  }

  const ofInvitation = ({ url }: SmallCoordinator) => ({
    coordinatorUrl: url,
    name: "amber",
    certificatePin: null,
    releaseKeys: [testReleaseKey.publicKey],
    releaseThreshold: 1,
    ticket: null,
  });
});

describe("a join with --again", () => {
  const filesOf = (home: string) =>
    ["identity.json", "membership.json"].map((name) => readFileSync(join(home, name), "utf8"));

  it("keeps the old identity when it is refused", async () => {
    const { world, home, run } = await joined();
    const before = filesOf(home);
    writeFileSync(join(home, "releases/state.json"), "what its supervisor knows");

    const { code } = await run("join", world.invitation({ secret: "inv_of_somebody_else_99" }), "--again");

    expect(code).toBe(4);
    expect(readdirSync(join(home, "releases")).sort()).toEqual(["pins.json", "state.json"]);
    expect(filesOf(home)).toEqual(before);
    expect(readdirSync(home).filter((name) => name.endsWith(".before"))).toEqual([]);
  });

  it.each([
    ["the membership was set aside", ["membership.json"]],
    ["both were set aside", ["membership.json", "identity.json"]],
  ])("continues as a new member when it was interrupted after %s", async (_when, asideFiles) => {
    const { world, home, run } = await joined();
    const { publicKey } = openIdentity(home);
    writeFileSync(join(home, "releases/state.json"), "what the supervisor of the old one knows");
    for (const name of asideFiles) renameSync(join(home, name), join(home, `${name}.before`));

    const { code } = await run("join", world.invitation());

    expect(code).toBe(0);
    expect(openIdentity(home).publicKey).not.toBe(publicKey);
    expect(readdirSync(join(home, "releases"))).toEqual(["pins.json"]);
    expect(readdirSync(home).filter((name) => name.endsWith(".before"))).toEqual([]);
  });

  it("is refused while the crawler runs", async () => {
    const { world, home, run } = await joined();
    const spool = new Spool({ home, maxBytes: 1024 * 1024 });

    const { code, text } = await run("join", world.invitation(), "--again");
    spool.close();

    expect(code).toBe(2);
    expect(text).toContain(`runs, as process ${process.pid}: stop it first`);
  });
});

describe("join refuses", () => {
  it.each<readonly [string, object, readonly string[], RegExp]>([
    [
      "an expired invitation",
      { expiresAt: "2026-01-02T03:04:05.000Z" },
      [],
      /ran out at 2026-01-02T03:04:05.000Z. Ask the operator for a new one/,
    ],
    [
      "an invitation without a pinned release key",
      { releaseKeys: [] },
      [],
      /pins no release key.*nothing would run.*nearcrawl release trust/,
    ],
    [
      "a folder whose parent does not exist",
      {},
      ["--home", "HOME/crawler"],
      /HOME, in which the crawler's folder is to be, does not exist: make it first/,
    ],
  ])("%s, before it makes or redeems anything", async (_what, invitation, more, words) => {
    const { world, home, run } = await invited();
    const args = more.map((arg) => arg.replace("HOME", home));

    const { code, text } = await run("join", world.invitation(invitation), ...args);

    expect(code).toBe(2);
    expect(text.replaceAll(home, "HOME")).toMatch(words);
    expect([existsSync(home), world.hellos.length]).toEqual([false, 0]);
  });

  it.each<readonly [string, object, Record<string, string>, RegExp]>([
    [
      "of another crawler",
      { name: "birch" },
      {},
      /belongs to the crawler amber .* this invitation is for birch .*name another folder with --home/,
    ],
    [
      "with a truncated membership",
      {},
      { "membership.json": '{"coordinatorUrl": "ws' },
      /membership.json: this is no whole JSON file. It is left as it is\./,
    ],
  ])("a folder %s, and leaves it unchanged", async (_what, invitation, files, words) => {
    const { world, home, run } = await joined();
    for (const [name, content] of Object.entries(files)) writeFileSync(join(home, name), content);
    const before = readFileSync(join(home, "membership.json"), "utf8");

    const { code, text } = await run("join", world.invitation(invitation));

    expect(code).toBe(2);
    expect(text).toMatch(words);
    expect(readFileSync(join(home, "membership.json"), "utf8")).toBe(before);
  });

  it("a folder with foreign files", async () => {
    const { world, home, run } = await invited();
    mkdirSync(home);
    writeFileSync(join(home, "thesis.tex"), "years of work");

    const { code, text } = await run("join", world.invitation());

    expect(code).toBe(2);
    expect(text).toContain("holds files that are no crawler's");
    expect(readdirSync(home)).toEqual(["thesis.tex"]);
    expect(world.hellos).toEqual([]);
  });

  it.each([
    [
      "revoked",
      /Ask the operator why; with a new invitation, .* To take the crawler off this machine, run the uninstall command/,
    ],
    ["bad-signature", /put both back from the same backup/],
    ["copied-folder", /Run only one of them: stop the other one, and remove the copy/],
    ["wrong-key", /ask the operator for a new invitation/],
  ] as const)(
    "what the coordinator refuses as %s, with what to do, and exit code 4",
    async (refuse, advice) => {
      const { world, run } = await invited({ refuse });

      const { code, text } = await run("join", world.invitation());

      expect(code).toBe(4);
      expect(text).toMatch(advice);
    },
  );
});

describe("join over TLS", () => {
  const certificatePin = pinOf(tls.cert);

  it("trusts a self-signed certificate that the invitation pins", async () => {
    const { world, run } = await invited({ tls });

    const { code, text } = await run("join", world.invitation({ certificatePin }));

    expect(text).toContain("the certificate is the pinned one: nobody stands between");
    expect(code).toBe(0);
  });

  it("sends nothing to a server with another certificate than the pinned one, and names its issuer", async () => {
    const { world, home, run } = await invited({ tls });

    const { code, text } = await run("join", world.invitation({ certificatePin: "A".repeat(43) }));

    expect(code).toBe(1);
    expect(text).toMatch(
      /fix {3}tls .*not the coordinator's pinned one \(it was issued by CN=Nearcrawl test coordinator\)/,
    );
    expect(world.hellos).toEqual([]);
    expect(existsSync(home)).toBe(false);
  });

  it.each([
    ["HTTP CONNECT", startConnectProxy, "HTTPS_PROXY"],
    ["SOCKS5", startSocks5Proxy, "ALL_PROXY"],
  ])(
    "finds a %s proxy with a password in the environment, uses it and keeps it",
    async (_kind, start, variable) => {
      const world = await startSmallCoordinator({ tls });
      const proxy = await start({ wantsPassword: true });
      const { home, run } = partnerConsole({ env: { [variable]: proxy.url } });
      const coordinatorUrl = `wss://coordinator.invalid:${world.port}/crawler`;

      const joined = await run("join", world.invitation({ coordinatorUrl, certificatePin }));
      rmSync(join(home, "last-check.json"));
      const checked = await run("check");

      expect(joined.text).toContain(
        `is reached only through the proxy ${proxy.urlWithout}, which the environment names`,
      );
      expect(joined.code).toBe(0);
      expect(joined.text).not.toContain(encodeURIComponent("p@ss:word"));
      expect(readFileSync(join(home, "settings.toml"), "utf8")).toContain(`proxy = "${proxy.url}"`);
      expect(new Set(proxy.asked)).toEqual(new Set([`coordinator.invalid:${world.port}`]));
      expect(checked.text).toContain(`is reached through ${proxy.urlWithout}`);
    },
  );

  it("names the proxy that refused it", async () => {
    const world = await startSmallCoordinator({ tls });
    const proxy = await startConnectProxy({ wantsPassword: true });
    const { home, run } = partnerConsole();
    mkdirSync(home);
    writeFileSync(join(home, "settings.toml"), `coordinatorProxy = "${proxy.urlWithout}"\n`);

    const { code, text } = await run("join", world.invitation({ certificatePin }));

    expect(code).toBe(1);
    expect(text).toMatch(
      /the proxy answered CONNECT with 407.*Look at proxy and coordinatorProxy in settings.toml/,
    );
  });
});
