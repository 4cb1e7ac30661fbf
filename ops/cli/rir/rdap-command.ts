/** `nearcrawl rir rdap`: what the registry says of one range today, beside what our database says. */
import { Command } from "commander";
import { UsageError } from "#core/errors";
import { formatRange, type IpRange } from "#core/ip/range";
import { softwareVersion } from "#protocol/software-version";
import { systemClock } from "#rir-import/download/clock";
import { httpSettings } from "#rir-import/download/fetch-sources";
import { type LookUp, lookUp, readAsked } from "#rir-import/lookup";
import { askRegistry, type RdapAnswer } from "#rir-import/rdap/ask-registry";
import { cachedBootstrap } from "#rir-import/rdap/cached-bootstrap";
import { type RefreshedSubnet, refreshSubnet } from "#rir-import/refresh-subnet";
import { type ContextOptions, commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { readDatabase } from "../read-database.ts";
import {
  type CacheOptions,
  cacheFolderOf,
  settingsOf,
  untilInterrupted,
  withCacheOptions,
  withMigrated,
} from "./cache-options.ts";

type Options = CacheOptions &
  ContextOptions & { readonly compare?: boolean; readonly apply?: boolean; readonly timeout: string };

const help = `
Asks the registry itself (RDAP, RFC 9082), for one range; imports use whole files (rir fetch). With --apply the
answer takes the range's place in the tree, as a generation of its own: \`rir rollback\` undoes it, and the next
import of the files has the last word.

Exit codes: 0 found, 1 failed or asked to wait, 2 wrong usage, 3 nothing is registered there.

Examples:
  nearcrawl rir rdap 193.0.6.139
  nearcrawl rir rdap 2001:67c:2e8::/48 --compare
  nearcrawl rir rdap 2001:67c:2e8::/48 --apply`;

export function rdapCommand(): Command {
  return withCacheOptions(new Command("rdap"))
    .description("ask the responsible registry about one address or range, now (RDAP)")
    .argument("<range>", "an address, a/prefix or 'a - b'")
    .option("--compare", "show what our database says of the same range")
    .option("--apply", "put the answer into the tree")
    .option("--contact <address>", "told to the registry in the User-Agent: an e-mail address or a URL")
    .option("--timeout <seconds>", "for one query", "20")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema")
    .addHelpText("after", help)
    .action(ask);
}

async function ask(text: string, options: Options): Promise<void> {
  const { range, asked } = readAsked(text);
  const timeoutMs = timeoutOf(options.timeout);
  const answer = await answerFor(range, { options, timeoutMs });
  const ours = options.compare
    ? await readDatabase(commandContext(options), (database) => lookUp(database, text))
    : null;
  const refreshed = options.apply && answer.type === "found" ? await applyAnswer(answer, options) : null;
  const value = { asked, ...rdapJson(answer), ...(ours && { ours }), ...(refreshed && { refreshed }) };
  printAnswer(options, value, rdapText(asked, answer, ours) + refreshedText(refreshed));
  process.exitCode = exitCodeOf(answer);
}

async function applyAnswer(
  { record, url }: Extract<RdapAnswer, { type: "found" }>,
  options: Options,
): Promise<RefreshedSubnet> {
  return await withMigrated(options, (database) =>
    refreshSubnet(database, record, { source: url, date: systemClock.now() }),
  );
}

function refreshedText(refreshed: RefreshedSubnet | null): string {
  if (refreshed === null) return "";
  const { range, event, generation, moved } = refreshed;
  const under = moved === 0 ? "" : `, ${moved} subnets moved under it`;
  return `\n\n${range} ${event} in generation ${generation}${under}; undo with: nearcrawl rir rollback`;
}

async function answerFor(
  range: IpRange,
  { options, timeoutMs }: { readonly options: Options; readonly timeoutMs: number },
): Promise<RdapAnswer> {
  const settings = await settingsOf(options);
  const interrupted = untilInterrupted();
  const version = softwareVersion;
  const { signal } = interrupted;
  try {
    const bootstrap = await cachedBootstrap({
      settings,
      version,
      signal,
      cacheFolder: cacheFolderOf(options),
      clock: systemClock,
      random: Math.random,
      onProgress: () => {},
    });
    const http = await httpSettings(settings, version);
    return await askRegistry({ bootstrap, http, clock: systemClock, signal, timeoutMs }, range);
  } finally {
    interrupted.release();
  }
}

function exitCodeOf(answer: RdapAnswer): number {
  if (answer.type === "found") return exitCodes.done;
  return answer.type === "not registered" || answer.type === "no server"
    ? exitCodes.notFound
    : exitCodes.failed;
}

function timeoutOf(text: string): number {
  const seconds = Number(text);
  if (!(seconds >= 1 && seconds <= 600))
    throw new UsageError(`--timeout: 1 to 600 seconds are expected, not "${text}"`);
  return seconds * 1000;
}

// The answer of `rir rdap` for people and for programs.

type Found = Extract<RdapAnswer, { type: "found" }>;

/** Ranges as text, in place of numbers and bigints. */
function rdapJson(answer: RdapAnswer): Readonly<Record<string, unknown>> {
  if (answer.type !== "found") return answer;
  const { network, record } = answer;
  const range = formatRange(network.range);
  return { ...answer, network: { ...network, range }, record: { ...record, range } };
}

function rdapText(asked: string, answer: RdapAnswer, ours: LookUp | null): string {
  const theirs = answer.type === "found" ? foundText(asked, answer) : otherText(asked, answer);
  return ours === null ? theirs : `${theirs}\n\n${comparedText(answer, ours)}`;
}

function otherText(asked: string, answer: Exclude<RdapAnswer, Found>): string {
  if (answer.type === "no server") return `no registry answers for ${asked} (IANA's list of RDAP servers)`;
  if (answer.type === "not registered") return `nothing is registered for ${asked} (${answer.url})`;
  if (answer.type === "failed") return `${answer.url}: ${printable(answer.reason)}`;
  const wait = answer.seconds === null ? "come back later" : `come back in ${answer.seconds} seconds`;
  return `${answer.url}: too many requests; it asks to ${wait}`;
}

function foundText(asked: string, { network, registry, url }: Found): string {
  const { holder, country, name, handle, parentHandle, type, status, lastChanged } = network;
  const lines = {
    range: formatRange(network.range),
    registry: registry ?? "",
    holder: [holder?.name, holder?.handle && `(${holder.handle})`].filter(Boolean).join(" "),
    country: country ?? "",
    name,
    handle: [handle, parentHandle && `in ${parentHandle}`].filter(Boolean).join(" "),
    kind: [type, status.join(", ")].filter(Boolean).join("; "),
    "last changed": lastChanged ?? "",
    from: url,
  };
  const shown = Object.entries(lines).filter(([, value]) => value !== "");
  return [
    `${asked} is registered as`,
    ...shown.map(([key, value]) => `  ${key.padEnd(13)}${printable(value)}`),
  ].join("\n");
}

function comparedText(answer: RdapAnswer, ours: LookUp): string {
  const subnet = ours.chain.at(-1);
  if (subnet === undefined) return `our tree has nothing for ${ours.asked}`;
  if (answer.type !== "found") return `our tree: ${subnet.range}, ${subnet.holder ?? "no holder"}`;
  const { network, registry } = answer;
  const rows = [
    ["range", formatRange(network.range), subnet.range],
    ["registry", registry ?? "", subnet.registry],
    ["holder", network.holder?.name ?? "", subnet.holder ?? ""],
    ["handle", network.holder?.handle ?? "", subnet.handle ?? ""],
    ["country", network.country ?? "", subnet.country ?? ""],
    ["name", network.name, subnet.name],
  ].map((cells) => cells.map((cell) => printable(cell, 60)));
  return formatTable(
    [{ title: "" }, { title: "the registry" }, { title: "our tree" }, { title: "" }],
    rows.map(([key, theirs, own]) => [key!, theirs!, own!, theirs === own ? "" : "differs"]),
  );
}
