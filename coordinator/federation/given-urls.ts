/** What another coordinator sends is untrusted: each URL is made canonical anew, and numbers must rise. */
import { urlKeyOf } from "#core/url-key";
import type { ExchangedUrl } from "#protocol/exchange";
import type { GivenUrl, GivenUrls } from "./exchange-ports.ts";

/** A text: what is wrong with all of it. A URL without a key is left out and counted, as one that a page names is. */
export function readGivenUrls(urls: readonly ExchangedUrl[]): GivenUrls | string {
  const read: GivenUrl[] = [];
  let highest = 0;
  for (const { url, ...rest } of urls) {
    if (rest.number <= highest)
      return `number ${rest.number} comes after number ${highest}: numbers must rise`;
    highest = rest.number;
    const key = urlKeyOf(url);
    if (typeof key !== "string") read.push({ ...rest, key });
  }
  return { urls: read, highest, faulty: urls.length - read.length };
}
