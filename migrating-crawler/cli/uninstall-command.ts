/**
 * `uninstall` leaves, stops the crawler and removes its folder. It changes nothing else, but names what others installed
 * elsewhere, such as the systemd unit.
 */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  unlinkSync,
} from "node:fs";
import { basename, join } from "node:path";
import { UsageError } from "#core/errors";
import { type PartnerContext, type PartnerExitCode, partnerExitCodes } from "../core/partner-context.ts";
import { folderKind, homeSettings, marks } from "../membership/home-folder.ts";
import { emptyAsOwner, leaveAsOwner, leaveWords, otherOwner } from "./leave-command.ts";

interface UninstallOptions {
  /** Ask no questions, and continue when the coordinator is unreachable. */
  readonly yes?: boolean;
}

const unitFile = "/etc/systemd/system/nearcrawl-crawler.service";

export async function uninstallCommand(
  context: PartnerContext,
  options: UninstallOptions,
): Promise<PartnerExitCode> {
  const { complain, print } = context;
  if (lstatSync(context.home, { throwIfNoEntry: false }) === undefined) {
    complain(`There is nothing at ${context.home}.`);
    return partnerExitCodes.notFound;
  }
  const home = crawlersFolder(context.home);
  if (
    !(await agrees(
      context,
      options,
      `Remove ${home} with everything in it, after the crawler has left for good?`,
    ))
  ) {
    return partnerExitCodes.failed;
  }
  if (!(await leaves(context, options, home))) return partnerExitCodes.failed;
  const others = filesElsewhere(context, home);
  if (!(await removeHome(context, home))) return partnerExitCodes.failed;
  removeLink(context.home);
  print(
    existsSync(home)
      ? `Everything in ${home} is removed; the folder itself is a mount.`
      : `${home} is removed.`,
  );
  for (const line of others) print(line);
  return partnerExitCodes.done;
}

/** Resolves a link to the folder. Throws a UsageError unless it contains a crawler's files. */
function crawlersFolder(given: string): string {
  const home = existsSync(given) ? realpathSync(given) : given;
  if (folderKind(home) === "crawler") return home;
  throw new UsageError(
    `${home} is no crawler's folder (membership.json or identity.json would be in it): nothing was removed`,
  );
}

async function agrees(
  { ask }: PartnerContext,
  { yes }: UninstallOptions,
  question: string,
): Promise<boolean> {
  if (yes) return true;
  if (ask === null)
    throw new UsageError("nobody is there to be asked: say --yes to remove the folder without a question");
  return await ask(question);
}

async function leaves(context: PartnerContext, options: UninstallOptions, home: string): Promise<boolean> {
  const outcome = await leaveAsOwner(context, home).catch((error: Error) => ({
    type: "failed" as const,
    reason: error.message,
  }));
  context.print(leaveWords(outcome).replace(/ Its folder stays.*/, ""));
  if (outcome.type === "still-runs") return false;
  if (outcome.type !== "failed") return true;
  return await agrees(context, options, "Remove it all the same?");
}

function filesElsewhere({ program }: PartnerContext, home: string): string[] {
  const lines: string[] = [];
  const archive = otherOwner(home) === null ? archiveOf(home) : null;
  if (otherOwner(home) !== null) lines.push("An archive elsewhere, if there was one, is yours and stays.");
  if (archive !== null && !archive.startsWith(`${home}/`))
    lines.push(`The archive in ${archive} is yours and stays.`);
  if (unitNames(home)) {
    lines.push(`Remove the unit, too: systemctl disable --now ${basename(unitFile)}; rm ${unitFile}`);
  }
  const file = /\S+\.mjs$/.exec(program)?.[0];
  if (file !== undefined) lines.push(`What is left is the program itself: rm ${file}`);
  return lines;
}

function archiveOf(home: string): string | null {
  try {
    return homeSettings(home).warc?.folder ?? null;
  } catch {
    return null;
  }
}

function unitNames(home: string): boolean {
  try {
    return readFileSync(unitFile, "utf8").includes(basename(home));
  } catch {
    return false;
  }
}

/** Returns false if the folder contains something that its owner may not remove. */
async function removeHome({ complain }: PartnerContext, home: string): Promise<boolean> {
  const owner = otherOwner(home);
  if (owner === null) empty(home);
  else await emptyAsOwner(home, owner);
  try {
    rmdirSync(home);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // The folder is a container's volume, which exists as long as the container.
    if (code === "EBUSY") return true;
    if (code !== "ENOTEMPTY" || owner === null) throw error;
    const left = readdirSync(home).flatMap((name) => (marks.includes(name) ? [] : [JSON.stringify(name)]));
    complain(
      `User ${owner.uid}, whose folder ${home} is, could not remove: ${left.join(", ")}. Look at it first.`,
    );
    return false;
  }
  return true;
}

/** Removes the files that mark a crawler's folder last, so that an interrupted command still recognises it. */
function empty(home: string): void {
  const names = readdirSync(home);
  const last = (name: string) => marks.includes(name);
  for (const name of [...names.filter((one) => !last(one)), ...names.filter(last)]) {
    rmSync(join(home, name), { recursive: true, force: true });
  }
}

function removeLink(given: string): void {
  if (lstatSync(given, { throwIfNoEntry: false })?.isSymbolicLink()) unlinkSync(given);
}
