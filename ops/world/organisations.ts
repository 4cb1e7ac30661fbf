/**
 * The ordinary organisations of a generated world. Sites come one after the other; each lies in a range that is
 * used already or in a new one, and each new range belongs to an organisation that has some already or to a new
 * one, so that few have hundreds of ranges and most have one, as in real registries. When all
 * are drawn the ranges are registered: organisation by organisation, those of one city side by side.
 */
import type { PlannedHost } from "./lay-out.ts";
import { type Place, places } from "./places.ts";
import type { Provider } from "./plan-registry.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { HostDraft, WorldDraft } from "./world-draft.ts";

/**
 * Ranges per holder: fitted to announced ranges and the organisations that announce them (ip-location-db, June
 * 2026: 411,961 ranges, 75,098 organisations). Of 1,000, 10,000 and 100,000 ranges drawn at random there, 788,
 * 5,702 and 31,494 organisations; of as many drawn here, about 800, 5,300 and 30,900.
 */
const rangesPerHolder: HeavyTailSettings = { concentration: 300, discount: 0.75 };

/** Sites per range beyond `neighbourSiteShare`: without a public figure, the harder assumption is used. */
const sitesPerRange: HeavyTailSettings = { concentration: 400, discount: 0.92 };

/** The share of ranges in which the organisation has a second site from the start. */
const neighbourSiteShare = 0.08;

/** The share of organisations registered with a provider of another country than their own. */
const misfiledShare = 0.22;

/** The shares of organisations with ranges in several places of their country, and worldwide. */
const nationalShare = 0.15;

const worldwideShare = 0.12;

/** The share of a multi-place organisation's ranges at its home. */
const atHomeShare = 0.5;

/** An organisation with more ranges has some in other cities of its country. */
const mostInOnePlace = 4;

/** The most addresses over which a range's hosts are spread, which the smallest sizes hold. */
const mostOffset = 190;

interface Organisation {
  readonly home: Place;
  readonly reach: "one place" | "its country" | "the world";
  /** The provider of all its ranges; null: a provider of each place. */
  readonly provider: Provider | null;
  readonly holderWith: (provider: Provider) => number;
  readonly ranges: RangeDraft[];
}

interface RangeDraft {
  readonly place: Place;
  readonly provider: Provider;
  readonly spot: HostDraft;
  readonly hosts: PlannedHost[];
}

export class Organisations {
  readonly #draft: WorldDraft;
  readonly #rangeOfNext: HeavyTail;
  readonly #holderOfNext: HeavyTail;
  readonly #ranges: RangeDraft[] = [];
  readonly #organisations: Organisation[] = [];

  constructor(draft: WorldDraft) {
    this.#draft = draft;
    this.#rangeOfNext = new HeavyTail(draft.random, sitesPerRange);
    this.#holderOfNext = new HeavyTail(draft.random, rangesPerHolder);
  }

  addSite(): void {
    const draft = this.#draft;
    const index = this.#rangeOfNext.next();
    const known = this.#ranges[index];
    const range = known ?? this.#newRange();
    this.#ranges[index] = range;
    addSiteTo(draft, range);
    const hasNeighbour = known === undefined && draft.random.chance(neighbourSiteShare);
    if (hasNeighbour && draft.sitesLeft > 0) addSiteTo(draft, range);
  }

  /** Registers all ranges. Call once, after the last site. */
  register(): void {
    const { plan, random } = this.#draft;
    for (const { ranges, holderWith } of this.#organisations) {
      const byPlace = ranges.toSorted(
        (a, b) => a.provider.network - b.provider.network || a.spot.place - b.spot.place,
      );
      for (let at = 0; at < byPlace.length; ) {
        const first = byPlace[at] as RangeDraft;
        const isBeside = (one: RangeDraft) => one.provider === first.provider && one.place === first.place;
        const together = byPlace.slice(at, at + random.integer(1, 6)).filter(isBeside);
        plan.assign({
          provider: first.provider,
          city: first.place.name,
          holder: holderWith(first.provider),
          departments: together,
        });
        at += together.length;
      }
    }
  }

