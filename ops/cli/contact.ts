/** `--contact`: the contact for webmasters, without which nobody may crawl the public web. Checks that it works. */
import { Resolver } from "node:dns/promises";
import { request } from "undici";
import { type CoordinatorConfig, readCoordinatorConfig } from "#coordinator/config";
import { contactFault } from "#coordinator/run/opt-outs/start";
import { UsageError } from "#core/errors";
import { createNameResolver } from "#core/name-resolver";
import { softwareVersion } from "#protocol/software-version";
import { reachableContact } from "#protocol/user-agent";

export const contactOption = [
  "--contact <address>",
  "real web: your e-mail address or a URL, which every request to a site names; nobody crawls the public web without",
] as const;

/** Throws a UsageError when no webmaster could use the contact. */
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

/** Returns the command line as typed, quoted for a shell. */
function commandLine(): string {
  const words = process.argv.slice(2).map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word)));
  return ["nearcrawl", ...words].join(" ");
}

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

const dnsTimeoutMs = 4000;
const pageTimeoutMs = 10_000;

/** Returns null when `contact` (an e-mail address or URL) works. Empty `resolvers` mean the system's DNS servers. */
export async function contactTrouble(contact: string, resolvers: readonly string[]): Promise<string | null> {
  const domain = /^(?:mailto:)?[^@\s]+@([^@\s]+)$/.exec(contact)?.[1];
  return domain === undefined ? await pageTrouble(contact) : await mailTrouble(domain, resolvers);
}

/** RFC 5321 section 5.1 requires MX records or else an address. With RFC 7505, a lone "." accepts no mail. */
async function mailTrouble(domain: string, servers: readonly string[]): Promise<string | null> {
  const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  try {
    const records = await resolver.resolveMx(domain);
    const isNull = records.every(({ exchange }) => exchange === "" || exchange === ".");
    return isNull ? `${domain} takes no mail (a null MX record, RFC 7505)` : null;
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (code === "ENOTFOUND") return `${domain} does not exist`;
    if (code !== "ENODATA")
      return `DNS does not say where mail for ${domain} goes (${code}); is DNS reached from here?`;
  }
  const found = await createNameResolver({ servers }).resolve(domain);
  return "failed" in found ? `${domain} has neither an MX record nor an address: mail for it bounces` : null;
}

async function pageTrouble(url: string): Promise<string | null> {
  try {
    const { statusCode, body } = await request(url, {
      method: "GET",
      headers: { "user-agent": `Nearcrawl/${softwareVersion} (checks its own contact)` },
      headersTimeout: pageTimeoutMs,
      bodyTimeout: pageTimeoutMs,
      signal: AbortSignal.timeout(pageTimeoutMs),
    });
    await body.dump({ limit: 65_536 });
    return statusCode < 400 ? null : `${url} answers ${statusCode}`;
  } catch (error) {
    return `${url} does not answer: ${error instanceof Error ? error.message : String(error)}`;
  }
}
