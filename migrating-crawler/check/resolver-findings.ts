/**
 * Whether the DNS servers that the crawler will use answer, and do not lie: each is asked for a name that nobody
 * has. One that answers with an address (as some providers and firewalls do) would send the crawler to their pages.
 */
import { randomBytes } from "node:crypto";
import { getServers, Resolver } from "node:dns/promises";
import { type Finding, mend, note, ok } from "./finding.ts";

const maxServers = 4;
const queryTimeoutMs = 2000;

type Answer = { readonly type: "honest" } | { readonly type: "lies" | "silent"; readonly words: string };

/** `servers`: as configured, `address:port`; empty: the system's. */
export async function resolverFinding(servers: readonly string[]): Promise<Finding> {
  const asked = (servers.length > 0 ? servers : getServers()).slice(0, maxServers);
  if (asked.length === 0) return mend("resolvers", `none is known: ${howToMend}`);
  const answers = await Promise.all(asked.map(ask));
  const wordsOf = (type: "lies" | "silent") =>
    answers.flatMap((answer) => (answer.type === type ? [answer.words] : []));
  const [lies, silent] = [wordsOf("lies"), wordsOf("silent")];
  if (lies.length > 0) return mend("resolvers", `${lies.join("; ")}: ${howToMend}`);
  if (silent.length === asked.length) return mend("resolvers", `${silent.join("; ")}: ${howToMend}`);
  if (silent.length > 0) return note("resolvers", `${silent.join("; ")}; the others answer.`);
  return ok("resolvers", `${asked.join(", ")} ${asked.length === 1 ? "answers" : "answer"}.`);
}

const howToMend =
  "name DNS servers that do their work as resolvers in settings.toml, or ask your network's people to let this machine reach some.";

async function ask(server: string): Promise<Answer> {
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: 2 });
  try {
    resolver.setServers([server]);
    const addresses = await resolver.resolve4(nameOfNobody());
    return {
      type: "lies",
      words: `${server} says ${addresses.slice(0, 2).join(", ")} for a name that does not exist`,
    };
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (code === "ENOTFOUND" || code === "ENODATA") return { type: "honest" };
    return { type: "silent", words: `${server} does not answer (${code})` };
  }
}

/** Below a real top-level domain: those that are reserved, many a liar answers honestly. */
const nameOfNobody = () => `nearcrawl-check-${randomBytes(10).toString("hex")}.com`;
