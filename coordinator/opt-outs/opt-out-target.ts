/** What somebody wants left alone, from the text that he typed: a site, a URL of it, or (operators) a network or a public suffix. */
import { getPublicSuffix } from "tldts";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, formatRange, isUnary, lastAddress, parseRange } from "#core/ip/range";
import { urlKeyOf } from "#core/url-key";
import type { OptOutTarget } from "./opt-out.ts";

/** Longest text that is looked at. */
export const maxTargetLength = 2048;

/** The target, or why the text names none. `www.example.org` stays what it is: a site of its own. */
export function readTarget(text: string, networks: "networks" | "sites-only"): OptOutTarget | string {
  const given = text.trim();
  if (given === "") return "Name a site, such as www.example.org.";
  if (given.length > maxTargetLength) return "That is too long for the name of a site.";
  const range = parseRange(given);
  if (range !== null && (networks === "networks" || isUnary(range))) {
    if (networks === "sites-only") return addressFault;
    const [first, last] = [formatAddress(firstAddress(range)), formatAddress(lastAddress(range))];
    return { site: null, network: { first, last } };
  }
  const key = urlKeyOf(/^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}/`);
  if (typeof key === "string")
    return `“${given.slice(0, 100)}” is not the name of a site, such as www.example.org.`;
  if (parseAddress(key.host) !== null)
    return networks === "networks" ? readTarget(key.host, networks) : addressFault;
  if (!key.host.includes("."))
    return `“${key.host}” is a whole top-level domain, or a name of your own network: name a site in it.`;
  if (networks === "sites-only" && isPublicSuffix(key.host)) return suffixFault(key.host);
  return { site: key.host, network: null };
}

/**
 * Below it anybody may have a site of his own (publicsuffix.org, both sections: `co.uk`, `github.io`), or below each
 * name in it (`compute.amazonaws.com`): no single site can ask for all of them.
 */
export function isPublicSuffix(host: string): boolean {
  const isSuffix = (name: string) => getPublicSuffix(name, suffixOptions) === name;
  return isSuffix(host) || isSuffix(`any.${host}`);
}

/** It is a host's name by now. */
const suffixOptions = { allowPrivateDomains: true, extractHostname: false } as const;

const suffixFault = (host: string) =>
  `“${host}” is a public suffix: the sites below it belong to different people. Name your own, such as www.${host}.`;

const addressFault =
  "That is an address or a network. Name the sites on it; for a whole network, write to us, since it takes a look at the registry.";

/** What an operator should know before so much is left alone; null: it is nothing unusual. */
export function wideWords(text: string): string | null {
  const target = readTarget(text, "networks");
  if (typeof target === "string") return null;
  if (target.site !== null)
    return isPublicSuffix(target.site)
      ? `${target.site} is a public suffix: the sites of many people lie below it, and all of them are left alone.`
      : null;
  const range = parseRange(`${target.network.first}-${target.network.last}`);
  if (range === null || BigInt(range.last) - BigInt(range.first) < mostUsualAddresses[range.family])
    return null;
  return `${targetText(target)} is more than one network as they are usually assigned: every host in it is left alone.`;
}

/** A /16, and a /29 (RIPE's usual allocation). */
const mostUsualAddresses = { 4: 1n << 16n, 6: 1n << 99n } as const;

/** `example.org`, or `192.0.2.0/24`. */
export function targetText({ site, network }: OptOutTarget): string {
  if (site !== null) return site;
  const range = parseRange(`${network.first}-${network.last}`);
  return range === null ? `${network.first} - ${network.last}` : formatRange(range);
}

/** A host's name and every domain above it: `a.b.org` → `a.b.org`, `b.org`, `org`. */
export function domainsAbove(host: string): string[] {
  const labels = host.split(".");
  return labels.map((_, first) => labels.slice(first).join("."));
}
