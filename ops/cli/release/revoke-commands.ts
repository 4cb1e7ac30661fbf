/** Releases that are never to run again, and what was signed elsewhere and is brought to the coordinator. */
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { releaseRevocations } from "#protocol/release";
import { type Envelope, keyRotation, unverifiedBody } from "#protocol/release-envelope";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { printAnswer } from "../output.ts";
import { releaseRevoked, signedAccepted } from "./release-changes.ts";
import { type ReleaseStores, withReleases } from "./release-database.ts";
import { readSignedFile, writeEnvelope } from "./release-files.ts";
import { readSigningKey } from "./release-key-file.ts";
import { signRevocations } from "./sign-release.ts";

interface RevokeOptions extends DatabaseOptions {
  readonly key: string;
  readonly reason: string;
  readonly passphraseFile?: string;
  readonly previous?: string;
  readonly out?: string;
}

export function revokeCommand(): Command {
  return withDatabaseOptions(new Command("revoke"))
    .argument("<release>", "a published version, or the SHA-256 of a bundle")
    .requiredOption("--key <file>", "the private key")
    .requiredOption("--reason <words>", "shown at every partner that ran it")
    .option("--passphrase-file <file>", "take the key's passphrase from there")
    .option("--out <file>", "write the signed list instead, for nearcrawl release accept at the coordinator")
    .option(
      "--previous <file>",
      "with --out: the list in force (/releases/revocations.json), which is carried on",
    )
    .description("never let a release run again: docks stop it and return to the one before")
    .addHelpText(
      "after",
      "\nA crawler that has nothing to return to waits for a newer release: sign the bundle before it anew, under a new version.\n\nExamples:\n  nearcrawl release revoke 1.4.0 --key release-key.pem --reason 'it loses results'\n  nearcrawl release revoke 9b8c… --key release-key.pem --reason 'it loses results' --out revocations.json",
    )
    .action(async (release: string, options: RevokeOptions) => {
      const key = await readSigningKey(options.key, options.passphraseFile ?? null);
      const sign = (digests: readonly string[]) =>
        signRevocations({ digests: [...new Set(digests)], reason: options.reason }, key, new Date());
      if (options.out !== undefined) return writeList(release, options, sign);
      await withReleases(options, {}, async (stores) => {
        const entry = (await stores.releases.list()).find(({ version }) => version === release);
        const digest = entry?.digest ?? digestIn(release);
        await take(sign([...digestsOf(await stores.releases.revocations()), digest]), stores);
        await stores.record(releaseRevoked(digest, options.reason));
        printAnswer(
          options,
          { digest, reason: options.reason },
          `${release} is revoked: docks stop it as they hear of it`,
        );
      });
    });
}

export function acceptCommand(): Command {
  return withDatabaseOptions(new Command("accept"))
    .argument("<file>", "a key rotation or a list of revoked releases, signed elsewhere")
    .description("bring what was signed offline to the coordinator")
    .addHelpText("after", "\nExample:\n  nearcrawl release accept key-rotation.json")
    .action(async (file: string, options: DatabaseOptions) => {
      const signed = readSignedFile(file);
      const kind = await withReleases(options, {}, async (stores) => {
        const taken = await take(signed, stores);
        await stores.record(signedAccepted(taken));
        return taken;
      });
      printAnswer(
        options,
        { accepted: kind },
        kind === "key" ? "the keys are rotated" : "the list is in force",
      );
    });
}

/** What it is shows in the text; the signature is over that, too. */
async function take(signed: Envelope, { releases, keys }: ReleaseStores): Promise<"key" | "revocations"> {
  const kind = keyRotation.safeParse(unverifiedBody(signed)).success ? "key" : "revocations";
  const refused =
    kind === "key" ? await keys.rotate(signed, new Date()) : await releases.revoke(signed, new Date());
  if (refused !== null) throw new UsageError(`it is refused: ${refused}`);
  return kind;
}

function writeList(
  release: string,
  options: RevokeOptions,
  sign: (digests: readonly string[]) => Envelope,
): void {
  const previous = options.previous === undefined ? null : readSignedFile(options.previous);
  const digests = [...digestsOf(previous), digestIn(release)];
  writeEnvelope(options.out ?? "", sign(digests));
  const text = `${options.out}: a list of ${digests.length}; nearcrawl release accept ${options.out} puts it in force`;
  printAnswer(options, { file: options.out, digests }, text);
}

function digestIn(release: string): string {
  if (/^[0-9a-f]{64}$/.test(release)) return release;
  throw new UsageError(
    `no release "${release.slice(0, 70)}" is published here; with --out, name the bundle by its SHA-256`,
  );
}

function digestsOf(signed: Envelope | null): readonly string[] {
  if (signed === null) return [];
  const read = releaseRevocations.safeParse(unverifiedBody(signed));
  if (!read.success) throw new UsageError("the list before it is not a list of revoked releases");
  return read.data.digests;
}
