/** Commands that work on the coordinator's database: publish, offer, hold and list releases. */

import type { KeyObject } from "node:crypto";
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { maxTimestampMs, statedRoles, verifyManifest } from "#protocol/release";
import {
  anyOf,
  coSign,
  type Envelope,
  maxSignatures,
  type Role,
  unverifiedBody,
} from "#protocol/release-envelope";
import { answerText } from "../answer-text.ts";
import { boundedInteger } from "../options.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import {
  keyTrusted,
  newestIn,
  publishRelease,
  releasePublished,
  withReleases,
} from "./automatic-releases.ts";
import { readBundle, readSignedFile, writeEnvelope } from "./offline-commands.ts";
import { readBounded, readPublicKey, readSigningKey, unusable } from "./release-key-file.ts";
import { kindOf, signRoot, signTimestamp } from "./sign-release.ts";

export function trustCommand(): Command {
  return withDatabaseOptions(new Command("trust"))
    .argument("<key>", "the public key that nearcrawl release keygen printed, or its file")
    .description(
      "make this the fleet's release key; crawlers that join from now on take releases signed with it",
    )
    .addHelpText(
      "after",
      "\nFor a fleet's first key. Crawlers that joined before do not know it: they follow nearcrawl release rotate-key.",
    )
    .action(async (key: string, options: DatabaseOptions) => {
      const publicKey = readPublicKey(key);
      await withReleases(options, { setUp: true }, async ({ keys, record }) => {
        if (!(await keys.trustFirst(publicKey, new Date())))
          throw new UsageError("a root says who signs for this fleet: nearcrawl release root, then accept");
        await record(keyTrusted(publicKey));
      });
      printAnswer(options, { publicKey }, `${publicKey} is a release key of this fleet`);
    });
}

export function keysCommand(): Command {
  return withDatabaseOptions(new Command("keys"))
    .description("the valid signing keys by what they sign, and how long the newest release is stated")
    .action(async (options: DatabaseOptions) => {
      const { roles, statedUntil } = await withReleases(options, {}, async ({ keys, releases }) => ({
        roles: await keys.roles(),
        statedUntil: await releases.statedUntil(),
      }));
      const answer = { ...roles, statedUntil };
      const none = roles.releases.keys.length === 0 ? "none: nearcrawl release trust KEY" : null;
      printAnswer(options, answer, none ?? answerText(answer));
    });
}

export function publishCommand(): Command {
  return withDatabaseOptions(new Command("publish"))
    .argument("<manifest>", "what nearcrawl release sign wrote")
    .argument("<bundle>", "its bundle")
    .description("verify a release and publish it for supervisors; it is not offered yet")
    .addHelpText(
      "after",
      "\nExample:\n  nearcrawl release publish crawler-1.4.0.manifest.json crawler-bundle.mjs\n  nearcrawl release stage 1.4.0 --to one",
    )
    .action(async (file: string, bundle: string, options: DatabaseOptions) => {
      const [signed, { bytes }] = [readSignedFile(file), readBundle(bundle)];
      const manifest = await withReleases(options, { setUp: true }, async (stores) => {
        const published = await publishRelease({ signed, bundle: bytes }, stores, new Date());
        await stores.record(releasePublished(published));
        return published;
      });
      const { version } = manifest;
      printAnswer(
        options,
        manifest,
        `release ${version} is published and offered to nobody: nearcrawl release stage ${version} --to one`,
      );
    });
}

