/** `nearcrawl operator-token`: who may change the fleet over HTTP. */
import { Command, Option } from "commander";
import { createOperatorTokenStore, tokenCreated, tokenRevoked } from "#coordinator/access/token-store";
import { randomSecrets } from "#coordinator/web/secrets";
import type { OperatorToken } from "#core/access-types";
import { type Scope, scopes } from "#core/actor";
import { migrate } from "#db/migrate";
import { recordCommand } from "../audit-command-change.ts";
import { boundedNumber } from "../bounded-number.ts";
import { commandContext, withDatabase } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { checkedName } from "../fleet/watched.ts";
import { formatTable, printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface CreateOptions extends DatabaseOptions {
  readonly scope: readonly Scope[];
  readonly days: number;
}

const dayMs = 86_400_000;
/** Long enough not to be in the way, short enough for a lost one to end. */
const usualDays = 365;

export function operatorTokenCommand(): Command {
  const command = new Command("operator-token")
    .description("tokens for operators' programs: invite, rotate and revoke crawlers over HTTP")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, or the name is taken, 3 there is no valid token of that name.\n\nExamples:\n  nearcrawl operator-token create dashboard --scope fleet-read\n  curl -H 'Authorization: Bearer TOKEN' COORDINATOR/api/fleet/invitations      (its address, as nearcrawl coordinator prints it)\n\nWhat can be asked: /api/openapi.json",
    );
  command.addCommand(
    withDatabaseOptions(new Command("create"))
      .argument("<name>", "what it is for; shown wherever it was used", checkedName)
      .description("create a token and print it, only once")
      .addOption(
        new Option("--scope <scope...>", "what it may do")
          .choices(scopes)
          .default(["fleet-read", "fleet-write"]),
      )
      .option("--days <days>", "how long it is valid", boundedNumber(0.01, 3650), usualDays)
      .action(async (name: string, options: CreateOptions) => await create(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("list"))
      .description("the tokens, and when each was last used")
      .action(async (options: DatabaseOptions) => {
        const tokens = await readDatabase(
          commandContext(options),
          async ({ pool }) => await createOperatorTokenStore(pool).list(),
        );
        printAnswer(options, tokens, tokensText(tokens, new Date()));
      }),
  );
  command.addCommand(
    withDatabaseOptions(new Command("revoke"))
      .argument("<name>", "the token's name")
      .description("revoke a token at once")
      .action(async (name: string, options: DatabaseOptions) => await revoke(name, options)),
  );
  return command;
}

async function create(name: string, options: CreateOptions): Promise<void> {
  const { secret: token, hash: tokenHash } = randomSecrets.make("nco_");
  const createdAt = new Date();
  const expiresAt = new Date(createdAt.getTime() + options.days * dayMs);
  const made = await withDatabase(commandContext(options), async (database) => {
    await migrate(database);
    const tokens = createOperatorTokenStore(database.pool);
    const { scope: scopes } = options;
    const isNew = await tokens.create({ name, tokenHash, scopes, createdAt, expiresAt });
    if (isNew) await recordCommand(database.pool, tokenCreated({ name, scopes, expiresAt }));
    return isNew;
  });
  if (!made) {
    process.stderr.write(`nearcrawl: the name "${name}" is or was in use: choose another\n`);
    process.exitCode = exitCodes.usage;
    return;
  }
  const text = `the token ${name}, for ${options.scope.join(" and ")}, valid until ${expiresAt.toISOString()}; shown only once:\n${token}`;
  printAnswer(options, { name, scopes: options.scope, expiresAt, token }, text);
}

async function revoke(name: string, options: DatabaseOptions): Promise<void> {
  const revoked = await readDatabase(commandContext(options), async ({ pool }) => {
    const isEnded = await createOperatorTokenStore(pool).revoke(name, new Date());
    if (isEnded) await recordCommand(pool, tokenRevoked(name));
    return isEnded;
  });
  if (revoked) return printAnswer(options, { name, revoked }, `the token ${name} no longer works`);
  process.stderr.write(
    `nearcrawl: there is no valid token "${name.slice(0, 100)}": nearcrawl operator-token list\n`,
  );
  process.exitCode = exitCodes.notFound;
}

export function tokensText(tokens: readonly OperatorToken[], now: Date): string {
  if (tokens.length === 0) return "there are no tokens: nearcrawl operator-token create NAME";
  return formatTable(
    [
      { title: "token" },
      { title: "state" },
      { title: "scopes" },
      { title: "valid until (UTC)" },
      { title: "last used (UTC)" },
    ],
    tokens.map(({ name, scopes, expiresAt, lastUsedAt, revokedAt }) => [
      name,
      revokedAt !== null ? "revoked" : expiresAt !== null && expiresAt <= now ? "expired" : "valid",
      scopes.join(", "),
      expiresAt === null ? "revoked" : minuteOf(expiresAt),
      lastUsedAt === null ? "never" : minuteOf(lastUsedAt),
    ]),
  );
}

const minuteOf = (date: Date): string => date.toISOString().slice(0, 16).replace("T", " ");
