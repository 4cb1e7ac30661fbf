/**
 * A world from measurements: an instance (`test/lab`) gets host names and addresses, such that the
 * registry hierarchy of the addresses is the tree of the instance's paths, and round trips take what was
 * measured. Each name directly under the root becomes a /8 of its own, so an instance may have as many of
 * them as there are /8s without special-purpose ranges.
 */
import { UsageError } from "#core/errors";
import { formatAddress } from "#core/ip/address";
import {
  layOut,
  type PlacedHost,
  type PlannedBlock,
  type PlannedHost,
  type PlannedSubnet,
  placedByType,
} from "#ops/world/lay-out";
import type { World, WorldCrawler, WorldHolder, WorldSite, WorldSubnet } from "#ops/world/model";
import { places, type RegionalRegistry } from "#ops/world/places";
import { registryNames } from "#ops/world/plan-registry";
import { SeededRandom } from "#ops/world/seeded-random";
import { checkFixture, type Fixture } from "./read-fixture.ts";

export interface FixtureSettings {
  /** What the fixture file holds, parsed from JSON and otherwise unchecked. */
  readonly json: unknown;
  /** For what the measurements do not say: page counts, bandwidths. */
  readonly seed?: number;
  /** At most so many sites: the first ones. */
  readonly sites?: number;
}

/** Throws SourceFileError when it is not an instance, UsageError when there are not enough /8s for it. */
export function worldFromFixture({ json, seed = 1, sites: wanted }: FixtureSettings): World {
  const whole = checkFixture(json, "fixture");
  const instance = wanted === undefined ? whole : { ...whole, targets: whole.targets.slice(0, wanted) };
  const draft = draftOf(instance);
  const { subnets, hosts } = layOut(draft.blocks);
  const placedAt = placedByType(hosts);
  const crawlers = instance.crawlers.map((_, index) =>
    crawlerOf(index, required(placedAt.crawler.get(index)), subnets),
  );
  const random = new SeededRandom(seed);
  const sites = instance.targets.map((_, index) =>
    siteOf(index, required(placedAt.site.get(index)), subnets, random),
  );
  return {
    name: instance.name,
    seed,
    places,
    holders: draft.holders,
    subnets,
    crawlers,
    sites,
    splitLeaves: [],
    ...rttsOf(instance, crawlers, sites),
  };
}

/** /8s without special-purpose ranges inside, in the order in which they are used up. */
const usableOctets = Array.from({ length: 222 }, (_, index) => index + 2).filter(
  (octet) => ![10, 100, 127, 169, 172, 192, 198, 203].includes(octet),
);

/** Addresses that a leaf with few hosts gets: room for a department. */
const leafSize = 16;

interface FixtureDraft {
  readonly holders: WorldHolder[];
  readonly blocks: readonly PlannedBlock[];
}

interface Node {
  readonly name: string;
  readonly children: Map<string, Node>;
  readonly hosts: {
    readonly type: "site" | "crawler";
    readonly index: number;
    readonly of: Fixture["crawlers"][number];
  }[];
}

function draftOf(instance: Fixture): FixtureDraft {
  const root: Node = { name: "root", children: new Map(), hosts: [] };
  for (const [index, of] of instance.crawlers.entries()) {
    nodeAt(root, of.path).hosts.push({ type: "crawler", index, of });
  }
  for (const [index, of] of instance.targets.entries()) {
    nodeAt(root, of.path).hosts.push({ type: "site", index, of });
  }
  if (root.children.size > usableOctets.length) {
    throw new UsageError(
      `fixture ${instance.name}: ${root.children.size} names under the root, at most ${usableOctets.length} have room`,
    );
  }
  const planner = new FixturePlanner();
  const blocks = [...root.children.values()].map((node, position) => {
    const firstOctet = usableOctets[position] as number;
    return {
      firstOctet,
      subnet: planner.block(node),
    };
  });
  return { holders: planner.holders, blocks };
}

/** One registry for all: a holder is one holder only within a registry, and in fixtures it is one everywhere. */
const registry: RegionalRegistry = "ripencc";

/** The node at the end of a path; the first name is the root's, whatever it is called. */
function nodeAt(root: Node, path: readonly string[]): Node {
  let node = root;
  for (const name of path.slice(1)) {
    const next = node.children.get(name) ?? { name, children: new Map<string, Node>(), hosts: [] };
    node.children.set(name, next);
    node = next;
  }
  return node;
}

class FixturePlanner {
  readonly holders: WorldHolder[] = [];
  readonly #holderByName = new Map<string, number>();
  readonly #countries = new Map<string, string>();