export function verifyCommand(): Command {
  return withDatabaseOptions(new Command("verify"))
    .argument("<manifest>", "what nearcrawl release sign wrote")
    .argument("[bundle]", "the bundle to compare")
    .option("--trust <key...>", "valid public keys (default: this fleet's)")
    .description("check that a release is genuine, complete and not expired")
    .addHelpText(
      "after",
      `
Exit codes: 0 it is, 1 it is not, 2 wrong usage.

Example:
  nearcrawl release verify crawler-1.4.0.manifest.json crawler-bundle.mjs --trust release-key.pub`,
    )
    .action(
      async (file: string, bundle: string | undefined, options: DatabaseOptions & { trust?: string[] }) => {
        const signed = readSignedFile(file);
        const role = options.trust
          ? anyOf(options.trust.map(readPublicKey))
          : (await withReleases(options, {}, (stores) => stores.keys.roles())).releases;
        const verified = verifyManifest(signed, {
          role,
          now: new Date(),
          newestSequence: 0,
          revocations: null,
          dockVersion: null,
          ...(bundle === undefined ? {} : { bundle: readBundle(bundle).bytes }),
        });
        if ("refused" in verified) process.exitCode = 1;
        if ("refused" in verified) return printAnswer(options, verified, `not genuine: ${verified.refused}`);
        const { version, sequence, builtFrom } = verified.manifest;
        const from = builtFrom ?? "sources that were not committed";
        const unchecked = bundle === undefined ? "; the bundle was not checked" : "";
        const words = `genuine: release ${version}, number ${sequence}, built of ${from}${unchecked}`;
        printAnswer(options, verified, words);
      },
    );
}

// Commands about who signs what: roots, further signatures, and timestamps.

interface KeyOptions {
  readonly key: readonly string[];
  readonly passphraseFile?: string;
  readonly json?: boolean;
}

async function keysIn({ key: files, passphraseFile }: KeyOptions): Promise<KeyObject[]> {
  const keys = [];
  for (const file of files) keys.push(await readSigningKey(file, passphraseFile ?? null));
  return keys;
}

export function rootCommand(): Command {
  return new Command("root")
    .argument(
      "<roles>",
      "a JSON file: for root, releases, revocations and timestamp the public keys and how many it takes",
    )
    .requiredOption("--key <file...>", "the private keys that sign it here; others add theirs with cosign")
    .option("--passphrase-file <file>", "file with the keys' passphrase")
    .option("--out <file>", "output file of the signed root", "root.json")
    .option("--json", "print for programs")
    .description("state who signs what from now on: several root keys, a separate key for revocations")
    .addHelpText(
      "after",
      `
It counts once as many of the root keys before it have signed it as it took then (of a fleet without a root: any
release key), and as many of those that it names itself. From then on no single key changes anything, and supervisors
take releases only while somebody states what is newest (nearcrawl release timestamp).

roles.json:
  { "root":        { "keys": ["…", "…", "…"], "threshold": 2 },
    "releases":    { "keys": ["…"], "threshold": 1 },
    "revocations": { "keys": ["…"], "threshold": 1 },
    "timestamp":   { "keys": ["…"], "threshold": 1 } }
A fleet whose coordinators are in several domains adds "coordinators": ["crawl.example.net"]: a crawler believes in no
coordinator outside the domain of its invitation otherwise.

Example:
  nearcrawl release root roles.json --key release-key.pem --key root-1.pem --out root.json
  nearcrawl release cosign root.json --key root-2.pem     (elsewhere)
  nearcrawl release accept root.json                      (at the coordinator)`,
    )
    .action(async (file: string, options: KeyOptions & { readonly out: string }) => {
      const roles = readRoles(file);
      const { root, signed } = signRoot(roles, await keysIn(options), new Date());
      writeEnvelope(options.out, signed);
      printAnswer(
        options,
        { file: options.out, root },
        `${options.out}: ${signaturesOf(signed, roles.root)}`,
      );
    });
}

