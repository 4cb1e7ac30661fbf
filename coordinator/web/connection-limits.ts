/**
 * Who may open another connection: bounds on all, on those of one address, and on failed attempts of one
 * address in a minute. An IPv6 address counts as its /64, which one subscriber holds whole.
 */
import { LRUCache } from "lru-cache";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";

export interface ConnectionLimitSettings {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Wrong keys, wrong versions, garbage. A restarting fleet behind one address makes none. */
  readonly failuresPerAddressAndMinute: number;
}

const minuteMs = 60_000;
/** Addresses whose failures are remembered. */
const rememberedAddresses = 100_000;

export class ConnectionLimits {
  readonly #settings: ConnectionLimitSettings;
  readonly #now: () => number;
  readonly #openOf = new Map<string, number>();
  readonly #failuresOf = new LRUCache<string, { count: number; readonly since: number }>({
    max: rememberedAddresses,
  });
  #open = 0;

  /** `now` in ms, monotonic. */
  constructor(settings: ConnectionLimitSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  /** Why not, in words; null takes a place, to be given back by `close`. */
  open(address: string): string | null {
    const origin = originOf(address);
    const { connections, connectionsPerAddress, failuresPerAddressAndMinute } = this.#settings;
    if (this.#open >= connections) return `all ${connections} connections are taken`;
    const ofOrigin = this.#openOf.get(origin) ?? 0;
    if (ofOrigin >= connectionsPerAddress) return `${origin} has ${ofOrigin} connections already`;
    if (this.#failures(origin) >= failuresPerAddressAndMinute) return `too many failures from ${origin}`;
    this.#open += 1;
    this.#openOf.set(origin, ofOrigin + 1);
    return null;
  }

  close(address: string): void {
    const origin = originOf(address);
    const left = (this.#openOf.get(origin) ?? 1) - 1;
    this.#open -= 1;
    if (left > 0) this.#openOf.set(origin, left);
    else this.#openOf.delete(origin);
  }

  /** An attempt that did not end in a welcome. */
  countFailure(address: string): void {
    const origin = originOf(address);
    const before = this.#failures(origin);
    const since = before === 0 ? this.#now() : (this.#failuresOf.get(origin)?.since ?? this.#now());
    this.#failuresOf.set(origin, { count: before + 1, since });
  }

  #failures(origin: string): number {
    const failures = this.#failuresOf.get(origin);
    return failures && this.#now() - failures.since < minuteMs ? failures.count : 0;
  }
}

/** What counts as one origin: an IPv4 address, or the /64 of an IPv6 address. */
export function originOf(address: string): string {
  const parsed = parseAddress(address);
  if (!parsed) return address;
  const plain = unmapAddress(parsed);
  if (plain.family === 4) return formatAddress(plain);
  return `${formatAddress({ family: 6, value: (plain.value >> 64n) << 64n })}/64`;
}