  #newRange(): RangeDraft {
    const draft = this.#draft;
    const index = this.#holderOfNext.next();
    const organisation = this.#organisations[index] ?? foundOrganisation(draft);
    this.#organisations[index] = organisation;
    const place = placeOfRange(draft, organisation);
    const provider = organisation.provider ?? draft.providerFor(place);
    const isLocal = provider.country === place.country;
    const network = isLocal ? provider.network : draft.providerFor(place).network;
    const range = { place, provider, spot: draft.hostAt(place, network), hosts: [] };
    organisation.ranges.push(range);
    return range;
  }
}

function foundOrganisation(draft: WorldDraft): Organisation {
  const { random, names } = draft;
  const home = draft.drawPlace();
  const misfiled = random.chance(misfiledShare);
  const registeredAt = draft.providerFor(misfiled ? draft.drawPlace() : home);
  const draw = random.next();
  const reach =
    draw < worldwideShare ? "the world" : draw < worldwideShare + nationalShare ? "its country" : "one place";
  const registersLocally = reach === "the world" && !misfiled && random.chance(0.5);
  return {
    home,
    reach,
    provider: registersLocally ? null : registeredAt,
    holderWith: draft.holdersOf(names.organisation(), registeredAt),
    ranges: [],
  };
}

function placeOfRange(draft: WorldDraft, { home, reach, ranges }: Organisation): Place {
  const staysHome = reach === "one place" && ranges.length < mostInOnePlace;
  if (staysHome || draft.random.chance(atHomeShare)) return home;
  if (reach === "the world") return draft.drawPlace();
  const here = places.filter((place) => place.country === home.country);
  return draft.random.pickWeighted(here, (place) => place.weight);
}

/** Beside the last one, or at the same address. */
function addSiteTo(draft: WorldDraft, { spot, hosts }: RangeDraft): void {
  const { random } = draft;
  const last = hosts.at(-1)?.offset;
  const further =
    last === undefined ? random.integer(1, 5) : last + (random.chance(0.2) ? 0 : random.integer(1, 3));
  hosts.push(draft.addSite(spot, { offset: Math.min(further, mostOffset) }));
}

// Groups whose sizes are as uneven as those of real registries' holders: a Pitman-Yor process. Members come one
// by one; each joins a group with a likelihood that grows with the group's size, or founds one of its own. With
// concentration t and discount d, n members make about t/d · ((1 + n/t)^d − 1) groups.

interface HeavyTailSettings {
  /** How many members come before most of them find a group that they could join. */
  readonly concentration: number;
  /** From 0 to 1; with a higher value more groups stay small. */
  readonly discount: number;
}

export class HeavyTail {
  readonly #random: SeededRandom;
  readonly #settings: HeavyTailSettings;
  /** The group of each member. */
  readonly #groupOf: number[] = [];
  /** The member that founded each group. */
  readonly #founderOf: number[] = [];

  constructor(random: SeededRandom, settings: HeavyTailSettings) {
    this.#random = random;
    this.#settings = settings;
  }

  /** The group that the next member joins; a new one has the next free number. */
  next(): number {
    const group = this.#drawGroup();
    const member = this.#groupOf.push(group) - 1;
    if (group === this.#founderOf.length) this.#founderOf.push(member);
    return group;
  }

  #drawGroup(): number {
    const { concentration, discount } = this.#settings;
    const founded = this.#founderOf.length;
    const draw = this.#random.next() * (this.#groupOf.length + concentration);
    const member = Math.floor(draw);
    const group = this.#groupOf[member];
    if (group === undefined) return founded;
    return this.#founderOf[group] === member && this.#random.chance(discount) ? founded : group;
  }
}
