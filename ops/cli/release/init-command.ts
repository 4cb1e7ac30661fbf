/** `nearcrawl release init`: a new fleet's first key and first release, in one go. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { stageRelease } from "#coordinator/releases/stage";
import { UsageError } from "#core/errors";
import { rawPublicKey } from "#protocol/release-envelope";
import { commandContext } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { printAnswer } from "../output.ts";
import { softwareVersion } from "../software-version.ts";
import { buildBundle, hasSources, notedCommit, projectFolder } from "./build-bundle.ts";
import { publishRelease } from "./publish-release.ts";
import { keyTrusted, releasePublished, releaseStaged } from "./release-changes.ts";
import { type ReleaseStores, withReleases } from "./release-database.ts";
import { readBundle } from "./release-files.ts";
import { readSigningKey, writeNewKey } from "./release-key-file.ts";
import { defaultExpiresDays, firstDock, signManifest } from "./sign-release.ts";

interface InitOptions extends DatabaseOptions {
  readonly version?: string;
  readonly bundle?: string;
}

export function initCommand(): Command {
  return withDatabaseOptions(new Command("init"))
    .option("--version <version>", "of the first release (default: this software's)")
    .option("--bundle <file>", "a bundle that was built already (default: it is built now)")
    .description(
      "for a new fleet that no coordinator has made a key for: make one, build and sign the first release, publish it and offer it to all",
    )
    .addHelpText("after", "\nExample:\n  nearcrawl release init\n  nearcrawl fleet invite --name athens")
    .action(async (options: InitOptions) => {
      const { home } = commandContext(options);
      const made = await withReleases(options, { setUp: true }, (stores) => init(home, options, stores));
      printAnswer(
        options,
        made,
        [
          `key        ${made.keyFile}`,
          `public     ${made.publicKey}`,
          `bundle     ${made.digest} (${made.bytes} bytes, ${made.builtFrom === null ? "of sources that are not committed" : `built of ${made.builtFrom}`})`,
          `release    ${made.version}, published and offered to all, good until ${made.expiresAt.slice(0, 10)}`,
          "",
          "Whoever has the key can put code on every partner's machine. Once the fleet is more than a try, move the",
          "file to a machine that is not connected, keep a copy of it elsewhere, and sign there (nearcrawl release sign).",
        ].join("\n"),
      );
    });
}

interface FirstRelease {
  readonly keyFile: string;
  readonly publicKey: string;
  readonly version: string;
  readonly digest: string;
  readonly bytes: number;
  readonly builtFrom: string | null;
  readonly expiresAt: string;
}

async function init(home: string, options: InitOptions, stores: ReleaseStores): Promise<FirstRelease> {
  const known = await stores.releases.list();
  if (known.length > 0 || (await stores.keys.trusted()).length > 0) {
    throw new UsageError(
      "this fleet has a release key or releases already (the coordinator makes them as it first starts): nearcrawl release list",
    );
  }
  mkdirSync(home, { recursive: true });
  const file = await bundleFor(home, options.bundle);
  const { bytes, digest } = readBundle(file);
  const keyFile = join(home, "release-key.pem");
  // One that is there is left of an attempt that failed halfway.
  if (!existsSync(keyFile)) writeNewKey(keyFile, null);
  const key = await readSigningKey(keyFile, null);
  const wishes = {
    version: options.version ?? softwareVersion(),
    notes: "the first release",
    expiresDays: defaultExpiresDays,
    oldestDock: firstDock,
    builtFrom: notedCommit(file, digest),
    sequence: null,
  };
  const now = new Date();
  const { manifest, signed } = signManifest(bytes, wishes, { keys: [key], now });
  const publicKey = rawPublicKey(key);
  await stores.keys.trustFirst(publicKey, now);
  await stores.record(keyTrusted(publicKey));
  await publishRelease({ signed, bundle: bytes }, stores, now);
  await stores.record(releasePublished(manifest));
  const wished = { version: manifest.version, to: "all" };
  await stores.record(releaseStaged(await stageRelease(wished, stores, now), wished));
  const { version, builtFrom, expiresAt } = manifest;
  return { keyFile, publicKey, version, digest, bytes: bytes.length, builtFrom, expiresAt };
}

/** Built of the sources where they are; an installed package brings the bundle that was built with it. */
async function bundleFor(home: string, given: string | undefined): Promise<string> {
  if (given !== undefined) return given;
  const folder = projectFolder();
  if (hasSources(folder))
    return (await buildBundle({ source: folder, out: join(home, "crawler-bundle.mjs") })).file;
  const packaged = join(folder, "dist/crawler-bundle.mjs");
  if (existsSync(packaged)) return packaged;
  throw new UsageError(
    "neither the crawler's sources nor its bundle are in this installation: name one with --bundle",
  );
}
