/** Commands at the coordinator's database: publish, offer, hold and list releases. */
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { verifyManifest } from "#protocol/release";
import { anyOf } from "#protocol/release-envelope";
import { answerText } from "../answer-text.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import { keyTrusted, releasePublished, withReleases } from "./automatic-releases.ts";
import { readBundle, readSignedFile } from "./offline-commands.ts";
import { publishRelease } from "./publish-release.ts";
import { readPublicKey } from "./release-key-file.ts";

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
