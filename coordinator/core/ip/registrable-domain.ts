/**
 * The owner of a host by the Public Suffix List (publicsuffix.org) with its private section: names below `co.uk` and
 * `github.io` have separate owners. Budgets and queue turns are per registrable domain, because its owner can create any
 * number of hosts in it.
 */
import { getDomain, getPublicSuffix } from "tldts";
import { formatAddress, parseAddress } from "./address.ts";

/** The input is always a host name. */
const suffixOptions = { allowPrivateDomains: true, extractHostname: false } as const;

/**
 * Returns the registrable domain of a host: `example.co.uk` for `a.b.example.co.uk`. An IPv4 address and a name without a
 * registrable domain (`localhost`, `github.io`) stand for themselves. An IPv6 address stands for its /64, which belongs to
 * one subscriber (RFC 6177).
 */
export function registrableDomain(host: string): string {
  const address = parseAddress(host);
  if (address === null) return getDomain(host, suffixOptions) ?? host;
  if (address.family === 4) return host;
  return `${formatAddress({ ...address, value: (address.value >> 64n) << 64n })}/64`;
}

/**
 * Whether anybody may own a name below it (`co.uk`, `github.io`), or below each of its labels (`compute.amazonaws.com`), so
 * that no site can speak for all of it.
 */
export function isPublicSuffix(host: string): boolean {
  const isSuffix = (name: string) => getPublicSuffix(name, suffixOptions) === name;
  return isSuffix(host) || isSuffix(`any.${host}`);
}
