/**
 * Ports of services other than the web. A URL that names one would make a crawler speak to them (cross-protocol requests).
 * Browsers refuse most of these ports (WHATWG Fetch, "port blocking"); the remote desktops and databases at the end are added
 * because a crawler may be closer to such servers than a browser.
 */

const blocked: readonly (number | readonly [first: number, last: number])[] = [
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, [20, 23], 25, 37, 42, 43, 53, 69, 77, 79, 87, 95],
  ...[[101, 104], [109, 111], 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465],
  ...[[512, 515], 526, [530, 532], 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995],
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, [6665, 6669], 6679, 6697, 10080],
  ...[1433, 1521, 3306, 3389, 5432, [5900, 5903], 6379, 11211, 27017],
] as (number | readonly [number, number])[];

const ports = new Set(
  blocked.flatMap((one) => {
    const [first, last] = typeof one === "number" ? [one, one] : one;
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  }),
);

/** Returns why a request to this port is refused, or null. */
export function servicePortWords(port: number): string | null {
  return ports.has(port) ? `port ${port}, where another service than the web's is` : null;
}
