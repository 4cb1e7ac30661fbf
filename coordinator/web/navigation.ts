/**
 * The navigation: three groups of at most six entries, some with tabs, made from the operations' pages. Any other page
 * belongs to the entry whose path is the longest prefix of its own.
 */
import { type Actor, mayDo, type Scope } from "#core/actor";

interface NavigationTab {
  readonly path: string;
  readonly name: string;
  /** The scope of its operation; null if it is public. */
  readonly needs: Scope | null;
  /** Further paths that belong to this tab. */
  readonly also?: readonly string[];
}

export interface NavigationEntry extends NavigationTab {
  /** The first tab is the entry's own page. Absent if there is only one page. */
  readonly tabs?: readonly NavigationTab[];
}

export interface NavigationGroup {
  readonly name: string;
  readonly entries: readonly NavigationEntry[];
}

/** An operation's place in the navigation. */
export interface PageEntry {
  /** Null if only the search (`find`) leads to it. */
  readonly group: keyof typeof groupNames | null;
  readonly order?: number;
  readonly entry: string;
  /** The tab's name, when the entry has several pages. */
  readonly tab?: string;
  readonly also?: readonly string[];
  /** Default: the operation's page. */
  readonly path?: string;
}

export interface Listed {
  readonly path: string;
  readonly page?: string | null;
  readonly needs: Scope | null;
  readonly summary: string;
  readonly navigation?: PageEntry;
  readonly alsoFound?: string;
}

const groupNames = { Crawl: "Crawl", Fleet: "Fleet", Sites: "Sites and webmasters" };

const groupKeys = Object.keys(groupNames);

/** Returns the pages by group and order. Those without a group come last. */
export const placedPages = (operations: readonly Listed[]) =>
  operations
    .flatMap(({ navigation, page, path, ...one }) => {
      if (navigation === undefined) return [];
      const { group, order = 0 } = navigation;
      const groupName = group && groupNames[group];
      const place = group === null ? Number.POSITIVE_INFINITY : groupKeys.indexOf(group) * 100 + order;
      return [{ ...one, path: page ?? path, groupName, place, ...navigation }];
    })
    .sort((a, b) => (a.place < b.place ? -1 : Number(a.place > b.place)));

export function navigationOf(operations: readonly Listed[]): readonly NavigationGroup[] {
  const pages = placedPages(operations);
  return Object.entries(groupNames).map(([key, name]) => {
    const own = pages.filter(({ group }) => group === key);
    const entries = [...new Set(own.map(({ entry }) => entry))].map((entry) => {
      const tabs = own
        .filter((one) => one.entry === entry)
        .map(({ path, tab, needs, also = [] }) => ({ path, name: tab ?? entry, needs, also }));
      return { ...tabs[0]!, name: entry, ...(tabs.length > 1 ? { tabs } : {}) };
    });
    return { name, entries };
  });
}

/**
 * Returns the entries that the actor may open. An entry whose first page is forbidden starts at its first permitted tab. A
 * partner's own crawlers come first.
 */
export function navigationFor(
  actor: Actor,
  navigation: readonly NavigationGroup[],
): readonly NavigationGroup[] {
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

export function ownCrawlers({ role, crawlers }: Actor): readonly string[] {
  return role === "partner" ? crawlers.slice(0, 5) : [];
}

function crawlerTab(name: string): NavigationEntry {
  return { path: `/crawlers/${encodeURIComponent(name)}`, name, needs: null };
}

export interface NavigationPlace {
  readonly group: NavigationGroup;
  readonly entry: NavigationEntry;
  /** Null when the entry has no tabs. */
  readonly tab: NavigationTab | null;
}

/** Returns the position of a page, or null if it belongs to no group (an account, an error). */
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

/** Returns the length of the entry's longest path that contains the page, or 0. No page counts as below the overview. */
function lengthWithin(path: string, { path: own, also = [] }: NavigationTab): number {
  const within = [own, ...also].filter((one) => path === one || (one !== "/" && path.startsWith(`${one}/`)));
  return Math.max(0, ...within.map(({ length }) => length));
}
