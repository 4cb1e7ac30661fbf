/** Commands that run where the key is, without a coordinator: keys, bundles, signatures. */

import { createHash } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { maxBundleBytes } from "#protocol/release";
import { type Envelope, formatEnvelope, maxEnvelopeBytes, readEnvelope } from "#protocol/release-envelope";
import { boundedInteger } from "../options.ts";
import { printAnswer } from "../output.ts";
import { buildBundle, notedCommit, projectFolder } from "./build-bundle.ts";
import {
  askNewPassphrase,
  readBounded,
  readPassphrase,
  readSigningKey,
  unusable,
  writeNewKey,
} from "./release-key-file.ts";
import { defaultExpiresDays, firstSupervisor, signManifest, signRotation } from "./sign-release.ts";

interface Json {
  readonly json?: boolean;
}

interface KeygenOptions extends Json {
  readonly out: string;
  readonly passphrase?: boolean;
  readonly passphraseFile?: string;
}

export function keygenCommand(): Command {
  return new Command("keygen")
    .description("create a key that signs releases; do it on an offline machine, and keep a copy")
    .requiredOption("--out <file>", "where to write the private key (PKCS#8 PEM, readable only by you)")
    .option("--passphrase", "ask for a passphrase to encrypt it")
    .option("--passphrase-file <file>", "file with the passphrase in its first line")
    .option("--json", "print for programs")
    .addHelpText("after", "\nExample:\n  nearcrawl release keygen --out release-key.pem --passphrase")
    .action(async (options: KeygenOptions) => {
      const { out, passphraseFile } = options;
      const passphrase =
        passphraseFile !== undefined
          ? readPassphrase(passphraseFile)
          : options.passphrase
            ? await askNewPassphrase()
            : null;
      const publicKey = writeNewKey(out, passphrase);
      const locked = passphrase === null ? "not encrypted" : "encrypted";
      printAnswer(
        options,
        { file: out, publicKey },
        `private key: ${out} (${locked}; whoever has it can put code on every partner's machine)\npublic key:  ${publicKey}`,
      );
    });
}

interface BuildOptions extends Json {
  readonly source?: string;
  readonly out: string;
}

export function buildCommand(): Command {
  return new Command("build")
    .description("build the crawler's single file; one commit gives the same file everywhere")
    .option("--source <folder>", "a clone with its packages installed (default: this installation's)")
    .option("--out <file>", "output file", "crawler-bundle.mjs")
    .option("--json", "print for programs")
    .addHelpText("after", "\nExample:\n  nearcrawl release build --out crawler-bundle.mjs")
    .action(async (options: BuildOptions) => {
      const source = options.source ?? projectFolder();
      const built = await buildBundle({ source, out: resolve(options.out) });
      const from = built.builtFrom ?? "sources that are not committed, so nobody else can build the same";
      printAnswer(
        options,
        built,
        `${built.file}\n  SHA-256  ${built.digest}\n  bytes    ${built.bytes}\n  built of ${from}`,
      );
    });
}

interface SignOptions extends Json {
  readonly key: readonly string[];
  readonly passphraseFile?: string;
  readonly version: string;
  readonly expiresDays: number;
  readonly notes: string;
  readonly oldestDock: string;
  readonly sequence?: number;
  readonly out?: string;
}

