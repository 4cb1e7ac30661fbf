/** Admits URLs from people (seeds): canonical keys go to the frontier, and texts without a key are recorded with the reason. */

import { parseAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf } from "#core/ip/special-purpose";
import { withoutUser } from "#core/ip/url-host";
import { type UrlFault, urlKeyOf } from "#core/url-key";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import type { CrawlScope } from "./frontier.ts";
import type { FrontierStore, RejectedUrlStore } from "./frontier-store.ts";

const faultWords: Readonly<Record<UrlFault, string>> = {
  "not-a-url": "it cannot be parsed as an absolute URL",
  "not-http": "only http and https are crawled",
  "too-long": "it is longer than 2048 characters",
  "no-host": "it names no host",
  "service-port": "its port is another service's than the web's",
};

export interface RejectedUrl {
  readonly url: string;
  readonly reason: string;
}

interface AdmitUrlsPorts {
  readonly frontier: Pick<FrontierStore, "admit">;
  readonly rejected: RejectedUrlStore;
}

/** Why the URL can never be crawled, as far as its text shows. Null if nothing is wrong with it. */
export function seedFault(text: string, allowed: AllowedSpecialPurpose = false): string | null {
  const key = urlKeyOf(text.trim());
  if (typeof key === "string") return faultWords[key];
  const address = parseAddress(key.host);
  const block = address === null ? null : refusedBlockOf(address, allowed);
  return block === null ? null : `${key.host} is a special-purpose address (${block})`;
}

const batchSize = 2000;

/** Admits seeds at depth 0. Hosts named by people are admitted whatever the scope says about links. */
export async function admitUrls(
  texts: Iterable<string>,
  ports: AdmitUrlsPorts,
  at: { readonly scope: CrawlScope; readonly now: Date },
): Promise<{ admitted: number; newUrls: number; rejected: RejectedUrl[] }> {
  const admitted: AdmittedUrl[] = [];
  const rejected: RejectedUrl[] = [];
  for (const text of texts) {
    const key = urlKeyOf(text.trim());
    if (typeof key === "string")
      rejected.push({ url: withoutUser(text).slice(0, 500), reason: faultWords[key] });
    else admitted.push({ key, depth: 0 });
  }
  let newUrls = 0;
  for (let start = 0; start < admitted.length; start += batchSize) {
    const batch = admitted.slice(start, start + batchSize);
    newUrls += (await ports.frontier.admit(batch, { ...at.scope, admitNewHosts: true }, at.now)).newUrls;
  }
  if (rejected.length > 0) await ports.rejected.record(rejected, "operator", at.now);
  return { admitted: admitted.length, newUrls, rejected };
}
