/** `nearcrawl release`: signs, publishes and offers in stages the code that runs at partners. */

import { Command } from "commander";
import { createReleaseFleetStore } from "#coordinator/run/releases/fleet-store";
import { UsageError } from "#core/errors";
import { howMany } from "#core/format";
import { releaseRevocations } from "#protocol/release";
import { type Envelope, type Role, unverifiedBody } from "#protocol/release-envelope";
import { commandContext } from "../command-context.ts";
import { type ConfirmOptions, confirmedByTyping, type Deed, yesOption } from "../confirm-by-typing.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";
import {
  type ReleaseStores,
  releaseRevoked,
  signedAccepted,
  withReleases,
} from "../release/automatic-releases.ts";
import {
  coSignCommand,
  keysCommand,
  publishCommand,
  rootCommand,
  timestampCommand,
  trustCommand,
  verifyCommand,
} from "../release/fleet-commands.ts";
import {
  buildCommand,
  keygenCommand,
  readSignedFile,
  rotateKeyCommand,
  signCommand,
  writeEnvelope,
} from "../release/offline-commands.ts";
import { readSigningKey } from "../release/release-key-file.ts";
import { kindOf, signRevocations } from "../release/sign-release.ts";

export function releaseCommand(): Command {
  const command = new Command("release")
    .description("releases of the crawler: build, sign offline, publish, offer in stages, hold, revoke")
    .addHelpText(
      "after",
      `
Exit codes: 0 done, 1 failed or not genuine, 2 wrong usage or refused.

A coordinator without a release key makes one as it starts, and signs and offers the crawler that it ships with.
To sign from the start, before that:
  nearcrawl release keygen --out release-key.pem
  nearcrawl release trust KEY

A release, the key on a machine of its own:
  nearcrawl release build                                             (anywhere)
  nearcrawl release sign crawler-bundle.mjs --key release-key.pem --version 1.4.0
  nearcrawl release publish crawler-1.4.0.manifest.json crawler-bundle.mjs
  nearcrawl release auto 1.4.0                                        (or stage … --to one, 5%, all)
  nearcrawl release list`,
    );
  for (const make of subCommands) command.addCommand(make());
  return command;
}

const subCommands = [
  keygenCommand,
  buildCommand,
  signCommand,
  verifyCommand,
  publishCommand,
  revokeCommand,
  rotateKeyCommand,
  rootCommand,
  coSignCommand,
  timestampCommand,
  acceptCommand,
  trustCommand,
  keysCommand,
];

// Revokes releases, and gives the coordinator texts that were signed on another machine.

interface RevokeOptions extends DatabaseOptions, ConfirmOptions {
  readonly key: string;
  readonly reason: string;
  readonly passphraseFile?: string;
  readonly previous?: string;
  readonly out?: string;
}

function revokeCommand(): Command {
  return withDatabaseOptions(new Command("revoke"))
    .argument("<release>", "a published version, or the SHA-256 of a bundle")
    .requiredOption("--key <file>", "the private key")
    .requiredOption("--reason <words>", "shown at every partner that ran it")
    .option("--passphrase-file <file>", "file with the key's passphrase")
    .option("--out <file>", "write the signed list instead, for nearcrawl release accept at the coordinator")
    .option(
      "--previous <file>",
      "with --out: the list in force (/releases/revocations.json), which is carried on",
    )
    .description("never let a release run again: supervisors stop it and roll back to the previous one")
    .addOption(yesOption())
    .addHelpText(
      "after",
      `
A crawler that cannot roll back waits for a newer release: sign the previous bundle again, under a new version.

Examples:
  nearcrawl release revoke 1.4.0 --key release-key.pem --reason 'it loses results'
  nearcrawl release revoke 9b8c… --key release-key.pem --reason 'it loses results' --out revocations.json`,
    )
    .action(async (release: string, options: RevokeOptions) => {
      const key = await readSigningKey(options.key, options.passphraseFile ?? null);
      const sign = (digests: readonly string[]) =>
        signRevocations({ digests: [...new Set(digests)], reason: options.reason }, key, new Date());
      if (options.out !== undefined) return writeList(release, options, sign);
      if (!(await confirmedByTyping(options, async () => await revocation(release, options)))) return;
      await withReleases(options, {}, async (stores) => {
        const entry = (await stores.releases.list()).find(({ version }) => version === release);
        const digest = entry?.digest ?? digestIn(release);
        await take(sign([...digestsOf(await stores.releases.revocations()), digest]), stores);
        await stores.record(releaseRevoked(digest, options.reason));
        printAnswer(
          options,
          { digest, reason: options.reason },
          `${release} is revoked: supervisors stop it as soon as they know`,
        );
      });
    });
}

