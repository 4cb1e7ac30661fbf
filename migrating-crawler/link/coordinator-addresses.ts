/**
 * Where this crawler's coordinators are: the one that it was given, those that its partner names, and those that a
 * coordinator told it of in a session of its own. Which is next when one is lost, or sends the crawler away: the others
 * first, each by itself until it said to come back, so that a crawler is with a living coordinator within seconds.
 *
 * A coordinator that was taken over must not lead the crawler anywhere else, least of all into its partner's network. So an
 * address is learned only within the registrable domains (Public Suffix List, private section included) of those that the
 * partner was given or named, or that the fleet's root keys have signed; of an address, only the address itself; never in the clear where the
 * first was not, and never with
 * another path. Every address is held to the same certificate or authorities, and a learned one is connected to as a site
 * is: by the guard's and the partner's lists (Connector.coordinatorDestinations).
 */
import { registrableDomain } from "#core/ip/registrable-domain";
import { mostCoordinators } from "#protocol/coordinator-messages";
import { isCoordinatorUrl } from "#protocol/invitation";

/** A URL is no longer (protocol/invitation). */
const mostCharacters = 1000;

interface AddressSettings {
  /** Of the invitation or the settings, at least one; these stay. */
  readonly own: readonly string[];
  /** Further domains that the fleet's root keys have signed. */
  readonly domains?: readonly string[] | undefined;
  /** Kept from earlier sessions. */
  readonly learned?: readonly string[];
  /** What was learned has changed. */
  readonly keep?: (learned: readonly string[]) => void;
}

export class CoordinatorAddresses {
  readonly #own: readonly string[];
  readonly #domains: ReadonlySet<string>;
  readonly #keep: (learned: readonly string[]) => void;
  #learned: readonly string[];
  #current: string;
  /** Sent away until then, by a clock that never goes back. */
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

  /** Given or named by the partner. */
  isOwn(url: string): boolean {
    return this.#own.includes(url);
  }

  /** The given ones first. */
  get all(): readonly string[] {
    return [...this.#own, ...this.#learned];
  }

  get size(): number {
    return this.all.length;
  }

  /** That a session is with, or was, or is tried with. */
  get current(): string {
    return this.#current;
  }

  /** What a coordinator says in place of what one said before; an address that this crawler may not use is left out. */
  learn(urls: readonly string[]): void {
    const learned = this.#good(urls);
    if (learned.join(" ") === this.#learned.join(" ")) return;
    this.#learned = learned;
    this.#keep(learned);
  }

  /** A session is open. */
  onWelcome(): void {
    this.#notBeforeMs.delete(this.#current);
  }

  /** The current one sent this crawler away for so long. */
  comeBackTo(waitMs: number, nowMs: number): void {
    this.#notBeforeMs.set(this.#current, nowMs + waitMs);
  }

  /** Goes on to the next one that may be asked, else to the one that may be soonest; returns how long that takes. */
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
