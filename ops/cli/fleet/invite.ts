/** `nearcrawl fleet invite` and `reinvite`: print the command with which a partner joins. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { Command, InvalidArgumentError } from "commander";
import type { Pool } from "pg";
import { documentText } from "#coordinator/ask/text-rendering";
import { readCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createInvitationStore } from "#coordinator/place/crawlers/invitation-store";
import {
  type InvitingCoordinator,
  invitationHours,
  invitationMade,
  issueInvitation,
} from "#coordinator/run/access/invitations";
import { invitingCoordinator, type StatedPlace } from "#coordinator/run/access/inviting-coordinator-reads";
import { invitedDocument } from "#coordinator/tell/fleet/invitations-ask";
import { randomSecrets } from "#coordinator/web/secrets";
import { migrate } from "#db/migrate";
import { pinOf } from "#protocol/identity";
import { certificatePin, crawlerName } from "#protocol/invitation";
import { recordCommand, systemUser } from "../audit-command-change.ts";
import { commandContext, withDatabase } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { boundedInteger, boundedNumber } from "../options.ts";
import { printAnswer, terminalPaper } from "../output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../read-database.ts";

interface InviteOptions extends DatabaseOptions {
  readonly name: string;
  readonly capacity?: number;
  readonly bytesADay?: number;
  readonly expiresHours: number;
  readonly probeOnly?: boolean;
  readonly url?: string;
  /** False for --no-pin. `true` is commander's default, which means that no option was given. */
  readonly pin?: string | boolean;
}

export function inviteCommand(): Command {
  return withInvitingOptions(
    new Command("invite")
      .description("invite a crawler: prints a token, only once, and the command that its partner runs")
      .requiredOption(
        "--name <name>",
        "its name: lower-case letters, digits, dot, dash, underscore",
        checkedName,
      ),
  ).action(async (options: InviteOptions) => await invite(options, false));
}

export function reinviteCommand(): Command {
  return withInvitingOptions(
    new Command("reinvite")
      .argument("<name>", "the crawler's name", checkedName)
      .description(
        "reissue a crawler's credentials after its folder was lost or copied. It keeps its subnets; its old identity and keys end when it joins again",
      ),
  ).action(
    async (name: string, options: Omit<InviteOptions, "name">) => await invite({ ...options, name }, true),
  );
}

function withInvitingOptions(command: Command): Command {
  const { least, most, usual } = invitationHours;
  return withDatabaseOptions(command)
    .option("--capacity <pages>", "maximum pages per day", boundedInteger(0, 1_000_000_000))
    .option("--bytes-a-day <bytes>", "maximum bytes per day", boundedInteger(0, 1e15))
    .option("--expires-hours <hours>", "how long the token is valid", boundedNumber(least, most), usual)
    .option("--probe-only", "it only measures, and gets no pages to fetch")
    .option(
      "--url <url>",
      "where it connects: wss://HOST/crawler (default: the coordinator's stated address)",
    )
    .option(
      "--pin <pin>",
      "the certificate to pin: a PEM file, or 43 characters (default: the coordinator's own)",
      givenPin,
    )
    .option("--no-pin", "pin no certificate: a public CA vouches for it, and its key may change")
    .addHelpText(
      "after",
      `
A pinned certificate may be renewed as often as you like as long as its key stays the same (certbot: --reuse-key).

The join command reads the token from standard input. If interrupted, it can be run again on the same folder until
the crawler has its key, for three days at most; after that nearcrawl fleet reinvite makes a new invitation.

Exit codes: 0 done, 1 failed, 2 wrong usage, the name is taken, or there is no release key to pin, 3 there is no
crawler of that name.`,
    );
}

async function invite(options: InviteOptions, renews: boolean): Promise<void> {
  const { name, capacity, bytesADay, expiresHours, probeOnly } = options;
  const request = {
    name,
    renews,
    scopes: probeOnly ? (["probe"] as const) : (["probe", "crawl"] as const),
    pagesPerDay: capacity ?? null,
    bytesPerDay: bytesADay ?? null,
    expiresHours,
    createdBy: systemUser(),
  };
  const issued = await withDatabase(commandContext(options), async (database) => {
    await migrate(database);
    const stated = statedPlace(options);
    const coordinator = await invitingCoordinator(database.pool, stated);
    if (stated.pin === undefined) await warnOfProxy(database.pool, coordinator);
    const ports = { invitations: createInvitationStore(database.pool), coordinator, secrets: randomSecrets };
    const made = await issueInvitation(request, ports, new Date());
    if (typeof made !== "string") await recordCommand(database.pool, invitationMade(made, request));
    return made;
  });
  if (typeof issued === "string") {
    const isTaken = issued === "name-taken";
    const words = isTaken
      ? `there is a crawler "${name}" already; nearcrawl fleet reinvite ${name} reissues its credentials`
      : `there is no crawler "${name}": nearcrawl fleet list`;
    process.stderr.write(`nearcrawl: ${words}\n`);
    process.exitCode = isTaken ? exitCodes.usage : exitCodes.notFound;
    return;
  }
  printAnswer(options, issued, documentText(invitedDocument(issued), terminalPaper()));
}

/** The coordinator knows only its own certificate, so the one of a proxy is fetched. */
async function warnOfProxy(
  pool: Pool,
  { certificatePin: pin, coordinatorUrl }: InvitingCoordinator,
): Promise<void> {
  if (pin === null || !(await readCoordinatorPlace(pool))?.hasPublicUrl) return;
  const { host } = new URL(coordinatorUrl);
  const shown = await shownPin(coordinatorUrl);
  if (shown === pin) return;
  const words =
    shown === null
      ? `${host} cannot be reached from here, so nobody knows whether it shows the pinned certificate`
      : `${host} shows another certificate than the coordinator's, which this invitation pins, so nobody can join with it`;
  process.stderr.write(
    `nearcrawl: warning: ${words}. If a proxy terminates TLS there, use --pin CERTIFICATE, or --no-pin\n`,
  );
}

const lookMs = 3000;

/** Returns null when no server answers at this URL. */
async function shownPin(url: string): Promise<string | null> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const name = isIP(host) === 0 ? { servername: host } : {};
  const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false, ...name });
  socket.setTimeout(lookMs, () => socket.destroy(new Error("no answer")));
  try {
    await once(socket, "secureConnect");
    const certificate = socket.getPeerX509Certificate();
    return certificate === undefined ? null : pinOf(certificate);
  } catch {
    return null;
  } finally {
    socket.destroy();
  }
}

/** `true` is commander's default for an option that also has a --no-pin form. */
function statedPlace({ url, pin }: InviteOptions): StatedPlace {
  return {
    ...(url === undefined ? {} : { url }),
    ...(pin === false ? { pin: null } : typeof pin === "string" ? { pin } : {}),
  };
}

function checkedName(text: string): string {
  if (crawlerName.safeParse(text).success) return text;
  throw new InvalidArgumentError(
    "a crawler's name is 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begins with a letter or digit",
  );
}

function givenPin(text: string): string {
  if (certificatePin.safeParse(text).success) return text;
  try {
    return pinOf(readFileSync(text));
  } catch (error) {
    throw new InvalidArgumentError(`${text}: ${(error as Error).message}`);
  }
}
