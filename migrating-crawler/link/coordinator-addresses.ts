/**
 * Keeps the addresses of this crawler's coordinators: the given one, those that the partner names, and those that a
 * coordinator announced in its own session. After a loss or refusal, it chooses the next one, preferring others and asking
 * none before the time it named, so that a crawler reaches a live coordinator within seconds.
 *
 * A hijacked coordinator must not redirect the crawler, least of all into the partner's network. An address is therefore only
 * learned within the registrable domains (Public Suffix List, including its private section) of the given ones or of those
 * that the fleet's root keys have signed. An IP address counts as its own domain. An unencrypted address is never learned if
 * the first was encrypted, nor is one with another path. All addresses use the same certificate or authorities, and a learned
 * one passes the guard and the partner's lists like a site (Connector.coordinatorDestinations).
 */
import { registrableDomain } from "#core/ip/registrable-domain";
import { mostCoordinators } from "#protocol/coordinator-messages";
import { isCoordinatorUrl } from "#protocol/invitation";

/** Maximum length of a URL (protocol/invitation). */
const mostCharacters = 1000;

interface AddressSettings {
  /** The addresses of the invitation or settings, at least one. They are never dropped. */
  readonly own: readonly string[];
  /** Other domains that the fleet's root keys have signed. */
  readonly domains?: readonly string[] | undefined;
  readonly learned?: readonly string[];
  readonly keep?: (learned: readonly string[]) => void;
}

export class CoordinatorAddresses {
  readonly #own: readonly string[];
  readonly #domains: ReadonlySet<string>;
  readonly #keep: (learned: readonly string[]) => void;
  #learned: readonly string[];
  #current: string;
  /** When each coordinator may be asked again, on a monotonic clock. */
  readonly #notBeforeMs = new Map<string, number>();

  constructor({ own, domains = [], learned = [], keep = () => {} }: AddressSettings) {
    const [first] = own;
    if (first === undefined) throw new RangeError("no coordinator's address is given");
    this.#own = [...new Set(own)];
    this.#domains = new Set([
      ...own.map((url) => registrableDomain(new URL(url).hostname)),
      ...domains.map(registrableDomain),
    ]);
    this.#keep = keep;
    this.#current = first;
    this.#learned = this.#good(learned);
  }

  isOwn(url: string): boolean {
    return this.#own.includes(url);
  }

  get all(): readonly string[] {
    return [...this.#own, ...this.#learned];
  }

  get size(): number {
    return this.all.length;
  }

  /** The address of the current, last or attempted session. */
  get current(): string {
    return this.#current;
  }

  /** Replaces what was announced before. Addresses that this crawler may not use are dropped. */
  learn(urls: readonly string[]): void {
    const learned = this.#good(urls);
    if (learned.join(" ") === this.#learned.join(" ")) return;
    this.#learned = learned;
    this.#keep(learned);
  }

  onWelcome(): void {
    this.#notBeforeMs.delete(this.#current);
  }

  /** The current coordinator sent this crawler away for this long. */
  comeBackTo(waitMs: number, nowMs: number): void {
    this.#notBeforeMs.set(this.#current, nowMs + waitMs);
  }

  /** Moves to the next address that may be asked, or else to the one available soonest. Returns the wait until then. */
  next(nowMs: number): number {
    const all = this.all;
    const at = all.indexOf(this.#current);
    const inTurn = [...all.slice(at + 1), ...all.slice(0, at + 1)];
    const waitMs = (url: string) => Math.max(0, (this.#notBeforeMs.get(url) ?? nowMs) - nowMs);
    const soonest = inTurn.reduce((best, url) => (waitMs(url) < waitMs(best) ? url : best));
    this.#current = soonest;
    return waitMs(soonest);
  }

  #good(urls: readonly string[]): readonly string[] {
    const first = new URL(this.#own[0]!);
    const isAlike = ({ pathname, search, hash }: URL) =>
      pathname === first.pathname && search === first.search && hash === "";
    const good = urls.filter(
      (url) =>
        url.length <= mostCharacters &&
        isCoordinatorUrl(url) &&
        !(first.protocol === "wss:" && url.startsWith("ws:")) &&
        isAlike(new URL(url)) &&
        this.#domains.has(registrableDomain(new URL(url).hostname)) &&
        !this.isOwn(url),
    );
    return [...new Set(good)].slice(0, mostCoordinators);
  }
}
