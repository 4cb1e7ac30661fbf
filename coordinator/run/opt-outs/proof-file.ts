/**
 * The file by which a site proves its opt-out. The name comes from strangers, so it is resolved here, special-purpose addresses
 * are refused unless the settings allow them, only https is used, time and bytes are bounded, and redirects are not followed,
 * since another host proves nothing.
 */
import { Agent } from "undici";
import { hostInUrl } from "#core/ip/url-host";
import { connectorTo, firstWords, type OutsideRules, outsideAddress } from "../../web/outside-client.ts";

export const proofFileOf = (site: string): string =>
  `https://${hostInUrl(site)}/.well-known/nearcrawl-opt-out.txt`;

interface ProofFileRules extends OutsideRules {
  readonly userAgent: string;
  /** Certificate authorities in PEM form; absent: the public ones. */
  readonly authorities?: string;
}

const timeoutMs = 10_000;

/** Returns at most 200 characters of the file, or nothing when it is unavailable. Never rejects. */
export async function readProofFile(fileUrl: string, rules: ProofFileRules): Promise<readonly string[]> {
  const url = new URL(fileUrl);
  const address = await outsideAddress(url, rules);
  if (typeof address !== "string") return [];
  const agent = new Agent({ connections: 1, connect: connectorTo(address, { ...rules, timeoutMs }) });
  try {
    const { statusCode, body } = await agent.request({
      ...{ origin: url.origin, path: url.pathname, method: "GET" },
      headers: { "user-agent": rules.userAgent, accept: "text/plain" },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return statusCode === 200 ? (await firstWords(body)).split(" ") : [];
  } catch {
    return [];
  } finally {
    await agent.destroy();
  }
}
