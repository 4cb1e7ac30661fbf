/** What somebody wants left alone, from the text that he typed: a site, a URL of it, or (operators) a network. */
import { urlKeyOf } from "#core/frontier/url-key";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, formatRange, isUnary, lastAddress, parseRange } from "#core/ip/range";
import type { OptOutTarget } from "./opt-out-ports.ts";

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
  return { site: key.host, network: null };
}

const addressFault =
  "That is an address or a network. Name the sites on it; for a whole network, write to us, since it takes a look at the registry.";

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
