/**
 * Where every page stands: three groups of at most six entries, some of them with tabs. A page is found here by its path, and
 * so states nothing: the longest path below which it lies is its place.
 */
import { type Actor, mayDo, type Scope } from "#core/actor";

export interface NavigationTab {
  readonly path: string;
  readonly name: string;
  /** As the page's operation has it. Null: for everybody. */
  readonly needs: Scope | null;
  /** Further paths whose pages stand here. */
  readonly also?: readonly string[];
}

export interface NavigationEntry extends NavigationTab {
  /** The first is the entry's own page; left out: it has no others. */
  readonly tabs?: readonly NavigationTab[];
}

export interface NavigationGroup {
  readonly name: string;
  readonly entries: readonly NavigationEntry[];
}

type Line = readonly [path: string, name: string, needs: Scope | null, ...also: string[]];

const tab = ([path, name, needs, ...also]: Line): NavigationTab => ({ path, name, needs, also });

/** The entry is called `name`; its first tab is its own page. */
const tabbed = (name: string, ...lines: readonly [Line, ...Line[]]): NavigationEntry => ({
  ...tab(lines[0]),
  name,
  tabs: lines.map(tab),
});

export const navigation: readonly NavigationGroup[] = [
  {
    name: "Crawl",
    entries: [
      tab(["/", "Overview", "read"]),
      tab(["/who", "Look up", "read"]),
      tabbed("Explore", ["/explore", "Explore", "read"], ["/graph", "Web graph", "read"]),
      tabbed(
        "Queue",
        ["/fleet/queue", "Queue", "read"],
        ["/fleet/in-hand", "In progress", "read"],
        ["/fleet/failures", "Failures", "read"],
        ["/fleet/recrawl", "Recrawl", "fleet-read"],
      ),
      tabbed(
        "Reports",
        ["/reports/coverage", "Coverage", "read"],
        ["/reports/organisations", "Organisations", "read"],
        ["/reports/subnets", "Subnets", "read"],
        ["/reports/crawlers", "Crawlers", "read"],
        ["/reports/placement", "Placement", "read"],
        ["/accuracy", "Accuracy", "read"],
      ),
      tab(["/registry", "Registry", "read"]),
    ],
  },
  {
    name: "Fleet",
    entries: [
      tab(["/fleet", "Crawlers", "read", "/crawlers"]),
      tab(["/fleet/invitations", "Invitations", "fleet-read", "/fleet/invite"]),
      tabbed(
        "Trust",
        ["/fleet/trust", "Trust", "fleet-read"],
        ["/fleet/incidents", "Incidents", "fleet-read"],
      ),
      tabbed(
        "Versions",
        ["/fleet/versions", "Versions", "fleet-read"],
        ["/fleet/moves", "Moves", "fleet-read"],
        ["/coordinators", "Coordinators", "fleet-read"],
      ),
      tab(["/alerts", "Alerts", "read"]),
      tabbed(
        "Policies",
        ["/policies", "Policies", "read"],
        ["/storage", "Storage", "read"],
        ["/audit", "Audit log", "audit-read"],
      ),
    ],
  },
  {
    name: "Sites and webmasters",
    entries: [
      tab(["/sites", "Sites", "read"]),
      tab(["/search", "Search", "read", "/pages"]),
      tab(["/changes", "Changes", "read"]),
      tabbed(
        "Channels",
        ["/channels", "Channels", "read"],
        ["/coverage", "Channel coverage", "read"],
        ["/submit", "Submit", "url-write", "/submissions"],
      ),
      tab(["/fleet/site-caps", "Caps", "read"]),
      tabbed(
        "Opt-outs",
        ["/fleet/opt-outs", "Opt-outs", "fleet-read"],
        ["/fleet/complaints", "Complaints", "fleet-read"],
        ["/about-crawler", "About this crawler", null],
      ),
    ],
  },
];

/**
 * What this person may open. An entry whose own page is not for them goes by its first tab that is. A partner's crawlers, of
 * which the account lists all, come first.
 */
export function navigationFor(actor: Actor): readonly NavigationGroup[] {
  const own = ownCrawlers(actor);
  const groups = own.length > 0 ? [{ name: "Your crawlers", entries: own.map(crawlerTab) }] : [];
  for (const { name, entries } of navigation) {
    const open = entries.flatMap((entry) => openEntry(entry, actor) ?? []);
    if (open.length > 0) groups.push({ name, entries: open });
  }
  return groups;
}

function openEntry(entry: NavigationEntry, actor: Actor): NavigationEntry | null {
  if (entry.tabs === undefined) return mayDo(actor, entry.needs) ? entry : null;
  const tabs = entry.tabs.filter(({ needs }) => mayDo(actor, needs));
  const [first] = tabs;
  if (first === undefined) return null;
  const name = first.path === entry.path ? entry.name : first.name;
  return { ...first, name, tabs };
}

/** What a partner has in place of the rest. */
export function ownCrawlers({ role, crawlers }: Actor): readonly string[] {
  return role === "partner" ? crawlers.slice(0, 5) : [];
}

function crawlerTab(name: string): NavigationEntry {
  return { path: `/crawlers/${encodeURIComponent(name)}`, name, needs: null };
}

export interface NavigationPlace {
  readonly group: NavigationGroup;
  readonly entry: NavigationEntry;
  /** Null: the entry has no tabs. */
  readonly tab: NavigationTab | null;
}

/** Of a page in these groups; null: it stands in none of them (an account, an error). */
export function placeOf(path: string, groups: readonly NavigationGroup[]): NavigationPlace | null {
  let place: NavigationPlace | null = null;
  let longest = 0;
  for (const group of groups) {
    for (const entry of group.entries) {
      for (const one of entry.tabs ?? [entry]) {
        const length = lengthWithin(path, one);
        if (length <= longest) continue;
        longest = length;
        place = { group, entry, tab: entry.tabs === undefined ? null : one };
      }
    }
  }
  return place;
}

/** Of the longest of its paths that the page lies below; the overview's has nothing below it. 0: none. */
function lengthWithin(path: string, { path: own, also = [] }: NavigationTab): number {
  const within = [own, ...also].filter((one) => path === one || (one !== "/" && path.startsWith(`${one}/`)));
  return Math.max(0, ...within.map(({ length }) => length));
}