  block(node: Node): PlannedSubnet {
    const children = [...node.children.values()].map((child) => this.#plan(child, "allocation"));
    if (node.hosts.length > 0) children.push(this.#plan({ ...node, children: new Map() }, "assignment"));
    const holder = this.#holder(registryNames[registry], null);
    return {
      name: node.name,
      kind: "iana",
      holder,
      country: null,
      registry,
      size: 2 ** 24,
      children,
      hosts: [],
    };
  }

  #plan(node: Node, kind: PlannedSubnet["kind"]): PlannedSubnet {
    const below = kind === "allocation" ? "pool" : "assignment";
    const children = [...node.children.values()].map((child) => this.#plan(child, below));
    const [host] = node.hosts;
    const country = host ? this.#country(host.of.cc) : (commonCountry(children) ?? null);
    const holder = this.#holder(host?.of.org ?? `registrant of ${node.name}`, country);
    // Hosts lie in ranges of their own: an inner node that has some gets a further child for them.
    if (node.hosts.length > 0 && children.length > 0) {
      children.push(this.#plan({ ...node, name: `${node.name}-own`, children: new Map() }, "assignment"));
    }
    const isLeaf = children.length === 0;
    const hosts = isLeaf ? node.hosts.map((at, position) => plannedHost(at, position + 1)) : [];
    const size = isLeaf ? sizeFor(hosts.length) : 0;
    const leafKind = isLeaf ? "assignment" : kind;
    return { name: node.name, kind: leafKind, holder, country, registry, size, children, hosts };
  }

  /** One holder per name, as in the fixture. */
  #holder(name: string, country: string | null): number {
    const known = this.#holderByName.get(name);
    if (known !== undefined) return known;
    const made = this.holders.push({ name, country, registry }) - 1;
    this.#holderByName.set(name, made);
    return made;
  }

  /** Fixtures may call countries anything; registry files know two letters only. */
  #country(label: string): string | null {
    if (label === "") return null;
    const known = this.#countries.get(label);
    if (known) return known;
    const taken = new Set(this.#countries.values());
    const code =
      /^[A-Z]{2}$/.test(label) && !taken.has(label) ? label : twoLetters.find((free) => !taken.has(free));
    if (!code) throw new UsageError("fixture: more countries than two letters can tell apart");
    this.#countries.set(label, code);
    return code;
  }
}

/** Codes of real countries first; then every pair of letters but ZZ and those with a meaning of their own. */
const twoLetters: readonly string[] = [
  ...new Set([
    ...places.map((place) => place.country),
    ...Array.from({ length: 25 * 26 }, (_, n) => String.fromCharCode(65 + Math.floor(n / 26), 65 + (n % 26))),
  ]),
].filter((code) => !["AP", "EU"].includes(code));

function commonCountry(children: readonly PlannedSubnet[]): string | null | undefined {
  const countries = new Set(children.map((child) => child.country));
  return countries.size === 1 ? children[0]?.country : null;
}

function plannedHost(
  host: { readonly type: "site" | "crawler"; readonly index: number },
  offset: number,
): PlannedHost {
  return { type: host.type, index: host.index, offset, unary: false };
}

function sizeFor(hosts: number): number {
  return Math.max(leafSize, 2 ** Math.ceil(Math.log2(hosts + 2)));
}

function crawlerOf(index: number, at: PlacedHost, subnets: readonly WorldSubnet[]): WorldCrawler {
  const name = `crawler-${String(index + 1).padStart(2, "0")}`;
  return { name, ...located(at, subnets), place: null };
}

function siteOf(
  index: number,
  at: PlacedHost,
  subnets: readonly WorldSubnet[],
  random: SeededRandom,
): WorldSite {
  const where = located(at, subnets);
  return {
    host: `site-${String(index + 1).padStart(4, "0")}.example`,
    ...where,
    addresses: [where.address],
    place: null,
    language: random.pick(["en", "en", "de", "fr", "es"]),
    pages: 3 + Math.floor(Math.min(9, random.exponential(2.5))),
    bandwidthKbps: Math.round(Math.min(100_000, Math.max(1_000, 10_000 * Math.exp(random.normal())))),
    serverDelayMs: Math.round(Math.min(80, 2 + random.exponential(8)) * 10) / 10,
  };
}

function located(at: PlacedHost, subnets: readonly WorldSubnet[]) {
  const address = formatAddress({ family: 4, value: at.address });
  return { address, subnet: at.subnet, country: subnets[at.subnet]?.country ?? null };
}

function rttsOf(
  instance: Fixture,
  crawlers: readonly WorldCrawler[],
  sites: readonly WorldSite[],
): Pick<World, "rttMs" | "crawlerRttMs"> {
  const siteAt = new Map(sites.map((site, index) => [site.address, index]));
  const crawlerAt = new Map(crawlers.map((crawler, index) => [crawler.address, index]));
  const crawlerRttMs = (a: number, b: number) => (a === b ? 0 : (instance.crawlerRtt[a]?.[b] ?? 0));
  return {
    crawlerRttMs,
    rttMs: (crawlerIndex, address) => {
      const site = siteAt.get(address);
      if (site !== undefined) return instance.targets[site]?.rtt[crawlerIndex] ?? null;
      const crawler = crawlerAt.get(address);
      return crawler === undefined || crawlerIndex >= crawlers.length
        ? null
        : crawlerRttMs(crawlerIndex, crawler);
    },
  };
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("fixture: a host was planned but not placed");
  return value;
}
