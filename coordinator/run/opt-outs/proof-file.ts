/**
 * The file by which a site proves that an opt-out is its own. Whose name it is comes from strangers: the name is looked up here, no
 * special-purpose address is connected to unless the settings allow it, by https alone, bounded in time and bytes, and a
 * redirect is not followed, since another host proves nothing for this one.
 */
import { Agent } from "undici";
import { hostInUrl } from "#core/ip/url-host";
import { connectorTo, firstWords, type OutsideRules, outsideAddress } from "../../web/outside-client.ts";

export const proofFileOf = (site: string): string =>
  `https://${hostInUrl(site)}/.well-known/nearcrawl-opt-out.txt`;

interface ProofFileRules extends OutsideRules {
  readonly userAgent: string;
  /** Who may have signed the site's certificate, in PEM form; left out: the public authorities. */
  readonly authorities?: string;
}

const timeoutMs = 10_000;

/** The words of the file, 200 characters at most; none where it cannot be had. Never rejects. */
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