async function revocation(release: string, options: RevokeOptions): Promise<Deed> {
  const counts = await readDatabase(
    commandContext(options),
    async ({ pool }) => await createReleaseFleetStore(pool).counts(),
  );
  const running = counts.get(release)?.running ?? 0;
  const follows =
    `${howMany(running, "crawler")} ${running === 1 ? "runs" : "run"} ${release}: their ` +
    "supervisors stop it and roll back to the previous release. To undo this, sign the bundle " +
    "again under a new version.";
  return { follows, typed: release, asked: `“${release}”` };
}

function acceptCommand(): Command {
  return withDatabaseOptions(new Command("accept"))
    .argument(
      "<file>",
      "a root, a key rotation, a list of revoked releases or a statement of what is newest, signed elsewhere",
    )
    .description("give the coordinator what was signed offline")
    .addHelpText("after", "\nExample:\n  nearcrawl release accept key-rotation.json")
    .action(async (file: string, options: DatabaseOptions) => {
      const signed = readSignedFile(file);
      const { kind, unsigned } = await withReleases(options, {}, async (stores) => {
        const taken = await take(signed, stores);
        const change = signedAccepted(taken);
        if (change !== null) await stores.record(change);
        return { kind: taken, unsigned: await noLongerSigned(stores) };
      });
      printAnswer(options, { accepted: kind, unsigned }, [acceptedWords[kind], ...unsigned].join("\n"));
    });
}

const acceptedWords: Readonly<Record<Accepted, string>> = {
  key: "the keys are rotated",
  root: "the root is in force",
  revocations: "the list is in force",
  timestamp: "what is newest is stated",
};

/** After a change of keys, lists what only retired keys signed, and how to remedy that. */
async function noLongerSigned({ releases, keys }: ReleaseStores): Promise<string[]> {
  const { revocations, timestamp } = await keys.roles();
  const [list, stated] = [await releases.revocations(), await releases.timestamp()];
  const [newest] = (await releases.list()).filter(({ stage }) => stage !== "none");
  const isSigned = (signed: Envelope | null, by: Role) =>
    signed === null || signed.signatures.filter(({ key }) => by.keys.includes(key)).length >= by.threshold;
  const faults = [
    newest !== undefined && !newest.trusted
      ? `release ${newest.version} is no longer offered, since its keys were retired: sign and publish it again`
      : null,
    isSigned(list, revocations)
      ? null
      : "crawlers that join now reject the list of revoked releases, since its keys were retired: " +
        "sign it again (nearcrawl release revoke, of any that is on it)",
    isSigned(stated, timestamp)
      ? null
      : "the statement of the newest release must be renewed, because its keys were retired: nearcrawl release timestamp",
  ];
  return faults.filter((words) => words !== null);
}

/** The text itself shows its kind, which its signature also covers. */
async function take(signed: Envelope, { releases, keys }: ReleaseStores): Promise<Accepted> {
  const kind = kindOf(signed);
  if (kind === null || kind === "release")
    throw new UsageError(
      "this is no root, rotation, list or statement; a release is published (nearcrawl release publish)",
    );
  const ways = {
    key: keys.rotate,
    root: keys.rotate,
    revocations: releases.revoke,
    timestamp: releases.stateNewest,
  };
  const refused = await ways[kind](signed, new Date());
  if (refused !== null) throw new UsageError(`it is refused: ${refused}`);
  return kind;
}

type Accepted = Parameters<typeof signedAccepted>[0];

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
