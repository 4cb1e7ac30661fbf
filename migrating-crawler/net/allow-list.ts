/**
 * Special-purpose addresses that a partner allows all the same: an address, a/prefix or first-last, and
 * after it a port or ports where only some are meant: `10.1.0.0/16`, `127.0.0.1:8080`, `127.0.0.1:8000-8099`,
 * `[fd00::/8]:443`.
 */
import type { IpAddress } from "#core/ip/address";
import { type IpRange, parseRange, rangeHolds } from "#core/ip/range";

export interface Allowance {
  readonly range: IpRange;
  readonly firstPort: number;
  readonly lastPort: number;
}

const ipv4Form = /^([^:[\]]+)(?::(\d{1,5})(?:-(\d{1,5}))?)?$/;
const ipv6Form = /^\[([^[\]]+)\](?::(\d{1,5})(?:-(\d{1,5}))?)?$/;

/** Null when the text is none of the forms. */
export function parseAllowance(text: string): Allowance | null {
  const [, form, first, last] = ipv4Form.exec(text) ?? ipv6Form.exec(text) ?? [null, text];
  const range = parseRange(form ?? "");
  const firstPort = Number(first ?? 1);
  const lastPort = Number(last ?? first ?? 65_535);
  if (range === null || firstPort < 1 || firstPort > lastPort || lastPort > 65_535) return null;
  return { range, firstPort, lastPort };
}

/** Without a port: whether any port of the address is allowed. */
export function isAllowed(
  allowances: readonly Allowance[],
  address: IpAddress,
  port: number | undefined,
): boolean {
  return allowances.some(
    ({ range, firstPort, lastPort }) =>
      rangeHolds(range, address) && (port === undefined || (port >= firstPort && port <= lastPort)),
  );
}
