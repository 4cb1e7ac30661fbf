/** `--contact`: the webmasters' contact, without which nobody may crawl the public web. */
import { type CoordinatorConfig, readCoordinatorConfig } from "#coordinator/config";
import { contactFault } from "#coordinator/run/opt-outs/start";
import { UsageError } from "#core/errors";
import { reachableContact } from "#protocol/user-agent";

export const contactOption = [
  "--contact <address>",
  "real web: your e-mail address or a URL, which every request to a site names; nobody crawls the public web without",
] as const;

/** Throws a UsageError when no webmaster could use it. */
export function checkedContact(contact: string | undefined): string | undefined {
  if (contact === undefined || reachableContact(contact) !== null) return contact;
  throw new UsageError(
    `--contact ${contact}: must be an e-mail address or an http(s) URL that webmasters can reach, at most 160 characters`,
  );
}

/** Throws a UsageError with the command to type when the settings name no reachable contact. */
export function requireContact(settings: Readonly<Record<string, unknown>>): CoordinatorConfig {
  const config = readCoordinatorConfig(settings);
  const fault = contactFault(config);
  if (fault === null) return config;
  throw new UsageError(`${fault}: say who you are, such as by ${commandLine()} --contact you@example.org`);
}

/** The command line as typed, quoted for a shell. */
function commandLine(): string {
  const words = process.argv.slice(2).map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word)));
  return ["nearcrawl", ...words].join(" ");
}

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
