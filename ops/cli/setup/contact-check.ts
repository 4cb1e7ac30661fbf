/** Whether a contact works: its mail can be delivered, or its page exists. */
import { Resolver } from "node:dns/promises";
import { request } from "undici";
import { createNameResolver } from "#core/name-resolver";
import { softwareVersion } from "#protocol/software-version";

const dnsTimeoutMs = 4000;
const pageTimeoutMs = 10_000;

/** Returns null when it works. `contact` is an e-mail address or a URL; `resolvers` are DNS servers, empty: the system's. */
export async function contactTrouble(contact: string, resolvers: readonly string[]): Promise<string | null> {
  const domain = /^(?:mailto:)?[^@\s]+@([^@\s]+)$/.exec(contact)?.[1];
  return domain === undefined ? await pageTrouble(contact) : await mailTrouble(domain, resolvers);
}

/** RFC 5321 section 5.1: MX records, or else an address; RFC 7505: a lone "." accepts no mail. */
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
