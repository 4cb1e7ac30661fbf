/** What is done at the coordinator's database: releases published, offered, held, looked at. */
import { Command } from "commander";
import { defaultSoakMinutes } from "#coordinator/releases/decide-stage";
import { holdRelease, stageRelease } from "#coordinator/releases/move-stage";
import { type ReleaseLine, releaseLines, releaseRemark, stageText } from "#coordinator/releases/routes";
import { UsageError } from "#core/errors";
import { verifyManifest } from "#protocol/release";
import { anyOf, type Role } from "#protocol/release-envelope";
import type { Roles } from "#protocol/release-roles";
import { boundedInteger } from "../bounded-number.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";
import {
  keyTrusted,
  releaseHeld,
  releasePublished,
  releaseStaged,
  withReleases,
} from "./automatic-releases.ts";
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
      printAnswer(options, { ...roles, statedUntil }, keysText(roles, statedUntil));
    });
}

function keysText(roles: Roles, statedUntil: Date | null): string {
  if (roles.releases.keys.length === 0) return "none: nearcrawl release trust KEY";
  const byWords = new Map<string, string[]>();
  for (const name of ["root", "releases", "revocations", "timestamp"] as const) {
    const words = roleText(roles[name]);
    byWords.set(words, [...(byWords.get(words) ?? []), name]);
  }
  const lines = [...byWords].map(([words, names]) => `${names.join(", ")}:\n${words}`);
  const stated =
    statedUntil === null
      ? "The newest release was never stated (nearcrawl release timestamp)."
      : `The newest release is stated until ${statedUntil.toISOString()}.`;
  return [...lines, stated].join("\n");
}

function roleText({ keys, threshold }: Role): string {
  const lines = keys.map((key) => `  ${key}`);
  return (keys.length === 1 ? lines : [`  ${threshold} of:`, ...lines]).join("\n");
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
      "\nExit codes: 0 it is, 1 it is not, 2 wrong usage.\n\nExample:\n  nearcrawl release verify crawler-1.4.0.manifest.json crawler-bundle.mjs --trust release-key.pub",
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
        const words =
          "refused" in verified
            ? `not genuine: ${verified.refused}`
            : `genuine: release ${verified.manifest.version}, number ${verified.manifest.sequence}, built of ${verified.manifest.builtFrom ?? "sources that were not committed"}${bundle === undefined ? "; the bundle was not checked" : ""}`;
        printAnswer(options, verified, words);
      },
    );
}

interface StageOptions extends DatabaseOptions {
  readonly to: string;
  readonly again?: boolean;
}

export function stageCommand(): Command {
  return withDatabaseOptions(new Command("stage"))
    .argument("<version>", "a published release")
    .requiredOption("--to <whom>", "one, one=NAME, a percentage of the crawlers, or all")
    .option("--again", "offer it again to crawlers that rolled back from it")
    .description("offer a release to one crawler, to a share of them, or to all")
    .addHelpText(
      "after",
      "\nExamples:\n  nearcrawl release stage 1.4.0 --to one=athens\n  nearcrawl release stage 1.4.0 --to 5%\n  nearcrawl release stage 1.4.0 --to all",
    )
    .action(async (version: string, options: StageOptions) => {
      const wished = { version, to: options.to, again: options.again ?? false };
      await stage(wished, options);
    });
}

export function autoCommand(): Command {
  return withDatabaseOptions(new Command("auto"))
    .argument("<version>", "a published release")
    .option(
      "--soak-minutes <n>",
      "how long each stage must run without problems",
      boundedInteger(1, 100_000),
      defaultSoakMinutes,
    )
    .description("offer a release to one crawler, then 5 % of them, then all, as long as all goes well")
    .addHelpText(
      "after",
      "\nIt moves on when all who took it have run it for the soak time. It is held when a crawler rolls back from it, or when\nthose that took it are offline, or fail through their own fault, more than the others. Partners who pin or delay are not\nwaited for. A running coordinator does this; nearcrawl release list shows its progress.",
    )
    .action(async (version: string, options: DatabaseOptions & { soakMinutes: number }) => {
      await stage({ version, to: "one", soakMinutes: options.soakMinutes }, options);
    });
}

export function holdCommand(): Command {
  return withDatabaseOptions(new Command("hold"))
    .argument("<version>", "a published release")
    .option("--reason <words>", "for nearcrawl release list", "held by an operator")
    .description("stop offering a release: crawlers that have it keep it, no others get it")
    .action(async (version: string, options: DatabaseOptions & { reason: string }) => {
      await withReleases(options, {}, async (stores) => {
        await holdRelease(version, options.reason, stores, new Date());
        await stores.record(releaseHeld(version, options.reason));
      });
      printAnswer(options, { version, stage: "none" }, `${version} is no longer offered`);
    });
}

export function listCommand(): Command {
  return withDatabaseOptions(new Command("list"))
    .description(
      "every release: who is offered it, and how many crawlers run it, refused it or rolled back from it",
    )
    .action(async (options: DatabaseOptions) => {
      const now = new Date();
      const lines = await withReleases(options, {}, (stores) => releaseLines(stores, now));
      printAnswer(options, lines, releaseText(lines, now));
    });
}

async function stage(wished: Parameters<typeof stageRelease>[0], options: DatabaseOptions): Promise<void> {
  const { version } = wished;
  const { entry, members } = await withReleases(options, {}, async (stores) => {
    const staged = await stageRelease(wished, stores, new Date());
    if (staged.entry.stage !== "none") await stores.record(releaseStaged(staged, wished));
    return staged;
  });
  if (entry.stage === "none")
    throw new UsageError(`${version} could not be staged: see nearcrawl release list`);
  const names = members.slice(0, 10).join(", ") + (members.length > 10 ? " …" : "");
  printAnswer(
    options,
    { version, stage: entry.stage, percent: entry.percent, crawlers: members },
    members.length === 0
      ? `${version} is for all; no crawler that takes releases has connected yet`
      : `${version} is offered to ${members.length} crawler${members.length === 1 ? "" : "s"} (${names}): nearcrawl release list`,
  );
}

// Releases as a table for people.

const states = ["offered", "running", "returned", "pinned", "delayed", "refused"] as const;

function releaseText(releases: readonly ReleaseLine[], now: Date): string {
  if (releases.length === 0)
    return "no release is published: the coordinator makes the first one as it starts, or: nearcrawl release publish";
  return formatTable(
    [
      { title: "release" },
      { title: "stage" },
      ...states.map((title) => ({ title, align: "right" as const })),
      { title: "" },
    ],
    releases.map((release) => [
      release.version,
      stageText(release),
      ...states.map((state) => String(release.crawlers[state])),
      printable(releaseRemark(release, now)),
    ]),
  );
}
