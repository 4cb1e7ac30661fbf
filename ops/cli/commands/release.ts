/** `nearcrawl release`: the code that runs at partners, signed, published and offered in stages. */
import { Command } from "commander";
import {
  autoCommand,
  holdCommand,
  keysCommand,
  listCommand,
  publishCommand,
  stageCommand,
  trustCommand,
  verifyCommand,
} from "../release/fleet-commands.ts";
import { initCommand } from "../release/init-command.ts";
import { buildCommand, keygenCommand, rotateKeyCommand, signCommand } from "../release/offline-commands.ts";
import { acceptCommand, revokeCommand } from "../release/revoke-commands.ts";

export function releaseCommand(): Command {
  const command = new Command("release")
    .description("releases of the crawler: build, sign offline, publish, offer in stages, hold, revoke")
    .addHelpText(
      "after",
      `
Exit codes: 0 done, 1 failed or not genuine, 2 wrong usage or refused.

A coordinator without a release key makes one as it starts, and signs and offers the crawler that it ships with.
To sign from the start, before that (or: nearcrawl release trust KEY):
  nearcrawl release init

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
  initCommand,
  keygenCommand,
  buildCommand,
  signCommand,
  verifyCommand,
  publishCommand,
  stageCommand,
  autoCommand,
  holdCommand,
  revokeCommand,
  rotateKeyCommand,
  acceptCommand,
  trustCommand,
  keysCommand,
  listCommand,
];