export function coSignCommand(): Command {
  return new Command("cosign")
    .argument(
      "<file>",
      "a release's manifest, a root, a list of revoked releases or a key rotation, signed by others",
    )
    .requiredOption("--key <file...>", "the private keys that sign it, too")
    .option("--passphrase-file <file>", "file with the keys' passphrase")
    .option("--json", "print for programs")
    .description("add signatures to a file that takes several keys; the file is rewritten")
    .addHelpText(
      "after",
      "\nRead what you sign: --json prints it.\n\nExample:\n  nearcrawl release cosign root.json --key root-2.pem",
    )
    .action(async (file: string, options: KeyOptions) => {
      const before = readSignedFile(file);
      const kind = kindOf(before);
      if (kind === null) throw new UsageError(`${file} holds nothing that is signed for releases`);
      const signed = (await keysIn(options)).reduce((made, key) => coSign(made, kind, key), before);
      if (signed.signatures.length > maxSignatures)
        throw new UsageError(
          `${file} would have ${signed.signatures.length} signatures; ${maxSignatures} is the most`,
        );
      writeEnvelope(file, signed);
      const by = signed.signatures.map(({ key }) => key);
      printAnswer(
        options,
        { file, kind, signedBy: by, text: unverifiedBody(signed) },
        `${file}: signed by ${by.join(", ")}`,
      );
    });
}

interface TimestampOptions extends DatabaseOptions, KeyOptions {
  readonly days: number;
  readonly out?: string;
}

export function timestampCommand(): Command {
  return withDatabaseOptions(new Command("timestamp"))
    .requiredOption("--key <file...>", "the private key that states it")
    .option("--passphrase-file <file>", "file with the key's passphrase")
    .option(
      "--days <n>",
      "how long supervisors accept it",
      boundedInteger(1, maxTimestampMs / 86_400_000),
      14,
    )
    .option("--out <file>", "write it instead, for nearcrawl release accept at the coordinator")
    .description(
      "state which release and which list of revoked ones are the newest, so that nobody can pass off older ones",
    )
    .addHelpText(
      "after",
      `
Supervisors that have seen such a statement, or follow a root, take no release once it has expired; what runs goes on.
A coordinator does this by itself, each day for a week, while the key that may lies in its home
(release-timestamp-key.pem, or the automatic release key).

Example:
  nearcrawl release timestamp --key timestamp-key.pem --days 30`,
    )
    .action(async (options: TimestampOptions) => {
      const keys = await keysIn(options);
      const now = new Date();
      const made = await withReleases(options, {}, async ({ releases }) => {
        const newest = await newestIn(releases, now);
        const { timestamp, signed } = signTimestamp({ ...newest, days: options.days }, keys, now);
        const refused = options.out === undefined ? await releases.stateNewest(signed, now) : null;
        if (refused !== null) throw new UsageError(`it is refused: ${refused}`);
        if (options.out !== undefined) writeEnvelope(options.out, signed);
        return timestamp;
      });
      const { release, revocations, expiresAt } = made;
      const words =
        `${release === null ? "no release is offered to all" : `release ${release.version} is the newest for all`}, ` +
        `${revocations === 0 ? "none was ever revoked" : `the list of revoked ones has number ${revocations}`}; ` +
        `good until ${expiresAt}`;
      printAnswer(options, made, options.out === undefined ? words : `${options.out}: ${words}`);
    });
}

/** Limit on the size of a file of roles, which has some hundred bytes. */
const maxRolesBytes = 64 * 1024;

function readRoles(file: string) {
  const read = statedRoles.safeParse(jsonIn(file));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UsageError(`${file}: ${issue?.path.join(".") || "all of it"}: ${issue?.message}`);
}

function jsonIn(file: string): unknown {
  const text = readBounded(file, maxRolesBytes).toString("utf8");
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unusable(file, error);
  }
}

function signaturesOf({ signatures }: Envelope, root: Role): string {
  const own = signatures.filter(({ key }) => root.keys.includes(key)).length;
  return own < root.threshold
    ? `signed by ${own} of the ${root.threshold} root keys that it takes: nearcrawl release cosign, with the others`
    : `signed by ${own} root keys of its own; nearcrawl release accept puts it in force, if the keys before it have signed, too`;
}