export function signCommand(): Command {
  return new Command("sign")
    .description("sign a bundle as a release: writes its manifest")
    .argument("<bundle>", "what nearcrawl release build made")
    .requiredOption("--key <file...>", "the private key (several: each signs)")
    .requiredOption("--version <version>", "the release's, such as 1.4.0")
    .option("--passphrase-file <file>", "file with the key's passphrase")
    .option(
      "--expires-days <n>",
      "days after which supervisors reject it",
      boundedInteger(1, 3650),
      defaultExpiresDays,
    )
    .option("--notes <words>", "what changes, for partners' administrators", "")
    .option("--oldest-dock <version>", "the oldest supervisor that can run it", firstSupervisor)
    .option(
      "--sequence <n>",
      "its number, higher than every earlier one (default: the time in ms)",
      boundedInteger(1, 1e15),
    )
    .option(
      "--out <file>",
      "output file of the manifest (default: crawler-VERSION.manifest.json beside the bundle)",
    )
    .option("--json", "print for programs")
    .addHelpText(
      "after",
      "\nExample:\n  nearcrawl release sign crawler-bundle.mjs --key release-key.pem --version 1.4.0 --notes 'fewer DNS questions'",
    )
    .action(async (file: string, options: SignOptions) => {
      const bundle = readBundle(file);
      const keys = [];
      for (const one of options.key) keys.push(await readSigningKey(one, options.passphraseFile ?? null));
      const { version, notes, expiresDays, oldestDock, sequence = null } = options;
      const builtFrom = notedCommit(file, bundle.digest);
      const wishes = { version, notes, expiresDays, oldestDock, builtFrom, sequence };
      const { manifest, signed } = signManifest(bundle.bytes, wishes, { keys, now: new Date() });
      const out = options.out ?? join(dirname(file), `crawler-${version}.manifest.json`);
      writeEnvelope(out, signed);
      printAnswer(
        options,
        { file: out, manifest },
        `${out}: release ${version}, number ${manifest.sequence}, good until ${manifest.expiresAt}`,
      );
    });
}

interface RotateOptions extends Json {
  readonly old: string;
  readonly new: string;
  readonly keepOld?: boolean;
  readonly passphraseFile?: string;
  readonly out: string;
}

export function rotateKeyCommand(): Command {
  return new Command("rotate-key")
    .description(
      "sign a new key with the old one; supervisors follow as soon as the fleet's coordinator accepts it",
    )
    .requiredOption("--old <file>", "the current private key")
    .requiredOption("--new <file>", "the new private key")
    .option("--keep-old", "keep both valid (for a second key kept elsewhere)")
    .option("--passphrase-file <file>", "file with the keys' passphrase")
    .option("--out <file>", "output file of the rotation", "key-rotation.json")
    .option("--json", "print for programs")
    .addHelpText(
      "after",
      `
Releases signed only by a retired key are no longer offered: sign them again.

Example:
  nearcrawl release rotate-key --old release-key.pem --new next-key.pem
  nearcrawl release accept key-rotation.json      (at the coordinator)`,
    )
    .action(async (options: RotateOptions) => {
      const passphraseFile = options.passphraseFile ?? null;
      const [old, next] = [
        await readSigningKey(options.old, passphraseFile),
        await readSigningKey(options.new, passphraseFile),
      ];
      const { rotation, signed } = signRotation({ old, next, keepOld: options.keepOld ?? false }, new Date());
      writeEnvelope(options.out, signed);
      const retired = rotation.retires === null ? "the old key stays" : `${rotation.retires} is retired`;
      printAnswer(
        options,
        { file: options.out, rotation },
        `${options.out}: ${rotation.newKey} counts, ${retired}, once the coordinator has it: nearcrawl release accept ${options.out}`,
      );
    });
}

// Reads bundles and signed files with a size limit, and writes them atomically.

export interface BundleFile {
  readonly bytes: Buffer;
  readonly digest: string;
}

export function readBundle(file: string): BundleFile {
  const bytes = readBounded(file, maxBundleBytes);
  if (bytes.length === 0) throw new UsageError(`${file} is empty, so it is not a bundle`);
  return { bytes, digest: createHash("sha256").update(bytes).digest("hex") };
}

export function readSignedFile(file: string): Envelope {
  const read = readEnvelope(readBounded(file, maxEnvelopeBytes).toString("latin1"));
  if ("refused" in read) throw new UsageError(`${file}: ${read.refused}`);
  return read;
}

export function writeEnvelope(file: string, signed: Envelope): void {
  try {
    writeFileSync(`${file}.new`, formatEnvelope(signed));
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw unusable(file, error);
  }
}
