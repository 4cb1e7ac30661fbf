/**
 * Whose a host is, by the Public Suffix List (publicsuffix.org) with its private section: names below `co.uk` and below
 * `github.io` have owners of their own. Budgets and turns are shared between registrable domains, since whoever runs one has as
 * many hosts in it as he likes.
 */
import { getDomain, getPublicSuffix } from "tldts";
import { formatAddress, parseAddress } from "./address.ts";

/** What is given is a host's name by now. */
const suffixOptions = { allowPrivateDomains: true, extractHostname: false } as const;

/**
 * The registrable domain of a host: `a.b.example.co.uk` is of `example.co.uk`. A literal IPv4 address stands for itself, one of
 * IPv6 for its /64, which one subscriber has (RFC 6177); so does a name without a registrable domain (`localhost`, `github.io`).
 */
export function registrableDomain(host: string): string {
  const address = parseAddress(host);
  if (address === null) return getDomain(host, suffixOptions) ?? host;
  if (address.family === 4) return host;
  return `${formatAddress({ ...address, value: (address.value >> 64n) << 64n })}/64`;
}

/**
 * Below it anybody may have a site of his own (both sections of the list: `co.uk`, `github.io`), or below each name in it
 * (`compute.amazonaws.com`): no single site can ask for all of them.
 */
export function isPublicSuffix(host: string): boolean {
  const isSuffix = (name: string) => getPublicSuffix(name, suffixOptions) === name;
  return isSuffix(host) || isSuffix(`any.${host}`);
}
