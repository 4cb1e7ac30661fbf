/** TXT records (RFC 1035 section 3.3.14), by c-ares as the addresses are (name-resolver.ts). */
import { Resolver } from "node:dns/promises";

/** A name with very many records is not read to its end. */
const maxRecords = 64;

/** The strings of each record joined; none when there are none, or when nobody answers. Never rejects. */
export function createTextResolver(options: {
  readonly servers: readonly string[];
  readonly timeoutMs?: number;
}): (name: string) => Promise<string[]> {
  const resolver = new Resolver({ timeout: options.timeoutMs ?? 3000, tries: 2 });
  if (options.servers.length > 0) resolver.setServers(options.servers);
  return async (name) => {
    const records = await resolver.resolveTxt(name).catch(() => []);
    return records.slice(0, maxRecords).map((strings) => strings.join(""));
  };
}
