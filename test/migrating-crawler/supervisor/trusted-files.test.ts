/** What a supervisor trusts after somebody has tampered with its crawler's files or its own. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { writeMembership } from "#crawler/core/membership";
import { pinnedReleaseKeys, pinReleaseKeys } from "#crawler/supervisor/release-store";
import { readDockSettings } from "#crawler/supervisor/supervisor-home";
import { rawPublicKey } from "#protocol/release-envelope";
import { until } from "../../support/until.ts";
import { bundleText, newKey, offer, startDock } from "./release-world.ts";
import {
  docked,
  nextVersion,
  reasonOf,
  running,
  soonMs,
  useReleaseWorld,
  world,
} from "./supervisor-ground.ts";

useReleaseWorld();

it("keys that the crawler writes into its membership count for nothing once the dock has its own", async () => {
  const dock = await docked();
  const { path, membership } = dock.home;
  const stranger = newKey();
  await dock.dock.stop();
  writeMembership(path, { ...membership, releaseKeys: [rawPublicKey(stranger)] });
  const version = nextVersion();
  const forged = world.publish(version, bundleText(version), {}, stranger);

  const later = await startDock({
    ...dock.home,
    membership: { ...membership, releaseKeys: [rawPublicKey(stranger)] },
  });
  running.push(later);
  offer(dock.home, forged);

  await until(() => reasonOf(later, forged) !== undefined, soonMs);
  expect(reasonOf(later, forged)).toMatch(/not signed by a trusted key/);
  expect(later.state().current?.digest).toBe(dock.first.digest);
});

it("a bundle that somebody put beside the state, and into it, does not run: nobody signed it", async () => {
  const dock = await docked();
  const { path } = dock.home;
  await dock.dock.stop();
  const version = nextVersion();
  const bytes = Buffer.from(bundleText(version));
  const digest = createHash("sha256").update(bytes).digest("hex");
  const forged = { version, digest, bytes: bytes.length, sequence: 1 };
  const own = readFileSync(join(path, `releases/${dock.first.digest}.manifest.json`));
  writeFileSync(join(path, `releases/${digest}.mjs`), bytes);
  writeFileSync(join(path, `releases/${digest}.manifest.json`), own);
  const state = { ...dock.state(), current: forged, previous: dock.state().good };
  writeFileSync(join(path, "releases/state.json"), JSON.stringify(state));

  const later = await startDock(dock.home);
  running.push(later);

  await until(() => dock.home.notes().filter((note) => note.includes("started")).length === 2, soonMs);
  expect(dock.home.notes().some((note) => note.startsWith(`${version} `))).toBe(false);
  expect(later.lines.join("\n")).toMatch(/not what was signed.*its manifest is another release's/);
  expect(later.state().current?.digest).toBe(dock.first.digest);
});

it("a folder from before there were pins and manifests takes both over once", async () => {
  const dock = await docked();
  const { path, membership } = dock.home;
  await dock.dock.stop();
  const manifest = join(path, `releases/${dock.first.digest}.manifest.json`);
  for (const file of [manifest, join(path, "releases/pins.json")]) rmSync(file);

  running.push(await startDock(dock.home));

  await until(() => dock.home.notes().filter((note) => note.includes("started")).length === 2, soonMs);
  expect(existsSync(manifest)).toBe(true);
  expect(pinnedReleaseKeys(path, { releaseKeys: [], releaseThreshold: 1 }).keys).toEqual(
    membership.releaseKeys,
  );
});

it("damaged pins are not replaced by what the crawler says", () => {
  const { path, membership } = world.newHome();
  pinReleaseKeys(path, membership);
  writeFileSync(join(path, "releases/pins.json"), "{");

  expect(() => pinnedReleaseKeys(path, membership)).toThrow(
    /pins\.json: this is no whole JSON file.*join --again/s,
  );
});

it.each([".", "releases", "log/archive", ".."])(
  "an archive in HOME/%s is refused: the crawler could write what the dock goes by",
  (folder) => {
    const { path, membership } = world.newHome();
    writeFileSync(join(path, "settings.toml"), `[warc]\nfolder = ${JSON.stringify(join(path, folder))}\n`);

    expect(() => readDockSettings(path, membership)).toThrow(
      /settings\.toml: warc\.folder: .*choose a folder/,
    );
  },
);
