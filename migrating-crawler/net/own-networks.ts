/**
 * The public networks that this machine's own interfaces are in: its owner's, most likely, and not the web. Private
 * ones are special-purpose and refused anyway.
 */
import { networkInterfaces } from "node:os";
import { formatRange, parseRange } from "#core/ip/range";
import { specialPurposeOfRange } from "#core/ip/special-purpose";

/** As a/prefix. */
export function ownNetworks(
  interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces(),
): string[] {
  const networks = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ cidr }) => parseRange(cidr ?? ""))
    .filter((range) => range !== null && specialPurposeOfRange(range) === null)
    .map((range) => formatRange(range!));
  return [...new Set(networks)];
}
